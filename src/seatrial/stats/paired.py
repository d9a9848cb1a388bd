"""Matched pairs: exact McNemar, the paired mean, and what zero discordant pairs still allow (METHODS 4.3)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from seatrial.errors import UsageError
from seatrial.records.estimate import Estimate
from seatrial.stats.clusters import t_estimate
from seatrial.stats.inputs import Labels, check_level, codes, floats, same_length
from seatrial.stats.resampling import TestResult


def mcnemar_exact(b: int, c: int) -> TestResult:
    """Two-sided exact McNemar test of b against c discordant pairs; p = 1 when there are none.

    Right for unclustered counts only: several episodes of one task are not independent. `statistic` is b - c,
    `extreme`/`total` are left 0/0 (the p-value is a binomial tail, ``2 P(Bin(b + c, 1/2) <= min(b, c))``).

    Raises:
        UsageError: a count is negative.
    """
    if b < 0 or c < 0:
        raise UsageError(f"discordant counts must be at least 0, got {b} and {c}")
    p = 1.0 if b == c else min(1.0, 2.0 * float(special.bdtr(min(b, c), b + c, 0.5)))
    return TestResult(statistic=float(b - c), p_value=p, extreme=0, total=0, exact=True, method="exact McNemar")


def zero_discordant(n: int, level: float = 0.95) -> tuple[float, float]:
    """Bounds on rescue minus harm when none of n pairs was discordant: [-u, u], ``u = 1 - (alpha/2)^(1/n)``.

    Raises:
        UsageError: n is less than 1.
    """
    tail = (1.0 - check_level(level)) / 2.0
    if n < 1:
        raise UsageError(f"n must be at least 1, got {n}")
    u = -math.expm1(math.log(tail) / n)
    return -u, u


def paired_mean(
    first: ArrayLike, second: ArrayLike, clusters: Labels | None = None, level: float = 0.95
) -> Estimate | None:
    """Mean of second - first over units, t with G - 1 degrees of freedom; None when there are no pairs.

    `clusters` (n,) are the tasks: differences are averaged inside a task first and tasks count equally (METHODS 4.3);
    None: every pair is its own. Binary outcomes without any difference get `zero_discordant`; other outcomes whose
    differences do not vary get limits None.

    Raises:
        UsageError: lengths differ or a value is missing.
    """
    a, b = floats(first, "first"), floats(second, "second")
    group, n_groups = codes(np.arange(a.size) if clusters is None else clusters, "clusters")
    same_length({"first": a, "second": b, "clusters": group})
    check_level(level)
    if a.size == 0:
        return None
    by_task = np.bincount(group, weights=b - a) / np.bincount(group)
    mean = float(by_task.mean())
    spread = float(np.abs(by_task - mean).max())
    se = 0.0 if spread <= 1e-12 or n_groups < 2 else float(by_task.std(ddof=1) / math.sqrt(n_groups))
    method = "mean paired difference over tasks, t"
    binary = bool(np.isin(np.concatenate([a, b]), (0.0, 1.0)).all())
    if binary and not (a != b).any():
        low, high = zero_discordant(n_groups, level)
        return Estimate(
            value=0.0, low=low, high=high, level=level, n=a.size, n_clusters=n_groups, se=0.0,
            method="mean paired difference, no discordant pair: exact bound",
        )  # fmt: skip
    return t_estimate(
        mean, se, n=a.size, n_groups=n_groups, level=level, bounded=False, method=method,
    )  # fmt: skip


def interaction(
    first_before: ArrayLike, first_after: ArrayLike, second_before: ArrayLike, second_after: ArrayLike,
    clusters: Labels | None = None, level: float = 0.95,
) -> Estimate | None:  # fmt: skip
    """Difference of two paired effects, (second_after - second_before) - (first_after - first_before), paired by row.

    METHODS 4.3's interaction: first = clean, second = stale, one row per task. Interval as in `paired_mean`.

    Raises:
        UsageError: lengths differ or a value is missing.
    """
    parts = [
        floats(x, name)
        for x, name in (
            (first_before, "first_before"), (first_after, "first_after"),
            (second_before, "second_before"), (second_after, "second_after"),
        )
    ]  # fmt: skip
    same_length(
        {"first_before": parts[0], "first_after": parts[1], "second_before": parts[2], "second_after": parts[3]}
    )  # fmt: skip
    return paired_mean(parts[1] - parts[0], parts[3] - parts[2], clusters, level)
