"""Moments to intervals: degrees of freedom, refusals, simultaneous intervals and ranks (METHODS 3.4)."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from seatrial.causal.cells import Floats, Moments
from seatrial.records import Estimate, RankInterval
from seatrial.stats import max_t_quantile, rank_intervals
from seatrial.stats.quantiles import two_sided_t, wilson_limits

REFUSE_BELOW = 5.0
WARN_BELOW = 30.0
RANK_FROM = 10.0
"""Effective clusters of an arm: no interval below 5, a warning below 30, a rank from 10 (METHODS 3.4, 3.6)."""

ONLY_TESTED = "; only the randomisation p-value of the sharp null (no model matters) is given"
NO_SPREAD = "the clusters do not vary: no standard error can be estimated"


@dataclasses.dataclass(frozen=True, slots=True)
class Contrasts:
    """Linear contrasts of the arm means: values, standard errors, degrees of freedom (M,), covariance (M, M)."""

    coefficients: Floats
    value: Floats
    se: Floats
    se_cr1: Floats
    df: Floats
    cov: Floats


def net_coefficients(q: Floats) -> Floats:
    """``c_mk = 1{k=m} - q_k``, (K, K) (METHODS 3.4)."""
    out: Floats = np.eye(q.size) - q
    return out


def pair_coefficients(k: int) -> Floats:
    """All K(K - 1)/2 differences, first minus second."""
    first, second = np.triu_indices(k, 1)
    rows = np.arange(first.size)
    out = np.zeros((first.size, k))
    out[rows, first], out[rows, second] = 1.0, -1.0
    return out


def degrees(moments: Moments, coefficients: Floats) -> Floats:
    """Welch-Satterthwaite degrees of freedom over arms, (M,): ``min{G* - 1, (sum v)^2 / sum v^2/(G*_k - 1)}``.

    ``v_mk = c_mk^2 sum_g r_gk^2``, r the arm's own part of the influence; all v = 0 gives G* - 1.
    """
    v = coefficients**2 * moments.part
    room = np.maximum(moments.g_star_k - 1.0, 1e-9)
    bottom = (v**2 / room).sum(axis=1)
    welch = np.divide(v.sum(axis=1) ** 2, bottom, out=np.full(v.shape[0], np.inf), where=bottom > 0)
    out: Floats = np.maximum(np.minimum(moments.g_star - 1.0, welch), 1e-9)
    return out


def contrasts(moments: Moments, coefficients: Floats) -> Contrasts:
    """`coefficients` (M, K) applied to the arm means, with CR3 errors."""
    cov = coefficients @ moments.cr3 @ coefficients.T
    scale = np.abs(coefficients) @ np.sqrt(np.diag(moments.cr3).clip(0.0))
    variance = np.diag(cov).copy()
    variance[variance <= 1e-14 * scale**2] = 0.0
    first = np.einsum("mk,kl,ml->m", coefficients, moments.cr1, coefficients)
    return Contrasts(
        coefficients=coefficients,
        value=coefficients @ moments.mean,
        se=np.sqrt(variance.clip(0.0)),
        se_cr1=np.sqrt(first.clip(0.0)),
        df=degrees(moments, coefficients),
        cov=cov,
    )


def refusal(moments: Moments, arms: tuple[str, ...], *, tested: bool) -> str | None:
    """Why no interval is defensible, or None (METHODS 3.4: any G*_k below 5). `tested`: a p-value is printed."""
    thin = [f"{a} {g:.1f}" for a, g in zip(arms, moments.g_star_k, strict=True) if g < REFUSE_BELOW]
    if not thin:
        return None
    said = f"fewer than {REFUSE_BELOW:.0f} effective clusters ({', '.join(thin)}): no interval is defensible"
    return said + (ONLY_TESTED if tested else "")


def warnings(moments: Moments, arms: tuple[str, ...]) -> list[str]:
    """Sentences for arms with fewer than 30 effective clusters that are not refused."""
    thin = [f"{a} {g:.1f}" for a, g in zip(arms, moments.g_star_k, strict=True) if REFUSE_BELOW <= g < WARN_BELOW]
    if not thin:
        return []
    return [f"fewer than {WARN_BELOW:.0f} effective clusters ({', '.join(thin)}): intervals are approximate"]


def interval(
    value: float,
    se: float,
    df: float,
    *,
    level: float,
    n: int,
    n_clusters: int,
    method: str,
    refused: str | None,
    half: float | None = None,
) -> Estimate:
    """``value +- t_df se``; limits None with the reason when refused or without spread. `half` replaces t_df se."""
    if refused is not None or se == 0.0:
        return Estimate(
            value=value, low=None, high=None, level=level, n=n, n_clusters=n_clusters, method=method,
            se=None if n_clusters < 2 else se, why=refused or NO_SPREAD,
        )  # fmt: skip
    width = two_sided_t(level, df) * se if half is None else half
    return Estimate(
        value=value, low=value - width, high=value + width, level=level, n=n, n_clusters=n_clusters,
        method=method, se=se,
    )  # fmt: skip


def mean_interval(moments: Moments, m: int, *, level: float, bounded: bool, binary: bool, refused: bool) -> Estimate:
    """One arm's mean: Wilson with n* for shares, t clipped to [0, 1] for bounded means (METHODS 0.3)."""
    each = contrasts(moments, np.eye(moments.mean.size)[m : m + 1])
    value, se, df = float(each.value[0]), float(each.se[0]), float(each.df[0])
    n, g = int(moments.n_k[m]), int(moments.clusters_k[m])
    if refused or g < 2:
        return interval(
            value, se, df, level=level, n=n, n_clusters=g, method=f"{moments.name} mean",
            refused=f"fewer than {REFUSE_BELOW:.0f} effective clusters",
        )  # fmt: skip
    low: float | None
    high: float | None
    if binary:
        effective = float(moments.g_star_k[m]) if se == 0.0 else min(max(value * (1 - value) / se**2, 1.0), float(n))
        low, high = wilson_limits(min(max(value, 0.0), 1.0), effective, two_sided_t(level, df))
        method = f"{moments.name} mean, CR3 Wilson t"
    elif se == 0.0 and bounded:
        alike = ((1.0 - level) / 2.0) ** (1.0 / float(moments.g_star_k[m]))
        low, high, method = value * alike, value * alike + 1.0 - alike, f"{moments.name} mean, exact bound"
    elif se == 0.0:
        return interval(value, se, df, level=level, n=n, n_clusters=g, method=moments.name, refused=None)
    else:
        half = two_sided_t(level, df) * se
        low, high, method = value - half, value + half, f"{moments.name} mean, CR3 t"
        if bounded:
            low, high = max(0.0, low), min(1.0, high)
    return Estimate(value=value, low=low, high=high, level=level, n=n, n_clusters=g, method=method, se=se)


