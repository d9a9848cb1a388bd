"""Rows to sufficient statistics by cluster, stratum and arm, and the moments of post-stratified means (METHODS 3.4).

Every contrast of section 3 is linear in the arm means, so means, their two covariance matrices and each arm's own
part of the influence are all that inference needs: K and K x K numbers, however many sessions there were.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Weighting = Literal["share", "overlap"]
CHUNK = 65_536
"""Clusters per block of the jackknife: bounds memory at about CHUNK x K floats."""


def tally(index: Codes, weights: Floats | None, size: int) -> Floats:
    """Sums of `weights` (None: counts) by `index`, (size,), always floats."""
    return np.asarray(np.bincount(index, weights=weights, minlength=size), dtype=np.float64)


def distinct(values: Codes) -> Codes:
    """Sorted distinct codes; NumPy's own hashes first, which is five times slower on millions of integers."""
    ordered = np.sort(values)
    new = np.ones(ordered.size, dtype=bool)
    new[1:] = ordered[1:] != ordered[:-1]
    return ordered[new]


@dataclasses.dataclass(frozen=True, slots=True)
class Cells:
    """Sums over the rows of one cluster in one cell, sorted by cluster; shapes (r,).

    `n` counts rows, `a` sums weights, `b` sums weight x outcome (a = n and b = the sum where weights are 1).
    `first` (G + 1,) is where each cluster's rows start; `times` (G,) how many clusters look exactly like it.
    """

    cluster: Codes
    stratum: Codes
    arm: Codes
    n: Floats
    a: Floats
    b: Floats
    first: Codes
    times: Floats
    n_strata: int
    n_arms: int

    @property
    def n_distinct(self) -> int:
        return self.times.size

    @property
    def n_clusters(self) -> int:
        return int(self.times.sum())

    def total(self, values: Floats) -> Floats:
        """`values` summed over all clusters into an (S, K) table."""
        key = self.stratum * self.n_arms + self.arm
        flat = tally(key, values * self.times[self.cluster], self.n_strata * self.n_arms)
        return flat.reshape(self.n_strata, self.n_arms)


@dataclasses.dataclass(frozen=True, slots=True)
class Moments:
    """Arm means and what inference about any contrast of them needs.

    `mean` (K,). `cr1` and `cr3` (K, K): covariance from influence with G/(G - 1), and from the delete-one-cluster
    jackknife. `part` (K,): sum over clusters of the square of arm k's own part of the influence. `g_star`,
    `g_star_k` (K,): effective clusters, overall and by arm; `largest` the largest cluster's share. `n_k` sessions
    and `clusters_k` clusters by arm. `influence` (G, K) is kept only on request.
    """

    name: str
    mean: Floats
    cr1: Floats
    cr3: Floats
    part: Floats
    g_star: float
    g_star_k: Floats
    largest: float
    n: int
    n_clusters: int
    n_k: Codes
    clusters_k: Codes
    influence: Floats | None = None
    jackknife: Floats | None = None


def build(
    cluster: Codes,
    stratum: Codes,
    arm: Codes,
    y: Floats,
    *,
    weight: Floats | None = None,
    n_strata: int | None = None,
    n_arms: int | None = None,
) -> Cells:
    """Sufficient statistics of rows; `weight` None means 1 each. Clusters must be coded 0..G-1 without gaps."""
    s_count = int(stratum.max()) + 1 if n_strata is None else n_strata
    k_count = int(arm.max()) + 1 if n_arms is None else n_arms
    g_count = int(cluster.max()) + 1
    key = (cluster * s_count + stratum) * k_count + arm
    unique, inverse = np.unique(key, return_inverse=True)
    n = tally(inverse, None, unique.size)
    owner = unique // (s_count * k_count)
    return Cells(
        cluster=owner,
        stratum=unique // k_count % s_count,
        arm=unique % k_count,
        n=n,
        a=n if weight is None else tally(inverse, weight, unique.size),
        b=tally(inverse, y if weight is None else weight * y, unique.size),
        first=np.searchsorted(owner, np.arange(g_count + 1)),
        times=np.ones(g_count),
        n_strata=s_count,
        n_arms=k_count,
    )


