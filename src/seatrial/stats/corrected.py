"""Rates measured by an imperfect detector or judge, corrected for its errors (METHODS 1.5, 3.4d)."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from seatrial.errors import UsageError
from seatrial.records.estimate import Estimate
from seatrial.stats.inputs import Floats, Labels, check_level, codes, floats, same_length
from seatrial.stats.quantiles import two_sided_t, two_sided_z

FEWEST_LABELS = 30


def _terms(p: float, q0: float, q1: float, n: float, m0: float, m1: float) -> tuple[float, float]:
    """Corrected rate and its delta-method standard error."""
    power = q0 + q1 - 1.0
    theta = (p + q0 - 1.0) / power
    variance = (
        p * (1.0 - p) / n + (1.0 - theta) ** 2 * q0 * (1.0 - q0) / m0 + theta**2 * q1 * (1.0 - q1) / m1
    ) / power**2
    return theta, math.sqrt(variance)


def rogan_gladen(
    p: float, specificity: float, sensitivity: float, n: int | None = None, m0: int | None = None,
    m1: int | None = None, *, level: float = 0.95, interval: Literal["smoothed", "delta"] = "smoothed",
) -> Estimate | None:  # fmt: skip
    """True rate behind an observed rate: ``(p + q0 - 1)/(q0 + q1 - 1)`` (Rogan & Gladen 1978).

    `p` observed rate among `n`; `specificity` q0 measured on `m0` true negatives, `sensitivity` q1 on `m1` true
    positives. None when q0 + q1 <= 1: such a detector carries no information. Value and limits are clipped to
    [0, 1]. Without all three counts the limits are None. `smoothed` is the interval of Lee et al. (arXiv
    2511.21140): p smoothed by z^2/2 successes in z^2, q0 and q1 by one in two, centre shifted by
    ``2 z^2 (theta q1(1 - q1)/m1 - (1 - theta) q0(1 - q0)/m0)``; `delta` is the plain delta method. Error rates must
    be estimated per model when models elicit signals differently (METHODS 3.4d).

    Raises:
        UsageError: a rate outside [0, 1], a count below 1, or an unknown interval.
    """
    z = two_sided_z(level)
    if min(p, specificity, sensitivity) < 0 or max(p, specificity, sensitivity) > 1:
        raise UsageError(f"rates must lie between 0 and 1, got {p}, {specificity}, {sensitivity}")
    if any(x is not None and x < 1 for x in (n, m0, m1)):
        raise UsageError(f"counts must be at least 1, got n={n}, m0={m0}, m1={m1}")
    if interval not in ("smoothed", "delta"):
        raise UsageError(f"unknown interval {interval!r}", hint="smoothed or delta")
    if specificity + sensitivity <= 1.0:
        return None
    value = min(1.0, max(0.0, (p + specificity - 1.0) / (specificity + sensitivity - 1.0)))
    if n is None or m0 is None or m1 is None:
        return Estimate(
            value=value, low=None, high=None, level=level, n=n or 0, n_clusters=n or 0, method="Rogan-Gladen",
            why="the sizes of the sample and of both validation samples are needed for limits",
        )  # fmt: skip
    if interval == "delta":
        centre, se = _terms(p, specificity, sensitivity, n, m0, m1)
    else:
        q0, q1 = (m0 * specificity + 1.0) / (m0 + 2.0), (m1 * sensitivity + 1.0) / (m1 + 2.0)
        if q0 + q1 <= 1.0:
            return Estimate(
                value=value, low=0.0, high=1.0, level=level, n=n, n_clusters=n, method="Rogan-Gladen, smoothed",
                why="after smoothing the detector carries no information",
            )  # fmt: skip
        theta, se = _terms((n * p + z * z / 2.0) / (n + z * z), q0, q1, n + z * z, m0 + 2.0, m1 + 2.0)
        shift = theta * q1 * (1.0 - q1) / (m1 + 2.0) - (1.0 - theta) * q0 * (1.0 - q0) / (m0 + 2.0)
        centre = theta + 2.0 * z * z * shift
    return Estimate(
        value=value, low=min(1.0, max(0.0, centre - z * se)), high=max(0.0, min(1.0, centre + z * se)), level=level,
        n=n, n_clusters=n, se=se, method=f"Rogan-Gladen, {interval} interval",
    )  # fmt: skip


def _weighted(values: Floats, weights: ArrayLike | None, what: str) -> tuple[Floats, Floats]:
    """Weights that sum to 1, and each value's share of the influence of its weighted mean."""
    w = np.ones(values.size) if weights is None else floats(weights, what)
    same_length({"values": values, "weights": w})
    if w.size and (w.min() < 0 or w.sum() <= 0):
        raise UsageError(f"{what}: expected values of at least 0, some positive")
    w = w / w.sum()
    return w, w * (values - float(w @ values))


