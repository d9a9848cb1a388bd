"""Human and judge verdicts to a judge's standing: usable, provisional or refused, with the numbers (METHODS 6.4)."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from seatrial.errors import EvidenceError
from seatrial.grading.bias import Bias, biases
from seatrial.grading.ratings import Ratings
from seatrial.records import Estimate
from seatrial.records.judge import JudgeStatus
from seatrial.stats import clustered_proportion, krippendorff_alpha
from seatrial.stats.agreement import Coefficient
from seatrial.stats.quantiles import two_sided_z, wilson_limits

AGREEMENT_NEEDED = 0.85
KAPPA_NEEDED = 0.60
_CHUNK = 2_000_000


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """One criterion: how far people agree, how far the judge agrees with them, and what follows.

    Agreement and kappa of the judge are means over humans, and so are the human-human ones over pairs of humans;
    kappas are None where one class leaves no chance. `sensitivity` and `specificity` are for ``pass`` against the
    majority of humans, None for other classes than pass and fail. `majority` holds agreement and kappa against the
    majority (ties of humans left out). `unscored` counts items without a judge's verdict: they are left out of the
    numbers, and `usable` must hold where all of them were disagreements.
    """

    criterion: str
    status: JudgeStatus
    why: str
    n_items: int
    n_clusters: int
    unscored: int
    humans: int
    human_agreement: Estimate | None
    human_kappa: Coefficient | None
    human_kappas: dict[str, float | None]
    alpha: Coefficient | None
    agreement: Estimate | None
    kappa: Coefficient | None
    sensitivity: Estimate | None
    specificity: Estimate | None
    majority: dict[str, float | None]
    bias: tuple[Bias, ...]
    classes: tuple[str, ...]
    mapped: dict[str, str]


def validate(
    ratings: Ratings, *, level: float = 0.95, seed: int = 0, draws: int = 9_999, judge_family: str | None = None
) -> Standing:
    """A judge's standing on one criterion.

    Intervals are percentile bootstrap over items, or over tasks where items share them. The agreement's lower limit is
    the smaller of that and the Wilson limit of METHODS 0.3: near its edge the bootstrap alone is too narrow
    (it accepts 91 of 100).

    Raises:
        EvidenceError: no item has a verdict of the judge and of a human.
    """
    judge = np.array(ratings.judge, dtype=object)
    humans = {n: np.array(v, dtype=object) for n, v in ratings.humans.items()}
    scored = np.array([j is not None for j in judge])
    rated = np.any([[v is not None for v in h] for h in humans.values()], axis=0)
    if not (scored & rated).any():
        raise EvidenceError(f"criterion {ratings.criterion!r}: no item has a verdict of the judge and of a human")
    humans = {n: h for n, h in humans.items() if any(v is not None for v in h)}
    groups = _groups(ratings)
    draw = _Draw(groups, level, seed, draws)
    classes = tuple(sorted({str(v) for v in [*judge, *itertools.chain(*humans.values())] if v is not None}))
    pairs = list(itertools.combinations(humans, 2))
    between = draw.mean_over([(humans[a], humans[b]) for a, b in pairs], classes) if pairs else None
    against = draw.mean_over([(h, judge) for h in humans.values()], classes)
    kappas = {f"{a}/{b}": _kappa(humans[a], humans[b], classes) for a, b in pairs}
    vote = _majority(list(humans.values()))
    sens, spec = (_rate(vote, judge, groups, value, level) if ratings.binary else None for value in ("pass", "fail"))
    status, why = _status(between, against)
    unscored = int((~scored & rated).sum())
    if status == "usable" and unscored:
        filled, more = _disagreeing(list(humans.values()), judge, classes)
        held, open_ = _status(between, draw.mean_over(filled, more))
        if held != "usable":
            status, why = "provisional", f"if the {unscored} items without the judge's verdict disagreed: {open_}"
    if status == "usable" and judge_family is not None and _own_family_biased(ratings, judge_family):
        status, why = "provisional", "it prefers outputs of its own family"
    return Standing(
        criterion=ratings.criterion,
        status=status,
        why=why,
        n_items=int((scored & rated).sum()),
        n_clusters=len(set(groups[scored & rated].tolist())),
        unscored=unscored,
        humans=len(humans),
        human_agreement=between.agreement if between else None,
        human_kappa=between.kappa if between else None,
        human_kappas=kappas,
        alpha=_alpha(list(humans.values()), groups, level, seed, draws) if pairs else None,
        agreement=against.agreement,
        kappa=against.kappa,
        sensitivity=sens,
        specificity=spec,
        majority={"agreement": _agreement(vote, judge), "kappa": _kappa(vote, judge, classes)},
        bias=biases(ratings, level=level, judge_family=judge_family),
        classes=classes,
        mapped=dict(ratings.mapped),
    )


class _Pair(msgspec.Struct, frozen=True):
    agreement: Estimate | None
    kappa: Coefficient | None


class _Draw:
    """One set of bootstrap weights over clusters, used for every statistic."""

    def __init__(self, groups: NDArray[np.int64], level: float, seed: int, draws: int) -> None:
        self.groups, self.level, self.seed, self.draws = groups, level, seed, draws

    def mean_over(
        self, pairs: Sequence[tuple[NDArray[np.object_], NDArray[np.object_]]], classes: Sequence[str]
    ) -> _Pair:
        """Agreement and kappa, each a mean over pairs of raters."""
        k = len(classes)
        index = {c: i for i, c in enumerate(classes)}
        parts = np.zeros((self.groups.size, len(pairs), k * k))
        for p, (a, b) in enumerate(pairs):
            for i, (x, y) in enumerate(zip(a, b, strict=True)):
                if x is not None and y is not None:
                    parts[i, p, index[str(x)] * k + index[str(y)]] = 1.0
        used = parts.sum(axis=(1, 2)) > 0
        if not used.any():
            return _Pair(None, None)
        parts, (labels, group) = parts[used], np.unique(self.groups[used], return_inverse=True)
        sums = np.zeros((labels.size, parts.shape[1] * k * k))
        np.add.at(sums, group, parts.reshape(parts.shape[0], -1))
        value = _both(sums.sum(axis=0)[None], len(pairs), k)
        drawn = self._drawn(sums, len(pairs), k) if labels.size > 1 else None
        n, g = int(used.sum()), int(labels.size)
        unit = "items" if g == n else "tasks"
        same = parts[:, :, [i * k + i for i in range(k)]].sum(axis=2)
        present = parts.sum(axis=2) > 0
        clustered = np.broadcast_to(group[:, None], present.shape)[present]
        # Items of their own: plain Wilson, several raters of one item counting once.
        limits = (
            wilson_limits(float(value[0, 0]), n, two_sided_z(self.level))
            if g == n
            else _ends(clustered_proportion(same[present], clustered, self.level))
        )
        return _Pair(
            _agreement_estimate(value[0, 0], drawn, limits, n, g, unit, self.level),
            _kappa_estimate(value[0, 1], value[0, 2], drawn, n, g, unit, self.level),
        )

    def _drawn(self, sums: NDArray[np.float64], pairs: int, k: int) -> NDArray[np.float64]:
        rng, g = np.random.default_rng(self.seed), sums.shape[0]
        out = []
        size = max(1, _CHUNK // g)
        for start in range(0, self.draws, size):
            times = rng.multinomial(g, np.full(g, 1.0 / g), size=min(size, self.draws - start))
            out.append(_both(times @ sums, pairs, k))
        return np.concatenate(out)


def _both(tables: NDArray[np.float64], pairs: int, k: int) -> NDArray[np.float64]:
    """Mean agreement, mean kappa and mean disagreement expected by chance, per row of summed tables."""
    t = tables.reshape(tables.shape[0], pairs, k, k)
    n = t.sum(axis=(2, 3))
    with np.errstate(invalid="ignore", divide="ignore"):
        agree = np.trace(t, axis1=2, axis2=3) / n
        chance = (t.sum(axis=2) * t.sum(axis=3)).sum(axis=2) / n**2
        kappa = np.where(1.0 - chance > 1e-12, (agree - chance) / (1.0 - chance), np.nan)
    return np.stack([agree.mean(axis=1), kappa.mean(axis=1), (1.0 - chance).mean(axis=1)], axis=1)


def _limits(drawn: NDArray[np.float64], column: int, level: float) -> tuple[float, float] | None:
    good = drawn[np.isfinite(drawn[:, column]), column]
    if good.size == 0:
        return None
    low, high = np.quantile(good, [(1.0 - level) / 2.0, (1.0 + level) / 2.0])
    return float(low), float(high)


def _ends(e: Estimate | None) -> tuple[float, float] | None:
    return None if e is None or e.low is None or e.high is None else (e.low, e.high)


def _agreement_estimate(
    value: float,
    drawn: NDArray[np.float64] | None,
    wilson: tuple[float, float] | None,
    n: int,
    g: int,
    unit: str,
    level: float,
) -> Estimate:
    limits = _limits(drawn, 0, level) if drawn is not None else None
    low, high = limits if limits else (None, None)
    if low is not None and high is not None and wilson is not None:
        low, high = float(min(low, wilson[0])), float(max(high, wilson[1]))
    return Estimate(
        value=float(value), low=low, high=high, level=level, n=n, n_clusters=g,
        method=f"raw agreement, mean over raters, bootstrap over {unit} and Wilson, the wider",
        why=None if limits else "one cluster only",
    )  # fmt: skip


def _kappa_estimate(
    value: float, chance: float, drawn: NDArray[np.float64] | None, n: int, g: int, unit: str, level: float
) -> Coefficient:
    method = f"Cohen's kappa, mean over raters, percentile bootstrap over {unit}"
    if not math.isfinite(value):
        return Coefficient(value=None, low=None, high=None, level=level, n=n, n_clusters=g, method=method,
                           why="one class only: kappa is undefined")  # fmt: skip
    limits = _limits(drawn, 1, level) if drawn is not None else None
    low, high = limits if limits else (None, None)
    if value >= 1.0 - 1e-12 and g > 1:
        alike = ((1.0 - level) / 2.0) ** (1.0 / g)
        low, high = float(max(-1.0, 1.0 - (1.0 - alike) / chance)), 1.0
    undefined = int((~np.isfinite(drawn[:, 1])).sum()) if drawn is not None else 0
    return Coefficient(value=float(value), low=low, high=high, level=level, n=n, n_clusters=g, method=method,
                       why=None if limits else "one cluster only", undefined=undefined)  # fmt: skip


def _status(between: _Pair | None, against: _Pair) -> tuple[JudgeStatus, str]:
    human = between.kappa.value if between is not None and between.kappa is not None else None  # None: under two humans
    if human is not None and human < KAPPA_NEEDED:
        why = f"humans agree with each other at kappa {human:.2f}, under {KAPPA_NEEDED:.2f}"
        return "fix the rubric", f"{why}: no judge can agree with people who disagree, so it is not scored"
    agreement, kappa = against.agreement, against.kappa
    if agreement is None or kappa is None or kappa.value is None:
        return "refused", (kappa.why if kappa and kappa.why else "nothing was rated by both")
    points = (("agreement", agreement.value, AGREEMENT_NEEDED), ("kappa", kappa.value, KAPPA_NEEDED))
    short = [f"{what} {value:.2f} is under {needed:.2f}" for what, value, needed in points if value < needed]
    if short:
        return "refused", " and ".join(short)
    if agreement.low is None or kappa.low is None:
        return "provisional", "no interval: one cluster only"
    lows = (("agreement", agreement.low, AGREEMENT_NEEDED), ("kappa", kappa.low, KAPPA_NEEDED))
    open_ = [f"{what} may be as low as {low:.3f}" for what, low, needed in lows if low < needed]
    if open_:
        return "provisional", " and ".join(open_) + ": label more items"
    if human is None:
        return "provisional", "how far two people agree is not known: have two people label the same items"
    return "usable", "both lower limits clear the thresholds"


def _disagreeing(
    humans: Sequence[NDArray[np.object_]], judge: NDArray[np.object_], classes: Sequence[str]
) -> tuple[list[tuple[NDArray[np.object_], NDArray[np.object_]]], tuple[str, ...]]:
    """Each human beside the judge whose missing verdicts are the human's commonest other class, which leaves the least
    kappa; a human who gave one class alone is contradicted by a class of its own."""
    none = "\0none"
    out = []
    for human in humans:
        order = [c for c, _ in Counter(v for v in human if v is not None).most_common()] + [none]
        filled = [next(c for c in order if c != h) if j is None else j for h, j in zip(human, judge, strict=True)]
        out.append((human, np.array(filled, dtype=object)))
    return out, (*classes, none)


def _own_family_biased(ratings: Ratings, judge_family: str) -> bool:
    return any(
        b.name == "own family" and b.estimate is not None and b.estimate.low is not None and b.estimate.low > 0
        for b in biases(ratings, judge_family=judge_family)
    )


def _groups(ratings: Ratings) -> NDArray[np.int64]:
    names = [t if t is not None else f"\0{i}" for t, i in zip(ratings.tasks, ratings.items, strict=True)]
    return np.unique(np.array(names, dtype=object).astype(str), return_inverse=True)[1].astype(np.int64)


def _majority(humans: Sequence[NDArray[np.object_]]) -> NDArray[np.object_]:
    """The value that more humans gave than any other; None at a tie."""
    out = []
    for votes in zip(*humans, strict=True):
        counts = Counter(v for v in votes if v is not None).most_common(2)
        tie = not counts or (len(counts) == 2 and counts[0][1] == counts[1][1])
        out.append(None if tie else counts[0][0])
    return np.array(out, dtype=object)


def _shared(a: NDArray[np.object_], b: NDArray[np.object_]) -> list[tuple[str, str]]:
    return [(str(x), str(y)) for x, y in zip(a, b, strict=True) if x is not None and y is not None]


def _agreement(a: NDArray[np.object_], b: NDArray[np.object_]) -> float | None:
    pairs = _shared(a, b)
    return sum(x == y for x, y in pairs) / len(pairs) if pairs else None


def _kappa(a: NDArray[np.object_], b: NDArray[np.object_], classes: Sequence[str]) -> float | None:
    pairs = _shared(a, b)
    if not pairs:
        return None
    table = np.zeros((len(classes), len(classes)))
    for x, y in pairs:
        table[classes.index(x), classes.index(y)] += 1
    value = float(_both(table.reshape(1, -1), 1, len(classes))[0, 1])
    return value if math.isfinite(value) else None


def _rate(
    truth: NDArray[np.object_], judge: NDArray[np.object_], groups: NDArray[np.int64], value: Literal["pass", "fail"],
    level: float,
) -> Estimate | None:  # fmt: skip
    keep = np.array([t == value and j is not None for t, j in zip(truth, judge, strict=True)])
    if not keep.any():
        return None
    return clustered_proportion((judge[keep] == value).astype(np.float64), groups[keep], level)


def _alpha(
    humans: Sequence[NDArray[np.object_]], groups: NDArray[np.int64], level: float, seed: int, draws: int
) -> Coefficient:
    alpha = krippendorff_alpha(np.stack(humans), clusters=groups, level=level, seed=seed, draws=draws)
    low = None if alpha.low is None else float(alpha.low)
    high = None if alpha.high is None else float(alpha.high)
    return msgspec.structs.replace(alpha, low=low, high=high)
