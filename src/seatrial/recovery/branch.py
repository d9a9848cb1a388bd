"""A case to pairs: continuations with and without recovery from one saved state, exactly (METHODS 4.1, 4.2).

Every branch begins where the reference run stood: the same state of the world, the same turns, the same input to the
agent, byte for byte; each is checked before the operation is applied.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from seatrial.canon import content_hash
from seatrial.errors import CheckFailed, UsageError
from seatrial.records import Pair
from seatrial.recovery.features import features
from seatrial.recovery.forked import forked
from seatrial.recovery.live import Case, Checkpoint, Ending, Run
from seatrial.recovery.operate import OPERATIONS, Nothing, Operation
from seatrial.recovery.perturb import CONDITIONS, Perturbation

Mode = Literal["snapshot", "replay", "fork"]
NOTHING = Nothing()
PLACEBO = "placebo"


@dataclass(frozen=True, kw_only=True)
class Design:
    """What is branched for each task.

    `share` of the factual run's actions come before the altered observation. `delays` are environment actions after
    it. `replays` continuations are drawn for each branch; `redraw` gives a continuation draws of its own even where
    there is only one (needed by an agent that draws: METHODS 4.2). `placebo`: a second branch without recovery from
    each state. `mode` is how a state is come back to: the world's snapshot, a replay of the prefix in a new run, or a
    fork of the process.
    """

    conditions: tuple[Perturbation, ...] = CONDITIONS
    operations: tuple[Operation, ...] = OPERATIONS[1:2]
    delays: tuple[int, ...] = (0, 1, 2, 4)
    share: float = 0.25
    replays: int = 1
    redraw: bool = False
    placebo: bool = True
    mode: Mode = "snapshot"
    cohort: str | None = None

    def __post_init__(self) -> None:
        if not self.conditions or not self.operations or not self.delays:
            raise UsageError("a design needs at least one condition, one operation and one delay")
        if min(self.delays) < 0 or self.replays < 1 or not 0.0 < self.share <= 1.0:
            raise UsageError("delays are at least 0, replays at least 1, and the share lies in (0, 1]")

    @property
    def drawing(self) -> bool:
        """Continuations have draws of their own."""
        return self.redraw or self.replays > 1

    def continuations(self) -> int:
        """The most runs that one task takes, the factual one included."""
        points = len(self.conditions) * len(self.delays)
        if self.drawing:
            return 1 + len(self.conditions) + points * self.replays * (1 + len(self.operations))
        return 1 + len(self.conditions) + points * (len(self.operations) + int(self.placebo))


@dataclass(frozen=True, kw_only=True)
class Branched:
    """One task's pairs. `at` is the action whose observation was altered; `factual` how the unaltered run ended;
    `runs` continuations were carried out in `seconds` of processor time; `discordant` counts pairs of placebo branches
    that differ. `skipped` says why there are no pairs."""

    task: str
    pairs: tuple[Pair, ...]
    at: int
    factual: Ending
    runs: int
    seconds: float
    skipped: str | None = None
    discordant: int = 0


def branch(case: Case, design: Design) -> Branched:
    """Run one task under every condition, delay and operation of `design`.

    Raises:
        CheckFailed: a branch did not begin where the reference run stood.
        SeatrialError: whatever the world or the agent's server raised; nothing of the task is kept then.
    """
    begun = time.process_time()
    factual = Run(case)
    try:
        ending = factual.finish()
    finally:
        factual.close()
    runs = 1
    if ending.actions == 0:
        seconds = time.process_time() - begun
        return Branched(task=case.task, pairs=(), at=0, factual=ending, runs=runs, seconds=seconds,
                        skipped="the factual run took no action")  # fmt: skip
    at = max(1, math.ceil(design.share * ending.actions))
    pairs: list[Pair] = []
    for condition in design.conditions:
        reference = Run(case, condition, at)
        try:
            done, count = _condition(reference, design, factual)
        finally:
            reference.close()
        pairs += done
        runs += count
    discordant = sum(1 for p in pairs if p.placebo and p.y0 != p.y1)
    seconds = time.process_time() - begun
    return Branched(task=case.task, pairs=tuple(pairs), at=at, factual=ending, runs=runs, seconds=seconds,
                    discordant=discordant)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class _Point:
    """A branch point: what was known there, and the outcomes of each operation's continuations, one per replay.
    `checkpoint` None: the run had ended. Outcomes are filled in by `_branch_off`."""

    delay: int
    known: dict[str, float]
    checkpoint: Checkpoint | None
    outcomes: dict[str, list[float]] = field(default_factory=dict)


def _condition(reference: Run, design: Design, factual: Run) -> tuple[list[Pair], int]:
    """Pairs of one condition. The reference run goes on without recovery and stops at every delay on its way."""
    case, condition, at = reference.case, reference.condition, reference.at
    reference.advance(at - 1)
    _same_prefix(case, factual, reference, at)
    points = []
    for delay in sorted(set(design.delays)):
        reference.advance(at + delay)
        known = features(reference.history, max_actions=case.max_actions, max_context=case.max_context)
        point = _Point(delay=delay, known=known, checkpoint=None if reference.ended else reference.checkpoint())
        if design.mode == "fork":
            _branch_off(point, design, condition, reference)
        points.append(point)
    ending = reference.finish()
    pairs: list[Pair] = []
    for point in points:
        if design.mode != "fork":
            _branch_off(point, design, condition, None)
        base = Pair(
            task=case.task, condition=condition.name, operation=NOTHING.name, delay=point.delay, y0=ending.outcome,
            y1=ending.outcome, cohort=design.cohort, agent=case.agent.name, features=point.known,
            terminated=point.checkpoint is None,
        )  # fmt: skip
        pairs += _carried(base, design) if point.checkpoint is None else _paired(base, design, point)
    return pairs, 1 + sum(len(values) for point in points for values in point.outcomes.values())


def _branch_off(point: _Point, design: Design, condition: Perturbation, here: Run | None) -> None:
    """Carry out every continuation from this point. `here`: the live run to fork from."""
    if point.checkpoint is None:
        return
    wanted: list[tuple[str, Operation]] = [(o.name, o) for o in design.operations]
    if design.drawing:
        wanted.append((NOTHING.name, NOTHING))
    if design.placebo and design.replays == 1:
        wanted.append((PLACEBO, NOTHING))
    case = point.checkpoint.run.case
    for tag, operation in wanted:
        endings = []
        for k in range(design.replays):
            seed = _seed(case, condition.name, point.delay, tag, k) if design.drawing else None
            endings.append(continue_from(point.checkpoint, operation, design.mode, seed, here))
        point.outcomes[tag] = [e.outcome for e in endings]


def _paired(base: Pair, design: Design, point: _Point) -> list[Pair]:
    """The pairs of one branch point. Where nothing is drawn, the reference run itself is the one without recovery."""
    none = point.outcomes.get(NOTHING.name, [base.y0])
    pairs = [
        msgspec.structs.replace(base, operation=operation.name, y0=y0, y1=y1, replay=k)
        for operation in design.operations
        for k, (y0, y1) in enumerate(zip(none, point.outcomes[operation.name], strict=True))
    ]
    if design.placebo:
        again = point.outcomes.get(PLACEBO, none[1:] + none[:1])
        pairs += [
            msgspec.structs.replace(base, y0=y0, y1=y1, replay=k, placebo=True)
            for k, (y0, y1) in enumerate(zip(none, again, strict=True))
        ]
    return pairs


def continue_from(
    checkpoint: Checkpoint, operation: Operation, mode: Mode, seed: int | None = None, here: Run | None = None
) -> Ending:
    """One continuation with `operation` from a state, to its end.

    `seed`: draws of its own; None: the prefix's go on. `here` is the live run that stands at the checkpoint, needed to
    fork; it is left as it was.

    Raises:
        CheckFailed: the state could not be come back to exactly.
        UsageError: forking is not possible on this system, or there is no live run to fork.
    """
    if mode == "fork":
        if here is None:
            raise UsageError("there is no live run to fork", hint="branch by snapshot or by replay")
        live = here
        return forked(lambda: _continue(live, checkpoint, operation, seed))
    run = checkpoint.replayed() if mode == "replay" else checkpoint.restored()
    try:
        return _continue(run, checkpoint, operation, seed)
    finally:
        if mode == "replay" or checkpoint.conversation is None:
            run.close()  # begun for this branch; a copy shares what the reference run holds


def _continue(run: Run, checkpoint: Checkpoint, operation: Operation, seed: int | None) -> Ending:
    if run.mark() != checkpoint.mark:
        raise CheckFailed(
            f"{run.case.task}: a branch did not begin in the state that the reference run was in",
            hint="the world or the agent is not deterministic; give the agent's conversation a copy() method",
        )
    if seed is not None:
        run.reseed(seed)
    run.operate(operation)
    return run.finish()


def _carried(base: Pair, design: Design) -> list[Pair]:
    """A task that had ended: every operation comes too late, and its outcome stands on both sides."""
    names = [o.name for o in design.operations]
    pairs = [msgspec.structs.replace(base, operation=name, replay=k) for name in names for k in range(design.replays)]
    if design.placebo:
        pairs += [msgspec.structs.replace(base, placebo=True, replay=k) for k in range(design.replays)]
    return pairs


def _same_prefix(case: Case, factual: Run, reference: Run, at: int) -> None:
    """Before the altered observation a condition's run is the factual one.

    Raises:
        CheckFailed: it is not.
    """
    if reference.prefix(at - 1) != factual.prefix(at - 1):
        raise CheckFailed(
            f"{case.task}: the same start and seed gave another run before the observation was altered",
            hint="branching needs a world and an agent that repeat themselves; use a seed, or record the agent",
        )


def _seed(case: Case, condition: str, delay: int, tag: str, replay: int) -> int:
    """A number from all that names the continuation: draws do not depend on the order in which branches run."""
    return int(content_hash([case.task, case.seed, condition, delay, tag, replay])[:8], 16)
