"""Regression-adjusted arm means: fully interacted OLS with centred covariates (METHODS 3.3; Lin 2013)."""

from __future__ import annotations

import numpy as np

from seatrial.causal.cells import Floats, Moments
from seatrial.causal.prepare import Codes, Sample

CHUNK = 2_048


def design_matrix(code: Codes, x: Floats) -> Floats:
    """Intercept, stratum dummies (first left out) and covariates, (n, p)."""
    strata = int(code.max()) + 1
    dummies = np.zeros((code.size, strata - 1))
    inside = code > 0
    dummies[np.flatnonzero(inside), code[inside] - 1] = 1.0
    return np.column_stack([np.ones(code.size), dummies, x])


def _by_cluster(values: Floats, cluster: Codes, g_count: int) -> Floats:
    out = np.zeros((g_count, *values.shape[1:]))
    np.add.at(out, cluster, values)
    return out


def moments(sample: Sample, code: Codes, x: Floats) -> Moments:
    """``mu_m = xbar' beta_m`` with arm-wise OLS at the pooled covariate mean; equals OLS with full interactions.

    CR3 refits every arm and recomputes the mean covariates without each cluster. A pseudo-inverse is used where a
    covariate does not vary inside an arm.
    """
    z = design_matrix(code, x)
    n = z.shape[0]
    k_count, g_count = len(sample.arms), sample.n_clusters
    centre = z.mean(axis=0)
    g_sum, g_size = _by_cluster(z, sample.cluster, g_count), np.bincount(sample.cluster, minlength=g_count)
    left_centre = (z.sum(axis=0) - g_sum) / (n - g_size)[:, None]
    mean, jack = np.zeros(k_count), np.zeros((g_count, k_count))
    influence, part, g_star_k = np.zeros((g_count, k_count)), np.zeros(k_count), np.zeros(k_count)
    clusters_k = np.zeros(k_count, dtype=np.int64)
    for k in range(k_count):
        rows = np.flatnonzero(sample.arm == k)
        zk, yk, gk = z[rows], sample.y[rows], sample.cluster[rows]
        gram = zk.T @ zk
        inverse = np.linalg.pinv(gram, hermitian=True)
        beta = inverse @ (zk.T @ yk)
        mean[k] = centre @ beta
        residual = yk - zk @ beta
        own = np.bincount(gk, weights=(zk @ (inverse @ centre)) * residual, minlength=g_count)
        influence[:, k] = own + (g_sum - g_size[:, None] * centre) @ beta / n
        part[k] = (own**2).sum()
        held = np.bincount(gk, minlength=g_count) / rows.size
        g_star_k[k], clusters_k[k] = 1.0 / (held**2).sum(), int((held > 0).sum())
        jack[:, k] = left_centre @ beta
        touched = np.flatnonzero(held > 0)
        jack[touched, k] = _refit(zk, yk, gk, gram, touched, left_centre)
    shift = jack - jack.mean(axis=0)
    shares = g_size / n
    return Moments(
        name="regression-adjusted (Lin)",
        mean=mean,
        cr1=g_count / max(g_count - 1, 1) * influence.T @ influence,
        cr3=(g_count - 1) / g_count * shift.T @ shift,
        part=part,
        g_star=float(1.0 / (shares**2).sum()),
        g_star_k=g_star_k,
        largest=float(shares.max()),
        n=n,
        n_clusters=g_count,
        n_k=np.bincount(sample.arm, minlength=k_count),
        clusters_k=clusters_k,
    )


def _refit(z: Floats, y: Floats, g: Codes, gram: Floats, touched: Codes, left_centre: Floats) -> Floats:
    """Arm means with each touched cluster left out, in blocks of clusters."""
    order = np.argsort(g, kind="stable")
    z, y, g = z[order], y[order], g[order]
    first, last = np.searchsorted(g, touched), np.searchsorted(g, touched, side="right")
    moment = z.T @ y
    out = np.zeros(touched.size)
    for low in range(0, touched.size, CHUNK):
        block = range(low, min(low + CHUNK, touched.size))
        grams = np.stack([gram - z[first[j] : last[j]].T @ z[first[j] : last[j]] for j in block])
        rights = np.stack([moment - z[first[j] : last[j]].T @ y[first[j] : last[j]] for j in block])
        betas = (np.linalg.pinv(grams, hermitian=True) @ rights[..., None])[..., 0]
        out[low : low + len(block)] = (left_centre[touched[low : low + len(block)]] * betas).sum(axis=1)
    return out
