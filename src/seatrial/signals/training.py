"""Labelled turns to points of the rules, weights of the classifier and their combination, always leaving sources out.

Nothing here runs when signals are extracted: `signals evaluate --leave-sources-out`, `scripts/train_classifier` and
`scripts/measure` use it.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import resources
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, sparse, special

from seatrial.errors import EvidenceError
from seatrial.signals import grams, language, matching
from seatrial.signals.accuracy import Judge, LabelledTurn
from seatrial.signals.classifier import CONTEXT_SCALE
from seatrial.signals.lexicon import CONTEXTS, Lexicon, builtin

Floats = NDArray[np.float64]
KINDS = language.HUMAN_KINDS
SMALL = 30
"""Sources with fewer turns are left out together: alone they say nothing about a fold."""

PENALTY = 0.3
"""Of the ridge that holds points to the hand-written ones (per squared point)."""

RIDGE = 0.03
"""Of the classifier's weights."""

SHARES = {"praise": 0.3, "correction": 1.0}
"""How much of the classifier's log-odds is added to the rules', by kind. Chosen on pooled out-of-source predictions;
for the other kinds every share above 0 lost, so the classifier does not speak about them."""

AUTHORED = 0.1
"""Weight of an authored turn in the fit of points (1: a labelled one)."""

ABSENT = language.ABSENT


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Turns as features: `cues` (n, n_cues) with the share of their points, `contexts` (n, n_contexts), `grams`
    (n, 2**BITS), labels `y` (n, n_kinds), source and weight of each row (n,)."""

    cues: Floats
    contexts: Floats
    grams: sparse.csr_matrix
    y: Floats
    source: NDArray[np.str_]
    weight: Floats

    def take(self, at: NDArray[np.bool_]) -> Rows:
        """The rows where `at` is true."""
        return Rows(
            self.cues[at], self.contexts[at], self.grams[np.flatnonzero(at)], self.y[at], self.source[at],
            self.weight[at],
        )  # fmt: skip


def rows(turns: Sequence[LabelledTurn], lexicon: Lexicon) -> Rows:
    """Features of labelled turns; what no person typed must have been left out."""
    readings = [language.read(t.turn, t.before, interrupted=t.interrupted) for t in turns]
    cues = np.zeros((len(turns), len(lexicon.cue)))
    contexts = np.zeros((len(turns), len(CONTEXTS)))
    for i, reading in enumerate(readings):
        cues[i, reading.later] = language.LATER
        cues[i, reading.lead] = 1.0
        contexts[i, [CONTEXTS.index(c) for c in reading.contexts]] = 1.0
    views = [grams.view(r.said) for r in readings]
    befores = [grams.view(matching.normalise(t.before[-grams.BEFORE :])) for t in turns]
    return Rows(
        cues, contexts, matrix(views, befores),
        np.array([[float(k in t.labels) for k in KINDS] for t in turns]),
        np.array([t.source for t in turns], dtype=np.str_), np.ones(len(turns)),
    )  # fmt: skip


def matrix(views: Sequence[str], befores: Sequence[str]) -> sparse.csr_matrix:
    """Counts of hashed n-grams, each row divided by the root of its number of n-grams."""
    row, bucket = grams.turns(views, befores)
    n = np.bincount(row, minlength=len(views)).astype(np.float64)
    value = 1.0 / np.sqrt(np.maximum(n, 1.0))[row]
    return sparse.csr_matrix((value, (row, bucket)), shape=(len(views), 1 << grams.BITS))


@lru_cache(maxsize=1)
def start() -> tuple[Rows, Points]:
    """What every fit begins with: the authored turns, which hold no words but ours, and the hand-written points."""
    home = resources.files("seatrial.signals")
    own = tomllib.loads(home.joinpath("authored_turns.toml").read_text("utf-8"))
    points = json.loads(home.joinpath("hand_points.json").read_text("utf-8"))
    return rows(authored(own), builtin()), hand(builtin(), points)


class Points(NamedTuple):
    """Log-odds by kind: `bias` (n_kinds,), `cues` (n_kinds, n_cues), `contexts` (n_kinds, n_contexts)."""

    bias: Floats
    cues: Floats
    contexts: Floats


def hand(lexicon: Lexicon, points: dict[str, dict[str, dict[str, float]]]) -> Points:
    """Hand-written points as arrays, in the order of the lexicon; a missing one takes the lexicon's."""
    bias = np.array([float(points["bias"][k]) for k in KINDS])  # type: ignore[arg-type]
    cues = np.array([[points["cue"].get(c.id, c.weights).get(k, 0.0) for c in lexicon.cue] for k in KINDS])
    contexts = np.array(
        [[points["context"].get(c, lexicon.context_weights(c)).get(k, 0.0) for c in CONTEXTS] for k in KINDS]
    )
    return Points(bias, cues, contexts)