def compress(cells: Cells) -> Cells:
    """One row for all clusters that are alike, where each cluster has one row (a session with its outcome).

    A million sessions of a graded outcome become a few thousand rows; nothing else changes.
    """
    if cells.cluster.size != cells.n_distinct or cells.cluster.size < CHUNK:
        return cells
    key = (cells.stratum * cells.n_arms + cells.arm).astype(np.float64)
    table = np.column_stack([key, cells.n, cells.a, cells.b])
    order = np.lexsort(table.T[::-1])
    table = table[order]
    new = np.ones(key.size, dtype=bool)
    new[1:] = (table[1:] != table[:-1]).any(axis=1)
    start = np.flatnonzero(new)
    kept = order[start]
    times = np.add.reduceat(cells.times[order], start)
    rows = np.arange(kept.size)
    return dataclasses.replace(
        cells, cluster=rows, stratum=cells.stratum[kept], arm=cells.arm[kept], n=cells.n[kept], a=cells.a[kept],
        b=cells.b[kept], first=np.arange(kept.size + 1), times=times,
    )  # fmt: skip


def _safe(top: Floats, bottom: Floats) -> Floats:
    return np.divide(top, bottom, out=np.zeros(np.broadcast(top, bottom).shape), where=bottom > 0)


def stratum_weights(n_sk: Floats, weighting: Weighting) -> Floats:
    """Unnormalised weight of every stratum, (S,): its sessions, or the overlap weight 1/sum_k(1/n_sk)."""
    inverse = _safe(np.ones_like(n_sk), n_sk).sum(axis=1).clip(1e-300)
    out: Floats = n_sk.sum(axis=1) if weighting == "share" else np.where((n_sk > 0).all(axis=1), 1.0 / inverse, 0.0)
    return out


def _blocks(cells: Cells) -> Iterator[tuple[int, int, slice]]:
    for low in range(0, cells.n_distinct, CHUNK):
        high = min(low + CHUNK, cells.n_distinct)
        yield low, high, slice(int(cells.first[low]), int(cells.first[high]))


def _pairs(cells: Cells, rows: slice) -> tuple[Codes, Codes]:
    """For rows sorted by (cluster, stratum): the pair index of every row, and the first row of every pair."""
    cluster, stratum = cells.cluster[rows], cells.stratum[rows]
    new = np.ones(cluster.size, dtype=bool)
    new[1:] = (cluster[1:] != cluster[:-1]) | (stratum[1:] != stratum[:-1])
    return np.cumsum(new) - 1, np.flatnonzero(new)


def moments(
    cells: Cells, *, weighting: Weighting = "share", name: str = "post-stratified", keep: bool = False
) -> Moments:
    """Post-stratified means ``sum_s W_s (b/a)_sk`` with CR1 and CR3 (METHODS 3.3, 3.4).

    W_s is estimated, so every deletion recomputes cell means *and* W_s; a deletion that removes a whole stratum
    drops it and renormalises. With weights 1/p this is Hajek's estimator inside strata; with one stratum it is
    Hajek's. Every cell must hold rows of at least two clusters, or be the only cluster of its stratum.
    """
    if not keep:
        cells = compress(cells)
    a_sk, b_sk, n_sk = cells.total(cells.a), cells.total(cells.b), cells.total(cells.n)
    h_s = stratum_weights(n_sk, weighting)
    share_s = h_s / h_s.sum()
    mean_sk = _safe(b_sk, a_sk)
    mean = share_s @ mean_sk
    n_total, g_count, k_count = n_sk.sum(), cells.n_clusters, cells.n_arms
    keep_jack: list[Floats] = []
    keep_psi: list[Floats] = []
    jack_sum, jack_cross = np.zeros(k_count), np.zeros((k_count, k_count))
    psi_cross, part = np.zeros((k_count, k_count)), np.zeros(k_count)
    share_k = np.zeros(k_count)
    for low, high, rows in _blocks(cells):
        shift = _jackknife(cells, rows, low, high, weighting, a_sk, b_sk, n_sk, h_s, mean_sk) - mean
        own = _own_influence(cells, rows, low, high, share_s, a_sk, mean_sk)
        if weighting == "share":
            mix = _matrix(cells, rows, low, high, cells.n[rows]) @ (mean_sk - mean) / n_total
            psi = own + mix
        else:
            psi = -(g_count - 1) / g_count * shift
        times = cells.times[low:high]
        jack_sum += times @ shift
        jack_cross += (shift * times[:, None]).T @ shift
        psi_cross += (psi * times[:, None]).T @ psi
        part += times @ own**2
        s, k = cells.stratum[rows], cells.arm[rows]
        share_k += times @ _scatter(cells, rows, low, high, share_s[s] * _safe(cells.n[rows], n_sk[s, k])) ** 2
        if keep:
            keep_jack.append(shift + mean)
            keep_psi.append(psi)
    cr1 = g_count / max(g_count - 1, 1) * psi_cross
    cr3 = (g_count - 1) / g_count * (jack_cross - np.outer(jack_sum, jack_sum) / g_count)
    shares = np.bincount(cells.cluster, weights=cells.n, minlength=cells.n_distinct) / n_total
    return Moments(
        name=name,
        mean=mean,
        cr1=cr1,
        cr3=_clean(cr3, jack_cross),
        part=part,
        g_star=float(1.0 / (cells.times @ shares**2)),
        g_star_k=_safe(np.ones(k_count), share_k),
        largest=float(shares.max()),
        n=int(n_total),
        n_clusters=g_count,
        n_k=n_sk.sum(axis=0).astype(np.int64),
        clusters_k=_clusters_by_arm(cells),
        influence=np.concatenate(keep_psi) if keep else None,
        jackknife=np.concatenate(keep_jack) if keep else None,
    )


