"""Raters to agreement: raw agreement, Cohen's kappa, Krippendorff's alpha, sensitivity, specificity (METHODS 6.4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from seatrial.errors import UsageError
from seatrial.records.estimate import Estimate
from seatrial.stats.clusters import ONE_CLUSTER, edge
from seatrial.stats.inputs import Codes, Floats, Labels, check_level, codes, same_length
from seatrial.stats.randomisation import check_draws

_CHUNK_VALUES = 2_000_000


class Coefficient(msgspec.Struct, frozen=True, kw_only=True):
    """A chance-corrected coefficient: an `Estimate` whose `value` may be None, because one class leaves no chance.

    `why` says why value or limits are None. `undefined` counts bootstrap replicates without a value; they are left
    out of the percentiles.
    """

    value: float | None
    low: float | None
    high: float | None
    level: float
    n: int
    n_clusters: int
    method: str
    why: str | None = None
    undefined: int = 0


def table_ratings(table: ArrayLike) -> tuple[Codes, Codes]:
    """The two raters' codes of every item of a square table of counts (row: first rater, column: second).

    Raises:
        UsageError: not square, not whole, or negative.
    """
    counts = np.asarray(table)
    if counts.ndim != 2 or counts.shape[0] != counts.shape[1] or counts.dtype.kind not in "iu" or counts.min() < 0:
        raise UsageError("table: expected a square table of counts of at least 0")
    row, column = np.indices(counts.shape)
    return np.repeat(row.ravel(), counts.ravel()), np.repeat(column.ravel(), counts.ravel())


def _pair(a: ArrayLike, b: ArrayLike | None) -> tuple[Codes, Codes, int]:
    if b is None:
        first, second = table_ratings(a)
        return first, second, int(np.asarray(a).shape[0])
    one, two = np.asarray(a), np.asarray(b)
    same_length({"a": one, "b": two})
    both, n_classes = codes(np.concatenate([one, two]), "ratings")
    return both[: one.size], both[one.size :], n_classes


def _resampled(
    group: Codes, n_groups: int, parts: Floats, value: Callable[[Floats], Floats], level: float, seed: int, draws: int
) -> tuple[float, float, int] | None:
    """Percentiles of value(sum of parts over redrawn clusters); `parts` (n, p) add over items."""
    by_group = np.stack([np.bincount(group, weights=p, minlength=n_groups) for p in parts.T], axis=1)
    rng, out = np.random.default_rng(seed), np.empty(draws)
    size = max(1, _CHUNK_VALUES // n_groups)
    for start in range(0, draws, size):
        n = min(size, draws - start)
        times = rng.multinomial(n_groups, np.full(n_groups, 1.0 / n_groups), size=n)
        out[start : start + n] = value(np.asarray(times @ by_group, dtype=np.float64))
    good = out[np.isfinite(out)]
    if good.size == 0:
        return None
    low, high = np.quantile(good, [(1.0 - level) / 2.0, (1.0 + level) / 2.0])
    return float(low), float(high), int(out.size - good.size)


def _kappa_of_tables(tables: Floats, n_classes: int) -> Floats:
    t = tables.reshape(-1, n_classes, n_classes)
    n = t.sum(axis=(1, 2))
    with np.errstate(invalid="ignore", divide="ignore"):
        agree = np.trace(t, axis1=1, axis2=2) / n
        chance = (t.sum(axis=1) * t.sum(axis=2)).sum(axis=1) / n**2
        return np.where(1.0 - chance > 1e-12, (agree - chance) / (1.0 - chance), np.nan)


def cohen_kappa(
    a: ArrayLike, b: ArrayLike | None = None, *, clusters: Labels | None = None, level: float = 0.95, seed: int = 0,
    draws: int = 10_000,
) -> Coefficient:  # fmt: skip
    """Cohen's kappa of two raters, percentile bootstrap over items, or over `clusters` of items (METHODS 6.4).

    Give a square table of counts, or two sequences of ratings. When both raters use one and the same class, kappa
    is undefined: `value` None and `why` says so.

    Raises:
        UsageError: lengths differ, the table is malformed, or fewer than 999 draws.
    """
    first, second, n_classes = _pair(a, b)
    check_level(level)
    check_draws(draws, seed)
    n = first.size
    group, n_groups = codes(np.arange(n) if clusters is None else clusters, "clusters")
    same_length({"ratings": first, "clusters": group})
    method = f"Cohen's kappa, percentile bootstrap over {'items' if clusters is None else 'clusters'}, {draws} draws"
    cells = np.zeros((n, n_classes * n_classes))
    cells[np.arange(n), first * n_classes + second] = 1.0
    value = float(_kappa_of_tables(cells.sum(axis=0)[None], n_classes)[0]) if n else np.nan
    if not np.isfinite(value):
        why = "no items" if n == 0 else "one class only: kappa is undefined"
        return Coefficient(
            value=None, low=None, high=None, level=level, n=n, n_clusters=n_groups, method=method, why=why
        )
    chance = 1.0 - float(np.bincount(first, minlength=n_classes) @ np.bincount(second, minlength=n_classes)) / n**2
    return _with_limits(
        value, chance, group, n_groups, cells, lambda t: _kappa_of_tables(t, n_classes), level, seed, draws, n, method
    )


def _with_limits(
    value: float, chance: float, group: Codes, n_groups: int, parts: Floats, of: Callable[[Floats], Floats],
    level: float, seed: int, draws: int, n: int, method: str,
) -> Coefficient:  # fmt: skip
    """Bootstrap limits; a perfect value keeps a width (METHODS 0.3), since no redrawn sample can show a disagreement.

    `chance` is the disagreement expected by chance, as a share of the worst disagreement that one item can show.
    """
    low: float | None
    high: float | None
    low, high, undefined, why = None, None, 0, None
    if n_groups < 2:
        why = ONE_CLUSTER
    elif value >= 1.0 - 1e-12:
        alike = ((1.0 - level) / 2.0) ** (1.0 / n_groups)
        low, high = max(-1.0, 1.0 - (1.0 - alike) / chance), 1.0
        method = f"{method}; no disagreement: exact bound on it"
    elif (limits := _resampled(group, n_groups, parts, of, level, seed, draws)) is not None:
        low, high, undefined = limits
    else:
        why = "undefined in every bootstrap replicate"
    return Coefficient(
        value=value, low=low, high=high, level=level, n=n, n_clusters=n_groups, method=method, undefined=undefined,
        why=why,
    )  # fmt: skip


def raw_agreement(
    a: ArrayLike, b: ArrayLike | None = None, *, clusters: Labels | None = None, level: float = 0.95, seed: int = 0,
    draws: int = 10_000,
) -> Estimate | None:  # fmt: skip
    """Share of items rated alike, percentile bootstrap over items or clusters; None without items (METHODS 6.4).

    Raises:
        UsageError: lengths differ, the table is malformed, or fewer than 999 draws.
    """
    first, second, _ = _pair(a, b)
    check_level(level)
    check_draws(draws, seed)
    if first.size == 0:
        return None
    group, n_groups = codes(np.arange(first.size) if clusters is None else clusters, "clusters")
    same_length({"ratings": first, "clusters": group})
    same = (first == second).astype(np.float64)
    parts = np.stack([same, np.ones(same.size)], axis=1)
    value, method = float(same.mean()), f"raw agreement, percentile bootstrap, {draws} draws"
    low: float | None = None
    high: float | None = None
    if n_groups > 1 and value in (0.0, 1.0):
        low, high = edge(value, n_groups, level)
        method = "raw agreement, all items alike: exact bound"
    elif n_groups > 1 and (
        limits := _resampled(group, n_groups, parts, lambda t: t[:, 0] / t[:, 1], level, seed, draws)
    ):
        low, high = limits[:2]
    return Estimate(
        value=value, low=low, high=high, level=level, n=same.size, n_clusters=n_groups, method=method,
        why=ONE_CLUSTER if low is None else None,
    )  # fmt: skip


def _distances(values: NDArray[np.generic], metric: str) -> Floats:
    k = values.size
    if metric == "nominal":
        return 1.0 - np.eye(k)
    numbers = values.astype(np.float64)
    return np.asarray((numbers[:, None] - numbers[None, :]) ** 2, dtype=np.float64)


def krippendorff_alpha(
    ratings: ArrayLike, metric: Literal["nominal", "interval"] = "nominal", *, clusters: Labels | None = None,
    level: float = 0.95, seed: int = 0, draws: int = 10_000,
) -> Coefficient:  # fmt: skip
    """Krippendorff's alpha of any number of raters with gaps, percentile bootstrap over items (METHODS 6.4).

    `ratings` (n_raters, n_items); a missing rating is NaN (numbers) or None (text). Items with fewer than two
    ratings carry nothing and do not count in `n`. One class only: `value` None.

    Raises:
        UsageError: not two-dimensional, text with `interval`, unknown metric, or fewer than 999 draws.
    """
    table = np.asarray(ratings, dtype=object)
    check_level(level)
    check_draws(draws, seed)
    if table.ndim != 2:
        raise UsageError(f"ratings: expected shape (n_raters, n_items), got {table.shape}")
    if metric not in ("nominal", "interval"):
        raise UsageError(f"unknown metric {metric!r}", hint="nominal or interval")
    present = np.array([[x is not None and x == x for x in row] for row in table], dtype=bool).reshape(table.shape)
    usable = present.sum(axis=0) >= 2
    labels = np.asarray(clusters) if clusters is not None else np.arange(table.shape[1])
    same_length({"items": usable, "clusters": labels})
    group, n_groups = codes(labels[usable], "clusters")
    n = int(usable.sum())
    method = f"Krippendorff's alpha ({metric}), percentile bootstrap over items, {draws} draws"
    if n == 0:
        return Coefficient(
            value=None, low=None, high=None, level=level, n=0, n_clusters=0, method=method,
            why="no item has two ratings",
        )  # fmt: skip
    counts, values = _item_counts(table[:, usable], present[:, usable])
    try:
        distance = _distances(values, metric)
    except (TypeError, ValueError):
        raise UsageError("ratings: interval distances need numbers", hint="metric='nominal'") from None
    size = counts.sum(axis=1)
    observed = (np.einsum("ic,cd,id->i", counts, distance, counts)) / (size - 1.0)
    parts = np.concatenate([observed[:, None], counts], axis=1)

    def alpha(sums: Floats) -> Floats:
        margin = sums[:, 1:]
        total = margin.sum(axis=1)
        expected = np.einsum("bc,cd,bd->b", margin, distance, margin) / (total - 1.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(expected > 1e-12, 1.0 - sums[:, 0] / expected, np.nan)

    value = float(alpha(parts.sum(axis=0)[None])[0])
    if not np.isfinite(value):
        return Coefficient(
            value=None, low=None, high=None, level=level, n=n, n_clusters=n_groups, method=method,
            why="one class only: alpha is undefined",
        )  # fmt: skip
    margin = counts.sum(axis=0)
    chance = float(margin @ distance @ margin) / (margin.sum() * (margin.sum() - 1.0)) / float(distance.max())
    return _with_limits(value, chance, group, n_groups, parts, alpha, level, seed, draws, n, method)


def _item_counts(table: NDArray[np.object_], present: NDArray[np.bool_]) -> tuple[Floats, NDArray[np.generic]]:
    """How often every item (row) got every value (column), and the values."""
    flat = table[present].tolist()
    code, n_values = codes(flat, "ratings")
    item = np.broadcast_to(np.arange(table.shape[1]), table.shape)[present]
    counts = np.zeros((table.shape[1], n_values))
    np.add.at(counts, (item, code), 1.0)
    return counts, np.unique(np.asarray(flat))