def fit_points(data: Rows, prior: Points, penalty: float = PENALTY) -> Points:
    """Points moved from `prior` towards the labels by a ridge; a sign that was set by hand never turns.

    A cue or context without a point for a kind gets none.
    """
    bias, cues, contexts = prior.bias.copy(), prior.cues.copy(), prior.contexts.copy()
    for j in range(len(KINDS)):
        on = np.concatenate([prior.cues[j], prior.contexts[j]])
        used = np.flatnonzero(on)
        x = np.hstack([data.cues, data.contexts])[:, used]
        start = np.concatenate([[prior.bias[j]], on[used]])
        bounds = [(None, None)] + [(0.0, None) if v > 0 else (None, 0.0) for v in on[used]]

        def loss(theta: Floats, x: Floats = x, j: int = j, start: Floats = start) -> tuple[float, Floats]:
            eta = theta[0] + x @ theta[1:]
            residual = data.weight * (special.expit(eta) - data.y[:, j])
            away = theta - start
            away[0] *= 0.1
            value = float(data.weight @ (np.logaddexp(0.0, eta) - data.y[:, j] * eta)) + penalty / 2 * float(
                away @ away
            )
            step = penalty * away
            step[0] *= 0.1
            return value, np.concatenate([[residual.sum()], x.T @ residual]) + step

        found = optimize.minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 400})
        bias[j] = found.x[0]
        whole = on.copy()
        whole[used] = found.x[1:]
        cues[j], contexts[j] = whole[: data.cues.shape[1]], whole[data.cues.shape[1] :]
    return Points(bias, cues, contexts)


def rule_scores(data: Rows, points: Points) -> Floats:
    """The rules' log-odds, (n, n_kinds): `ABSENT` where nothing speaks for a kind, as `language.score` has it."""
    total = points.bias + data.cues @ points.cues.T + data.contexts @ points.contexts.T
    favoured = (data.cues @ (points.cues.T > 0)) > 0
    favoured |= (data.contexts @ (points.contexts.T > language.DECISIVE)) > 0
    return np.where(favoured, np.maximum(total, ABSENT), ABSENT)


class Linear(NamedTuple):
    """A classifier: `weights` (n_features, n_kinds), `bias` (n_kinds,); contexts are the last features."""

    weights: Floats
    bias: Floats


def _dense(data: Rows) -> sparse.csr_matrix:
    return sparse.hstack([data.grams, sparse.csr_matrix(CONTEXT_SCALE * data.contexts)]).tocsr()


def fit_linear(data: Rows, ridge: float = RIDGE) -> Linear:
    """Ridge logistic regression of every kind on the n-grams and contexts."""
    x = _dense(data)
    back = x.T.tocsr()
    p = x.shape[1]
    weights, bias = np.zeros((p, len(KINDS))), np.zeros(len(KINDS))
    for j in range(len(KINDS)):
        y = data.y[:, j]
        share = np.clip(np.average(y, weights=data.weight), 0.002, 0.998)

        def loss(theta: Floats, y: Floats = y) -> tuple[float, Floats]:
            eta = theta[0] + x @ theta[1:]
            residual = data.weight * (special.expit(eta) - y)
            value = float(data.weight @ (np.logaddexp(0.0, eta) - y * eta)) + ridge / 2 * float(theta[1:] @ theta[1:])
            return value, np.concatenate([[residual.sum()], back @ residual + ridge * theta[1:]])

        start = np.concatenate([[special.logit(share)], np.zeros(p)])
        found = optimize.minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 60, "maxcor": 8})
        bias[j], weights[:, j] = found.x[0], found.x[1:]
    return Linear(weights, bias)


def linear_scores(data: Rows, model: Linear) -> Floats:
    """The classifier's log-odds, (n, n_kinds)."""
    return np.asarray(_dense(data) @ model.weights + model.bias)


def folds(source: NDArray[np.str_]) -> list[NDArray[np.bool_]]:
    """One mask per source to leave out; small sources together. Deterministic."""
    names, n = np.unique(source, return_counts=True)
    out = [source == name for name, size in zip(names, n, strict=True) if size >= SMALL]
    rest = np.isin(source, names[n < SMALL])
    return [*out, rest] if rest.any() else out


def fit_both(data: Rows, extra: Rows, prior: Points) -> tuple[Points, Linear]:
    """Points and classifier. Authored turns (`extra`) teach the classifier, and lightly the points of every kind but
    correction, where they cost out of source: how people correct depends on the work."""
    light = replace(extra, weight=extra.weight * AUTHORED)
    points, alone = fit_points(joined(data, light), prior), fit_points(data, prior)
    for part, own in zip(points, alone, strict=True):
        part[KINDS.index("correction")] = own[KINDS.index("correction")]
    return points, fit_linear(joined(data, extra))


