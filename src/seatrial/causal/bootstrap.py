"""Symmetric bootstrap-t half widths, on request (METHODS 3.4)."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from seatrial.causal.cells import Cells, Floats, tally
from seatrial.causal.effect import Analysis
from seatrial.causal.uncertainty import Contrasts

REPLICATES = 1_999
REGRESSION = ("Lin", "AIPW", "additive")


def half_widths(analysis: Analysis, each: Contrasts, *, level: float, seed: int) -> tuple[Floats | None, str | None]:
    """Quantile of |t*| times SE_CR1 for every contrast, (M,), infinite where too many replicates emptied a cell.

    None with a sentence where the estimator is a regression or uses overlap weights: the jackknife then stands.
    """
    if analysis.weighting == "overlap" or any(word in analysis.label for word in REGRESSION):
        return None, "bootstrap-t covers post-stratified and Hajek estimates only: the jackknife interval is given"
    t = t_draws(analysis.cells, each.coefficients, seed=seed)
    quantile = np.quantile(t, level, axis=0, method="higher")
    return quantile * each.se_cr1, None


def t_draws(built: Cells, coefficients: Floats, *, seed: int, replicates: int = REPLICATES) -> Floats:
    """|t*| of every contrast in every replicate, (B, M): Poisson(1) cluster weights, ``SE*^2 = sum W_g psi*_g^2``.

    Cell means, weights W_s and psi* are recomputed. A replicate that empties only some cells of a stratum counts as
    infinite; one that empties a whole stratum leaves it out.
    """
    rng = np.random.default_rng(seed)
    g_count, s_count, k_count = built.n_distinct, built.n_strata, built.n_arms
    cell = built.stratum * k_count + built.arm
    home = built.cluster * k_count + built.arm
    visits = sparse.csr_matrix((built.n, (built.cluster, built.stratum)), shape=(g_count, s_count))
    observed = coefficients @ _table(built, np.ones(g_count), cell)[0]
    out = np.full((replicates, coefficients.shape[0]), np.inf)
    for b in range(replicates):
        w = rng.poisson(1.0, g_count).astype(np.float64)
        mean, a, mean_sk, share, n_total, broken = _table(built, w, cell)
        if broken:
            continue
        residual = share[built.stratum] * (built.b - built.a * mean_sk.ravel()[cell])
        psi = np.bincount(
            home, weights=np.divide(residual, a[cell], out=np.zeros_like(residual), where=a[cell] > 0),
            minlength=g_count * k_count,
        ).reshape(g_count, k_count)  # fmt: skip
        gap = np.where(share[:, None] > 0, mean_sk - mean, 0.0)
        psi = (psi + visits @ gap / n_total) @ coefficients.T
        se = np.sqrt(w @ psi**2)
        shift = np.abs(coefficients @ mean - observed)
        out[b] = np.divide(shift, se, out=np.where(shift > 1e-12, np.inf, 0.0), where=se > 1e-12)
    return out


def _table(built: Cells, w: Floats, cell: np.ndarray) -> tuple[Floats, Floats, Floats, Floats, float, bool]:
    size = built.n_strata * built.n_arms
    row_w = w[built.cluster]
    a = tally(cell, built.a * row_w, size)
    b = tally(cell, built.b * row_w, size)
    n = tally(built.stratum, built.n * row_w, built.n_strata)
    filled = (a > 0).reshape(built.n_strata, built.n_arms)
    broken = bool((filled.any(axis=1) & ~filled.all(axis=1)).any()) or n.sum() == 0
    mean_sk = np.divide(b, a, out=np.zeros(size), where=a > 0).reshape(built.n_strata, built.n_arms)
    total = max(float(n.sum()), 1e-300)
    share = n / total
    return share @ mean_sk, a, mean_sk, share, total, broken
