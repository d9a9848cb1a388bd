"""What a worked domain is: a world, its usual start, tasks, and agents of different quality."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from seatrial.records import Task, World, WorldStart
from seatrial.records.protocols import AgentUnderTest


class Domain(msgspec.Struct, frozen=True, kw_only=True):
    """One worked domain.

    `build()` makes a fresh world; `start(seed)` its usual start state; `world(seed)` both: a world that has been
    reset to it. A task with another start names it in `setup` (``module:function`` from a seed to a `WorldStart`).
    `agents` run from clean to careless; each is a scripted agent that reads its task from the first message.
    """

    name: str
    build: Callable[[], World]
    start: Callable[[int], WorldStart]
    tasks: tuple[Task, ...]
    agents: tuple[AgentUnderTest, ...]

    def world(self, seed: int) -> World:
        """A new world, reset to the usual start of `seed`."""
        world = self.build()
        world.reset(self.start(seed))
        return world
