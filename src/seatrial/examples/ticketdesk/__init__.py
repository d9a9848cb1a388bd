"""A ticket desk on SQLite: a seed to its world, with tasks and scripted agents."""

from seatrial.examples.domain import Domain
from seatrial.examples.ticketdesk.clerks import AGENTS
from seatrial.examples.ticketdesk.tasks import TASKS
from seatrial.examples.ticketdesk.world import build, start

DOMAIN = Domain(name="ticketdesk", build=build, start=start, tasks=TASKS, agents=AGENTS)

clean, curious, hasty, messy, flaky, careless = AGENTS
"""The agents by habit, e.g. ``--agent python:seatrial.examples.ticketdesk:clean``."""

__all__ = ["AGENTS", "DOMAIN", "TASKS", "careless", "clean", "curious", "flaky", "hasty", "messy"]
