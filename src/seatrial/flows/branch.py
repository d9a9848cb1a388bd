"""Recovery's story up to the pairs table: a world, an agent and a design to branches, and one file (METHODS 4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from seatrial.errors import EvidenceError, UsageError
from seatrial.recovery import pairs as table
from seatrial.recovery.plan import Forecast, Plan, Progress, carry_out, forecast, select, shards, summary
from seatrial.recovery.sources import source


class Branching(msgspec.Struct, frozen=True, kw_only=True):
    """What branching came to. `clean_success` is the share of factual runs that succeed; `discordant` counts placebo
    pairs that differ: for a deterministic agent any is a defect. `skipped` names tasks without pairs, with the reason.
    """

    forecast: Forecast
    tasks: int
    pairs: int
    branches: int
    core_hours: float
    clean_success: float | None
    actions: float | None
    placebo: int
    discordant: int
    terminated: int
    skipped: dict[str, str] = {}
    file: str | None = None


def plan_of(plan: Plan, *, tasks: Sequence[str] = (), sample: int | None = None) -> Plan:
    """The plan for the named tasks, or for `sample` drawn ones (None: all), in the order of the draw.

    Raises:
        UsageError: a task is not in the world, or fewer are there than are to be drawn.
    """
    there = source(plan.world).tasks()
    if tasks:
        absent = [t for t in tasks if t not in set(there)]
        if absent:
            raise UsageError(
                f"no task {absent[0]!r} in {plan.world}", hint=f"there are {len(there)}, e.g. {there[0]!r}"
            )
        return msgspec.structs.replace(plan, tasks=tuple(tasks))
    return msgspec.structs.replace(plan, tasks=select(there, limit=sample, seed=plan.seed))


def branch(
    plan: Plan,
    folder: Path,
    *,
    out: Path | None = None,
    workers: int = 2,
    dry: bool = False,
    foresee: Callable[[Forecast], None] | None = None,
    progress: Progress | None = None,
) -> Branching:
    """Carry out a plan whose shards are in `folder`, and write the pairs to `out`.

    `foresee` is told first what it will take. `dry`: that alone; the tasks that it was timed on are kept.

    Raises:
        EvidenceError: no task gave a pair.
        SeatrialError: whatever the world or the agent raised; finished shards are kept.
    """
    folder.mkdir(parents=True, exist_ok=True)
    expected = forecast(plan, folder, workers=workers)
    if foresee is not None:
        foresee(expected)
    if not dry:
        for _ in carry_out(plan, folder, workers=workers, progress=progress):
            pass
    found = list(shards(plan, folder))
    pairs = [p for s in found for p in s.pairs]
    if not dry and not pairs:
        raise EvidenceError("no task gave a pair", hint="in none of them did the agent act")
    if out is not None and not dry:
        table.write(pairs, out)
    told = summary(found)
    return Branching(
        forecast=expected,
        tasks=len(found),
        pairs=len(pairs),
        branches=told["branches"],
        core_hours=told["core_hours"],
        clean_success=told["clean_success"],
        actions=told["actions"],
        placebo=sum(p.placebo and not p.terminated for p in pairs),
        discordant=told["discordant"],
        terminated=sum(p.terminated for p in pairs),
        skipped={s.task: s.skipped for s in found if s.skipped is not None},
        file=str(out) if out is not None and not dry else None,
    )
