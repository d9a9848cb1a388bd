"""Estimates to ranks with simultaneous bounds: how sure is the order itself?"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from seatrial.errors import UsageError
from seatrial.records.estimate import RankInterval
from seatrial.stats.inputs import check_level, floats
from seatrial.stats.multiplicity import factor, largest_t_quantile, square


def rank_intervals(
    estimates: ArrayLike,
    cov: ArrayLike,
    df: float,
    level: float = 0.95,
    seed: int = 0,
    draws: int = 100_000,
) -> list[RankInterval]:
    """Rank of every estimate (1 = largest) with bounds that hold for all of them together (METHODS 3.4).

    One critical value c covers all K(K - 1)/2 differences, two-sided; ``low = 1 + number significantly better``,
    ``high = K - number significantly worse`` (Mogstad, Romano, Shaikh & Wilhelm 2023). Equal estimates share the
    better rank. A difference of variance 0 proves nothing: it counts as not significant. `estimates` (K,),
    `cov` (K, K) their covariance (singular is fine), `df` degrees of freedom, may be `math.inf`.

    Raises:
        UsageError: shapes disagree, a value is missing, df <= 0, or fewer than 999 draws.
    """
    values = floats(estimates, "estimates")
    matrix = square(cov)
    check_level(level)
    k = values.size
    if matrix.shape[0] != k:
        raise UsageError(f"cov: expected shape ({k}, {k}), got {matrix.shape}")
    first, second = np.triu_indices(k, 1)
    root = factor(matrix)
    steps = root[first] - root[second]
    se = np.sqrt((steps**2).sum(axis=1))
    live = se > 1e-7 * np.sqrt(max(float(np.diag(matrix).max(initial=0.0)), 0.0))
    better = np.zeros((k, k), dtype=bool)
    if live.any():
        critical = largest_t_quantile(steps[live] / se[live, None], df, level, draws, seed)
        gap = values[first[live]] - values[second[live]]
        clear = np.abs(gap) > critical * se[live]
        up, down = first[live][clear], second[live][clear]
        swap = gap[clear] < 0
        better[np.where(swap, down, up), np.where(swap, up, down)] = True
    return [
        RankInterval(
            value=1 + int((values > values[m]).sum()),
            low=1 + int(better[:, m].sum()),
            high=k - int(better[m].sum()),
        )
        for m in range(k)
    ]
