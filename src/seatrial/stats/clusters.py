"""Means and ratios over clusters: the cluster (task, user) is the unit of evidence, always (METHODS 0.3, 0.4)."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from seatrial.errors import UsageError
from seatrial.records.estimate import Estimate
from seatrial.stats.inputs import Floats, Labels, check_level, check_unit, codes, floats, same_length
from seatrial.stats.quantiles import two_sided_t

ONE_CLUSTER = "one cluster: its spread cannot be estimated"


def effective_number(shares: ArrayLike) -> float:
    """Effective number of clusters, (sum share)^2 / sum share^2: G for equal shares, near 1 when one dominates.

    Shares are non-negative and need not sum to 1 (METHODS 3.4).

    Raises:
        UsageError: empty, negative or all zero.
    """
    array = floats(shares, "shares")
    if array.size == 0 or array.min() < 0 or array.max() <= 0:
        raise UsageError("shares: expected non-negative values, at least one positive")
    scaled = array / array.max()
    return float(scaled.sum() ** 2 / (scaled**2).sum())


def _sum_error(residuals: Floats, group: np.ndarray, n_groups: int) -> float:
    sums = np.bincount(group, weights=residuals, minlength=n_groups)
    # A sum that should be 0 but is rounding noise would turn an edge case into an interval of width 1e-17.
    noise = 1e-12 * np.bincount(group, weights=np.abs(residuals), minlength=n_groups)
    sums[np.abs(sums) <= noise] = 0.0
    return float(math.sqrt(n_groups / (n_groups - 1) * (sums**2).sum()))


def cluster_se(values: ArrayLike, clusters: Labels) -> float | None:
    """Standard error of the plain mean of `values` under clustering; None with fewer than two clusters.

    ``(1/n) sqrt(sum_c (sum_{i in c} (s_i - mean))^2) sqrt(G/(G-1))``: Miller 2024 (arXiv 2411.00640), with the
    factor G/(G-1) as our departure for small G (METHODS 0.4).

    Raises:
        UsageError: lengths differ or a value is missing.
    """
    array = floats(values, "values")
    group, n_groups = codes(clusters, "clusters")
    same_length({"values": array, "clusters": group})
    if n_groups < 2:
        return None
    return _sum_error(array - array.mean(), group, n_groups) / array.size


def crossed_se(
    values: ArrayLike, first: Labels, second: Labels, *, method: Literal["larger", "cgm"] = "larger"
) -> float | None:
    """Standard error of a mean with two crossed clusterings, such as user and task (METHODS 0.4).

    `larger` takes the larger of the two one-way errors; `cgm` is Cameron, Gelbach & Miller (2011): variance by
    first, plus by second, minus by their intersection, never below the larger one-way variance. None when
    either clustering has fewer than two clusters.

    Raises:
        UsageError: lengths differ, a value is missing, or the method is unknown.
    """
    if method not in ("larger", "cgm"):
        raise UsageError(f"unknown method {method!r}", hint="larger or cgm")
    one, two = cluster_se(values, first), cluster_se(values, second)
    if one is None or two is None:
        return None
    larger = max(one, two)
    if method == "larger":
        return larger
    a, _ = codes(first, "first")
    b, n_b = codes(second, "second")
    both = cluster_se(values, a * n_b + b) or 0.0
    return math.sqrt(max(one**2 + two**2 - both**2, larger**2))


def edge(value: float, n_groups: int, level: float) -> tuple[float, float]:
    """Limits when clusters do not vary: a share of at least (alpha/2)^(1/G) of clusters is like those seen.

    The rest may lie anywhere in [0, 1]; all ones gives [(alpha/2)^(1/G), 1], all zeros its mirror (METHODS 0.3).
    """
    alike = ((1.0 - level) / 2.0) ** (1.0 / n_groups)
    return value * alike, value * alike + (1.0 - alike)


def t_estimate(value: float, se: float, *, n: int, n_groups: int, level: float, bounded: bool, method: str) -> Estimate:
    """A value with a t_{G-1} interval, or METHODS 0.3's edges when the clusters do not vary."""
    low: float | None
    high: float | None
    why: str | None = None
    if n_groups < 2:
        low, high, why = None, None, ONE_CLUSTER
    elif se == 0.0 and bounded:
        low, high = edge(value, n_groups, level)
        method = f"{method}, no variation between clusters: exact bound"
    elif se == 0.0:
        low, high, why = None, None, "clusters do not vary and the values have no known bounds"
    else:
        half = two_sided_t(level, n_groups - 1) * se
        low, high = value - half, value + half
        if bounded:
            low, high = max(0.0, low), min(1.0, high)
    return Estimate(
        value=value, low=low, high=high, level=level, n=n, n_clusters=n_groups, method=method,
        se=None if n_groups < 2 else se, why=why,
    )  # fmt: skip


def clustered_mean(values: ArrayLike, clusters: Labels, level: float = 0.95, bounded: bool = True) -> Estimate | None:
    """Mean of `values` with a cluster-robust t_{G-1} interval (METHODS 0.3); None when there are no values.

    `bounded`: values lie in [0, 1], so limits are clipped there and clusters that do not vary keep a width.
    With one cluster, or unbounded values that do not vary, the limits are None and `why` says so.

    Raises:
        UsageError: lengths differ, a value is missing, or `bounded` and a value lies outside [0, 1].
    """
    array = floats(values, "values")
    group, n_groups = codes(clusters, "clusters")
    same_length({"values": array, "clusters": group})
    check_level(level)
    if array.size == 0:
        return None
    if bounded:
        check_unit(array, "values")
    mean = float(array.mean()) if array.min() < array.max() else float(array[0])
    se = _sum_error(array - mean, group, n_groups) / array.size if n_groups > 1 else 0.0
    return t_estimate(
        mean, se, n=array.size, n_groups=n_groups, level=level, bounded=bounded, method="mean, cluster-robust t"
    )


def ratio_estimate(
    numerator: ArrayLike, denominator: ArrayLike, clusters: Labels, level: float = 0.95, bounded: bool = True
) -> Estimate | None:
    """Pooled ratio sum(numerator)/sum(denominator), linearised over clusters, t_{G-1} (METHODS 3.8, D4).

    Rows with denominator 0 carry nothing and their clusters do not count. None when the denominators sum to 0.
    `n` is the number of rows that carry something. `bounded`: every row's numerator lies between 0 and its
    denominator.

    Raises:
        UsageError: lengths differ, a value is missing, a denominator is negative, or `bounded` is untrue.
    """
    top, bottom = floats(numerator, "numerator"), floats(denominator, "denominator")
    labels = np.asarray(clusters)
    same_length({"numerator": top, "denominator": bottom, "clusters": labels})
    check_level(level)
    if bottom.size and bottom.min() < 0:
        raise UsageError("denominator: a value is negative")
    if (top[bottom == 0] != 0).any():
        raise UsageError("numerator: a value stands over a denominator of 0")
    keep = bottom > 0
    top, bottom, labels = top[keep], bottom[keep], labels[keep]
    if bottom.size == 0:
        return None
    if bounded:
        check_unit(top / bottom, "numerator / denominator")
    group, n_groups = codes(labels, "clusters")
    ratio = float(top.sum() / bottom.sum())
    se = _sum_error(top - ratio * bottom, group, n_groups) / float(bottom.sum()) if n_groups > 1 else 0.0
    return t_estimate(
        ratio, se, n=top.size, n_groups=n_groups, level=level, bounded=bounded,
        method="pooled ratio, linearised over clusters, t",
    )  # fmt: skip
