"""A small code repository in a folder: a seed to its world, with tasks and scripted agents."""

from seatrial.examples.coderepo.clerks import AGENTS
from seatrial.examples.coderepo.tasks import TASKS
from seatrial.examples.coderepo.world import build, start
from seatrial.examples.domain import Domain

DOMAIN = Domain(name="coderepo", build=build, start=start, tasks=TASKS, agents=AGENTS)

clean, curious, hasty, messy, flaky, careless = AGENTS
"""The agents by habit, e.g. ``--agent python:seatrial.examples.coderepo:clean``."""

__all__ = ["AGENTS", "DOMAIN", "TASKS", "careless", "clean", "curious", "flaky", "hasty", "messy"]
