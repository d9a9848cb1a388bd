"""Where a run's world comes from, in plain values, so that another process can make it."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from seatrial.errors import UsageError
from seatrial.flows.suite import open_suite
from seatrial.records import Task, World
from seatrial.suites import Suite
from seatrial.suites.attempt import prepared

BUILD = "seatrial.flows.origins:world"


def origin(suite: Suite, spec: str | None, task: Task, seed: int) -> dict[str, Any] | None:
    """What `world` needs; None where the suite was made in this process and no word names it."""
    named = spec or suite.file
    return None if named is None else {"build": BUILD, "suite": named, "task": task.id, "seed": seed}


def world(origin: dict[str, Any]) -> World:
    """A fresh world in the start of the task's attempt with this seed.

    Raises:
        InputError: the suite cannot be read.
        UsageError: it has no such task.
    """
    suite = _suite(str(origin["suite"]))
    task = next((t for t in suite.tasks if t.id == origin["task"]), None)
    if task is None:
        raise UsageError(f"the suite {suite.name} has no task {origin['task']!r}")
    return prepared(suite, task, int(origin["seed"]))


def warm(origin: dict[str, Any]) -> None:
    """Load the suite's code, and make no world."""
    _suite(str(origin["suite"]))


@lru_cache(maxsize=8)
def _suite(spec: str) -> Suite:
    return open_suite(spec)
