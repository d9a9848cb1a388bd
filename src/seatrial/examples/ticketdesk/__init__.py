"""A ticket desk on SQLite: a seed to its world, with tasks and scripted agents."""

from seatrial.examples.domain import Domain
from seatrial.examples.ticketdesk.clerks import AGENTS
from seatrial.examples.ticketdesk.tasks import TASKS
from seatrial.examples.ticketdesk.world import build, start

DOMAIN = Domain(name="ticketdesk", build=build, start=start, tasks=TASKS, agents=AGENTS)
