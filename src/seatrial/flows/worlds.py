"""The world of a recorded run, made again in a fresh process.

What a fresh process imports stands here alone: it forks, and the libraries of tables start threads when they load.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seatrial.flows.suite import open_suite
from seatrial.records import World
from seatrial.suites.attempt import prepared

BUILD = "seatrial.flows.worlds:world_of"
"""Names `world_of` to a fresh process."""


def world_of(origin: Mapping[str, Any]) -> World:
    """The world that an `Evidence.origin` describes, in its start state; for a fresh process."""
    suite = open_suite(str(origin["suite"]))
    task = next(t for t in suite.tasks if t.id == origin["task"])
    return prepared(suite, task, int(origin["seed"]))


def warm(origin: Mapping[str, Any]) -> None:
    """Load the code that `world_of` needs, and make no world: done once, before a fresh process is forked off."""
    open_suite(str(origin["suite"]))
