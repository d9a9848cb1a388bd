"""Has a population moved between two windows? Stability index, two-sample test, and a difference with clusters in both.

A cluster (user) may be seen in both windows. A *piece* is what one cluster did in one window. Under the hypothesis that
nothing moved, clusters seen once may change places among themselves, and the two pieces of a cluster seen twice may
be swapped: both keep every piece whole (METHODS 0.4, 3.10).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seatrial.errors import UsageError
from seatrial.records.estimate import Estimate
from seatrial.stats.clusters import effective_number
from seatrial.stats.inputs import Floats, Labels, check_level, codes, floats, same_length
from seatrial.stats.quantiles import student_two_sided_p, two_sided_t

FEWEST_DRAWS = 99
TIE = 1e-12


class Shift(NamedTuple):
    """A statistic of the observed windows, its permutation p-value, and how many draws stand behind that."""

    value: float
    p_value: float
    draws: int


class Difference(NamedTuple):
    """Later minus earlier, and the two-sided p-value of no difference (None where it cannot be told; 1 where all values
    of both windows are one value)."""

    estimate: Estimate
    p_value: float | None


def population_stability(before: ArrayLike, after: ArrayLike) -> float:
    """``sum (a - b) ln(a / b)`` over the shares of two lists of counts, half a count added to every bin.

    By custom, .1 is small and .2 a shift. Bins that are empty in both windows are left out.

    Raises:
        UsageError: lengths differ, a count is negative, or a window is empty.
    """
    a, b = floats(before, "before"), floats(after, "after")
    same_length({"before": a, "after": b})
    if a.size == 0 or min(a.min(), b.min()) < 0 or a.sum() <= 0 or b.sum() <= 0:
        raise UsageError("counts of two windows: expected non-negative counts, at least one session in each")
    return float(_indices(a[None, :], b[None, :])[0])


def _indices(a: Floats, b: Floats) -> Floats:
    used = (a.sum(axis=0) + b.sum(axis=0)) > 0
    a, b = a[:, used] + 0.5, b[:, used] + 0.5
    p, q = a / a.sum(axis=1, keepdims=True), b / b.sum(axis=1, keepdims=True)
    out: Floats = ((p - q) * np.log(p / q)).sum(axis=1)
    return out


def stability_test(bins: Labels, after: ArrayLike, clusters: Labels, *, draws: int = 999, seed: int = 0) -> Shift:
    """The stability index of sessions' bins between two windows, and its p by moving whole pieces.

    `bins` (n,) says which bin each session is in, `after` (n,) is True in the later window.

    Raises:
        UsageError: lengths differ, a window is empty, or too few draws.
    """
    place, n_bins = codes(bins, "bins")
    pieces = _pieces(after, clusters, place.size, draws)
    counts = np.zeros((pieces.later.size, n_bins))
    np.add.at(counts, (pieces.of, place), 1.0)
    labels = np.vstack([pieces.later, _moved(pieces, draws, seed)]).astype(float)
    later = labels @ counts
    values = _indices(counts.sum(axis=0)[None, :] - later, later)
    return _judged(values, draws)


def classifier_test(
    features: ArrayLike, after: ArrayLike, clusters: Labels, *, folds: int = 5, penalty: float = 1.0,
    draws: int = 999, seed: int = 0,
) -> Shift:  # fmt: skip
    """How well a ridge classifier tells the windows apart on clusters that it has not seen: the area under its curve.

    Folds keep clusters whole. Scores are linear in the labels, so every draw refits all folds. .5 means that the
    windows cannot be told apart (classifier two-sample test, Lopez-Paz & Oquab 2017).

    Args:
        features: (n_sessions, n_features); columns are standardised, constant ones dropped.

    Raises:
        UsageError: lengths differ, a window is empty, too few draws, or fewer clusters than folds.
    """
    matrix = np.asarray(features, dtype=float)
    if matrix.ndim != 2 or not np.isfinite(matrix).all():
        raise UsageError("features: expected a matrix of finite numbers, one row per session")
    pieces = _pieces(after, clusters, matrix.shape[0], draws)
    if pieces.n_clusters < folds:
        raise UsageError(f"a classifier test with {folds} folds needs as many clusters, got {pieces.n_clusters}")
    spread = matrix.std(axis=0)
    matrix = (matrix[:, spread > 0] - matrix[:, spread > 0].mean(axis=0)) / spread[spread > 0]
    rng = np.random.default_rng(seed)
    fold = rng.permutation(np.arange(pieces.n_clusters) % folds)[pieces.cluster]
    labels = np.vstack([pieces.later, _moved(pieces, draws, seed + 1)])[:, pieces.of].astype(float)
    scores = np.zeros_like(labels)
    for k in range(folds):
        train, test = fold != k, fold == k
        x = matrix[train]
        inverse = np.linalg.inv(x.T @ x + penalty * np.eye(x.shape[1]))
        y = labels[:, train]
        centred = y - y.mean(axis=1, keepdims=True)
        scores[:, test] = (centred @ x) @ inverse @ (matrix[test] - x.mean(axis=0)).T
    return _judged(_areas(scores, labels), draws)


def _areas(scores: Floats, labels: Floats) -> Floats:
    from scipy.stats import rankdata

    ranks = rankdata(scores, axis=1)
    n_later = labels.sum(axis=1)
    n_earlier = labels.shape[1] - n_later
    out: Floats = ((ranks * labels).sum(axis=1) - n_later * (n_later + 1) / 2) / (n_later * n_earlier)
    return out


def window_difference(
    values: ArrayLike, after: ArrayLike, clusters: Labels, *, level: float = 0.95, method: str = "later - earlier"
) -> Difference:
    """Mean of the later window minus mean of the earlier one: delete-one-cluster jackknife, t with the degrees of
    freedom of METHODS 3.4 (a window is an arm). A cluster in both windows is deleted from both.

    No interval (`why` says so) with fewer than five effective clusters in a window.

    Raises:
        UsageError: lengths differ or a window is empty.
    """
    check_level(level)
    array = floats(values, "values")
    later = np.asarray(after, dtype=bool)
    group, n_groups = codes(clusters, "clusters")
    same_length({"values": array, "after": later, "clusters": group})
    n = np.stack([np.bincount(group[w], minlength=n_groups) for w in (~later, later)]).astype(float)
    if n.sum(axis=1).min() == 0:
        raise UsageError("a window is empty: there is nothing to compare")
    sums = np.stack([np.bincount(group[w], weights=array[w], minlength=n_groups) for w in (~later, later)])
    means = sums.sum(axis=1) / n.sum(axis=1)
    value = float(means[1] - means[0])
    effective = [effective_number(row) for row in n]
    seen = int((n.sum(axis=0) > 0).sum())
    if min(effective) < 5:
        why = f"fewer than 5 effective clusters in a window ({min(effective):.1f})"
        thin = Estimate(
            value=value, low=None, high=None, level=level, n=array.size, n_clusters=seen, method=method, why=why
        )
        return Difference(thin, None)
    left = (sums.sum(axis=1, keepdims=True) - sums) / (n.sum(axis=1, keepdims=True) - n)
    without = left[1] - left[0]
    se = float(np.sqrt((n_groups - 1) / n_groups * ((without - without.mean()) ** 2).sum()))
    residual = (sums - n * means[:, None]) / n.sum(axis=1, keepdims=True)
    v = (residual**2).sum(axis=1)
    total = effective_number(n.sum(axis=0))
    df = total - 1
    if v.sum() > 0:
        df = min(df, float(v.sum() ** 2 / sum(x**2 / (g - 1) for x, g in zip(v, effective, strict=True) if x > 0)))
    if se == 0.0:
        # Every session says the same in its window: that is no proof that the next one would.
        same = Estimate(
            value=value, low=None, high=None, level=level, n=array.size, n_clusters=seen, method=method,
            why="every session has the same value, so there is no spread to judge a change by",
        )  # fmt: skip
        return Difference(same, None if value else 1.0)
    reach = two_sided_t(level, df) * se
    estimate = Estimate(
        value=value, low=value - reach, high=value + reach, level=level, n=array.size, n_clusters=seen,
        method=f"{method}, jackknife over clusters, t", se=se,
    )  # fmt: skip
    return Difference(estimate, student_two_sided_p(value / se, df))


class _Pieces(NamedTuple):
    of: NDArray[np.int64]
    """(n_sessions,) the piece of each session."""
    cluster: NDArray[np.int64]
    """(n_sessions,) the cluster of each session."""
    later: NDArray[np.bool_]
    """(n_pieces,) in the later window."""
    partner: NDArray[np.int64]
    """(n_pieces,) the other piece of the same cluster, or -1."""
    n_clusters: int


def _pieces(after: ArrayLike, clusters: Labels, n: int, draws: int) -> _Pieces:
    later = np.asarray(after, dtype=bool)
    group, n_groups = codes(clusters, "clusters")
    if later.shape != (n,) or group.size != n:
        raise UsageError(f"windows and clusters: expected {n} values each")
    if not later.any() or later.all():
        raise UsageError("a window is empty: there is nothing to compare")
    if draws < FEWEST_DRAWS:
        raise UsageError(f"a permutation test needs at least {FEWEST_DRAWS} draws, got {draws}")
    keys, of = np.unique(group * 2 + later, return_inverse=True)
    place = {int(key): i for i, key in enumerate(keys)}
    partner = np.array([place.get(int(key) ^ 1, -1) for key in keys], dtype=np.int64)
    return _Pieces(of.astype(np.int64), group.astype(np.int64), keys % 2 == 1, partner, n_groups)


def _moved(pieces: _Pieces, draws: int, seed: int) -> NDArray[np.bool_]:
    """(draws, n_pieces) in the later window, after a random move."""
    rng = np.random.default_rng(seed)
    out = np.tile(pieces.later, (draws, 1))
    single = np.flatnonzero(pieces.partner < 0)
    out[:, single] = rng.permuted(out[:, single], axis=1)
    first = np.flatnonzero((pieces.partner >= 0) & pieces.later)
    swap = rng.random((draws, first.size)) < 0.5
    out[:, first] = ~swap
    out[:, pieces.partner[first]] = swap
    return out


def _judged(values: Floats, draws: int) -> Shift:
    observed = float(values[0])
    beyond = int((values[1:] >= observed - TIE * max(1.0, abs(observed))).sum())
    return Shift(observed, (1 + beyond) / (1 + draws), draws)
