"""Routers and simple policies on held-out tasks: success, gain, rescue, harm, and how often they act (METHODS 4.5).

Both continuations of every decision point were run, so a policy's outcome in an episode is known and not modelled.
Intervals are percentile bootstraps over tasks, one set of draws for everything, so that differences are paired.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from seatrial.errors import UsageError
from seatrial.records import Estimate, Evaluation, PolicyRow
from seatrial.recovery.bounds import DRAWS, Floats, harm_upper, resamples
from seatrial.recovery.cir import CirFit, out_of_fold
from seatrial.recovery.direct import choose, grid, ridge
from seatrial.recovery.episodes import DELAYS, Episodes, Outcome, design, first_crossing, play
from seatrial.recovery.fit import FitOptions, Fitted, fit
from seatrial.recovery.table import CLEAN, Ints
from seatrial.stats import sign_flip_test, zero_discordant

NEVER, ALWAYS, ORACLE, ANOMALY = "never", "always", "oracle", "anomaly"
CIR, ROUTER, CERTIFIED = "cir", "router", "router certified"
ALL = "all"
SIGN_FLIPS = 100_000
MIXES: dict[str, dict[str, float]] = {"clean 90%": {CLEAN: 0.90}, "clean 99%": {CLEAN: 0.99}}
"""Mixes beside the equal one: this share of clean episodes, the other conditions share the rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluateOptions:
    """How to try. `fit` is for the routers; `mixes` give conditions their shares (missing ones share the rest)."""

    fit: FitOptions = field(default_factory=FitOptions)
    mixes: Mapping[str, Mapping[str, float]] | None = None
    level: float = 0.95
    seed: int = 0


def evaluate(
    fitting: Episodes, test: Episodes, operation: str, options: EvaluateOptions | None = None,
    others: Mapping[str, Ints] | None = None, idle: Collection[str] = (),
) -> Evaluation:  # fmt: skip
    """Fit CIR and our router on `fitting`, and try them and the simple policies on `test`.

    Our router is tried twice: tuned to the limit like CIR, and certified. `others` are further policies: where each
    acts in the episodes of `test`; those named in `idle` never act, whatever the episode.

    Raises:
        UsageError: a task is in both, or a mix names an unknown condition or sums to more than 1.
        EvidenceError: too few tasks to fit on.
    """
    options = options or EvaluateOptions()
    shared = set(fitting.tasks()) & set(test.tasks())
    if shared:
        raise UsageError(f"{len(shared)} tasks are both for fitting and held out, such as {min(shared)}")
    mixes = {n: _shares(m, test) for n, m in (MIXES if options.mixes is None else options.mixes).items()}
    fits = _fits(fitting, operation, options.fit)
    policies = _policies(fitting, test, fits, options.fit) | dict(others or {})
    still = {NEVER, *idle, *(name for name, f in fits.items() if f.router.kind == "never")}
    robust = _robust(fitting, test, {name: play(test, at) for name, at in policies.items()})
    rows = policy_rows(test, policies, mixes, robust=robust, idle=still, level=options.level, seed=options.seed)
    return Evaluation(
        rows=rows,
        operation=operation,
        delays=test.delays,
        n_fit=len(fitting.tasks()),
        n_test=len(test.tasks()),
        mixes=mixes,
        fits=tuple(f.record for f in fits.values()),
        level=options.level,
        answer=_answer(rows),
        warnings=tuple(dict.fromkeys(w for f in fits.values() for w in f.record.warnings)),
    )


def _fits(e: Episodes, operation: str, options: FitOptions) -> dict[str, Fitted]:
    def made(learner: str, certified: bool) -> Fitted:
        return fit(e, operation, FitOptions(
            learner="cir" if learner == CIR else "direct", limit=options.limit, confidence=options.confidence,
            certified=certified, cost=options.cost, lam=options.lam, folds=options.folds, seed=options.seed,
        ))  # fmt: skip

    return {CIR: made(CIR, False), ROUTER: made(ROUTER, False), CERTIFIED: made(ROUTER, True)}


def _policies(fitting: Episodes, test: Episodes, fits: Mapping[str, Fitted], options: FitOptions) -> dict[str, Ints]:
    cir = fits[CIR].model
    assert isinstance(cir, CirFit)
    anomaly = np.where(test.alive, cir.predict(test).err, -np.inf)
    rules = grid(fitting, np.where(fitting.alive, out_of_fold(fitting, options.folds, options.seed).err, -np.inf))
    tuned = choose(rules, range(len(rules)), limit=options.limit)
    bar = np.inf if tuned is None else rules[tuned].threshold
    out = {
        NEVER: np.full(len(test), -1, dtype=np.int64),
        ALWAYS: first_crossing(test.alive),
        ANOMALY: first_crossing(anomaly >= bar),
    }
    for name, fitted in fits.items():
        out[name] = fitted.at(test)
    for name in (CIR, ROUTER):
        out[f"{ANOMALY} at {name}'s rate"] = _rate_matched(anomaly, float((out[name] >= 0).mean()))
    # The best that any policy could do with one action, knowing both outcomes.
    gain = np.where(test.alive, test.gain, -np.inf)
    out[ORACLE] = np.where(gain.max(axis=1) > 0.0, gain.argmax(axis=1), -1)
    return out


