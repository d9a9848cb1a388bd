"""A calendar and mail assistant in memory: a seed to its world, with tasks and scripted agents."""

from seatrial.examples.assistant.clerks import AGENTS
from seatrial.examples.assistant.tasks import TASKS
from seatrial.examples.assistant.world import build, start
from seatrial.examples.domain import Domain

DOMAIN = Domain(name="assistant", build=build, start=start, tasks=TASKS, agents=AGENTS)

clean, curious, hasty, messy, flaky, careless = AGENTS
"""The agents by habit, e.g. ``--agent python:seatrial.examples.assistant:clean``."""

__all__ = ["AGENTS", "DOMAIN", "TASKS", "careless", "clean", "curious", "flaky", "hasty", "messy"]
