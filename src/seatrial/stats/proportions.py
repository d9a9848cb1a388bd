"""Shares of successes with intervals that keep a width at 0 and 1; pass^k, pass@k; what zero events prove."""

from __future__ import annotations

import math
from typing import overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seatrial.errors import UsageError
from seatrial.records.estimate import Estimate
from seatrial.stats.clusters import ONE_CLUSTER, cluster_se
from seatrial.stats.inputs import Floats, Labels, check_level, codes, counts, floats, same_length
from seatrial.stats.quantiles import clopper_pearson_limits, two_sided_t, two_sided_z, wilson_limits


def _check_share(k: int, n: int) -> None:
    if n < 0 or not 0 <= k <= n:
        raise UsageError(f"expected 0 <= k <= n, got k={k}, n={n}")


def wilson(k: int, n: int, level: float = 0.95) -> Estimate | None:
    """k successes of n independent trials with Wilson's score interval; None when n is 0 (METHODS 0.3).

    Raises:
        UsageError: k outside [0, n] or a level outside (0, 1).
    """
    _check_share(k, n)
    critical = two_sided_z(level)
    if n == 0:
        return None
    low, high = wilson_limits(k / n, n, critical)
    return Estimate(value=k / n, low=low, high=high, level=level, n=n, n_clusters=n, method="share, Wilson")


def clopper_pearson(k: int, n: int, level: float = 0.95) -> Estimate | None:
    """k successes of n independent trials with the exact interval; None when n is 0.

    Raises:
        UsageError: k outside [0, n] or a level outside (0, 1).
    """
    _check_share(k, n)
    check_level(level)
    if n == 0:
        return None
    low, high = clopper_pearson_limits(k, n, level)
    return Estimate(value=k / n, low=low, high=high, level=level, n=n, n_clusters=n, method="share, Clopper-Pearson")


def beta_posterior(k: int, n: int, level: float = 0.95, prior: tuple[float, float] = (0.5, 0.5)) -> Estimate:
    """Posterior mean of a share and its equal-tailed credible interval under a Beta prior (Jeffreys by default).

    Defined for n = 0 too: then it is the prior.

    Raises:
        UsageError: k outside [0, n], a level outside (0, 1), or a prior parameter that is not positive.
    """
    from scipy.special import betaincinv

    _check_share(k, n)
    tail = (1.0 - check_level(level)) / 2.0
    if min(prior) <= 0:
        raise UsageError(f"prior parameters must be positive, got {prior}")
    a, b = k + prior[0], n - k + prior[1]
    return Estimate(
        value=a / (a + b), low=float(betaincinv(a, b, tail)), high=float(betaincinv(a, b, 1.0 - tail)),
        level=level, n=n, n_clusters=n, method=f"share, Beta({prior[0]:g}, {prior[1]:g}) posterior",
    )  # fmt: skip


def clustered_proportion(values: ArrayLike, clusters: Labels, level: float = 0.95) -> Estimate | None:
    """Share of ones among 0/1 `values` that share clusters; None when there are no values.

    Wilson with the effective size ``n* = p(1 - p)/SE_cluster^2`` clipped to [1, n], ``n* = G`` when the clusters
    do not vary, and t_{G-1} in place of z (Korn & Graubard 1998; METHODS 0.3). One cluster: limits None.

    Raises:
        UsageError: lengths differ, or a value is not 0 or 1.
    """
    array = floats(values, "values")
    group, n_groups = codes(clusters, "clusters")
    same_length({"values": array, "clusters": group})
    check_level(level)
    if ((array != 0) & (array != 1)).any():
        raise UsageError("values: expected 0 or 1", hint="clustered_mean takes graded values")
    n = array.size
    if n == 0:
        return None
    share = float(array.mean())
    low: float | None = None
    high: float | None = None
    se = cluster_se(array, group)
    if se is not None:
        effective = float(n_groups) if se == 0.0 else min(max(share * (1.0 - share) / se**2, 1.0), float(n))
        low, high = wilson_limits(share, effective, two_sided_t(level, n_groups - 1))
    return Estimate(
        value=share, low=low, high=high, level=level, n=n, n_clusters=n_groups, se=se,
        method="share, cluster-robust Wilson, t", why=ONE_CLUSTER if se is None else None,
    )  # fmt: skip


def zero_event_upper(n: int, level: float = 0.95) -> float:
    """One-sided upper bound on a rate after 0 events in n trials, ``1 - (1 - level)^(1/n)``; 1.0 when n is 0.

    0 of 75 is at most 3.9% (METHODS 4.3).

    Raises:
        UsageError: n is negative.
    """
    check_level(level)
    if n < 0:
        raise UsageError(f"n must be at least 0, got {n}")
    return 1.0 if n == 0 else -math.expm1(math.log1p(-level) / n)


def zero_events_needed(limit: float, level: float = 0.95) -> int:
    """Fewest trials with zero events that bound the rate at `limit` with confidence `level`: 149 for 2%.

    Raises:
        UsageError: the limit lies outside (0, 1).
    """
    check_level(level)
    if not 0.0 < limit < 1.0:
        raise UsageError(f"limit must lie between 0 and 1, got {limit}")
    n = max(1, math.ceil(math.log1p(-level) / math.log1p(-limit)))
    # The logarithm's last digit may land on either side of a whole number.
    while n > 1 and (1.0 - limit) ** (n - 1) <= 1.0 - level:
        n -= 1
    while (1.0 - limit) ** n > 1.0 - level:
        n += 1
    return n


