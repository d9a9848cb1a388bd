"""Many contrasts at once: step-down p-values and the critical value of the largest ``|t|``."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from seatrial.errors import EvidenceError, UsageError
from seatrial.stats.inputs import Floats, check_level, floats

_CHUNK = 5_000


def holm(p: ArrayLike) -> Floats:
    """Holm's adjusted p-values in input order, shape (m,): reject where adjusted p <= alpha (Holm 1979).

    Raises:
        UsageError: a p-value is missing or outside [0, 1].
    """
    values = floats(p, "p")
    if values.size and (values.min() < 0 or values.max() > 1):
        raise UsageError("p: expected values between 0 and 1")
    order = np.argsort(values, kind="stable")
    stepped = np.maximum.accumulate(values[order] * np.arange(values.size, 0, -1))
    out = np.empty(values.size)
    out[order] = np.minimum(stepped, 1.0)
    return out


def square(cov: ArrayLike, what: str = "cov") -> Floats:
    """`cov` as a symmetric finite matrix.

    Raises:
        UsageError: not square, not symmetric, not finite, or a negative variance.
    """
    matrix = np.asarray(cov, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise UsageError(f"{what}: expected a square matrix, got shape {matrix.shape}")
    if not np.isfinite(matrix).all():
        raise UsageError(f"{what}: a value is NaN or infinite")
    scale = float(np.abs(matrix).max(initial=0.0))
    if np.abs(matrix - matrix.T).max(initial=0.0) > 1e-9 * scale or np.diag(matrix).min(initial=0.0) < -1e-12 * scale:
        raise UsageError(f"{what}: expected a symmetric matrix with variances of at least 0")
    return (matrix + matrix.T) / 2.0


def factor(matrix: Floats) -> Floats:
    """A with A Aᵀ = matrix, by eigen-decomposition; negative eigenvalues, which are rounding, become 0.

    Contrasts against an average sum to 0, so their covariance is singular: Cholesky fails there (METHODS 3.4).
    """
    values, vectors = np.linalg.eigh(matrix)
    keep = values > 1e-13 * max(float(values.max(initial=0.0)), 0.0)
    return np.ascontiguousarray(vectors[:, keep] * np.sqrt(values[keep]))


def largest_t_quantile(root: Floats, df: float, level: float, draws: int, seed: int) -> float:
    """Quantile `level` of ``max_j |(root z)_j| / sqrt(chi2_df/df)``; `root` (n_contrasts, rank) has unit rows."""
    check_level(level)
    if not df > 0:
        raise UsageError(f"df must be positive, got {df}", hint="use math.inf for the normal limit")
    if draws < 999:
        raise UsageError(f"at least 999 draws are needed, got {draws}")
    rng = np.random.default_rng(seed)
    largest = np.empty(draws)
    for start in range(0, draws, _CHUNK):
        stop = min(start + _CHUNK, draws)
        z = rng.standard_normal((stop - start, root.shape[1])) @ root.T
        peak = np.abs(z).max(axis=1)
        if not math.isinf(df):
            peak /= np.sqrt(rng.chisquare(df, stop - start) / df)
        largest[start:stop] = peak
    return float(np.quantile(largest, level))


def max_t_quantile(cov: ArrayLike, df: float, level: float = 0.95, draws: int = 100_000, seed: int = 0) -> float:
    """Critical value c with ``P(max_m |T_m| <= c) = level`` for contrasts of covariance `cov` (METHODS 3.4).

    T is normal with correlation corr(cov), drawn by eigen-decomposition and divided by sqrt(chi2_df/df) (one
    chi-square per draw: all contrasts share it). `cov` is (m, m); `df` may be fractional or `math.inf`.
    Contrasts of variance 0 have no t and are left out.

    Raises:
        UsageError: `cov` is no covariance, df <= 0, or fewer than 999 draws.
        EvidenceError: no contrast has a positive variance.
    """
    matrix = square(cov)
    variances = np.diag(matrix)
    live = variances > 1e-14 * float(variances.max(initial=0.0))
    if not live.any():
        raise EvidenceError("no contrast has a positive variance, so there is no simultaneous interval")
    se = np.sqrt(variances[live])
    return largest_t_quantile(factor(matrix[np.ix_(live, live)] / np.outer(se, se)), df, level, draws, seed)


def romano_wolf(observed: ArrayLike, draws: ArrayLike) -> Floats:
    """Step-down adjusted p-values from the joint null draws of all statistics (Romano & Wolf 2005).

    `observed` (m,) and `draws` (n_draws, m) are t statistics, two-sided; each p is (1 + #)/(1 + n_draws) of the
    largest ``|t*|`` among the hypotheses not yet passed, made monotone (Westfall & Young's free step-down).

    Raises:
        UsageError: shapes disagree, a value is missing, or fewer than 999 draws.
    """
    t = np.abs(floats(observed, "observed"))
    null = np.abs(np.asarray(draws, dtype=np.float64))
    if null.ndim != 2 or null.shape[1] != t.size:
        raise UsageError(f"draws: expected shape (n_draws, {t.size}), got {null.shape}")
    if null.shape[0] < 999:
        raise UsageError(f"at least 999 draws are needed, got {null.shape[0]}")
    if not np.isfinite(null).all():
        raise UsageError("draws: a value is NaN or infinite")
    order = np.argsort(-t, kind="stable")
    # Largest |t*| over this hypothesis and all with a smaller observed |t|.
    rest = np.maximum.accumulate(null[:, order[::-1]], axis=1)[:, ::-1]
    reached = (rest >= t[order] - 1e-12 * t[order]).sum(axis=0)
    out = np.empty(t.size)
    out[order] = np.maximum.accumulate((1.0 + reached) / (1.0 + null.shape[0]))
    return out
