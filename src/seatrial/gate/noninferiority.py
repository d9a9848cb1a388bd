"""Per-task differences to a test of a drop and a bound on it (METHODS 6.5).

Everything works on arrays whose last axis is the task, so that one gate and a simulation of thousands run the same
lines. Differences are candidate - baseline, oriented so that higher is better.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

FEW_DISCORDANT = 9
"""With this many tasks that differ, or fewer, the bound is at half the alpha."""
TOLERANCE = 1e-9
"""Two different means of counts lie further apart than this, and rounding moves equal ones by less: comparing with
it compares the counts."""


class Tested(NamedTuple):
    """Arrays over the leading axes of the differences.

    `mean` and `se` of the difference; `p` of a drop; `lower` the one-sided bound; `passes` whether it clears the
    margin; `drops` whether the mean drop exceeds the margin; `discordant` tasks whose two means differ; `floor` the
    standard error that the bound used.
    """

    mean: Floats
    se: Floats
    p: Floats
    lower: Floats
    passes: Bools
    drops: Bools
    discordant: NDArray[np.int64]
    floor: Floats


def compare(
    d: Floats,
    n_candidate: NDArray[np.int64] | int,
    margin: float,
    *,
    binary: bool,
    alpha: float = 0.05,
    changed: Bools | None = None,
    variance: Floats | None = None,
) -> Tested:
    """Both tests of one metric.

    `d` (..., T) differences of per-task means, `n_candidate` (...) the candidate's scored attempts over these tasks.
    `changed` (..., T) says which tasks differ, where `d` was linearised (costs); None: d is not 0. Student's t with
    T - 1 degrees of freedom. A drop has p = 1 where T < 2 or the standard error is 0, or 2^-T where every task drops
    by the same amount. For a binary metric the bound's standard error is at least that of a metric which truly lost
    `margin` from perfect, sqrt(margin (1 - margin)/n); a plain t bound passed 20% of true drops near the ceiling.
    """
    tasks = d.shape[-1]
    n = np.asarray(n_candidate, dtype=np.int64)
    mean = d.mean(axis=-1)
    se = np.sqrt(np.maximum(d.var(axis=-1, ddof=1), 0.0) / tasks) if tasks > 1 else np.zeros_like(mean)
    scale = np.maximum(np.abs(d).max(axis=-1), 1.0)
    # Equal differences leave a variance of rounding, not of data.
    se = np.where(se < 1e-12 * scale, 0.0, se)
    differs = (np.abs(d) > 1e-12) if changed is None else changed
    discordant = np.asarray(differs.sum(axis=-1), dtype=np.int64)
    p = drop_p(mean, se, tasks)
    every = (d < -1e-12).all(axis=-1)
    p = np.where(se == 0.0, np.where(every, 0.5**tasks, 1.0), p)
    floor = np.maximum(se, np.sqrt(margin * (1.0 - margin) / np.maximum(n, 1))) if binary else se
    lower = bound(mean, floor, tasks, discordant, n, alpha)
    passes = (lower > -margin + TOLERANCE) & (discordant > 0)
    if tasks >= 2:
        passes |= (discordant == 0) & (n >= exact_attempts(margin, alpha))
    drops = mean < -margin - TOLERANCE
    return Tested(mean, se, p, lower, passes, drops, discordant, floor)


def drop_p(mean: Floats, se: Floats, tasks: int) -> Floats:
    """One-sided p of H0 "no drop" by Student's t; 1 where it cannot be computed."""
    if tasks < 2:
        return np.ones_like(mean)
    t = np.divide(mean, se, out=np.zeros_like(mean), where=se > 0)
    return np.where(se > 0, special.stdtr(tasks - 1, t), 1.0)


def bound(
    mean: Floats, se: Floats, tasks: int, discordant: NDArray[np.int64], n: NDArray[np.int64], alpha: float
) -> Floats:
    """The one-sided lower bound: level 1 - alpha; 1 - alpha/2 with 1 to 9 discordant tasks; with none, the largest
    share of attempts that can have been lost without one showing in `n`. Minus infinity with fewer than two tasks."""
    if tasks < 2:
        return np.full_like(mean, -np.inf)
    wide = float(special.stdtrit(tasks - 1, 1.0 - alpha / 2.0))
    usual = float(special.stdtrit(tasks - 1, 1.0 - alpha))
    factor = np.where(discordant <= FEW_DISCORDANT, wide, usual)
    exact = -(1.0 - alpha ** (1.0 / np.maximum(n, 1)))
    return np.where(discordant == 0, np.where(n > 0, exact, -np.inf), mean - factor * se)


def exact_attempts(margin: float, alpha: float = 0.05) -> int:
    """Attempts without any difference that rule a loss of `margin` out: least n with (1 - margin)^n <= alpha (149 for
    2 points)."""
    if margin >= 1.0:
        return 1
    n = max(1, math.floor(math.log(alpha) / math.log1p(-margin)) - 1)
    while (1.0 - margin) ** n > alpha:
        n += 1
    return n
