"""OTLP requests to a store: acknowledged once they are on disk, committed soon after, never twice."""

from seatrial.server.settings import ServerSettings

__all__ = ["ServerSettings"]
