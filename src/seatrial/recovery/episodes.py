"""Pairs to episodes, a task under a condition with its decision points, and what a rule does to them.

An episode has the decision delays as columns. A policy acts at the first delay at which its rule holds, at most once;
what that rescues and harms is known, because both continuations were run (METHODS 4.4, 4.5).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from seatrial.errors import EvidenceError, UsageError
from seatrial.recovery.table import CLEAN, Bools, Floats, Ints, Pairs, Texts

DELAYS = (1, 2, 4)
"""Decision points of METHODS 4.4, in environment actions after the altered observation."""


@dataclass(frozen=True, slots=True, eq=False)
class Episodes:
    """`n` episodes with `d` decision points and `p` features.

    `x` (n, d, p), `y0`, `y1`, `rescue`, `harm` (n, d), averaged over replays. `alive` (n, d) False: the run had ended
    by then or the pair was not run, so nothing can be done there. `base` (n,) is the outcome without recovery. `given`
    (n, d) False: the pair was not run at all though the run may have been alive.
    """

    task: Texts
    condition: Texts
    delays: tuple[int, ...]
    features: tuple[str, ...]
    x: Floats
    y0: Floats
    y1: Floats
    rescue: Floats
    harm: Floats
    alive: Bools
    given: Bools
    base: Floats

    def __len__(self) -> int:
        return self.task.size

    @property
    def clean(self) -> Bools:
        """Which episodes have no altered observation."""
        return np.asarray(self.condition == CLEAN)

    @property
    def gain(self) -> Floats:
        """Rescue minus harm (n, d)."""
        return self.rescue - self.harm

    def where(self, keep: Bools | Ints) -> Episodes:
        """The episodes at `keep`."""
        columns = ("task", "condition", "x", "y0", "y1", "rescue", "harm", "alive", "given", "base")
        return Episodes(delays=self.delays, features=self.features, **{c: getattr(self, c)[keep] for c in columns})

    def of(self, tasks: Sequence[str]) -> Episodes:
        """The episodes of these tasks."""
        return self.where(np.isin(self.task, list(tasks)))

    def tasks(self) -> list[str]:
        """Task ids, sorted."""
        return [str(t) for t in np.unique(self.task)]


def episodes(pairs: Pairs, operation: str, delays: Sequence[int] = DELAYS) -> Episodes:
    """The episodes of one operation at these delays, by task and condition.

    Raises:
        UsageError: several agents or cohorts, which do not make one policy.
        EvidenceError: no pair of this operation at these delays, or a feature is empty.
    """
    real = pairs.where(~pairs.placebo)
    if not (real.operation == operation).any():
        known = sorted(set(real.operation.tolist()))
        raise EvidenceError(f"no pairs of operation {operation!r}", hint=f"the table has {', '.join(known) or 'none'}")
    part = real.where((real.operation == operation) & np.isin(real.delay, list(delays)))
    wanted = tuple(sorted(set(delays)))
    if not len(part):
        raise EvidenceError(f"no pairs of {operation} at delays {', '.join(map(str, wanted))}")
    agents = sorted(set(part.agent.tolist()))
    if len(agents) > 1:
        raise UsageError(f"the pairs are of {len(agents)} agents: {', '.join(agents)}", hint="choose one: --agent NAME")
    _complete(part)
    tasks, task_code = np.unique(part.task, return_inverse=True)
    conditions, condition_code = np.unique(part.condition, return_inverse=True)
    keys, code = np.unique(task_code * conditions.size + condition_code, return_inverse=True)
    shape = (keys.size, len(wanted))
    column = np.searchsorted(wanted, part.delay)
    flat = code * len(wanted) + column
    n = np.bincount(flat, minlength=keys.size * len(wanted)).reshape(shape)
    seen = np.maximum(n, 1)

    def mean(values: NDArray[np.generic]) -> Floats:
        return np.bincount(flat, np.asarray(values, dtype=np.float64), n.size).reshape(shape) / seen

    y0, y1 = mean(part.y0), mean(part.y1)
    given = n > 0
    x = np.stack([mean(part.x[:, j]) for j in range(len(part.features))], axis=-1) if part.features else None
    base = (y0 * given).sum(axis=1) / given.sum(axis=1)
    return Episodes(
        task=tasks[keys // conditions.size], condition=conditions[keys % conditions.size],
        delays=wanted, features=part.features,
        x=np.zeros((*shape, 0)) if x is None else x,
        y0=y0, y1=y1, rescue=np.where(given, (1.0 - y0) * y1, 0.0), harm=np.where(given, y0 * (1.0 - y1), 0.0),
        alive=given & (mean(part.terminated) == 0.0), given=given, base=base,
    )  # fmt: skip


def _complete(part: Pairs) -> None:
    """Raises: EvidenceError for an empty feature."""
    for j, name in enumerate(part.features):
        empty = int(np.isnan(part.x[:, j]).sum())
        if empty:
            raise EvidenceError(f"feature {name} is empty in {empty} of {len(part)} pairs",
                                hint="name the features to use: --features A,B,C")  # fmt: skip


def first_crossing(holds: Bools) -> Ints:
    """By episode the first decision point at which the rule holds, -1 where it never does; `holds` (n, d)."""
    return np.where(holds.any(axis=1), holds.argmax(axis=1), -1)


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What a policy did in each episode: where it acted (-1: nowhere), its rescue, harm and gain."""

    at: Ints
    rescue: Floats
    harm: Floats

    @property
    def acts(self) -> Bools:
        """Whether it acted."""
        return self.at >= 0

    @property
    def gain(self) -> Floats:
        """Rescue minus harm."""
        return self.rescue - self.harm


