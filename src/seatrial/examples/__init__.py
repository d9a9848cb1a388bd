"""A seed to sessions: built-in worlds with tasks, scripted agents and simulated users, for demonstrations and tests."""

from seatrial.examples.catalogue import domains
from seatrial.examples.domain import Domain

__all__ = ["Domain", "domains"]
