"""Labels or cell tables to effects and CR1 variances, many assignments at a time.

The inside of `randomisation`: `Rule` says what is computed, `Cells` and `Entries` hold the data in the shape that
`permuting` needs. Outcomes are centred inside their stratum first, which changes no effect and keeps sums of squares
exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from seatrial.stats.inputs import Codes, Floats


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """Stratum weights W (S,), baseline policy q (M,), and whether W is estimated (`mix`) or fixed."""

    weights: Floats
    baseline: Floats
    mix: bool


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Margins of the stratum tables: `cell_n` (S, M), `level_n` (S, L) and centred outcome values (S, L)."""

    cell_n: Codes
    level_n: Codes
    value: Floats
    n: int

    @classmethod
    def of(cls, counts: Codes, levels: Floats) -> Cells:
        level_n = counts.sum(axis=1)
        mean = (level_n @ levels) / level_n.sum(axis=1)
        return cls(counts.sum(axis=2), level_n, levels[None, :] - mean[:, None], int(counts.sum()))

    def moments(self, counts: Codes) -> tuple[Floats, Floats]:
        """Sums and sums of squares of centred outcomes per cell, each (S, M)."""
        return (
            np.einsum("skl,sl->sk", counts, self.value),
            np.einsum("skl,sl->sk", counts, self.value**2),
        )

    def absolute(self, counts: Codes) -> Floats:
        return np.asarray(np.einsum("skl,sl->sk", counts, np.abs(self.value)), dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """Sessions, or (cluster, stratum) sums of them, sorted by cluster, and the units that carry a label.

    Entry j holds `count[j]` sessions of centred sum `y[j]` in `stratum[j]`, cluster `cluster[j]`, and wears the label
    of `unit[j]`. Units stand in block order: `labels` (U,) their arms, `starts` (B + 1,) the block bounds.
    `mix` is the (cluster, stratum) count table. `single`: every entry is its own cluster and unit.
    """

    labels: Codes
    starts: Codes
    unit: Codes
    stratum: Codes
    cluster: Codes
    count: Floats
    y: Floats
    size: Floats
    n_clusters: int
    stratum_n: Floats
    mix: sparse.csr_array
    single: bool

    @classmethod
    def of_rows(cls, s: Codes, k: Codes, y: Floats, group: Codes | None, block: Codes) -> Entries:
        # A cluster's units lie side by side in their block: what a draw reads for one cluster after another is near.
        order = np.argsort(block, kind="stable") if group is None else np.lexsort((group, block))
        unit_of_row = np.empty(s.size, dtype=np.int64)
        unit_of_row[order] = np.arange(s.size)
        cluster = unit_of_row if group is None else group
        return cls._build(k[order], block[order], unit_of_row, s, cluster, y, group is None)

    @classmethod
    def of_clusters(cls, s: Codes, k: Codes, y: Floats, group: Codes, block: Codes) -> Entries:
        first = np.unique(group, return_index=True)[1]
        order = np.argsort(block[first], kind="stable")
        unit_of_cluster = np.empty(first.size, dtype=np.int64)
        unit_of_cluster[order] = np.arange(first.size)
        return cls._build(k[first][order], block[first][order], unit_of_cluster[group], s, group, y, False)

    @classmethod
    def _build(
        cls, labels: Codes, blocks: Codes, unit: Codes, s: Codes, cluster: Codes, y: Floats, single: bool
    ) -> Entries:
        stratum_n = np.bincount(s).astype(np.float64)
        centred = y - (_sums(s, y) / stratum_n)[s]
        n_units, n_strata, n_clusters = labels.size, stratum_n.size, int(cluster.max()) + 1
        # One entry per (cluster, unit, stratum): a whole cluster with one label needs only its sums.
        key = (cluster * n_units + unit) * n_strata + s
        unique, place = np.unique(key, return_inverse=True)
        starts = np.flatnonzero(np.diff(blocks, prepend=-1))
        mix = sparse.coo_array((np.ones(s.size), (cluster, s)), shape=(n_clusters, n_strata)).tocsr()
        return cls(
            labels=labels, starts=np.append(starts, n_units), unit=unique // n_strata % n_units,
            stratum=unique % n_strata, cluster=unique // (n_strata * n_units),
            count=np.bincount(place).astype(np.float64), y=_sums(place, centred),
            size=_sums(place, np.abs(centred)), n_clusters=n_clusters, stratum_n=stratum_n, mix=mix,
            single=single,
        )  # fmt: skip

    def scale(self, rule: Rule) -> Floats:
        m = rule.baseline.size
        cell = self.stratum * m + self.labels[self.unit]
        shape = (self.stratum_n.size, m)
        n = _sums(cell, self.count, shape[0] * m).reshape(shape)
        return effect_scale(n, _sums(cell, self.size, shape[0] * m).reshape(shape), rule)


def _sums(place: Codes, weights: Floats, size: int = 0) -> Floats:
    return np.asarray(np.bincount(place, weights=weights, minlength=size), dtype=np.float64)


def effect_scale(cell_n: NDArray[np.generic], cell_abs: Floats, rule: Rule) -> Floats:
    """Sum of the absolute terms of each effect (M,): what rounding errors are measured against (METHODS 0.5)."""
    q = rule.baseline
    mean_abs = rule.weights @ (cell_abs / np.maximum(np.asarray(cell_n, dtype=np.float64), 1.0))
    return np.asarray(mean_abs @ np.abs(np.eye(q.size) - q).T, dtype=np.float64)


def cell_statistics(n: Floats, y: Floats, yy: Floats, rule: Rule, total: int) -> tuple[Floats, Floats]:
    """Effects and CR1 variances (B, M) from cell sums (B, S, M) where every session is its own cluster."""
    q, (live, tau_s, mean, effect) = rule.baseline, _effects(n, y, rule)
    safe = np.maximum(n, 1.0)
    part = np.maximum(yy - n * mean**2, 0.0) / safe**2 * live[:, :, None] ** 2
    variance = (part * (1.0 - 2.0 * q) + (part @ q**2)[..., None]).sum(axis=1)
    if rule.mix:
        gap = (tau_s - effect[:, None, :]) * live[:, :, None]
        variance += (gap**2 / n.sum(axis=2, keepdims=True)).sum(axis=1)
    return effect, variance * total / (total - 1.0)


def _effects(n: Floats, y: Floats, rule: Rule) -> tuple[Floats, Floats, Floats, Floats]:
    """Weights of complete strata (B, S), stratum effects and cell means (B, S, M), effects (B, M)."""
    live = rule.weights * (n > 0).all(axis=2)
    kept = live.sum(axis=1, keepdims=True)
    # No complete stratum: no statistic; `_settle` turns the NaN into a certain exceedance.
    live = np.divide(live, kept, out=np.full_like(live, np.nan), where=kept > 0)
    mean = y / np.maximum(n, 1.0)
    tau_s = mean - (mean @ rule.baseline)[..., None]
    return live, tau_s, mean, np.einsum("bs,bsm->bm", live, tau_s)


def label_statistics(entries: Entries, rule: Rule, labels: NDArray[np.integer]) -> tuple[Floats, Floats, int]:
    """Effects and CR1 variances (B, M) of label assignments (B, U), and how many lacked an arm in some stratum."""
    draws, m, n_strata = labels.shape[0], rule.baseline.size, entries.stratum_n.size
    worn = labels[:, entries.unit].astype(np.int64)
    cell = entries.stratum * m + worn
    flat = (cell + np.arange(draws)[:, None] * (n_strata * m)).ravel()
    shape = (draws, n_strata, m)

    def sums(weights: Floats) -> Floats:
        return _sums(flat, np.tile(weights, draws), math.prod(shape)).reshape(shape)

    n, y = sums(entries.count), sums(entries.y)
    lacking = int((n == 0).any(axis=(1, 2)).sum())
    if entries.single:
        effect, variance = cell_statistics(n, y, sums(entries.y**2), rule, entries.n_clusters)
        return effect, variance, lacking
    live, tau_s, mean, effect = _effects(n, y, rule)
    ratio = (live[:, :, None] / np.maximum(n, 1.0)).reshape(draws, -1)
    e = np.take_along_axis(ratio, cell, 1) * (
        entries.y - entries.count * np.take_along_axis(mean.reshape(draws, -1), cell, 1)
    )
    place = (np.arange(draws)[:, None] * entries.n_clusters + entries.cluster) * m + worn
    psi = _sums(place.ravel(), e.ravel(), draws * entries.n_clusters * m)
    psi = psi.reshape(draws, entries.n_clusters, m)
    psi -= (psi @ rule.baseline)[..., None]
    if rule.mix:
        gap = (tau_s - effect[:, None, :]) * (live / entries.stratum_n)[:, :, None]
        spread = entries.mix @ gap.transpose(1, 0, 2).reshape(n_strata, draws * m)
        psi += spread.reshape(entries.n_clusters, draws, m).transpose(1, 0, 2)
    g = entries.n_clusters
    return effect, np.einsum("bgm,bgm->bm", psi, psi) * (g / (g - 1.0)), lacking