def _rate_matched(score: Floats, rate: float) -> Ints:
    """First crossings of the threshold whose intervention rate is closest to `rate`; no outcome is looked at."""
    top = np.sort(score.max(axis=1))[::-1]
    n = round(rate * top.size)
    if n == 0:
        return np.full(top.size, -1, dtype=np.int64)
    return first_crossing((score >= top[n - 1]) & np.isfinite(score))


def _shares(mix: Mapping[str, float], test: Episodes) -> dict[str, float]:
    known = sorted(set(test.condition.tolist()))
    unknown = [c for c in mix if c not in known]
    if unknown:
        raise UsageError(f"a mix names {', '.join(unknown)}", hint=f"the conditions are {', '.join(known)}")
    total, rest = sum(mix.values()), [c for c in known if c not in mix]
    if min(mix.values(), default=0.0) < 0 or total > 1.0 + 1e-9 or (not rest and abs(total - 1.0) > 1e-9):
        raise UsageError("the shares of a mix are at least 0 and sum to 1")
    return {c: mix.get(c, (1.0 - total) / max(len(rest), 1)) for c in known}


def _robust(fitting: Episodes, test: Episodes, played: Mapping[str, Outcome]) -> dict[str, Floats]:
    """Gain by episode with a model in the place of pairs that were not run (augmented inverse probability).

    ``m + run/share (gain - m)``, where `m` is the ridge regression of the paired difference on the fitting tasks and
    `share` the share of pairs that were run at that condition and delay. Where all were run it is the gain itself.
    """
    live = fitting.alive.ravel() & fitting.given.ravel()
    task = np.repeat(fitting.task, len(fitting.delays))
    model, _ = ridge(design(fitting)[live], fitting.gain.ravel()[live], task[live])
    guess = model.score(design(test)).reshape(test.alive.shape)
    share = np.ones(test.alive.shape)
    for condition in set(test.condition.tolist()):
        rows = test.condition == condition
        run = (test.given & test.alive)[rows].sum(axis=0) / np.maximum(test.alive[rows].sum(axis=0), 1)
        share[rows] = np.where(run > 0, run, 1.0)
    rows_, out = np.arange(len(test)), {}
    for name, made in played.items():
        place = np.maximum(made.at, 0)
        m, r, s = guess[rows_, place], test.given[rows_, place], share[rows_, place]
        out[name] = np.where(made.acts, m + r / s * (test.gain[rows_, place] - m), 0.0)
    return out


class _Boot:
    """One set of bootstrap draws over the tasks of a group, for any number of columns."""

    def __init__(self, tasks: Ints, n: int, level: float, seed: int) -> None:
        self.code, self.n, self.level = tasks, n, level
        self.weights = resamples(n, seed)

    def task_means(self, values: Floats, weight: Floats) -> Floats:
        """Weighted mean of `values` inside each task."""
        total = np.bincount(self.code, weight, self.n)
        return np.bincount(self.code, weight * values, self.n) / total

    def estimates(self, columns: Floats, episodes: int, *, what: str) -> list[Estimate]:
        """The mean over tasks of each column (n_tasks, m)."""
        draws = self.weights @ columns
        tail = (1.0 - self.level) / 2.0
        low, high = np.quantile(draws, [tail, 1.0 - tail], axis=0)
        out = []
        for j in range(columns.shape[1]):
            column = columns[:, j]
            bounds: tuple[float | None, float | None] = (float(low[j]), float(high[j]))
            method, why = f"{what}, percentile bootstrap over tasks, {DRAWS} draws", None
            if not column.any():
                bounds, method = zero_discordant(self.n, self.level), f"{what}, no discordant task: exact bound"
            elif self.n < 2 or float(np.ptp(column)) <= 1e-12:
                bounds, why = (None, None), "tasks do not vary: their spread cannot be estimated"
            se = float(column.std(ddof=1) / np.sqrt(self.n)) if self.n > 1 else None
            out.append(Estimate(value=float(column.mean()), low=bounds[0], high=bounds[1], level=self.level,
                                n=episodes, n_clusters=self.n, method=method, se=se, why=why))  # fmt: skip
        return out


def policy_rows(
    test: Episodes, policies: Mapping[str, Ints], mixes: Mapping[str, Mapping[str, float]] | None = None, *,
    robust: Mapping[str, Floats] | None = None, idle: Collection[str] = (NEVER,), level: float = 0.95, seed: int = 0,
) -> tuple[PolicyRow, ...]:  # fmt: skip
    """Every policy under each condition, under an equal mix, and under `mixes` (shares by condition).

    `policies` say where each acts in the episodes of `test` (-1: nowhere). `robust` holds doubly robust gains by
    episode, None: the paired ones. `idle` policies never act, whatever the episode: their gain and harm are 0 by
    definition, with nothing to estimate. A policy that merely did not act in these episodes is not one of them.
    """
    played = {name: play(test, at) for name, at in policies.items()}
    twice = {name: made.gain for name, made in played.items()} if robust is None else robust
    known = sorted(set(test.condition.tolist()), key=lambda c: (c != CLEAN, c))
    groups = {c: {c: 1.0} for c in known} | {ALL: dict.fromkeys(known, 1.0 / len(known))} | dict(mixes or {})
    return tuple(
        row for label, mix in groups.items() for row in _group(test, played, twice, label, mix, idle, level, seed)
    )


