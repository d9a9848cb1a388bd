"""Work for the engine's tests, importable by worker processes."""

from __future__ import annotations

import os
import socket

from seatrial.errors import InputError, MissingExtra


def squares(batch: list[int]) -> list[int]:
    return [n * n for n in batch]


def total(batch: list[float]) -> float:
    return sum(batch)


def fails_at_three(batch: list[int]) -> int:
    if 3 in batch:
        raise ValueError("three is too many")
    return sum(batch)


def refuses(batch: list[str]) -> int:
    raise InputError("a bad file", file="x.jsonl", line=7, hint="mend it")


def lacks(batch: list[str]) -> int:
    raise MissingExtra("fast", "this")


def dies(batch: list[int]) -> int:
    os._exit(9)


def add(a: float, b: float) -> float:
    return a + b


OPEN: list[socket.socket] = []
"""Ports that this process holds as long as it lives."""


def listens(batch: list[int]) -> int:
    """The port of a socket that this worker keeps open."""
    OPEN.append(socket.create_server(("127.0.0.1", 0)))
    return int(OPEN[-1].getsockname()[1])
