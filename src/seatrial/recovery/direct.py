"""The direct router: what acting gains where the observation is wrong, what it harms where it is right, and the odds.

The best rule under a limit on clean harm compares, by Neyman and Pearson, the gain that a moment carries with the harm
that it risks: act where ``odds(error) * gain / harm`` is large. The pairs identify each factor directly (METHODS 4.5):
rescue among the runs that fail without recovery, harm among those that pass, on erroneous and on clean observations
apart. A fourth factor, the odds ratio of success with and without recovery over all observations, is CIR's; it has more
data to learn from, and steadies the others where a hundred tasks say little (measured: docs/explanation/recovery.md).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from seatrial.errors import UsageError
from seatrial.recovery.cir import LIMIT, C, Linear, both_kinds, logistic
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
    """The fitted `models`, by the names of `router.DIRECT`; `least` is the least harm that is believed, `cost` what an
    intervention costs."""

    models: Mapping[str, Linear]
    least: float
    cost: float

    def score(self, e: Episodes) -> Floats:
        """``log(odds(err) * (gain - cost) / harm * odds ratio)`` at every decision point (n, d); minus infinity where
        acting does not pay or the run has ended."""
        x, shape = design(e), e.alive.shape
        p = {name: model.probability(x) for name, model in self.models.items() if name != "err"}
        lifted = self.models["with"].score(x) - self.models["without"].score(x)
        odds = np.clip(self.models["err"].score(timed(e)), -30.0, 30.0)
        gain = (1.0 - p["wrong_pass"]) * p["wrong_rescued"] - p["wrong_pass"] * p["wrong_harmed"] - self.cost
        harm = np.maximum(p["clean_pass"] * p["clean_harmed"], self.least)
        worth = np.where(gain > 0.0, np.log(np.maximum(gain, 1e-300)), -math.inf)
        return np.where(e.alive, (odds + lifted + worth - np.log(harm)).reshape(shape), -math.inf)


@dataclass(frozen=True, slots=True, eq=False)
class DirectFit:
    """The value fitted again on all fitting tasks, the rule grid in testing order (rarest intervention first) with its
    out-of-fold record, and the tuned choice: the index in `rules`, None where nothing gains within the limit."""

    value: Value
    rules: tuple[Rule, ...]
    chosen: int | None

    @property
    def threshold(self) -> float:
        """The tuned threshold; infinite where the router never acts."""
        return math.inf if self.chosen is None else self.rules[self.chosen].threshold

    def at(self, e: Episodes, threshold: float | None = None) -> Ints:
        """Where it acts in each episode, -1: nowhere."""
        t = self.threshold if threshold is None else threshold
        score = self.value.score(e)
        return first_crossing((score >= t) & np.isfinite(score))


def fit_value(e: Episodes, *, cost: float = 0.0) -> Value:
    """The models on the decision points of `e` that are alive; outcomes averaged over replays count as shares."""
    x, y0, y1 = design(e), e.y0.ravel(), e.y1.ravel()
    live = e.alive.ravel().astype(np.float64)
    run = live * e.given.ravel()
    clean = np.repeat(e.clean, len(e.delays))
    wrong, right = run * ~clean, run * clean
    targets = {
        "err": (~clean, live, 1.0),
        "wrong_pass": (y0, wrong, C),
        "wrong_rescued": (y1, wrong * (1.0 - y0), C),
        "wrong_harmed": (1.0 - y1, wrong * y0, C),
        "clean_pass": (y0, right, C),
        "clean_harmed": (1.0 - y1, right * y0, C),
        "without": (y0, run, C),
        "with": (y1, run, C),
    }
    models = {
        name: logistic(timed(e) if name == "err" else x, np.asarray(y, dtype=np.float64), c, weight)
        if weight.any()
        else never_seen(x.shape[1])
        for name, (y, weight, c) in targets.items()
    }
    mean = float(e.harm.ravel()[right > 0].mean()) if right.any() else 0.0
    return Value(models, max(FLOOR, mean / 3.0), cost)


def middle(delays: Sequence[int]) -> float:
    """The delay around which features are timed: the mean decision point."""
    return sum(delays) / len(delays)


def timed(e: Episodes) -> Floats:
    """Features, delay, and each feature times the delay (n * d, 2p + 1): what an altered observation looks like changes
    with the time since. Only the model of errors has as many labels as that takes."""
    x = design(e)
    return np.concatenate([x, x[:, :-1] * (x[:, -1:] - middle(e.delays))], axis=1)


def never_seen(features: int) -> Linear:
    """What is believed of an outcome that no run could show: even odds."""
    return Linear(np.zeros(features), 0.0)


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
        score[fold == k] = fit_value(e.where(fold != k), cost=cost).score(e.where(fold == k))
    rules = grid(e, score)
    return DirectFit(fit_value(e, cost=cost), rules, choose(rules, range(len(rules)), limit=limit, cost=cost))


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
