"""Design to permuted assignments: all of them where they are few, random ones otherwise, compiled where it pays.

The inside of `randomisation`; what is computed for an assignment stands in `drawing`.
"""

from __future__ import annotations

import importlib.util
import math
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from seatrial.errors import MissingExtra
from seatrial.stats.drawing import Cells, Entries, Rule, label_statistics
from seatrial.stats.inputs import Codes, Floats

# Below this many cell updates, loading and calling compiled code takes longer than NumPy.
_WORTH_COMPILING = 20_000_000
_CHUNK_VALUES = 4_000_000
_LOG_TABLE = 2**21


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
        _compiled_tables(cells.cell_n, level_n, value, rule, seed, effects, variances)
        return effects, variances, "numba"
    _numpy_tables(cells.cell_n, level_n, value, rule, seed, cells.n, effects, variances)
    return effects, variances, "numpy"


def _compiled_tables(
    cell_n: Codes, level_n: Codes, value: Floats, rule: Rule, seed: int, effects: Floats, variances: Floats
) -> None:
    from seatrial.stats import compiled, tabulated

    largest, draws = int(level_n.sum(axis=1).max()) + 2, effects.shape[0]
    log_table = special.gammaln(np.arange(max(min(largest, _LOG_TABLE), 256)) + 1.0)
    if level_n.shape[1] == 2:
        inverse = 1.0 / np.maximum(np.arange(largest + 1, dtype=np.float64), 1.0)
        tabulated.binary_draws(
            cell_n, np.ascontiguousarray(level_n[:, 0]), value[:, 0] - value[:, 1], rule.weights, rule.baseline,
            rule.mix, seed, draws, max(1, min(os.cpu_count() or 1, draws // 500)), inverse, log_table,
            effects, variances,
        )  # fmt: skip
        return
    compiled.table_draws(
        cell_n, level_n, value, rule.weights, rule.baseline, rule.mix, seed, draws, log_table, effects, variances
    )


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
    labels: NDArray[np.integer[Any]] = entries.labels.astype(np.int32)
    if m <= 256:
        labels = labels.astype(np.uint8)
    stratum = entries.stratum.astype(np.int32)
    shared = (entries.stratum_n, rule.weights, rule.baseline, rule.mix, seed, draws, effects, variances, incomplete)
    if entries.single:
        order = np.argsort(entries.unit)
        compiled.row_draws(labels, entries.starts, stratum[order], entries.y[order], *shared)
    else:
        bounds = np.searchsorted(entries.cluster, np.arange(entries.n_clusters + 1))
        mix = entries.mix
        compiled.entry_draws(
            labels, entries.starts, entries.unit.astype(np.int32), stratum, entries.count.astype(np.int32), entries.y,
            bounds, mix.indptr.astype(np.int64), mix.indices.astype(np.int32), mix.data.astype(np.int32), *shared,
        )  # fmt: skip
    _settle(effects, variances, np.asarray(incomplete == 2))
    return effects, variances, int((incomplete > 0).sum())
