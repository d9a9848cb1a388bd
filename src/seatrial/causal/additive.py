"""Arm means from an additive stratum model, for arms that never meet in one stratum (METHODS 3.4b, rung c)."""

from __future__ import annotations

import numpy as np

from seatrial.causal import cells
from seatrial.causal.cells import Cells, Floats, Moments
from seatrial.causal.prepare import Codes, Sample
from seatrial.causal.strata import MIN_CLUSTERS, components

CHUNK = 4_096


def _normal(n_sk: Floats, b_sk: Floats) -> tuple[Floats, Floats]:
    """Within-stratum cross-products of arm dummies (..., K, K) and of dummies with the outcome (..., K)."""
    n_s = np.maximum(n_sk.sum(axis=-1, keepdims=True), 1e-300)
    share = n_sk / n_s
    diagonal = n_sk[..., None] * np.eye(n_sk.shape[-1])
    return diagonal - n_sk[..., None] * share[..., None, :], b_sk - share * b_sk.sum(axis=-1, keepdims=True)


def _means(gram: Floats, right: Floats, n_k: Floats, total: Floats, n: Floats) -> Floats:
    """``mu_m = alpha_m + mean of what is left``: OLS of y on stratum and arm dummies, at the pooled stratum mix."""
    k_count = gram.shape[-1]
    # The arm effects are free up to a constant; a rank-one term picks the solution with mean 0 and harms nothing.
    scale = np.trace(gram, axis1=-2, axis2=-1)[..., None, None].clip(1e-300) / k_count
    alpha = np.linalg.solve(gram + scale * np.ones((k_count, k_count)) / k_count, right[..., None])[..., 0]
    level = (total - (n_k * alpha).sum(axis=-1)) / n
    result: Floats = alpha + level[..., None]
    return result


def moments(sample: Sample, stratum: Codes) -> Moments | None:
    """Moments of the additive model's arm means, CR3 by refitting without each cluster; None when not identified.

    Identified when shared strata link all arms and keep linking them without any one cluster.
    """
    k_count = len(sample.arms)
    if len(components(stratum, sample.arm, k_count)) > 1:
        return None
    built = cells.build(sample.cluster, stratum, sample.arm, sample.y, n_arms=k_count)
    by_arm = np.unique(built.cluster * k_count + built.arm) % k_count
    if (np.bincount(by_arm, minlength=k_count) < MIN_CLUSTERS).any():
        return None
    n_sk, b_sk = built.total(built.n), built.total(built.b)
    gram_s, right_s = _normal(n_sk, b_sk)
    gram, right = gram_s.sum(axis=0), right_s.sum(axis=0)
    n_k, total, n = n_sk.sum(axis=0), float(b_sk.sum()), float(n_sk.sum())
    mean = _means(gram, right, n_k, np.array(total), np.array(n))
    jack = np.vstack(
        [
            _without(built, low, min(low + CHUNK, built.n_distinct), n_sk, b_sk, gram_s, right_s)
            for low in range(0, built.n_distinct, CHUNK)
        ]
    )
    if not np.isfinite(jack).all():
        return None
    g_count = built.n_clusters
    shift = jack - jack.mean(axis=0)
    influence = -(g_count - 1) / g_count * (jack - mean)
    shares = np.bincount(built.cluster, weights=built.n) / n
    held = np.zeros((g_count, k_count))
    np.add.at(held, (built.cluster, built.arm), built.n / n_k[built.arm])
    return Moments(
        name="additive stratum model",
        mean=mean,
        cr1=g_count / max(g_count - 1, 1) * influence.T @ influence,
        cr3=(g_count - 1) / g_count * shift.T @ shift,
        part=(influence**2).sum(axis=0),
        g_star=float(1.0 / (shares**2).sum()),
        g_star_k=1.0 / (held**2).sum(axis=0),
        largest=float(shares.max()),
        n=int(n),
        n_clusters=g_count,
        n_k=n_k.astype(np.int64),
        clusters_k=np.bincount(by_arm, minlength=k_count),
    )


def _without(built: Cells, low: int, high: int, n_sk: Floats, b_sk: Floats, gram_s: Floats, right_s: Floats) -> Floats:
    rows = slice(int(built.first[low]), int(built.first[high]))
    k_count = built.n_arms
    pair_key = built.cluster[rows] * built.n_strata + built.stratum[rows]
    pairs, pair = np.unique(pair_key, return_inverse=True)
    owner, s = pairs // built.n_strata - low, pairs % built.n_strata
    n_left, b_left = n_sk[s].copy(), b_sk[s].copy()
    np.subtract.at(n_left, (pair, built.arm[rows]), built.n[rows])
    np.subtract.at(b_left, (pair, built.arm[rows]), built.b[rows])
    gram_left, right_left = _normal(n_left, np.where(n_left > 0, b_left, 0.0))
    size = high - low
    gram = np.broadcast_to(gram_s.sum(axis=0), (size, k_count, k_count)).copy()
    right = np.broadcast_to(right_s.sum(axis=0), (size, k_count)).copy()
    np.add.at(gram, owner, gram_left - gram_s[s])
    np.add.at(right, owner, right_left - right_s[s])
    n_k = np.broadcast_to(n_sk.sum(axis=0), (size, k_count)).copy()
    total, n = np.full(size, b_sk.sum()), np.full(size, n_sk.sum())
    np.subtract.at(n_k, (built.cluster[rows] - low, built.arm[rows]), built.n[rows])
    np.subtract.at(total, built.cluster[rows] - low, built.b[rows])
    np.subtract.at(n, built.cluster[rows] - low, built.n[rows])
    # Without this cluster the arms may fall apart: second-smallest eigenvalue 0.
    linked = np.linalg.eigvalsh(gram)[:, 1] > 1e-9 * np.abs(gram).max(axis=(1, 2))
    if not linked.all():
        return np.full((size, k_count), np.nan)
    return _means(gram, right, n_k, total, n)
