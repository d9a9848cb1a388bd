"""CIR, the published router, exactly: three logistic models and two thresholds (METHODS 4.4; B section 4).

The authors publish the rule and not the fit. Our choices: penalty in scikit-learn's sense (C = 0.1) on features
standardised over the training fold, free intercept, delays pooled with the delay as a feature, thresholds from the
unique out-of-fold predictions, ties to the fewest interventions, then to the stricter thresholds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from seatrial.errors import EvidenceError, UsageError
from seatrial.recovery.episodes import Episodes, Outcome, crossings, design, first_crossing, folds_by_task, play
from seatrial.recovery.products import gram, times, transposed
from seatrial.recovery.table import Bools, Floats, Ints

C = 0.1
LAMBDA = 2.0
LIMIT = 0.02
FOLDS = 5


@dataclass(frozen=True, slots=True, eq=False)
class Linear:
    """``intercept + x @ weights`` on raw features, the delay last."""

    weights: Floats
    intercept: float

    def score(self, x: Floats) -> Floats:
        """The linear score of rows `x` (m, p)."""
        return np.asarray(self.intercept + times(x, self.weights), dtype=np.float64)

    def probability(self, x: Floats) -> Floats:
        """Its logistic transform."""
        return np.asarray(1.0 / (1.0 + np.exp(-np.clip(self.score(x), -700.0, 700.0))), dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Predictions:
    """`err`, `p0`, `p1` (n, d): chance of an erroneous observation, of success without and with recovery."""

    err: Floats
    p0: Floats
    p1: Floats


@dataclass(frozen=True, slots=True, eq=False)
class CirFit:
    """The frozen router: models refitted on all fitting tasks, thresholds from out-of-fold predictions.

    `gain` on erroneous and `harm` on clean observations, `rate` of interventions, all out of fold. A threshold of
    infinity never acts.
    """

    err: Linear
    p0: Linear
    p1: Linear
    t_err: float
    t_fail: float
    lam: float
    gain: float
    harm: float
    rate: float

    def predict(self, e: Episodes) -> Predictions:
        """The three chances at every decision point of `e`."""
        return _predict((self.err, self.p0, self.p1), e)

    def at(self, e: Episodes) -> Ints:
        """Where it acts in each episode, -1: nowhere."""
        p = self.predict(e)
        return first_crossing(acts(p.err, p.p0, p.p1, t_err=self.t_err, t_fail=self.t_fail, lam=self.lam) & e.alive)


def acts(p_err: ArrayLike, p0: ArrayLike, p1: ArrayLike, *, t_err: float, t_fail: float, lam: float = LAMBDA) -> Bools:
    """CIR's rule: ``p_err >= t_err``, ``1 - p0 >= t_fail`` and ``(1 - p0) p1 - lam p0 (1 - p1) >= 0``.

    At p0 = p1 = 0 the last is 0, so a run that nothing can save is refreshed for nothing: kept, as published.
    """
    err, none, some = (np.asarray(v, dtype=np.float64) for v in (p_err, p0, p1))
    # odds(p1) = lam odds(p0) counts as worth it; products of decimals miss it by a rounding error.
    worth = (1.0 - none) * some - lam * none * (1.0 - some) >= -1e-12
    return np.asarray((err >= t_err) & (1.0 - none >= t_fail) & worth)


def fit_models(e: Episodes, c: float = C) -> tuple[Linear, Linear, Linear]:
    """p_err, p0 and p1 on the decision points of `e` that are alive; outcomes averaged over replays count as shares."""
    x, live = design(e), e.alive.ravel()
    erroneous = np.repeat(~e.clean, len(e.delays)).astype(np.float64)
    targets = (erroneous, e.y0.ravel(), e.y1.ravel())
    err, p0, p1 = (logistic(x[live], y[live], c) for y in targets)
    return err, p0, p1


def logistic(x: Floats, y: Floats, c: float = C, weight: Floats | None = None) -> Linear:
    """Ridge-penalised logistic regression on standardised features, free intercept; `y` (m,) in [0, 1], `weight` (m,)
    at least 0; rows of weight 0 do not count.

    Minimises ``sum loss + |beta|^2 / (2c)`` by damped Newton steps: a handful of small solves, where a general
    optimiser takes hundreds of calls. Where only one outcome occurs, its share with half an observation of each kind
    added, and no weights.

    Raises:
        EvidenceError: there are no rows.
    """
    w = np.ones(y.size) if weight is None else weight
    x, y, w = x[w > 0], y[w > 0], w[w > 0]
    if y.size == 0:
        raise EvidenceError("no decision points to fit on")
    level = float(w @ y / w.sum())
    if y.min() == y.max() and y[0] in (0.0, 1.0):
        share = (float(w @ y) + 0.5) / (float(w.sum()) + 1.0)
        return Linear(np.zeros(x.shape[1]), math.log(share / (1.0 - share)))
    mean, scale = x.mean(axis=0), x.std(axis=0)
    scale = np.where(scale <= 1e-12 * np.maximum(1.0, np.abs(mean)), np.inf, scale)
    z = np.concatenate([np.ones((y.size, 1)), (x - mean) / scale], axis=1)
    penalty = np.full(z.shape[1], 1.0 / c)
    penalty[0] = 0.0
    theta = np.zeros(z.shape[1])
    theta[0] = math.log(level / (1.0 - level))
    loss = _loss(theta, z, y, w, penalty)
    for _ in range(100):
        p = 1.0 / (1.0 + np.exp(-np.clip(times(z, theta), -700.0, 700.0)))
        slope = transposed(z, w * (p - y)) + penalty * theta
        # A constant column has no curvature and no slope; the tiny ridge keeps its weight at 0.
        curve = gram(z, w * p * (1.0 - p)) + np.diag(penalty + 1e-12)
        step = np.linalg.solve(curve, slope)
        size = 1.0
        while (made := _loss(theta - size * step, z, y, w, penalty)) > loss + 1e-12 * abs(loss) and size > 1e-8:
            size /= 2.0
        theta, loss = theta - size * step, made
        if float(np.abs(step).max()) <= 1e-10:
            break
    weights = theta[1:] / scale
    return Linear(weights, float(theta[0] - weights @ mean))


def _loss(theta: Floats, z: Floats, y: Floats, w: Floats, penalty: Floats) -> float:
    eta = times(z, theta)
    return float((w * (np.logaddexp(0.0, eta) - y * eta)).sum() + (penalty * theta * theta).sum() / 2.0)


def _predict(models: Sequence[Linear], e: Episodes) -> Predictions:
    x, shape = design(e), e.alive.shape
    err, p0, p1 = (m.probability(x).reshape(shape) for m in models)
    return Predictions(err, p0, p1)


def out_of_fold(e: Episodes, folds: int = FOLDS, seed: int = 0, c: float = C) -> Predictions:
    """The three chances at every decision point, from models that saw nothing of its task."""
    fold = folds_by_task(e.task, folds, seed)
    made = Predictions(*(np.empty(e.alive.shape) for _ in range(3)))
    for k in range(folds):
        p = _predict(fit_models(e.where(fold != k), c), e.where(fold == k))
        made.err[fold == k], made.p0[fold == k], made.p1[fold == k] = p.err, p.p0, p.p1
    return made


def fit_cir(
    e: Episodes, *, limit: float = LIMIT, lam: float = LAMBDA, folds: int = FOLDS, seed: int = 0, c: float = C
) -> CirFit:
    """Fit CIR on `e`: thresholds that gain most on erroneous observations with clean harm at most `limit`, out of
    fold; models refitted on everything.

    Raises:
        EvidenceError: fewer tasks than folds, or no clean or no erroneous episodes.
        UsageError: `lam` is negative.
    """
    if lam < 0:
        raise UsageError(f"lambda must be at least 0, got {lam}")
    both_kinds(e)
    p = out_of_fold(e, folds, seed, c)
    t_err, t_fail = thresholds(e, p, limit=limit, lam=lam)
    err, p0, p1 = fit_models(e, c)
    at = first_crossing(acts(p.err, p.p0, p.p1, t_err=t_err, t_fail=t_fail, lam=lam) & e.alive)
    gain, harm, rate = summary(e, play(e, at))
    return CirFit(err, p0, p1, t_err, t_fail, lam, gain, harm, rate)


def both_kinds(e: Episodes) -> None:
    """Raises: EvidenceError unless there are clean and erroneous episodes."""
    if not e.clean.any() or e.clean.all():
        what = "clean" if len(e) and e.clean.all() else "altered"
        raise EvidenceError(f"a router needs clean and altered observations; these are all {what}",
                            hint="name the undisturbed condition 'clean'")  # fmt: skip


def summary(e: Episodes, made: Outcome) -> tuple[float, float, float]:
    """Net gain on erroneous episodes, harm on clean ones, share of episodes with an intervention."""
    return (
        float(made.gain[~e.clean].mean()) if (~e.clean).any() else 0.0,
        float(made.harm[e.clean].mean()) if e.clean.any() else 0.0,
        float(made.acts.mean()),
    )


def thresholds(e: Episodes, p: Predictions, *, limit: float, lam: float) -> tuple[float, float]:
    """(t_err, t_fail) by exhaustive search over all pairs of unique predictions; infinite where nothing pays.

    For one t_err an episode's first crossing is a step function of t_fail with at most one step per decision point,
    so that all values of t_fail are tried at once.
    """
    ok = acts(p.err, p.p0, p.p1, t_err=-math.inf, t_fail=-math.inf, lam=lam) & e.alive
    if not ok.any():
        return math.inf, math.inf
    fail = 1.0 - p.p0
    grid_fail = np.unique(fail[ok])
    n_err, n_clean = int((~e.clean).sum()), int(e.clean.sum())
    gain = np.where(e.clean[:, None], 0.0, e.gain) / n_err
    harm = np.where(e.clean[:, None], e.harm, 0.0) / n_clean
    place = np.searchsorted(grid_fail, fail)
    best = (0.0, 0, math.inf, math.inf)  # gain, interventions, t_err, t_fail
    for t_err in np.unique(p.err[ok])[::-1].tolist():
        gains, harms, counts = crossings(ok & (p.err >= t_err), place, grid_fail.size, gain, harm)
        gains = np.where(harms <= limit + 1e-12, np.round(gains, 12), -math.inf)
        top = float(gains.max())
        if top < best[0]:
            continue
        ties = np.flatnonzero(gains == top)
        k = int(ties[np.lexsort((-ties, counts[ties]))[0]])
        if (top, -int(counts[k])) > (best[0], -best[1]):
            best = (top, int(counts[k]), t_err, float(grid_fail[k]))
    return best[2], best[3]