def combined(data: Rows, points: Points, model: Linear) -> Floats:
    """Rules and classifier together, (n, n_kinds)."""
    share = np.array([SHARES.get(kind, 0.0) for kind in KINDS])
    return rule_scores(data, points) + share * linear_scores(data, model)


Step = Callable[[int, int | None, str], None]


def out_of_source(data: Rows, extra: Rows, prior: Points, step: Step | None = None) -> tuple[Floats, Floats]:
    """(rules, combined) log-odds of every row, each fitted without the row's source; `step` hears of progress."""
    rule, both = np.zeros_like(data.y), np.zeros_like(data.y)
    parts = folds(data.source)
    for done, out in enumerate(parts):
        if step is not None:
            step(done, len(parts), "sources left out")
        points, model = fit_both(data.take(~out), extra, prior)
        left = data.take(out)
        rule[out], both[out] = rule_scores(left, points), combined(left, points, model)
    if step is not None:
        step(len(parts), len(parts), "sources left out")
    return rule, both


def cut(score: Floats, truth: Floats, other: NDArray[np.bool_] | None, alarms: float = 0.08) -> tuple[float, float]:
    """(log-odds, F1) of the best threshold, between two scores; with `other`, at most `alarms` of those are found."""
    best = (0.0, -1.0)
    for at in np.unique(score):
        found = score >= at
        if other is not None and other.any() and found[other].mean() > alarms:
            continue
        f1 = 2 * float((found & (truth > 0)).sum()) / float(found.sum() + truth.sum())
        if f1 > best[1]:
            below = score[score < at]
            best = ((float(at) + float(below.max(initial=at - 0.2))) / 2, f1)
    return best


AT = {kind: 0.7 if kind == "correction" else 0.5 for kind in KINDS}
"""Where METHODS 1.4 puts the threshold of each kind."""


def shifts(score: Floats, data: Rows, sure: NDArray[np.bool_], other: NDArray[np.bool_]) -> tuple[Floats, list[float]]:
    """What to add to each kind's log-odds so that its best threshold stands `AT` its place, and the F1 there."""
    out, f1 = np.zeros(len(KINDS)), []
    for j, kind in enumerate(KINDS):
        alarmed = other[sure] if kind == "correction" else None
        at, best = cut(score[sure, j], data.y[sure, j], alarmed)
        out[j] = special.logit(AT[kind]) - at
        f1.append(best)
    return out, f1


def authored(file: dict[str, list[str]], seed: int = 0, times: int = 3) -> list[LabelledTurn]:
    """Turns of authored_turns.toml, those with a gap filled `times` times."""
    rng = np.random.default_rng(seed)
    gaps = {k: v for k, v in file.items() if k not in (*KINDS, "other")}
    out = []
    for kind in (*KINDS, "other"):
        for template in file[kind]:
            for _ in range(times if "{" in template else 1):
                text = template
                for gap, words in gaps.items():
                    text = text.replace("{" + gap + "}", words[int(rng.integers(len(words)))])
                said = "Done. I updated it and all tests pass."
                out.append(LabelledTurn(turn=text, labels=(kind,), before=said, source="authored"))
    return out


def joined(data: Rows, extra: Rows | None) -> Rows:
    """Both sets of rows as one."""
    if extra is None:
        return data
    return Rows(
        np.vstack([data.cues, extra.cues]), np.vstack([data.contexts, extra.contexts]),
        sparse.vstack([data.grams, extra.grams]).tocsr(), np.vstack([data.y, extra.y]),
        np.concatenate([data.source, extra.source]), np.concatenate([data.weight, extra.weight]),
    )  # fmt: skip


def left_out(turns: Sequence[LabelledTurn], step: Step | None = None) -> Judge:
    """A judge of these turns whose points and weights were fitted without the turn's source; thresholds stand where the
    pooled predictions of undisputed turns put them. `step` hears of progress.

    Raises:
        EvidenceError: fewer than two sources to leave out in turn.
    """
    people = [t for t in turns if not t.harness]
    data = rows(people, builtin())
    if len(folds(data.source)) < 2:
        raise EvidenceError(
            "the labelled turns come from one source, or from several of fewer than "
            f"{SMALL} turns: none can be left out in turn",
            hint='name each turn\'s project in its "source"',
        )
    extra, prior = start()
    _, both = out_of_source(data, extra, prior, step)
    sure = np.array([not t.disputed for t in people])
    other = np.array([t.labels == ("other",) for t in people])
    shift, _ = shifts(both, data, sure, other)
    chances = special.expit(both + shift)
    place = {id(turn): i for i, turn in enumerate(people)}

    def judge(turn: LabelledTurn) -> list[language.Verdict]:
        row = chances[place[id(turn)]]
        return [
            language.Verdict(kind, float(row[j]), 0, len(turn.turn), "fitted without its source")
            for j, kind in enumerate(KINDS)
            if row[j] >= language.REPORT_FLOOR
        ]

    return judge
