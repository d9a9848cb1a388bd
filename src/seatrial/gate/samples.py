"""Two runs to paired samples: one metric's values on the tasks that both sides have, oriented higher = better."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from seatrial.gate.noninferiority import Bools, Floats
from seatrial.gate.runs import Better, Kind, MetricRuns


class Sample(NamedTuple):
    """One metric, paired.

    `difference` (T,) is candidate - baseline, oriented, in the metric's unit (quality) or linearised in shares of
    the baseline's mean (cost, latency); `changed` (T,) which tasks differ. `baseline` and `candidate` are the means
    over tasks of the recorded values, not oriented. `within` holds the mean over tasks of s²/K of both sides; None
    where no task has two runs. `n_candidate` counts the candidate's attempts used, `runs` the most of one task.
    """

    tasks: tuple[str, ...]
    difference: Floats
    changed: Bools
    baseline: float
    candidate: float
    n_baseline: int
    n_candidate: int
    within: tuple[float, float] | None
    spread: float | None
    runs: int
    means: tuple[tuple[float, float], ...]


def pair(
    baseline: MetricRuns, candidate: MetricRuns, common: frozenset[str], *, better: Better, kind: Kind,
    worst: float | None = None, absent: Mapping[str, int] | None = None,
) -> Sample | None:  # fmt: skip
    """The sample on `common` tasks that both sides have scored; None without any.

    `worst` is what every excluded attempt of the candidate counts as, the worst value that a quality metric can have
    (METHODS 0.1), and those of `absent`, by task, which are not there at all; None: they are left out.
    """
    tasks, rows = [], []
    for task in sorted(common):
        b, c = baseline.tasks.get(task), candidate.tasks.get(task)
        if b is None or c is None or not b.values:
            continue
        values = c.values if worst is None else c.values + (worst,) * (c.n_excluded + (absent or {}).get(task, 0))
        if values:
            tasks.append(task)
            rows.append((np.array(b.values), np.array(values)))
    if not rows:
        return None
    means = np.array([[b.mean(), c.mean()] for b, c in rows])
    sign = 1.0 if better == "higher" else -1.0
    b_mean, c_mean = (float(x) for x in means.mean(axis=0))
    raw = sign * (means[:, 1] - means[:, 0])
    scale = 1.0
    if kind == "quality":
        difference = raw
    else:
        # A cost of 0 everywhere is a price that nobody knew (METHODS 6.7).
        if b_mean <= 0 or c_mean <= 0:
            return None
        ratio, scale = c_mean / b_mean, b_mean
        # The delta method for a ratio of means: its influence on tasks, around its value.
        difference = sign * (ratio - 1.0) + sign * (means[:, 1] - ratio * means[:, 0]) / b_mean
    within, spread = _within(rows, scale)
    return Sample(
        tasks=tuple(tasks),
        difference=np.asarray(difference, dtype=np.float64),
        changed=np.abs(raw) > 1e-12 * max(1.0, float(np.abs(means).max())),
        baseline=b_mean,
        candidate=c_mean,
        n_baseline=sum(b.size for b, _ in rows),
        n_candidate=sum(c.size for _, c in rows),
        within=within,
        spread=spread,
        runs=max(c.size for _, c in rows),
        means=tuple((float(b), float(c)) for b, c in means),
    )


def _within(rows: list[tuple[Floats, Floats]], scale: float) -> tuple[tuple[float, float] | None, float | None]:
    """Mean over tasks of s²/K of both sides, and the candidate's mean s²; from tasks with two runs or more."""
    sides = []
    for side in (0, 1):
        several = [r[side] for r in rows if r[side].size > 1]
        if not several:
            return None, None
        variance = float(np.mean([v.var(ddof=1) for v in several])) / scale**2
        runs = float(np.mean([1.0 / r[side].size for r in rows]))
        sides.append((variance, variance * runs))
    return (sides[0][1], sides[1][1]), sides[1][0]