def _clean(cov: Floats, scale: Floats) -> Floats:
    """A covariance without rounding noise: variances below 1e-13 of their scale are 0."""
    cov = (cov + cov.T) / 2.0
    dead = np.diag(cov) <= 1e-13 * np.diag(scale)
    cov[dead, :] = 0.0
    cov[:, dead] = 0.0
    return cov


def _clusters_by_arm(cells: Cells) -> Codes:
    seen = distinct(cells.cluster * cells.n_arms + cells.arm)
    counts = np.bincount(seen % cells.n_arms, weights=cells.times[seen // cells.n_arms], minlength=cells.n_arms)
    return counts.astype(np.int64)


def _matrix(cells: Cells, rows: slice, low: int, high: int, values: Floats) -> sparse.csr_matrix:
    shape = (high - low, cells.n_strata)
    return sparse.csr_matrix((values, (cells.cluster[rows] - low, cells.stratum[rows])), shape=shape)


def _scatter(cells: Cells, rows: slice, low: int, high: int, values: Floats) -> Floats:
    key = (cells.cluster[rows] - low) * cells.n_arms + cells.arm[rows]
    return tally(key, values, (high - low) * cells.n_arms).reshape(high - low, cells.n_arms)


def _own_influence(
    cells: Cells, rows: slice, low: int, high: int, share_s: Floats, a_sk: Floats, mean_sk: Floats
) -> Floats:
    s, k = cells.stratum[rows], cells.arm[rows]
    residual = cells.b[rows] - cells.a[rows] * mean_sk[s, k]
    noise = np.abs(residual) <= 1e-12 * (np.abs(cells.b[rows]) + cells.a[rows] * np.abs(mean_sk[s, k]))
    residual = np.where(noise, 0.0, residual)
    return _scatter(cells, rows, low, high, share_s[s] * _safe(residual, a_sk[s, k]))


def _jackknife(
    cells: Cells,
    rows: slice,
    low: int,
    high: int,
    weighting: Weighting,
    a_sk: Floats,
    b_sk: Floats,
    n_sk: Floats,
    h_s: Floats,
    mean_sk: Floats,
) -> Floats:
    """Means with each cluster of the block left out, (high - low, K)."""
    s, k = cells.stratum[rows], cells.arm[rows]
    pair, start = _pairs(cells, rows)
    left_a = a_sk[s, k] - cells.a[rows]
    left_b = b_sk[s, k] - cells.b[rows]
    left_n = n_sk[s, k] - cells.n[rows]
    s_pair = s[start]
    if weighting == "share":
        h_pair = h_s[s_pair] - np.bincount(pair, weights=cells.n[rows])
    else:
        inverse = _safe(np.ones_like(left_n), left_n) - _safe(np.ones_like(left_n), n_sk[s, k])
        total = _safe(np.ones_like(n_sk), n_sk).sum(axis=1)[s_pair] + np.bincount(pair, weights=inverse)
        emptied = np.bincount(pair, weights=(left_n <= 0).astype(np.float64)) > 0
        h_pair = np.where(emptied, 0.0, 1.0 / total.clip(1e-300))
    alive = left_n > 0.5
    mean_left = np.where(alive, _safe(left_b, np.where(alive, left_a, 0.0)), 0.0)
    change = np.where(alive, h_pair[pair] * (mean_left - mean_sk[s, k]), 0.0)
    owner = cells.cluster[rows][start]
    drift = sparse.csr_matrix((h_pair - h_s[s_pair], (owner - low, s_pair)), shape=(high - low, cells.n_strata))
    top = h_s @ mean_sk + drift @ mean_sk + _scatter(cells, rows, low, high, change)
    bottom = h_s.sum() + np.asarray(drift.sum(axis=1)).ravel()
    result: Floats = _safe(top, bottom[:, None])
    return result