def consistency(c: int, k: int, unbiased: bool = True) -> float:
    """Reproducibility of k runs with c successes: ``1 - 4c(k - c)/(k(k - 1))`` (METHODS 5, D3).

    Unbiased for 1 - 4p(1 - p), so one task's value may be negative; `unbiased=False` plugs in p = c/k.

    Raises:
        UsageError: c outside [0, k], or fewer than two runs (one when plugging in).
    """
    _check_share(c, k)
    if k < (2 if unbiased else 1):
        raise UsageError(f"consistency needs at least {2 if unbiased else 1} runs, got {k}")
    return 1.0 - 4.0 * c * (k - c) / (k * (k - 1) if unbiased else k * k)


def certified_consistency(k: int, level: float = 0.95) -> float:
    """What k identical outcomes certify about the chance of that outcome: at least ``(1 - level)^(1/k)``.

    Raises:
        UsageError: k is negative.
    """
    return 1.0 - zero_event_upper(k, level)


def runs_for_consistency(share: float, level: float = 0.95) -> int:
    """Fewest identical runs that certify a chance of at least `share`: 29 for .90.

    Raises:
        UsageError: the share lies outside (0, 1).
    """
    return zero_events_needed(1.0 - share, level)


def _choose_ratio(c: Floats, n: Floats, k: int) -> Floats:
    """C(c, k)/C(n, k) as a product of k ratios, which neither overflows nor cancels."""
    out = np.ones(c.shape)
    for j in range(k):
        out = out * np.maximum(c - j, 0.0) / (n - j)
    return out


def _check_attempts(n: NDArray[np.int64], c: NDArray[np.int64], k: int) -> None:
    if k < 1:
        raise UsageError(f"k must be at least 1, got {k}")
    if (c > n).any():
        raise UsageError("c: more successes than attempts")


def _over_tasks(values: Floats, left_out: int, level: float, name: str, k: int) -> Estimate | None:
    tasks = values.size
    if tasks == 0:
        return None
    noun = "task" if left_out == 1 else "tasks"
    note = f"; {left_out} {noun} with fewer than {k} attempts left out" if left_out else ""
    mean = float(values.mean()) if values.min() < values.max() else float(values[0])
    if tasks < 2:
        return Estimate(
            value=mean, low=None, high=None, level=level, n=tasks, n_clusters=tasks, method=f"{name}{note}",
            why="one task: the spread between tasks cannot be estimated",
        )  # fmt: skip
    if values.min() == values.max():
        low, high = clopper_pearson_limits(mean * tasks, tasks, level)
        return Estimate(
            value=mean, low=low, high=high, level=level, n=tasks, n_clusters=tasks, se=0.0,
            method=f"{name}, Clopper-Pearson on tasks (all equal){note}",
        )  # fmt: skip
    se = float(values.std(ddof=1) / math.sqrt(tasks))
    half = two_sided_t(level, tasks - 1) * se
    return Estimate(
        value=mean, low=max(0.0, mean - half), high=min(1.0, mean + half), level=level, n=tasks, n_clusters=tasks,
        se=se, method=f"{name}, t over tasks{note}",
    )  # fmt: skip


def _pass(n: ArrayLike, c: ArrayLike, k: int, level: float, *, every: bool) -> float | Estimate | None:
    check_level(level)
    scalar = np.ndim(n) == 0 and np.ndim(c) == 0
    attempts, successes = counts(np.atleast_1d(n), "n"), counts(np.atleast_1d(c), "c")
    same_length({"n": attempts, "c": successes})
    _check_attempts(attempts, successes, k)
    if scalar and attempts[0] < k:
        raise UsageError(f"k={k} is more than the {attempts[0]} attempts made", hint="run more attempts or lower k")
    enough = attempts >= k
    n_used, c_used = attempts[enough].astype(np.float64), successes[enough].astype(np.float64)
    values = _choose_ratio(c_used, n_used, k) if every else 1.0 - _choose_ratio(n_used - c_used, n_used, k)
    if scalar:
        return float(values[0])
    return _over_tasks(values, int((~enough).sum()), level, f"pass^{k}" if every else f"pass@{k}", k)


@overload
def pass_hat_k(n: int, c: int, k: int, level: float = ...) -> float: ...
@overload
def pass_hat_k(n: ArrayLike, c: ArrayLike, k: int, level: float = ...) -> Estimate | None: ...
def pass_hat_k(n: ArrayLike, c: ArrayLike, k: int, level: float = 0.95) -> float | Estimate | None:
    """Chance that k fresh attempts at a task all pass: C(c, k)/C(n, k), averaged over tasks (METHODS 6.3).

    `n` attempts scored and `c` passed. Two whole numbers give one task's value as a float. Two arrays of shape
    (n_tasks,) give an Estimate: t_{T-1} over tasks, Clopper-Pearson on T when all tasks agree; tasks with
    fewer than k attempts are left out and counted in `method`; None when no task is left.
    Unbiased, unlike (c/n)^k (Yao et al., tau-bench, arXiv 2406.12045).

    Raises:
        UsageError: k > n for one task, k < 1, or c > n.
    """
    return _pass(n, c, k, level, every=True)


@overload
def pass_at_k(n: int, c: int, k: int, level: float = ...) -> float: ...
@overload
def pass_at_k(n: ArrayLike, c: ArrayLike, k: int, level: float = ...) -> Estimate | None: ...
def pass_at_k(n: ArrayLike, c: ArrayLike, k: int, level: float = 0.95) -> float | Estimate | None:
    """Chance that at least one of k fresh attempts passes: 1 - C(n - c, k)/C(n, k) (METHODS 6.3).

    Arguments, shapes and interval as in `pass_hat_k`; Chen et al. 2021, arXiv 2107.03374.

    Raises:
        UsageError: k > n for one task, k < 1, or c > n.
    """
    return _pass(n, c, k, level, every=False)
