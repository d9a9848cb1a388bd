"""Labelled sessions to weights of the count score, with what they are worth out of sample (METHODS 2)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy import special

from seatrial.errors import EvidenceError, UsageError
from seatrial.records import Weights
from seatrial.scoring import searching
from seatrial.stats.logistic import auc, fit_logistic, log_loss

Floats = NDArray[np.float64]
Method = Literal["logistic", "grid", "random", "bayesian"]

KINDS: tuple[str, ...] = ("confirmation", "praise", "complaint", "correction", "execution_error")
SIGNS = (1, 1, -1, -1, -1)
ORDER = ((1, 0), (2, 3))
"""Praise at least as strong as confirmation, complaint as correction, if asked for."""

FEWEST = 100
"""Labels below which unit weights do as well (METHODS 2)."""

PENALTIES = (0.3, 1.0, 3.0, 10.0)
_LEVELS = (0.0, 0.5, 1.0, 2.0, 4.0)
_ENOUGH = 3e-5
"""Improvement of the mean log loss, in nats, below which the Bayesian search ends."""


class WeightInterval(msgspec.Struct, frozen=True, kw_only=True):
    """One weight, scaled so that the five sum to 5, with its percentile interval over users."""

    kind: str
    value: float
    low: float | None
    high: float | None


class FittedWeights(msgspec.Struct, frozen=True, kw_only=True):
    """Weights and their worth.

    `auc` and `log_loss` are out of fold (users left out, penalty chosen inside the folds); `unit_*` are those of
    unit weights with a slope and intercept fitted on the same folds. `used` False: fewer than `FEWEST` labels, so
    `weights` are the unit preset and the fit is only shown. `draws` are bootstrap weights, for the rank stability.
    `scores` are cross-fitted probabilities by session, so that labelled sessions can still be ranked (`success`).
    `coefficients` and `intercept` are the whole fit on log1p counts, in log-odds, signs included.
    """

    weights: Weights
    used: bool
    method: Method
    intervals: tuple[WeightInterval, ...]
    penalty: float | None
    auc: float | None
    unit_auc: float | None
    log_loss: float | None
    unit_log_loss: float | None
    n_labels: int
    n_users: int
    draws: tuple[tuple[float, ...], ...]
    scores: dict[str, float]
    why: tuple[str, ...]
    coefficients: tuple[float, ...] = ()
    intercept: float = 0.0


def fit(
    counts: Floats,
    labels: Floats,
    users: Sequence[str],
    *,
    sessions: Sequence[str] | None = None,
    sample_weight: Floats | None = None,
    ordered: bool = False,
    emphasis: float = 1.0,
    method: Method = "logistic",
    folds: int = 5,
    draws: int = 500,
    seed: int = 0,
    level: float = 0.95,
    fingerprint: str | None = None,
) -> FittedWeights:
    """Fit the five weights on labelled sessions.

    Args:
        counts: kept signals (n, 5) in the order of `KINDS`. labels: success in [0, 1], (n,).
        users: whose session it is; folds and bootstrap leave whole users out.
        sample_weight: e.g. inverse labelling probabilities. emphasis: sessions with praise or a complaint weigh this
            much more. ordered: impose praise >= confirmation and complaint >= correction.
        method: `logistic` is the convex fit; `grid`, `random` and `bayesian` search the same loss over weight shapes.
        fingerprint: of the detectors that counted; weights are refused with any other.

    Raises:
        UsageError: shapes disagree, or an `emphasis` that is not finite and positive.
        EvidenceError: one outcome only, or fewer than two users.
    """
    x, y, names = np.log1p(np.asarray(counts, float)), np.asarray(labels, float), np.asarray(users, dtype=np.str_)
    if not (math.isfinite(emphasis) and emphasis > 0):
        raise UsageError(f"emphasis must be a positive finite number, got {emphasis}", hint="1 treats sessions alike")
    if x.ndim != 2 or x.shape[1] != len(KINDS) or not len(x) == len(y) == len(names):
        raise UsageError(f"counts: expected ({len(y)}, {len(KINDS)}), got {x.shape}")
    if np.unique(y >= 0.5).size < 2:
        raise EvidenceError(
            "all labels say the same", hint="weights need sessions that went well and sessions that did not"
        )
    people = np.unique(names)
    if people.size < 2:
        raise EvidenceError("all labelled sessions are one user's", hint="label sessions of several users")
    w = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, float)
    w = w * np.where((np.asarray(counts)[:, 1] + np.asarray(counts)[:, 2]) > 0, emphasis, 1.0)
    rng = np.random.default_rng(seed)
    groups = _folds(names, people, min(folds, people.size), rng)
    plan = _Plan(ordered, method, seed)
    penalty = _penalty(x, y, w, groups, plan)
    out, base = np.full(len(y), np.nan), np.full(len(y), np.nan)
    for held in groups:
        rest = ~held
        if np.unique(y[rest] >= 0.5).size < 2:
            continue
        inner = _folds(names[rest], np.unique(names[rest]), min(folds, np.unique(names[rest]).size), rng)
        best = _penalty(x[rest], y[rest], w[rest], inner, plan)
        out[held] = _probability(x[held], *_shape(x[rest], y[rest], w[rest], best, plan))
        unit = np.array(SIGNS, float)
        base[held] = _probability(x[held], *_line(x[rest], y[rest], w[rest], unit))
    seen = np.isfinite(out)
    truth = (y >= 0.5).astype(float)
    beta, intercept = _shape(x, y, w, penalty, plan)
    boot = _bootstrap(x, y, w, names, penalty, plan, draws, rng)
    value, tail = _scaled(beta), (1 - level) / 2
    low, high = np.quantile(boot, [tail, 1 - tail], axis=0) if len(boot) else (None, None)
    enough = len(y) >= FEWEST
    why = [] if enough else [f"{len(y)} labels: below {FEWEST} unit weights do as well, so they are kept"]
    if len(boot) < draws:
        why.append(f"{draws - len(boot)} bootstrap draws had one outcome only and were left out")
    ids = sessions if sessions is not None else [str(i) for i in range(len(y))]
    weights = Weights(
        name="fitted", fitted=True, fingerprint=fingerprint, n_labels=len(y),
        **{kind: round(float(v), 4) for kind, v in zip(KINDS, value, strict=True)},
    ) if enough else Weights(name="unit", n_labels=len(y))  # fmt: skip
    return FittedWeights(
        weights=weights, used=enough, method=method,
        intervals=tuple(
            WeightInterval(
                kind=kind, value=float(value[j]), low=None if low is None else float(low[j]),
                high=None if high is None else float(high[j]),
            )
            for j, kind in enumerate(KINDS)
        ),
        penalty=penalty if method == "logistic" else None,
        auc=auc(out[seen], truth[seen]), unit_auc=auc(base[seen], truth[seen]),
        log_loss=log_loss(out[seen], y[seen]), unit_log_loss=log_loss(base[seen], y[seen]),
        n_labels=len(y), n_users=int(people.size), draws=tuple(tuple(map(float, row)) for row in boot),
        scores={str(i): float(p) for i, p in zip(ids, out, strict=True) if np.isfinite(p)}, why=tuple(why),
        coefficients=tuple(float(b) for b in beta), intercept=float(intercept),
    )  # fmt: skip


def success(fitted: FittedWeights, counts: Floats, sessions: Sequence[str]) -> Floats:
    """The probability that a session went well, (n,): by the whole fit, and for a labelled session by the fit that did
    not see its user, so that no session is ranked by its own label (METHODS 2).

    Raises:
        EvidenceError: too few labels were fitted, or the file is of an earlier fit without coefficients.
    """
    if not fitted.used or len(fitted.coefficients) != len(KINDS):
        few = fitted.n_labels < FEWEST
        raise EvidenceError(
            "; ".join(fitted.why) or "these weights hold no coefficients",
            hint=f"label {FEWEST - fitted.n_labels} more sessions, then fit"
            if few
            else "run 'seatrial weights fit' again",
        )
    x = np.log1p(np.asarray(counts, float))
    p = _probability(x, np.array(fitted.coefficients), fitted.intercept)
    own = [fitted.scores.get(str(session)) for session in sessions]
    return np.array([a if b is None else b for a, b in zip(p.tolist(), own, strict=True)])


class _Plan(msgspec.Struct, frozen=True):
    ordered: bool
    method: Method
    seed: int


def _folds(
    names: NDArray[np.str_], people: NDArray[np.str_], k: int, rng: np.random.Generator
) -> list[NDArray[np.bool_]]:
    place = dict(zip(rng.permutation(people).tolist(), (np.arange(people.size) % max(k, 1)).tolist(), strict=True))
    at = np.array([place[name] for name in names.tolist()])
    return [at == i for i in range(k)]


def _penalty(x: Floats, y: Floats, w: Floats, groups: list[NDArray[np.bool_]], plan: _Plan) -> float:
    if plan.method != "logistic" or len(groups) < 2:
        return 1.0
    best, least = 1.0, np.inf
    for penalty in PENALTIES:
        total = 0.0
        for held in groups:
            if np.unique(y[~held] >= 0.5).size < 2 or not held.any():
                continue
            p = _probability(x[held], *_shape(x[~held], y[~held], w[~held], penalty, plan)).clip(1e-6, 1 - 1e-6)
            total -= float(w[held] @ (y[held] * np.log(p) + (1 - y[held]) * np.log1p(-p)))
        if total < least:
            best, least = penalty, total
    return best


def _shape(x: Floats, y: Floats, w: Floats, penalty: float, plan: _Plan) -> tuple[Floats, float]:
    """Signed weights on log1p counts and the intercept."""
    if plan.method == "logistic":
        order = ORDER if plan.ordered else ()
        found = fit_logistic(x, y, penalty=penalty, signs=SIGNS, order=order, sample_weight=w)
        return found.weights, found.intercept
    return _line(x, y, w, _search(x, y, w, plan))


def _line(x: Floats, y: Floats, w: Floats, direction: Floats) -> tuple[Floats, float]:
    """The best slope and intercept along a fixed direction."""
    found = fit_logistic((x @ direction)[:, None], y, penalty=0.1, signs=(1,), sample_weight=w)
    return direction * found.weights[0], found.intercept


def _probability(x: Floats, beta: Floats, intercept: float) -> Floats:
    return np.asarray(special.expit(intercept + x @ beta))


def _allowed(shapes: Floats, plan: _Plan) -> Floats:
    return shapes[(shapes[:, 1] >= shapes[:, 0]) & (shapes[:, 2] >= shapes[:, 3])] if plan.ordered else shapes


def _search(x: Floats, y: Floats, w: Floats, plan: _Plan) -> Floats:
    """The direction with the least loss: of a grid, of random draws that narrow, or of a Bayesian search that
    evaluates at most as many."""
    sign = np.array(SIGNS, float)
    if plan.method == "grid":
        mesh = np.array(np.meshgrid(*[_LEVELS] * len(KINDS), indexing="ij")).reshape(len(KINDS), -1).T
        mesh = _allowed(mesh[mesh.sum(axis=1) > 0], plan)
        return np.asarray(mesh[int(np.argmin(_losses(x, y, w, mesh * sign)))] * sign)

    def loss(shapes: Floats) -> Floats:
        return np.asarray(_losses(x, y, w, shapes * sign) / w.sum())

    def allowed(shapes: Floats) -> Floats:
        return _allowed(shapes, plan)

    if plan.method == "bayesian":
        best = searching.bayesian(loss, len(KINDS), seed=plan.seed, allowed=allowed, tolerance=_ENOUGH)
    else:
        best = searching.narrowing(loss, len(KINDS), seed=plan.seed, allowed=allowed)
    return np.asarray(best * sign)


def _losses(x: Floats, y: Floats, w: Floats, directions: Floats) -> Floats:
    """Logistic loss of every direction with its own slope and intercept, by twelve Newton steps at once."""
    z = x @ directions.T
    scale = z.std(axis=0)
    z = (z - z.mean(axis=0)) / np.where(scale > 0, scale, 1.0)
    a, b = np.zeros(z.shape[1]), np.zeros(z.shape[1])
    for _ in range(12):
        p = special.expit(a + b * z)
        r, v = w[:, None] * (p - y[:, None]), w[:, None] * p * (1 - p)
        ga, gb = r.sum(axis=0), (r * z).sum(axis=0) + 0.1 * b
        haa, hab, hbb = v.sum(axis=0) + 1e-9, (v * z).sum(axis=0), (v * z * z).sum(axis=0) + 0.1
        det = haa * hbb - hab**2
        a, b = a - (hbb * ga - hab * gb) / det, np.maximum(b - (haa * gb - hab * ga) / det, 0.0)
    eta = a + b * z
    return np.asarray(w @ (np.logaddexp(0.0, eta) - y[:, None] * eta))


def _scaled(beta: Floats) -> Floats:
    size = np.abs(beta)
    return np.asarray(size * len(KINDS) / size.sum()) if size.sum() > 0 else np.ones(len(KINDS))


def _bootstrap(
    x: Floats,
    y: Floats,
    w: Floats,
    names: NDArray[np.str_],
    penalty: float,
    plan: _Plan,
    draws: int,
    rng: np.random.Generator,
) -> Floats:
    """Scaled weights over resampled users, (at most draws, 5)."""
    people, home = np.unique(names, return_inverse=True)
    out = []
    for _ in range(draws):
        times = np.bincount(rng.integers(people.size, size=people.size), minlength=people.size)[home]
        if np.unique(y[times > 0] >= 0.5).size == 2:
            out.append(_scaled(_shape(x, y, w * times, penalty, plan)[0]))
    return np.array(out).reshape(-1, len(KINDS))


def check(weights: Weights, fingerprint: str) -> None:
    """Refuse fitted weights with other detectors than those that they were fitted with (METHODS 0.6).

    Raises:
        UsageError: the fingerprints differ.
    """
    if weights.fitted and weights.fingerprint != fingerprint:
        raise UsageError(
            f"these weights were fitted with other detectors ({weights.fingerprint}, now {fingerprint})",
            hint="run 'seatrial weights fit' again",
        )


def as_dict(fitted: FittedWeights) -> dict[str, Any]:
    """What a weights file holds."""
    return dict(msgspec.to_builtins(fitted))
