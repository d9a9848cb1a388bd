"""What is to be branched, how long it will take, and the work itself: in parallel, one shard per task, resumable."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Literal

import msgspec

from seatrial.canon import content_hash
from seatrial.engine.local import map_sessions
from seatrial.errors import InputError, UsageError
from seatrial.records import Pair
from seatrial.recovery import features
from seatrial.recovery.branch import Branched, Design, branch
from seatrial.recovery.live import Ending
from seatrial.recovery.operate import operation
from seatrial.recovery.perturb import condition
from seatrial.recovery.sources import Source, agent, source

RECYCLE = 40
"""Tasks after which worker processes are started anew: a game stays in memory for as long as its process lives."""

Progress = Callable[[int, int | None, str], None]


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """One agent, one design, some tasks; everything by name, so that a worker process can make its own.

    `world` is a source's spec, `agent` an agent's. Conditions, operations, delays, replays and mode are those of
    `branch.Design`. `cohort` is written in the table, to keep fitting and test tasks apart.
    """

    world: str
    agent: str
    tasks: tuple[str, ...]
    conditions: tuple[str, ...] = ("clean", "stale-1", "stale-2", "missing")
    operations: tuple[str, ...] = ("refresh",)
    delays: tuple[int, ...] = (0, 1, 2, 4)
    replays: int = 1
    redraw: bool = False
    placebo: bool = True
    mode: Literal["snapshot", "replay", "fork"] = "snapshot"
    share: float = 0.25
    max_actions: int = 50
    seed: int = 0
    cohort: str | None = None

    def design(self) -> Design:
        """The design.

        Raises:
            UsageError: a name is not known, or a number out of range.
        """
        return Design(
            conditions=tuple(condition(name) for name in self.conditions),
            operations=tuple(operation(name) for name in self.operations),
            delays=self.delays,
            share=self.share,
            replays=self.replays,
            redraw=self.redraw,
            placebo=self.placebo,
            mode=self.mode,
            cohort=self.cohort,
        )

    def fingerprint(self) -> str:
        """What a shard must have been made with to be used again, the agent's version included: all but the list of
        tasks, and the mode, which changes the cost alone."""
        parts = msgspec.to_builtins(self) | {"version": agent(self.agent).version}
        for name in ("tasks", "mode", "world"):
            del parts[name]
        return content_hash([parts, features.VERSION])[:16]


class Shard(msgspec.Struct, frozen=True, kw_only=True):
    """What one task came to, on disk. `seconds` of processor time, the loading of its world included."""

    plan: str
    task: str
    pairs: tuple[Pair, ...]
    at: int
    factual: Ending
    runs: int
    seconds: float
    discordant: int
    skipped: str | None = None


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """What a plan will take. `branches` counts continuations at most; `done` tasks have their shards already.
    `core_hours` and `eta_hours` (by the clock, at `workers` undisturbed processes) are for what is left, from `pilot`
    tasks that were timed; None where none was."""

    tasks: int
    done: int
    branches: int
    pilot: int
    core_hours: float | None
    eta_hours: float | None
    workers: int


def forecast(plan: Plan, folder: Path, *, workers: int, pilot: int = 1) -> Forecast:
    """Look at the shards that there are; where there are none, carry out `pilot` tasks and keep them.

    Raises:
        SeatrialError: whatever the world or the agent raised.
    """
    design = plan.design()
    done = list(shards(plan, folder))
    if not done and pilot:
        for task in plan.tasks[:pilot]:
            _work(plan, folder, task)
        done = list(shards(plan, folder))
    left = len(plan.tasks) - len(done)
    seconds = sum(s.seconds for s in done) / len(done) if done else None
    hours = None if seconds is None else left * seconds / 3600.0
    return Forecast(
        tasks=len(plan.tasks), done=len(done), branches=left * design.continuations(), pilot=len(done),
        core_hours=hours, eta_hours=None if hours is None else hours / workers, workers=workers,
    )  # fmt: skip


def carry_out(plan: Plan, folder: Path, *, workers: int = 2, progress: Progress | None = None) -> Iterator[Shard]:
    """The shards of a plan, those that are on disk first, then the rest as they are done. Killed and begun again, it
    goes on where it was.

    Raises:
        SeatrialError: whatever the world or the agent raised, with the task named; finished shards are kept.
    """
    folder.mkdir(parents=True, exist_ok=True)
    plan.design()
    have = {s.task: s for s in shards(plan, folder)}
    yield from have.values()
    left = [task for task in plan.tasks if task not in have]
    done = len(have)
    for begin in range(0, len(left), RECYCLE):
        some = left[begin : begin + RECYCLE]
        for shard in map_sessions(partial(_work, plan, folder), some, workers=workers, what="tasks"):
            done += 1
            if progress is not None:
                progress(done, len(plan.tasks), "tasks")
            yield shard


def shards(plan: Plan, folder: Path) -> Iterator[Shard]:
    """The plan's shards that are on disk, in the order of its tasks.

    Raises:
        InputError: a shard is damaged.
    """
    fingerprint = plan.fingerprint()
    for task in plan.tasks:
        path = _path(folder, fingerprint, task)
        if path.exists():
            yield read_shard(path)


def read_shard(path: Path) -> Shard:
    """One shard.

    Raises:
        InputError: it is damaged.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=Shard)
    except msgspec.DecodeError as error:
        raise InputError(
            f"the shard is damaged: {error}", file=str(path), hint="remove it; it is made again"
        ) from error


def select(tasks: Sequence[str], *, limit: int | None, seed: int = 0) -> tuple[str, ...]:
    """`limit` tasks drawn at random, or all of them, in the order of the draw: whatever is done when the work is
    interrupted is a random sample.

    Raises:
        UsageError: there are fewer.
    """
    import random

    if limit is not None and not 0 < limit <= len(tasks):
        raise UsageError(f"{limit} of {len(tasks)} tasks cannot be drawn")
    return tuple(random.Random(f"tasks:{seed}").sample(list(tasks), len(tasks) if limit is None else limit))


def _work(plan: Plan, folder: Path, task: str) -> Shard:
    begun = time.process_time()
    case = _source(plan.world).case(task, agent(plan.agent), max_actions=plan.max_actions, seed=plan.seed)
    made: Branched = branch(case, plan.design())
    shard = Shard(
        plan=plan.fingerprint(), task=task, pairs=made.pairs, at=made.at, factual=made.factual, runs=made.runs,
        seconds=time.process_time() - begun, discordant=made.discordant, skipped=made.skipped,
    )  # fmt: skip
    path = _path(folder, shard.plan, task)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}.part")
    part.write_bytes(msgspec.json.encode(shard))
    part.replace(path)
    return shard


@lru_cache(maxsize=2)
def _source(spec: str) -> Source:
    """One per process: thousands of games are listed once."""
    return source(spec)


def _path(folder: Path, fingerprint: str, task: str) -> Path:
    return folder / fingerprint / f"{content_hash(task)[:20]}.json"


def summary(found: Sequence[Shard]) -> dict[str, Any]:
    """What the shards of one plan took and gave: tasks, continuations, core-hours, factual success."""
    kept = [s for s in found if s.skipped is None]
    return {
        "tasks": len(found),
        "skipped": len(found) - len(kept),
        "branches": sum(s.runs for s in found),
        "core_hours": sum(s.seconds for s in found) / 3600.0,
        "clean_success": sum(s.factual.outcome for s in found) / len(found) if found else None,
        "discordant": sum(s.discordant for s in found),
        "actions": sum(s.factual.actions for s in found) / len(found) if found else None,
    }
