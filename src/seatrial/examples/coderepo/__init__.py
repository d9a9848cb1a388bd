"""A small code repository in a folder: a seed to its world, with tasks and scripted agents."""

from seatrial.examples.coderepo.clerks import AGENTS
from seatrial.examples.coderepo.tasks import TASKS
from seatrial.examples.coderepo.world import build, start
from seatrial.examples.domain import Domain

DOMAIN = Domain(name="coderepo", build=build, start=start, tasks=TASKS, agents=AGENTS)