def ppi_mean(
    labels: ArrayLike, predictions: ArrayLike, other: ArrayLike, *, clusters: Labels | None = None,
    other_clusters: Labels | None = None, weights: ArrayLike | None = None, other_weights: ArrayLike | None = None,
    lam: float | None = None, level: float = 0.95, fewest: int = FEWEST_LABELS,
) -> Estimate | None:  # fmt: skip
    """Mean outcome from few labels and many predictions: ``mean(Y - lam f) + lam mean(f over other)`` (PPI++).

    `labels` and `predictions` (n,) on a random labelled sample; `other` (N,) predictions elsewhere: the unlabelled
    rows, or all rows if clusters say which belong together. `clusters`/`other_clusters` name units that share an
    error; without them every row is its own. `weights` are the rows' inverse labelling probabilities (v_i of
    METHODS 3.4d). `lam` None minimises the cluster-robust variance over [0, 1], which for independent unlabelled
    rows is Cov(Y, f)/((1 + n/N) Var f) (Angelopoulos, Duchi & Zrnic, arXiv 2311.01453). t with (labelled
    clusters - 1) degrees of freedom. None with fewer than `fewest` labels or two labelled clusters.

    Raises:
        UsageError: lengths differ, a value is missing, `other` is empty, or only one of the two clusterings is given.
    """
    y, f, g = floats(labels, "labels"), floats(predictions, "predictions"), floats(other, "other")
    same_length({"labels": y, "predictions": f})
    check_level(level)
    if g.size == 0:
        raise UsageError("other: no predictions without labels", hint="use clustered_mean on the labels")
    if (clusters is None) != (other_clusters is None):
        raise UsageError("give clusters for both samples or for neither")
    if lam is not None and not 0.0 <= lam <= 1.0:
        raise UsageError(f"lam must lie between 0 and 1, got {lam}")
    if y.size < fewest:
        return None
    if clusters is None or other_clusters is None:
        group, total = np.arange(y.size + g.size), y.size + g.size
    else:
        same_length({"labels": y, "clusters": np.asarray(clusters)})
        same_length({"other": g, "other_clusters": np.asarray(other_clusters)})
        group, total = codes(np.concatenate([np.asarray(clusters), np.asarray(other_clusters)]), "clusters")
    n_labelled = np.unique(group[: y.size]).size
    if n_labelled < 2:
        return None
    w, y_part = _weighted(y, weights, "weights")
    _, f_part = _weighted(f, weights, "weights")
    w_other, g_part = _weighted(g, other_weights, "other_weights")
    # The influence of the estimate is A - lam B by cluster, so its variance is a parabola in lam.
    a = np.bincount(group[: y.size], weights=y_part, minlength=total)
    b = np.bincount(group, weights=np.concatenate([f_part, -g_part]), minlength=total)
    if lam is None:
        square = float(b @ b)
        lam = min(1.0, max(0.0, float(a @ b) / square)) if square > 0 else 0.0
    value = float(w @ (y - lam * f)) + lam * float(w_other @ g)
    # The labelled clusters, not the many unlabelled ones, set the small-sample factor.
    se = math.sqrt(n_labelled / (n_labelled - 1.0) * float(((a - lam * b) ** 2).sum()))
    half = two_sided_t(level, n_labelled - 1) * se
    return Estimate(
        value=value, low=value - half, high=value + half, level=level, n=y.size, n_clusters=n_labelled, se=se,
        method=f"PPI++ mean, lambda {lam:.3f}, {g.size} further predictions, t",
    )  # fmt: skip
