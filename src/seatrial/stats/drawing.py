"""Permuted labels or tables to effects and CR1 variances, in NumPy; hands large work to the compiled kernels.

The inside of `randomisation`: `Rule` says what is computed, `Cells` and `Entries` hold the data in the shape that the
draws need. Outcomes are centred inside their stratum first, which changes no effect and keeps sums of squares exact.
"""

from __future__ import annotations

import importlib.util
import math
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, special

from seatrial.errors import MissingExtra
from seatrial.stats.inputs import Codes, Floats

# Below this many cell updates, loading and calling compiled code takes longer than NumPy.
_WORTH_COMPILING = 20_000_000
_CHUNK_VALUES = 4_000_000
_LOG_TABLE = 2**21


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
        order = np.argsort(block, kind="stable")
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


def _settle(effects: Floats, variances: Floats, lost: NDArray[np.bool_]) -> None:
    """A draw without any complete stratum gets variance -1, which counts as infinitely extreme: the safe side."""
    effects[lost], variances[lost] = 0.0, -1.0


def _log_multinomial(counts: NDArray[np.generic]) -> float:
    c = np.asarray(counts, dtype=np.float64)
    return float((special.gammaln(c.sum(axis=-1) + 1.0) - special.gammaln(c + 1.0).sum(axis=-1)).sum())


def _count(log_total: float) -> float:
    return math.exp(log_total) if log_total < 40.0 else math.inf


def assignments_of_tables(cell_n: Codes) -> float:
    """How many ways sessions can be labelled inside strata (inf beyond 1e17)."""
    return round(total) if (total := _count(_log_multinomial(cell_n))) < 2**53 else math.inf


def assignments_of_labels(entries: Entries) -> float:
    """How many ways units can be labelled inside blocks (inf beyond 1e17)."""
    block = np.repeat(np.arange(entries.starts.size - 1), np.diff(entries.starts))
    table = np.zeros((entries.starts.size - 1, int(entries.labels.max()) + 1))
    np.add.at(table, (block, entries.labels), 1)
    return round(total) if (total := _count(_log_multinomial(table))) < 2**53 else math.inf


