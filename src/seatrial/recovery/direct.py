"""The direct router: what acting gains where the observation is wrong, what it harms where it is right, and the odds.

The best rule under a limit on clean harm compares, by Neyman and Pearson, the gain that a moment carries with the harm
that it risks: act where ``odds(error) * gain / harm`` is large. Each factor is learnt from what identifies it
directly (METHODS 4.5): the odds from the conditions, the gain by ridge regression of the paired difference y1 - y0 on
erroneous observations, the harm by ridge regression of the paired harm on clean ones. Where a hundred tasks say little
about gain or harm, cross-validation shrinks them to constants, and what is left is the anomaly score.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from seatrial.errors import UsageError
from seatrial.recovery.cir import LIMIT, Linear, both_kinds, logistic
from seatrial.recovery.episodes import Episodes, crossings, design, first_crossing, folds_by_task
from seatrial.recovery.products import gram, transposed
from seatrial.recovery.table import Floats, Ints, Texts

FOLDS = 5
PENALTIES = (30.0, 100.0, 300.0, 1_000.0, 3_000.0, 1e9)
"""Ridge penalties that are tried, on standardised features; the last is a constant."""
FLOOR = 0.01
"""Least harm that is believed of any moment: a clean run was never harmed in a hundred tries, not never."""


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """One threshold of the score and what it does out of fold: gain on erroneous, harm on clean, interventions."""

    threshold: float
    gain: float
    harm: float
    rate: float


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """The three fitted factors; `least` is the least harm that is believed, `cost` what an intervention costs."""

    err: Linear
    gain: Linear
    harm: Linear
    least: float
    cost: float

    def score(self, e: Episodes) -> Floats:
        """``log(odds(err) * (gain - cost) / harm)`` at every decision point (n, d); minus infinity where acting does
        not pay or the run has ended."""
        x, shape = design(e), e.alive.shape
        odds = np.clip(self.err.score(x), -30.0, 30.0)
        gain = self.gain.score(x) - self.cost
        harm = np.maximum(self.harm.score(x), self.least)
        with np.errstate(divide="ignore", invalid="ignore"):
            score = odds + np.where(gain > 0.0, np.log(np.maximum(gain, 1e-300)), -math.inf) - np.log(harm)
        return np.where(e.alive, score.reshape(shape), -math.inf)


@dataclass(frozen=True, slots=True, eq=False)
class DirectFit:
    """The value refitted on all fitting tasks, the rule grid in testing order (rarest intervention first) with its
    out-of-fold record, and the tuned choice: the index in `rules`, None where nothing gains within the limit."""

    value: Value
    rules: tuple[Rule, ...]
    chosen: int | None
    penalties: tuple[float, float]

    @property
    def threshold(self) -> float:
        """The tuned threshold; infinite where the router never acts."""
        return math.inf if self.chosen is None else self.rules[self.chosen].threshold

    def at(self, e: Episodes, threshold: float | None = None) -> Ints:
        """Where it acts in each episode, -1: nowhere."""
        t = self.threshold if threshold is None else threshold
        score = self.value.score(e)
        return first_crossing((score >= t) & np.isfinite(score))


def fit_value(
    e: Episodes, *, cost: float = 0.0, folds: int = FOLDS, seed: int = 0
) -> tuple[Value, tuple[float, float]]:
    """The three factors on the decision points of `e` that are alive, and the ridge penalties that were chosen."""
    x, live = design(e), e.alive.ravel()
    points = len(e.delays)
    clean, task = np.repeat(e.clean, points), np.repeat(e.task, points)
    run = live & e.given.ravel()
    wrong, right = run & ~clean, run & clean
    err = logistic(x[live], (~clean[live]).astype(np.float64), 1.0)
    gain, first = ridge(x[wrong], e.gain.ravel()[wrong], task[wrong], folds=folds, seed=seed)
    harm, second = ridge(x[right], e.harm.ravel()[right], task[right], folds=folds, seed=seed)
    mean = float(e.harm.ravel()[right].mean())
    return Value(err, gain, harm, max(FLOOR, mean / 3.0), cost), (first, second)


def ridge(
    x: Floats, y: Floats, task: Texts, *, penalties: Sequence[float] = PENALTIES, folds: int = FOLDS, seed: int = 0
) -> tuple[Linear, float]:
    """Ridge regression on standardised features, the penalty chosen by squared error over folds of tasks.

    Ties go to the stronger penalty. With fewer tasks than folds the strongest is taken.
    """
    if np.unique(task).size < folds:
        chosen = max(penalties)
        return _solve(x, y, (chosen,))[0], chosen
    fold = folds_by_task(task, folds, seed)
    errors = np.zeros(len(penalties))
    for k in range(folds):
        held = fold == k
        for i, model in enumerate(_solve(x[~held], y[~held], penalties)):
            errors[i] += float(((y[held] - model.score(x[held])) ** 2).sum())
    best = errors.min()
    chosen = max(p for p, error in zip(penalties, errors, strict=True) if error <= best * (1.0 + 1e-9))
    return _solve(x, y, (chosen,))[0], chosen


def _solve(x: Floats, y: Floats, penalties: Sequence[float]) -> list[Linear]:
    mean, scale = x.mean(axis=0), x.std(axis=0)
    scale = np.where(scale <= 1e-12 * np.maximum(1.0, np.abs(mean)), np.inf, scale)
    level = float(y.mean())
    z = (x - mean) / scale
    # The features are few: their p x p products say everything, and take no decomposition of the rows.
    values, vectors = np.linalg.eigh(gram(z))
    along = vectors.T @ transposed(z, y - level)
    made = []
    for penalty in penalties:
        weights = vectors @ (along / (np.maximum(values, 0.0) + penalty)) / scale
        made.append(Linear(weights, level - float(weights @ mean)))
    return made


def fit_direct(e: Episodes, *, limit: float = LIMIT, cost: float = 0.0, folds: int = FOLDS, seed: int = 0) -> DirectFit:
    """Fit the direct router; tuned like CIR: most out-of-fold gain on erroneous observations with clean harm at most
    `limit`, ties to the fewest interventions. `cost` is taken off the gain of every intervention.

    Raises:
        EvidenceError: fewer tasks than folds, or no clean or no erroneous episodes.
        UsageError: a negative cost.
    """
    if cost < 0:
        raise UsageError(f"the cost of an intervention must be at least 0, got {cost}")
    both_kinds(e)
    fold = folds_by_task(e.task, folds, seed)
    score = np.empty(e.alive.shape)
    for k in range(folds):
        value, _ = fit_value(e.where(fold != k), cost=cost, folds=folds, seed=seed)
        score[fold == k] = value.score(e.where(fold == k))
    rules = grid(e, score)
    value, penalties = fit_value(e, cost=cost, folds=folds, seed=seed)
    return DirectFit(value, rules, choose(rules, range(len(rules)), limit=limit, cost=cost), penalties)


def grid(e: Episodes, score: Floats) -> tuple[Rule, ...]:
    """Every threshold among the scores with what first crossing does there, rarest intervention first."""
    ok = np.isfinite(score)
    if not ok.any():
        return ()
    thresholds = np.unique(score[ok])
    place = np.searchsorted(thresholds, np.where(ok, score, thresholds[0]))
    gain = np.where(e.clean[:, None], 0.0, e.gain) / int((~e.clean).sum())
    harm = np.where(e.clean[:, None], e.harm, 0.0) / int(e.clean.sum())
    gains, harms, counts = crossings(ok, place, thresholds.size, gain, harm)
    made = zip(thresholds.tolist(), np.round(gains, 12).tolist(), np.round(harms, 12).tolist(),
               (counts / len(e)).tolist(), strict=True)  # fmt: skip
    return tuple(Rule(*rule) for rule in made)[::-1]


def choose(rules: Sequence[Rule], among: Sequence[int], *, limit: float | None, cost: float = 0.0) -> int | None:
    """The rule of most gain net of cost (rarest first wins ties), harm at most `limit` (None: any); None where none
    gains."""
    best, found = 1e-12, None
    for i in among:
        r = rules[i]
        net = r.gain - cost * r.rate
        if net > best + 1e-12 and (limit is None or r.harm <= limit + 1e-12):
            best, found = net, i
    return found
