"""Small designs to p-values and intervals: two groups, matched pairs, bootstrap over tasks (METHODS 0.5, 4.3, 6.4).

The stratified many-arm test is in `randomisation`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import chain, combinations, islice
from typing import ClassVar

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from seatrial.errors import EvidenceError
from seatrial.records.estimate import Estimate
from seatrial.stats.inputs import Floats, Labels, check_level, codes, floats, same_length
from seatrial.stats.randomisation import ENUMERATE_UP_TO, check_draws

_CHUNK_VALUES = 2_000_000

Statistic = Callable[[Floats, Floats], float]


class TestResult(msgspec.Struct, frozen=True, kw_only=True):
    """A test's answer. `statistic` is the observed value; `p_value` two-sided.

    `extreme` of `total` assignments (or draws) reach it: p = extreme/total when every assignment was enumerated
    (`exact`, identity included), else (1 + extreme)/(1 + total) (METHODS 0.5).
    """

    __test__: ClassVar[bool] = False

    statistic: float
    p_value: float
    extreme: int
    total: int
    exact: bool
    method: str


def _result(statistic: float, extreme: int, total: int, exact: bool, what: str) -> TestResult:
    p = extreme / total if exact else (1 + extreme) / (1 + total)
    method = f"{what}, {'all' if exact else 'random'} {total} {'assignments' if exact else 'draws'}"
    return TestResult(statistic=statistic, p_value=p, extreme=extreme, total=total, exact=exact, method=method)


def permutation_test(
    treated: ArrayLike,
    control: ArrayLike,
    statistic: Statistic | None = None,
    seed: int = 0,
    draws: int = 9999,
) -> TestResult:
    """Two-sided randomisation test of two groups, fixed group sizes (Imbens & Rubin 2015, chapter 5).

    `statistic` maps (treated, control) to a number whose absolute value is compared; None is the difference in
    means. Exact when there are at most 2**20 assignments. Ties within 1e-12 of the sum of absolute terms count.

    Raises:
        EvidenceError: a group is empty.
        UsageError: a value is missing, or fewer than 999 draws where enumeration is out of reach.
    """
    a, b = floats(treated, "treated"), floats(control, "control")
    if a.size == 0 or b.size == 0:
        raise EvidenceError("both groups need at least one value")
    pooled = np.concatenate([a, b])
    total = math.comb(pooled.size, a.size)
    exact = total <= ENUMERATE_UP_TO
    if not exact:
        check_draws(draws, seed)
        total = draws
    size = max(1, _CHUNK_VALUES // pooled.size)
    if statistic is None:
        observed = float(a.mean() - b.mean())
        slack = 1e-12 * float(np.abs(a).sum() / a.size + np.abs(b).sum() / b.size)
    else:
        observed = float(statistic(a, b))
        slack = 1e-12 * abs(observed)
    extreme = 0
    rng = np.random.default_rng(seed)
    picks = combinations(range(pooled.size), a.size)
    for start in range(0, total, size):
        n = min(size, total - start)
        if exact:
            chosen = np.fromiter(chain.from_iterable(islice(picks, n)), dtype=np.int64).reshape(n, a.size)
        else:
            chosen = rng.permuted(np.tile(np.arange(pooled.size), (n, 1)), axis=1)[:, : a.size]
        values = _statistics(pooled, chosen, statistic)
        extreme += int((np.abs(values) >= abs(observed) - slack).sum())
    name = "difference in means" if statistic is None else "given statistic"
    return _result(observed, extreme, total, exact, f"permutation test, {name}")


def _statistics(pooled: Floats, chosen: NDArray[np.int64], statistic: Statistic | None) -> Floats:
    if statistic is None:
        first = pooled[chosen].sum(axis=1)
        n = chosen.shape[1]
        return np.asarray(first / n - (pooled.sum() - first) / (pooled.size - n), dtype=np.float64)
    out = np.empty(chosen.shape[0])
    for i, pick in enumerate(chosen):
        rest = np.ones(pooled.size, dtype=bool)
        rest[pick] = False
        out[i] = statistic(pooled[pick], pooled[rest])
    return out


def _all_sums(values: Floats) -> Floats:
    """Sum of every subset, the empty one first, by doubling."""
    sums = np.zeros(1)
    for v in values:
        sums = np.concatenate([sums, sums + v])
    return sums


def sign_flip_test(differences: ArrayLike, seed: int = 0, draws: int = 9999) -> TestResult:
    """Two-sided test that paired differences are symmetric about 0, by flipping signs (Fisher 1935).

    The statistic is the mean difference; the p-value is that of the absolute sum, hence also of the paired t, which
    grows with it. Zero differences are dropped from the flips: they change no sum. Exact up to 20 non-zero
    differences. METHODS 4.3 asks for `draws=100_000` over tasks.

    Raises:
        EvidenceError: there are no differences.
        UsageError: a value is missing, or fewer than 999 draws where enumeration is out of reach.
    """
    d = floats(differences, "differences")
    if d.size == 0:
        raise EvidenceError("no paired differences")
    live = d[d != 0]
    observed = abs(float(live.sum()))
    bar = observed - 1e-12 * float(np.abs(live).sum())
    exact = 2**live.size <= ENUMERATE_UP_TO
    if exact:
        sums = live.sum() - 2.0 * _all_sums(live)
        extreme, total = int((np.abs(sums) >= bar).sum()), sums.size
    else:
        check_draws(draws, seed)
        rng, extreme, total = np.random.default_rng(seed), 0, draws
        size = max(1, _CHUNK_VALUES // live.size)
        for start in range(0, draws, size):
            flips = rng.integers(0, 2, (min(size, draws - start), live.size), dtype=np.int8)
            extreme += int((np.abs(live.sum() - 2.0 * (flips @ live)) >= bar).sum())
    return _result(float(d.mean()), extreme, total, exact, "sign-flip test of the mean difference")


def sign_flip_interval(differences: ArrayLike, level: float = 0.95, seed: int = 0, draws: int = 9999) -> Estimate:
    """Mean paired difference with the interval of all shifts that the sign-flip test does not reject.

    The limits are order statistics of subset means (Hartigan 1969): flipping a subset S reaches the observed sum
    exactly when the mean of S is at most the shift. Every subset up to 20 pairs, else `draws` random ones. With too
    few pairs for the level the limits are None.

    Raises:
        EvidenceError: there are no differences.
        UsageError: a value is missing, or fewer than 999 draws where enumeration is out of reach.
    """
    d = floats(differences, "differences")
    check_level(level)
    if d.size == 0:
        raise EvidenceError("no paired differences")
    exact = 2**d.size <= ENUMERATE_UP_TO
    if exact:
        means = _all_sums(d)[1:] / _all_sums(np.ones(d.size))[1:]
    else:
        check_draws(draws, seed)
        rng = np.random.default_rng(seed)
        means = np.empty(draws)
        size = max(1, _CHUNK_VALUES // d.size)
        for start in range(0, draws, size):
            inside = rng.integers(0, 2, (min(size, draws - start), d.size), dtype=np.int8)
            means[start : start + size] = (inside @ d) / np.maximum(inside.sum(axis=1), 1)
    k = math.floor((1.0 - level) / 2.0 * (means.size + 1) + 1e-9)
    low = high = None
    if k >= 1:
        ordered = np.partition(means, [k - 1, means.size - k])
        low, high = float(ordered[k - 1]), float(ordered[means.size - k])
    return Estimate(
        value=float(d.mean()), low=low, high=high, level=level, n=d.size, n_clusters=d.size,
        method=f"mean difference, sign-flip inversion, {'all' if exact else 'random'} {means.size} subsets",
        why=None if k >= 1 else f"{d.size} pairs are too few for a {level:.0%} sign-flip interval",
    )  # fmt: skip


def bootstrap_interval(
    values: ArrayLike,
    clusters: Labels | None = None,
    level: float = 0.95,
    seed: int = 0,
    draws: int = 10_000,
) -> Estimate:
    """Mean of `values` with a percentile bootstrap over clusters, linear interpolation (METHODS 4.3).

    `clusters` None: every value is its own. Whole clusters are drawn and their values pooled. One cluster: limits
    None. Values that do not vary give a zero-width interval here; `paired.zero_discordant` bounds that case.

    Raises:
        EvidenceError: there are no values.
        UsageError: lengths differ, a value is missing, or fewer than 999 draws.
    """
    array = floats(values, "values")
    check_level(level)
    check_draws(draws, seed)
    if array.size == 0:
        raise EvidenceError("no values")
    group, n_groups = codes(np.arange(array.size) if clusters is None else clusters, "clusters")
    same_length({"values": array, "clusters": group})
    low = high = None
    if n_groups > 1:
        sums, sizes = np.bincount(group, weights=array), np.bincount(group).astype(np.float64)
        rng, means = np.random.default_rng(seed), np.empty(draws)
        size = max(1, _CHUNK_VALUES // n_groups)
        for start in range(0, draws, size):
            picked = rng.integers(0, n_groups, (min(size, draws - start), n_groups))
            means[start : start + size] = sums[picked].sum(axis=1) / sizes[picked].sum(axis=1)
        low, high = (float(x) for x in np.quantile(means, [(1 - level) / 2, (1 + level) / 2]))
    return Estimate(
        value=float(array.mean()), low=low, high=high, level=level, n=array.size, n_clusters=n_groups,
        method=f"mean, percentile bootstrap over clusters, {draws} draws",
        why=None if n_groups > 1 else "one cluster: its spread cannot be estimated",
    )  # fmt: skip