def _arrangements(labels: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Distinct orders of a multiset, in lexicographic order (Knuth's algorithm L)."""
    order = sorted(labels)
    while True:
        yield tuple(order)
        i = len(order) - 2
        while i >= 0 and order[i] >= order[i + 1]:
            i -= 1
        if i < 0:
            return
        j = len(order) - 1
        while order[j] <= order[i]:
            j -= 1
        order[i], order[j] = order[j], order[i]
        order[i + 1 :] = reversed(order[i + 1 :])


def _batch(entries: Entries, rule: Rule) -> int:
    m = rule.baseline.size
    width = max(entries.unit.size, entries.stratum_n.size * m, 0 if entries.single else entries.n_clusters * m)
    return max(1, _CHUNK_VALUES // max(1, width))


def enumerate_labels(entries: Entries, rule: Rule) -> tuple[Floats, Floats, int]:
    """Statistics of every assignment, identity included."""
    parts = [entries.labels[a:b] for a, b in zip(entries.starts[:-1], entries.starts[1:], strict=True)]
    per_block = [[np.array(x, dtype=np.int16) for x in _arrangements(tuple(p.tolist()))] for p in parts]
    size = _batch(entries, rule)
    out: list[tuple[Floats, Floats, int]] = []
    held: list[NDArray[np.int16]] = []
    for choice in product(*per_block):
        held.append(np.concatenate(choice))
        if len(held) == size:
            out.append(label_statistics(entries, rule, np.array(held)))
            held = []
    if held:
        out.append(label_statistics(entries, rule, np.array(held)))
    effects, variances = np.concatenate([o[0] for o in out]), np.concatenate([o[1] for o in out])
    _settle(effects, variances, np.asarray(np.isnan(effects).any(axis=1)))
    return effects, variances, sum(o[2] for o in out)


def compiled_wanted(engine: str, work: float) -> bool:
    """Whether to use Numba: asked for, or installed and worth it. The choice depends on the input alone."""
    if engine == "numpy":
        return False
    present = importlib.util.find_spec("numba") is not None
    if engine == "numba" and not present:
        raise MissingExtra("fast", "the compiled randomisation test")
    return present and (engine == "numba" or work >= _WORTH_COMPILING)


def draw_tables(cells: Cells, rule: Rule, draws: int, seed: int, engine: str) -> tuple[Floats, Floats, str]:
    """Effects and variances (B, M) of permuted tables, and the engine used."""
    m = rule.baseline.size
    # The commonest level goes last: it takes what is left and needs no draw.
    order = np.argsort(cells.level_n.sum(axis=0), kind="stable")
    level_n, value = np.ascontiguousarray(cells.level_n[:, order]), np.ascontiguousarray(cells.value[:, order])
    effects, variances = np.empty((draws, m)), np.empty((draws, m))
    if compiled_wanted(engine, float(draws) * cells.cell_n.size * max(1, order.size - 1)):
        from seatrial.stats import compiled

        largest = min(int(cells.level_n.sum(axis=1).max()) + 2, _LOG_TABLE)
        log_table = special.gammaln(np.arange(max(largest, 256)) + 1.0)
        compiled.table_draws(
            cells.cell_n, level_n, value, rule.weights, rule.baseline, rule.mix, seed, draws, log_table,
            effects, variances,
        )  # fmt: skip
        return effects, variances, "numba"
    _numpy_tables(cells.cell_n, level_n, value, rule, seed, cells.n, effects, variances)
    return effects, variances, "numpy"


def _stratum_sums(
    cell_n: Codes, level_n: Codes, value: Floats, draws: int, seed: tuple[int, int]
) -> tuple[Floats, Floats]:
    """Centred sums and sums of squares (B, M) of one stratum's permuted tables."""
    rng = np.random.default_rng(seed)
    first, second = np.zeros((draws, cell_n.size)), np.zeros((draws, cell_n.size))
    room: Codes | None = None
    for level, balls in enumerate(level_n[:-1].tolist()):
        if room is None:
            got = rng.multivariate_hypergeometric(cell_n, balls, size=draws, method="marginals")
            room = cell_n - got
        else:
            got = np.empty_like(room)
            left, rest = np.full(draws, balls), room.sum(axis=1)
            for k in range(cell_n.size - 1):
                rest = rest - room[:, k]
                got[:, k] = rng.hypergeometric(room[:, k], rest, left)
                left = left - got[:, k]
            got[:, -1] = left
            room = room - got
        first += value[level] * got
        second += value[level] ** 2 * got
    last = cell_n if room is None else room
    return first + value[-1] * last, second + value[-1] ** 2 * last


def _numpy_tables(
    cell_n: Codes, level_n: Codes, value: Floats, rule: Rule, seed: int, total: int, effects: Floats, variances: Floats
) -> None:
    """The fallback: strata drawn in threads (NumPy releases the lock), each from its own stream, summed in order."""
    q, draws = rule.baseline, effects.shape[0]
    effects[:], variances[:] = 0.0, 0.0
    drift, drift_square = np.zeros_like(effects), np.zeros_like(effects)
    weight_sum = 0.0

    def one(s: int) -> tuple[Floats, Floats]:
        first, second = _stratum_sums(cell_n[s], level_n[s], value[s], draws, (seed, s))
        mean = first / cell_n[s]
        part = np.maximum(second - first * mean, 0.0) * (rule.weights[s] / cell_n[s]) ** 2
        part = part * (1.0 - 2.0 * q) + (part @ q**2)[:, None]
        return mean - (mean @ q)[:, None], part

    workers = max(1, os.cpu_count() or 1)
    with ThreadPoolExecutor(workers) as pool:
        for start in range(0, cell_n.shape[0], 4 * workers):
            for s, (tau, part) in enumerate(
                pool.map(one, range(start, min(start + 4 * workers, cell_n.shape[0]))), start
            ):
                w, a = rule.weights[s], rule.weights[s] ** 2 / float(cell_n[s].sum())
                effects += w * tau
                variances += part
                if rule.mix:
                    drift += a * tau
                    drift_square += a * tau * tau
                    weight_sum += a
    if rule.mix:
        variances += np.maximum(drift_square - 2.0 * effects * drift + effects**2 * weight_sum, 0.0)
    variances *= total / (total - 1.0)


def draw_labels(entries: Entries, rule: Rule, draws: int, seed: int, engine: str) -> tuple[Floats, Floats, int, str]:
    """Effects and variances (B, M) under permuted labels, incomplete draws, and the engine used."""
    m = rule.baseline.size
    if compiled_wanted(engine, float(draws) * entries.unit.size):
        effects, variances, lacking = _compiled_labels(entries, rule, draws, seed)
        return effects, variances, lacking, "numba"
    effects, variances, lacking = np.empty((draws, m)), np.empty((draws, m)), 0
    streams = [np.random.default_rng((seed, block)) for block in range(entries.starts.size - 1)]
    size = _batch(entries, rule)
    for start in range(0, draws, size):
        stop = min(start + size, draws)
        labels = np.tile(entries.labels.astype(np.int16), (stop - start, 1))
        for stream, a, b in zip(streams, entries.starts[:-1], entries.starts[1:], strict=True):
            labels[:, a:b] = stream.permuted(labels[:, a:b], axis=1)
        effects[start:stop], variances[start:stop], some = label_statistics(entries, rule, labels)
        lacking += some
    _settle(effects, variances, np.asarray(np.isnan(effects).any(axis=1)))
    return effects, variances, lacking, "numpy"


def _compiled_labels(entries: Entries, rule: Rule, draws: int, seed: int) -> tuple[Floats, Floats, int]:
    from seatrial.stats import compiled

    m = rule.baseline.size
    effects, variances = np.empty((draws, m)), np.empty((draws, m))
    incomplete = np.zeros(draws, dtype=np.int64)
    shared = (entries.stratum_n, rule.weights, rule.baseline, rule.mix, seed, draws, effects, variances, incomplete)
    if entries.single:
        order = np.argsort(entries.unit)
        compiled.row_draws(entries.labels, entries.starts, entries.stratum[order], entries.y[order], *shared)
    else:
        bounds = np.searchsorted(entries.cluster, np.arange(entries.n_clusters + 1))
        mix = entries.mix
        compiled.entry_draws(
            entries.labels, entries.starts, entries.unit, entries.stratum, entries.count, entries.y, bounds,
            mix.indptr.astype(np.int64), mix.indices.astype(np.int64), mix.data, *shared,
        )  # fmt: skip
    _settle(effects, variances, np.asarray(incomplete == 2))
    return effects, variances, int((incomplete > 0).sum())
