"""Doubly robust arm means for sessions that nobody assigned: AIPW with cross-fitting by cluster (METHODS 3.3)."""

from __future__ import annotations

import numpy as np

from seatrial.causal.cells import Floats, Moments, tally
from seatrial.causal.lin import design_matrix
from seatrial.causal.prepare import Codes, Sample

FOLDS = 5
FLOOR = 0.02
"""Fitted propensities below this are raised to it, and counted: positivity is in doubt there."""
BINS = 20


def _patterns(code: Codes, x: Floats) -> tuple[Floats, Codes]:
    """Distinct covariate patterns (P, p) and every row's pattern; numbers are cut into at most 20 quantile bins."""
    columns = [code.astype(np.float64)]
    for column in x.T:
        if np.unique(column).size > BINS:
            edges = np.unique(np.quantile(column, np.linspace(0, 1, BINS + 1)[1:-1]))
            place = np.searchsorted(edges, column, side="right")
            mean = tally(place, column, edges.size + 1) / np.maximum(tally(place, None, edges.size + 1), 1.0)
            columns.append(mean[place])
        else:
            columns.append(column)
    key = np.zeros(code.size, dtype=np.int64)
    for column in columns:
        values, place = np.unique(column, return_inverse=True)
        # Made dense again after every column, so that it cannot grow beyond rows x values.
        key = np.unique(key * values.size + place, return_inverse=True)[1].astype(np.int64)
    first = np.unique(key, return_index=True)[1]
    table = np.column_stack([column[first] for column in columns])
    # Every stratum must have a dummy, whichever fold is fitted.
    return design_matrix(table[:, 0].astype(np.int64), table[:, 1:]), key


def ridge(z: Floats, n: Floats, total: Floats, penalty: float) -> Floats:
    """Weighted ridge of means on patterns: `n` rows of sum `total` at each pattern; the intercept is free."""
    free = np.ones(z.shape[1])
    free[0] = 0.0
    gram = z.T @ (z * n[:, None]) + penalty * np.diag(free)
    coefficients: Floats = np.asarray(np.linalg.lstsq(gram, z.T @ total, rcond=None)[0], dtype=np.float64)
    return coefficients


def propensity(z: Floats, counts: Floats, penalty: float) -> Floats:
    """Multinomial ridge-logistic probabilities (P, K) from pattern counts (P, K); intercepts are free.

    Damped Newton steps with the Hessian's blocks ``Z' N P_k Z``, an upper bound that is exact up to the one direction
    that softmax leaves free; L-BFGS took a hundred times as long on these small problems.
    """
    p, k = z.shape[1], counts.shape[1]
    size = counts.sum(axis=1)
    total = max(float(size.sum()), 1.0)
    ridge_term = penalty * np.eye(p)
    ridge_term[0, 0] = 1e-9 * total

    def evaluate(beta: Floats) -> tuple[float, Floats]:
        score = z @ beta
        score -= score.max(axis=1, keepdims=True)
        log_chance = score - np.log(np.exp(score).sum(axis=1, keepdims=True))
        return float(-(counts * log_chance).sum() + penalty / 2 * (beta[1:] ** 2).sum()), np.exp(log_chance)

    beta = np.zeros((p, k))
    beta[0] = np.log(np.maximum(counts.sum(axis=0), 0.5) / total)
    loss, chance = evaluate(beta)
    for _ in range(100):
        gradient = z.T @ (chance * size[:, None] - counts)
        gradient[1:] += penalty * beta[1:]
        if np.abs(gradient).max() <= 1e-9 * total:
            break
        weight = (chance * size[:, None]).T
        blocks = np.stack([z.T @ (z * w[:, None]) for w in weight]) + ridge_term
        step = np.linalg.solve(blocks, gradient.T[..., None])[..., 0].T
        # Adding one vector to every arm's coefficients changes no probability; the smallest penalty has mean 0.
        step -= (step - beta).mean(axis=1, keepdims=True)
        scale = 1.0
        while True:
            new_loss, new_chance = evaluate(beta - scale * step)
            if new_loss <= loss or scale < 1e-3:
                break
            scale /= 2
        gained = loss - new_loss
        beta, loss, chance = beta - scale * step, new_loss, new_chance
        if gained <= 1e-12 * max(abs(loss), 1.0):
            break
    return chance


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
    size = p_count * k_count
    n_all, y_all = tally(cell, None, size).reshape(shape), tally(cell, sample.y, size).reshape(shape)
    out = np.zeros((sample.n, k_count))
    floored = 0
    for f in range(int(fold_of.max()) + 1):
        rows = np.flatnonzero(fold == f)
        n_in = n_all - tally(cell[rows], None, size).reshape(shape)
        y_in = y_all - tally(cell[rows], sample.y[rows], size).reshape(shape)
        fits = [ridge(z, n_in[:, k], y_in[:, k], penalty) for k in range(k_count)]
        expected: Floats = np.column_stack([z @ fit for fit in fits])
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
