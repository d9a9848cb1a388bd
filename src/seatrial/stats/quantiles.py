"""Quantiles of the normal, t and beta distributions, by scipy.special: scipy.stats takes four times as long to load."""

from __future__ import annotations

import math

from scipy import special

from seatrial.stats.inputs import check_level


def normal(probability: float) -> float:
    """z with P(Z <= z) = probability."""
    return float(special.ndtri(probability))


def two_sided_z(level: float) -> float:
    """z with P(|Z| <= z) = level."""
    return normal(0.5 + check_level(level) / 2.0)


def student(probability: float, df: float) -> float:
    """t with P(T_df <= t) = probability; df may be fractional or infinite."""
    if math.isinf(df):
        return normal(probability)
    return float(special.stdtrit(df, probability))


def two_sided_t(level: float, df: float) -> float:
    """t with P(|T_df| <= t) = level."""
    return student(0.5 + check_level(level) / 2.0, df)


def two_sided_df(level: float, t: float) -> float:
    """df with P(|T_df| <= t) = level: the inverse of `two_sided_t`, at most 1e10."""
    return float(special.stdtridf(0.5 + check_level(level) / 2.0, t))


def student_two_sided_p(t: float, df: float) -> float:
    """P(|T_df| >= |t|)."""
    if math.isinf(df):
        return float(2.0 * special.ndtr(-abs(t)))
    return float(2.0 * special.stdtr(df, -abs(t)))


def clopper_pearson_limits(k: float, n: float, level: float) -> tuple[float, float]:
    """Limits for k events of n; k need not be whole (an equal share of every task, METHODS 6.3)."""
    tail = (1.0 - check_level(level)) / 2.0
    low = 0.0 if k <= 0 else float(special.betaincinv(k, n - k + 1.0, tail))
    high = 1.0 if k >= n else float(special.betaincinv(k + 1.0, n - k, 1.0 - tail))
    return low, high


def wilson_limits(share: float, n: float, critical: float) -> tuple[float, float]:
    """Score limits for a share of n (effective, may be fractional) observations at a critical value.

    The limit next to an observed 0 or 1 is exactly 0 or 1; rounding would leave 1e-17 there.
    """
    square = critical * critical
    centre = (share + square / (2.0 * n)) / (1.0 + square / n)
    half = critical / (1.0 + square / n) * math.sqrt(share * (1.0 - share) / n + square / (4.0 * n * n))
    return (0.0 if share <= 0.0 else max(0.0, centre - half)), (1.0 if share >= 1.0 else min(1.0, centre + half))
