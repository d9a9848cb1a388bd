"""Doubly robust arm means for sessions that nobody assigned: AIPW with cross-fitting by cluster (METHODS 3.3)."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from seatrial.causal.cells import Floats, Moments
from seatrial.causal.lin import design_matrix
from seatrial.causal.prepare import Codes, Sample

FOLDS = 5
FLOOR = 0.02
"""Fitted propensities below this are raised to it, and counted: positivity is in doubt there."""
BINS = 20


def _patterns(code: Codes, x: Floats) -> tuple[Floats, Codes]:
    """Distinct covariate patterns (P, p) and the pattern of every row; numbers are cut into at most 20 quantile bins."""
    columns = [code.astype(np.float64)]
    for column in x.T:
        if np.unique(column).size > BINS:
            edges = np.unique(np.quantile(column, np.linspace(0, 1, BINS + 1)[1:-1]))
            place = np.searchsorted(edges, column, side="right")
            mean = np.bincount(place, weights=column) / np.maximum(np.bincount(place), 1)
            column = mean[place]
        columns.append(column)
    table, row = np.unique(np.column_stack(columns), axis=0, return_inverse=True)
    # Every stratum must have a dummy, whichever fold is fitted.
    return design_matrix(table[:, 0].astype(np.int64), table[:, 1:]), row.ravel()


def ridge(z: Floats, n: Floats, total: Floats, penalty: float) -> Floats:
    """Weighted ridge of means on patterns: `n` rows of sum `total` at each pattern; the intercept is free."""
    free = np.ones(z.shape[1])
    free[0] = 0.0
    gram = z.T @ (z * n[:, None]) + penalty * np.diag(free)
    coefficients: Floats = np.linalg.lstsq(gram, z.T @ total, rcond=None)[0]
    return coefficients


def propensity(z: Floats, counts: Floats, penalty: float) -> Floats:
    """Multinomial ridge-logistic probabilities (P, K) from pattern counts (P, K); intercepts are free."""
    p, k = z.shape[1], counts.shape[1]
    size = counts.sum(axis=1)
    total = max(float(size.sum()), 1.0)

    def loss(flat: Floats) -> tuple[float, Floats]:
        beta = flat.reshape(p, k)
        score = z @ beta
        score -= score.max(axis=1, keepdims=True)
        exp = np.exp(score)
        norm = exp.sum(axis=1, keepdims=True)
        value = float((size * np.log(norm[:, 0])).sum() - (counts * score).sum())
        gradient = z.T @ (exp / norm * size[:, None] - counts)
        value += penalty / 2 * float((beta[1:] ** 2).sum())
        gradient[1:] += penalty * beta[1:]
        return value / total, (gradient / total).ravel()

    start = np.zeros((p, k))
    start[0] = np.log(np.maximum(counts.sum(axis=0), 0.5) / total)
    fit = minimize(loss, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 500, "gtol": 1e-7})
    score = z @ fit.x.reshape(p, k)
    exp = np.exp(score - score.max(axis=1, keepdims=True))
    fitted: Floats = exp / exp.sum(axis=1, keepdims=True)
    return fitted


def scores(sample: Sample, code: Codes, x: Floats, *, seed: int = 0, penalty: float = 1.0) -> tuple[Floats, float]:
    """AIPW scores (n, K), ``f_m(x) + 1{m(i)=m}(y - f_m(x))/e_m(x)``, and the share of propensities at the floor.

    Nuisances (ridge and multinomial ridge-logistic, penalty 1 on standardised covariates) are fitted without the
    session's own fold; folds are whole clusters.
    """
    z, pattern = _patterns(code, x)
    k_count, p_count = len(sample.arms), z.shape[0]
    fold_of = np.random.default_rng(seed).permutation(sample.n_clusters) % min(FOLDS, sample.n_clusters)
    fold = fold_of[sample.cluster]
    cell = pattern * k_count + sample.arm
    shape = (p_count, k_count)
    n_all = np.bincount(cell, minlength=p_count * k_count).reshape(shape).astype(np.float64)
    y_all = np.bincount(cell, weights=sample.y, minlength=p_count * k_count).reshape(shape)
    out = np.zeros((sample.n, k_count))
    floored = 0
    for f in range(int(fold_of.max()) + 1):
        rows = np.flatnonzero(fold == f)
        n_in = n_all - np.bincount(cell[rows], minlength=p_count * k_count).reshape(shape)
        y_in = y_all - np.bincount(cell[rows], weights=sample.y[rows], minlength=p_count * k_count).reshape(shape)
        expected = np.column_stack([z @ ridge(z, n_in[:, k], y_in[:, k], penalty) for k in range(k_count)])
        if sample.bounded:
            expected = expected.clip(0.0, 1.0)
        chance = propensity(z, n_in, penalty)
        own = pattern[rows], sample.arm[rows]
        floored += int((chance[pattern[rows]].min(axis=1) < FLOOR).sum())
        out[rows] = expected[pattern[rows]]
        out[rows, sample.arm[rows]] += (sample.y[rows] - expected[own]) / np.maximum(chance[own], FLOOR)
    return out, floored / sample.n


def moments(
    sample: Sample, code: Codes, x: Floats, *, seed: int = 0, penalty: float = 1.0
) -> tuple[Moments, list[str]]:
    """Moments of the AIPW means. CR3 leaves clusters out of the mean of scores, with the nuisances as fitted."""
    score, floored = scores(sample, code, x, seed=seed, penalty=penalty)
    k_count, g_count, n = len(sample.arms), sample.n_clusters, sample.n
    mean = score.mean(axis=0)
    size = np.bincount(sample.cluster, minlength=g_count).astype(np.float64)
    total = np.column_stack([np.bincount(sample.cluster, weights=s, minlength=g_count) for s in score.T])
    influence = (total - size[:, None] * mean) / n
    jack = (score.sum(axis=0) - total) / np.maximum(n - size, 1.0)[:, None]
    shift = jack - jack.mean(axis=0)
    shares = size / n
    n_k = np.bincount(sample.arm, minlength=k_count)
    g_star_k, clusters_k, part = np.zeros(k_count), np.zeros(k_count, dtype=np.int64), np.zeros(k_count)
    for k in range(k_count):
        held = np.bincount(sample.cluster[sample.arm == k], minlength=g_count) / n_k[k]
        g_star_k[k], clusters_k[k] = 1.0 / (held**2).sum(), int((held > 0).sum())
        part[k] = (influence[:, k] ** 2).sum()
    notes = []
    if floored > 0:
        notes.append(f"positivity: for {floored:.1%} of sessions some model had an estimated chance below {FLOOR}")
    return Moments(
        name="AIPW",
        mean=mean,
        cr1=g_count / max(g_count - 1, 1) * influence.T @ influence,
        cr3=(g_count - 1) / g_count * shift.T @ shift,
        part=part,
        g_star=float(1.0 / (shares**2).sum()),
        g_star_k=g_star_k,
        largest=float(shares.max()),
        n=n,
        n_clusters=g_count,
        n_k=n_k,
        clusters_k=clusters_k,
    ), notes
