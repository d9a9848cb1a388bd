"""A calendar and mail assistant in memory: a seed to its world, with tasks and scripted agents."""

from seatrial.examples.assistant.clerks import AGENTS
from seatrial.examples.assistant.tasks import TASKS
from seatrial.examples.assistant.world import build, start
from seatrial.examples.domain import Domain

DOMAIN = Domain(name="assistant", build=build, start=start, tasks=TASKS, agents=AGENTS)
