"""A suite: tasks, the world that they are set in, and which of them are held out."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Literal

from seatrial.canon import content_hash
from seatrial.errors import InputError, UsageError
from seatrial.records import Approver, Counterpart, Task, World
from seatrial.suites.hashing import task_hash
from seatrial.suites.sources import code_hash

Part = Literal["dev", "holdout"]
HOLDOUT_SHARE = 0.3


class Suite:
    """Tasks with their world.

    `world(seed)` makes a fresh world for one attempt; None: the tasks need none (the agent brings its own, or only
    talks). `counterpart(task)` is whoever the agent works for; None: the task's input is the only message.
    `approver(task)` decides on gated calls; None: they are denied. `drafts` are ids of tasks that no person has
    approved yet: they are never run. `lines` are the lines of `file` where tasks stand, by id, as far as known.
    """

    def __init__(
        self,
        name: str,
        tasks: tuple[Task, ...],
        *,
        world: Callable[[int], World] | None = None,
        counterpart: Callable[[Task], Counterpart] | None = None,
        approver: Callable[[Task], Approver] | None = None,
        agents: Mapping[str, Any] | None = None,
        drafts: tuple[str, ...] = (),
        file: str | None = None,
        holdout: float = HOLDOUT_SHARE,
        lines: Mapping[str, int] | None = None,
    ) -> None:
        """Raises InputError when two tasks have one id, UsageError for a hold-out share outside [0, 1)."""
        seen: set[str] = set()
        for task in tasks:
            if task.id in seen:
                raise InputError(f"two tasks have the id {task.id!r}", file=file, hint="every task needs its own id")
            seen.add(task.id)
        if not 0.0 <= holdout < 1.0:
            raise UsageError(f"the share held out must be at least 0 and below 1, got {holdout}")
        self.name = name
        self.tasks = tasks
        self.world = world
        self.counterpart = counterpart
        self.approver = approver
        self.agents = dict(agents or {})
        self.drafts = drafts
        self.file = file
        self.holdout = holdout
        self.lines = dict(lines or {})

    @cached_property
    def hashes(self) -> dict[str, str]:
        """Content hash of every task, by id."""
        return {task.id: task_hash(task) for task in self.tasks}

    @cached_property
    def version(self) -> str:
        """Hash of the whole suite: names and contents of its tasks."""
        return content_hash([self.name, self.hashes])

    @cached_property
    def code(self) -> str:
        """Hash of the code that the suite names: world, counterpart, approver, setups and checks, each with the files
        that it imports from its own folder or package. A change of it makes other attempts of the same tasks."""
        named = [self.world, self.counterpart, self.approver]
        named += [value for task in self.tasks for value in (task.setup, task.check_final) if callable(value)]
        return code_hash(one for one in named if one is not None)

    def part(self, task: Task) -> Part:
        """Whether a task may be looked at while an agent is being improved."""
        given = task.extra.get("part")
        if given in ("dev", "holdout"):
            return "dev" if given == "dev" else "holdout"
        return part_of(_family(task), self.holdout)

    def select(self, ids: tuple[str, ...] = (), part: Part | None = None) -> tuple[Task, ...]:
        """The tasks with these ids (none: all), of one part only if asked.

        Raises:
            UsageError: an id is unknown.
        """
        known = {t.id for t in self.tasks}
        for one in ids:
            if one not in known:
                raise UsageError(f"the suite {self.name} has no task {one!r}", hint=f"it has {len(known)} tasks")
        chosen = [t for t in self.tasks if not ids or t.id in ids]
        return tuple(t for t in chosen if part is None or self.part(t) == part)


def part_of(key: str, share: float = HOLDOUT_SHARE) -> Part:
    """Part by hash, so that adding a task moves no other between the parts."""
    draw = int.from_bytes(hashlib.sha256(f"part:{key}".encode()).digest()[:8], "big") / 2**64
    return "holdout" if draw < share else "dev"


def _family(task: Task) -> str:
    """Variations of one task stay together: a hold-out that holds a sibling of a seen task holds nothing out."""
    return str(task.extra.get("template") or task.id)