def simultaneous(each: Contrasts, *, level: float, seed: int) -> list[tuple[float, float] | None]:
    """Intervals that hold for all contrasts together: c x SE, c the max-|t| quantile with df = min_m df_m.

    c is never below the t quantile: Monte Carlo noise must not make joint intervals narrower than pointwise ones.
    """
    live = np.flatnonzero(each.se > 0)
    out: list[tuple[float, float] | None] = [None] * each.value.size
    if live.size == 0:
        return out
    df = float(each.df[live].min())
    c = max(max_t_quantile(each.cov[np.ix_(live, live)], df, level, seed=seed), two_sided_t(level, df))
    for m in live:
        out[m] = (float(each.value[m] - c * each.se[m]), float(each.value[m] + c * each.se[m]))
    return out


def ranks(moments: Moments, rows: NDArray[np.int64], *, level: float, seed: int) -> list[RankInterval]:
    """Rank intervals of the arms `rows`, one critical value over all their pairs (Mogstad et al. 2023)."""
    if rows.size < 2:
        return [RankInterval(value=1, low=1, high=1)] * int(rows.size)
    coefficients = np.zeros((rows.size * (rows.size - 1) // 2, moments.mean.size))
    coefficients[:, rows] = pair_coefficients(rows.size)
    df = float(degrees(moments, coefficients).min())
    return rank_intervals(moments.mean[rows], moments.cr3[np.ix_(rows, rows)], df, level, seed=seed)