def _group(
    test: Episodes, played: Mapping[str, Outcome], robust: Mapping[str, Floats], label: str, mix: Mapping[str, float],
    idle: Collection[str], level: float, seed: int,
) -> Iterator[PolicyRow]:  # fmt: skip
    """The policies under one mix of conditions; inside a task the conditions that it has are weighted by the mix."""
    weight = np.array([mix.get(c, 0.0) for c in test.condition.tolist()])
    keep = weight > 0.0
    weight = weight[keep]
    tasks, code = np.unique(test.task[keep], return_inverse=True)
    boot = _Boot(code, tasks.size, level, seed)
    names, n = list(played), int(keep.sum())
    base = test.base[keep]
    gains = np.stack([boot.task_means(played[p].gain[keep], weight) for p in names], axis=1)
    outcomes = np.stack([boot.task_means(base + played[p].gain[keep], weight) for p in names], axis=1)
    doubly = np.stack([boot.task_means(robust[p][keep], weight) for p in names], axis=1)
    success = boot.estimates(outcomes, n, what="success")
    gain = boot.estimates(gains, n, what="gain over never")
    twice = boot.estimates(doubly, n, what="gain, doubly robust")
    nothing = Estimate(value=0.0, low=0.0, high=0.0, level=level, n=n, n_clusters=tasks.size, se=0.0,
                       method="never acts: 0 by definition")  # fmt: skip
    for i, name in enumerate(names):
        versus = boot.estimates(gains[:, [i]] - gains, n, what="paired difference in success")
        made, still = played[name], name in idle
        rescue, harm, acts = (
            boot.task_means(np.asarray(v[keep], dtype=np.float64), weight) for v in (made.rescue, made.harm, made.acts)
        )
        at = made.at[keep]
        yield PolicyRow(
            policy=name, condition=label, n=n, success=success[i], gain=nothing if still else gain[i],
            doubly_robust=nothing if still else twice[i],
            p_value=sign_flip_test(gains[:, i], seed=seed, draws=SIGN_FLIPS).p_value,
            rescue=float(rescue.mean()), harm=float(harm.mean()), intervention_rate=float(acts.mean()),
            harm_upper=0.0 if still else harm_upper(np.clip(harm, 0.0, 1.0)),
            versus={other: nothing if still and other in idle else versus[j]
                    for j, other in enumerate(names) if j != i},
            delays={str(d): float(weight[at == k].sum() / weight.sum()) for k, d in enumerate(test.delays)},
        )  # fmt: skip


def _answer(rows: Sequence[PolicyRow]) -> str:
    """Is our router better than CIR here, in words, over the equal mix of conditions."""
    found = {(r.policy, r.condition): r for r in rows}
    e = found[ROUTER, ALL].versus[CIR]
    assert e is not None
    points = f"{100 * abs(e.value):.2f} points"
    if e.value == 0.0:
        verdict = "gains as much as CIR"
    else:
        verdict = f"gains {points} {'more' if e.value > 0 else 'less'} than CIR"
    sure = (
        ""
        if e.low is None or e.high is None
        else f" ({e.level:.0%} interval {100 * e.low:+.2f} to {100 * e.high:+.2f})"
    )
    shown = e.low is not None and e.high is not None and (e.low > 0 or e.high < 0)
    clean = [found[p, CLEAN].harm for p in (ROUTER, CIR) if (p, CLEAN) in found]
    harms = f"; clean harm {100 * clean[0]:.2f} against {100 * clean[1]:.2f} points" if len(clean) == 2 else ""
    return f"The direct router {verdict}{sure}{harms}. " + (
        "The difference is beyond chance." if shown else "These tasks do not tell the two apart."
    )


def random_split(e: Episodes, share: float, seed: int) -> tuple[Episodes, Episodes]:
    """Fitting and held-out episodes, whole tasks at random, `share` of the tasks held out.

    Raises:
        UsageError: the share leaves no task on a side.
    """
    tasks = np.array(e.tasks())
    n = round(share * tasks.size)
    if not 0 < n < tasks.size:
        raise UsageError(f"holding out {share:g} of {tasks.size} tasks leaves a side empty")
    order: NDArray[np.int64] = np.random.default_rng(seed).permutation(tasks.size)
    return e.of(tasks[order[n:]].tolist()), e.of(tasks[order[:n]].tolist())


__all__ = ["DELAYS", "EvaluateOptions", "evaluate", "random_split"]
