"""Task values to intervals and one-sided bounds, one way for every table of this room (METHODS 4.3, 4.5)."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from seatrial.errors import EvidenceError, UsageError
from seatrial.records import Estimate
from seatrial.recovery.products import times
from seatrial.stats import zero_discordant

Floats = NDArray[np.float64]
UPPER = 0.95
"""Confidence of one-sided bounds on harm."""
DRAWS = 10_000


def effect_estimate(values: Floats, *, discordant: bool, level: float = 0.95, seed: int = 0) -> Estimate:
    """Mean of task values in [-1, 1] (or of differences of such), percentile bootstrap over tasks.

    `discordant` False: no pair of any task differed, and the bounds are those of zero events, `zero_discordant`.
    Values that are all equal but not 0 have no interval. As `stats.bootstrap_interval`, with draws that are shared.

    Raises:
        EvidenceError: there are no values.
    """
    n = values.size
    if n == 0:
        raise EvidenceError("no tasks")
    if not discordant:
        low, high = zero_discordant(n, level)
        return Estimate(value=0.0, low=low, high=high, level=level, n=n, n_clusters=n, se=0.0,
                        method="mean over tasks, no discordant pair: exact bound")  # fmt: skip
    flat = n < 2 or float(np.ptp(values)) <= 1e-12
    ends: tuple[float, float] | tuple[None, None] = (None, None)
    if not flat:
        tail = (1.0 - level) / 2.0
        found = np.quantile(times(resamples(n, seed), values), [tail, 1.0 - tail])
        ends = (float(found[0]), float(found[1]))
    return Estimate(
        value=float(values.mean()), low=ends[0], high=ends[1], level=level, n=n, n_clusters=n,
        se=float(values.std(ddof=1) / math.sqrt(n)) if n > 1 else None,
        method=f"mean over tasks, percentile bootstrap, {DRAWS} draws",
        why="tasks do not vary: their spread cannot be estimated" if flat else None,
    )  # fmt: skip


@lru_cache(maxsize=4)
def resamples(n: int, seed: int) -> Floats:
    """Bootstrap weights of `n` tasks, one row per draw (10,000, n), each summing to 1; shared by all estimates of a
    report, so that their draws are the same."""
    picks = np.random.default_rng(seed).integers(0, n, (DRAWS, n)) + np.arange(DRAWS)[:, None] * n
    weights = np.bincount(picks.ravel(), minlength=DRAWS * n).reshape(DRAWS, n) / n
    weights.setflags(write=False)
    return np.asarray(weights, dtype=np.float64)


def p_at_most(limit: float, values: Floats) -> float:
    """P-value of "the mean of the distribution behind `values` exceeds `limit`", for independent values in [0, 1].

    Zeros and ones: the binomial tail ``P(Bin(n, limit) <= sum)``. Otherwise Hoeffding-Bentkus, the smaller of
    ``exp(-n h(m, limit))`` and ``e P(Bin(n, limit) <= ceil(n m))`` (Angelopoulos et al., arXiv 2110.01052, 2.3), which
    is valid for any such values. 1 with no values.

    Raises:
        UsageError: the limit lies outside (0, 1) or a value outside [0, 1].
    """
    if not 0.0 < limit < 1.0:
        raise UsageError(f"a limit on harm lies between 0 and 1, got {limit}")
    n = values.size
    if n == 0:
        return 1.0
    if values.min() < 0 or values.max() > 1:
        raise UsageError("harms lie between 0 and 1")
    total = float(values.sum())
    if bool(np.isin(values, (0.0, 1.0)).all()):
        return float(special.bdtr(round(total), n, limit))
    mean = total / n
    hoeffding = 1.0 if mean >= limit else math.exp(-n * _divergence(mean, limit))
    # The ceiling of a sum that is whole but for rounding must be that whole number.
    bentkus = math.e * float(special.bdtr(math.ceil(total - 1e-9), n, limit))
    return min(1.0, hoeffding, bentkus)


def _divergence(a: float, b: float) -> float:
    first = 0.0 if a <= 0 else a * math.log(a / b)
    second = 0.0 if a >= 1 else (1.0 - a) * math.log((1.0 - a) / (1.0 - b))
    return first + second


def harm_upper(values: Floats, confidence: float = UPPER) -> float:
    """One-sided upper bound on mean harm from task values in [0, 1]: the largest limit that `p_at_most` does not
    reject. Zero harms in n: ``1 - (1 - confidence)^(1/n)`` (0 of 75 is at most 3.9%); 1 with no values."""
    n = values.size
    if n == 0 or float(values.mean()) >= 1.0:
        return 1.0
    alpha = 1.0 - confidence
    if bool(np.isin(values, (0.0, 1.0)).all()):
        k = round(float(values.sum()))
        return float(special.betaincinv(k + 1, n - k, confidence))
    low, high = max(float(values.mean()), 1e-9), 1.0 - 1e-9
    return float(optimize.brentq(lambda limit: p_at_most(limit, values) - alpha, low, high, xtol=1e-9))