def play(e: Episodes, at: Ints) -> Outcome:
    """The outcome of acting at decision point `at` (n,) of each episode, -1: not at all."""
    rows, acts = np.arange(len(e)), at >= 0
    place = np.maximum(at, 0)
    return Outcome(
        at=at,
        rescue=np.where(acts, e.rescue[rows, place], 0.0),
        harm=np.where(acts, e.harm[rows, place], 0.0),
    )


def folds_by_task(tasks: Texts, folds: int, seed: int) -> Ints:
    """A fold for every row, whole tasks together, tasks in random order and folds of nearly equal size.

    Raises:
        EvidenceError: fewer tasks than folds.
    """
    names, code = np.unique(tasks, return_inverse=True)
    if names.size < folds:
        raise EvidenceError(f"{names.size} tasks are too few for {folds} folds", hint="run more tasks")
    order = np.random.default_rng(seed).permutation(names.size)
    fold = np.empty(names.size, dtype=np.int64)
    fold[order] = np.arange(names.size) % folds
    return fold[code]


def design(e: Episodes) -> Floats:
    """Features and the delay as one more, one row per episode and decision point (n * d, p + 1)."""
    n, d, p = e.x.shape
    delay = np.broadcast_to(np.asarray(e.delays, dtype=np.float64)[None, :, None], (n, d, 1))
    return np.concatenate([e.x, delay], axis=2).reshape(n * d, p + 1)


def crossings(ok: Bools, place: Ints, size: int, gain: Floats, harm: Floats) -> tuple[Floats, Floats, Floats]:
    """Sums of `gain` and `harm` (n, d) and interventions at every threshold of a grid, for first crossings among `ok`.

    `place` (n, d) is the highest grid index whose threshold a decision point still reaches. For one episode the first
    crossing is a step function of the threshold with at most one step per decision point, so that all thresholds are
    tried at once; each result has shape (size,).
    """
    start = np.zeros(ok.shape[0], dtype=np.int64)
    sums = np.zeros((3, size + 1))
    for d in range(ok.shape[1]):
        stop = place[:, d] + 1
        live = ok[:, d] & (stop > start)
        a, b = start[live], stop[live]
        for row, values in zip(sums, (gain[live, d], harm[live, d], np.ones(a.size)), strict=True):
            row += np.bincount(a, values, size + 1) - np.bincount(b, values, size + 1)
        start = np.where(live, stop, start)
    gains, harms, counts = np.cumsum(sums, axis=1)[:, :size]
    return gains, harms, np.round(counts)
