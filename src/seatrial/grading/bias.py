"""What moves a judge that should not: position, length, its own family (METHODS 6.4)."""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from seatrial.grading.judge import family
from seatrial.grading.ratings import Ratings
from seatrial.records import Estimate
from seatrial.stats import clustered_mean
from seatrial.stats.quantiles import two_sided_t


class Bias(msgspec.Struct, frozen=True, kw_only=True):
    """One bias with its estimate; None where the file has not what it needs, and `why` says what.

    position: share of pairs whose choice changes when the order is swapped. length: change of (judge - humans) in the
    pass rate per doubling of the output's length. own family: (judge - humans) on the judge's own family minus that
    on others.
    """

    name: Literal["position", "length", "own family"]
    estimate: Estimate | None
    why: str | None = None


def biases(ratings: Ratings, *, level: float = 0.95, judge_family: str | None = None) -> tuple[Bias, ...]:
    """Position, length and own-family bias, each with its interval or the reason why there is none."""
    return _position(ratings, level), _length(ratings, level), _own_family(ratings, level, judge_family)


def _position(r: Ratings, level: float) -> Bias:
    if r.judge_swapped is None:
        return Bias(name="position", estimate=None, why="needs a column judge_swapped: the verdict in the other order")
    pairs = [(a, b, t or i) for a, b, t, i in zip(r.judge, r.judge_swapped, r.tasks, r.items, strict=True) if a and b]
    if len({g for _, _, g in pairs}) < 2:
        return Bias(name="position", estimate=None, why="fewer than two items were judged in both orders")
    moved = [float(a != b) for a, b, _ in pairs]
    return Bias(name="position", estimate=clustered_mean(moved, [g for _, _, g in pairs], level))


def _excess(r: Ratings) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Which items have both, and by how much the judge passes them more than the humans do."""
    keep, out = [], []
    for i, said in enumerate(r.judge):
        votes = [h[i] == "pass" for h in r.humans.values() if h[i] is not None]
        both = said is not None and bool(votes)
        keep.append(both)
        out.append(float(said == "pass") - float(np.mean(votes)) if both else 0.0)
    return np.array(keep), np.array(out)


def _length(r: Ratings, level: float) -> Bias:
    if r.length is None or not r.binary:
        return Bias(name="length", estimate=None, why="needs pass or fail, and a column length or output")
    keep, excess = _excess(r)
    length = np.array([x if x is not None and x > 0 else np.nan for x in r.length])
    keep &= np.isfinite(length)
    return _slope("length", np.log2(length[keep]), excess[keep], _clusters(r, keep), level,
                  "change of the judge's excess pass rate per doubling of length, CR1 t")  # fmt: skip


def _own_family(r: Ratings, level: float, judge_family: str | None) -> Bias:
    if r.agent is None or judge_family is None or not r.binary:
        return Bias(
            name="own family", estimate=None, why="needs pass or fail, a column agent_model, and the judge's model"
        )
    keep, excess = _excess(r)
    makers = [family(a) for a in r.agent]
    keep &= np.array([m is not None for m in makers])
    own = np.array([float(m == judge_family) for m in makers])
    return _slope("own family", own[keep], excess[keep], _clusters(r, keep), level,
                  "judge's excess pass rate on its own family minus others, CR1 t")  # fmt: skip


def _clusters(r: Ratings, keep: NDArray[np.bool_]) -> NDArray[np.int64]:
    names = np.array([str(t or i) for t, i in zip(r.tasks, r.items, strict=True)])[keep]
    return np.unique(names, return_inverse=True)[1].astype(np.int64)


def _slope(
    name: Literal["length", "own family"], x: NDArray[np.float64], y: NDArray[np.float64], group: NDArray[np.int64],
    level: float, method: str,
) -> Bias:  # fmt: skip
    """Least-squares slope with a cluster-robust error."""
    g = int(group.max()) + 1 if group.size else 0
    if g < 10 or float(np.ptp(x)) == 0.0:
        return Bias(name=name, estimate=None, why="needs at least ten tasks, and outputs that differ in it")
    centred = x - x.mean()
    square = float(centred @ centred)
    slope = float(centred @ y) / square
    residual = y - y.mean() - slope * centred
    scores = np.bincount(group, weights=centred * residual, minlength=g)
    se = float(np.sqrt(g / (g - 1.0) * (scores @ scores))) / square
    half = two_sided_t(level, g - 1) * se
    return Bias(name=name, estimate=Estimate(value=slope, low=slope - half, high=slope + half, level=level, n=y.size,
                                             n_clusters=g, se=se, method=method))  # fmt: skip
