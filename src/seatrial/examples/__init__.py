"""A seed to sessions: built-in worlds with tasks, scripted agents and simulated users, for demonstrations and tests."""

from seatrial.examples.domains import Domain, domains

__all__ = ["Domain", "domains"]
