"""Matched pairs: paired tests, recovery contrasts and their interactions, bounds on harm, and certificates."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from grid.cell import ALPHA, LEVEL, Cell, Method, Reply, limits
from seatrial.recovery.bounds import effect_estimate, harm_upper
from seatrial.recovery.certify import fixed_sequence
from seatrial.stats import mcnemar_exact, paired_mean, sign_flip_interval, sign_flip_test

PAIRED, RECOVERY, HARM = "Paired outcomes", "Recovery contrasts (rescue minus harm)", "Limits on harm"
FLIPS = 9_999


class Pairs(NamedTuple):
    """Outcomes without and with, (n_tasks, n_repeats)."""

    y0: np.ndarray
    y1: np.ndarray

    @property
    def tasks(self) -> np.ndarray:
        """Mean difference of each task."""
        return np.asarray((self.y1 - self.y0).mean(axis=1))


def _t(x: Pairs, truth: float, seed: int) -> Reply | None:
    task = np.repeat(np.arange(x.y0.shape[0]), x.y0.shape[1])
    e = paired_mean(x.y0.ravel(), x.y1.ravel(), task)
    return None if e is None else limits(e.low, e.high, truth)


def _flips(x: Pairs, truth: float, seed: int) -> Reply | None:
    return Reply(reject=sign_flip_test(x.tasks, seed=seed, draws=FLIPS).p_value <= ALPHA)


def _inverted(x: Pairs, truth: float, seed: int) -> Reply | None:
    e = sign_flip_interval(x.tasks, seed=seed, draws=FLIPS)
    return limits(e.low, e.high, truth)


def _counts(x: Pairs) -> tuple[int, int]:
    return int(((x.y0 == 0) & (x.y1 == 1)).sum()), int(((x.y0 == 1) & (x.y1 == 0)).sum())


def _mcnemar(x: Pairs, truth: float, seed: int) -> Reply | None:
    return Reply(reject=mcnemar_exact(*_counts(x)).p_value <= ALPHA)


def _their_mcnemar(x: Pairs, truth: float, seed: int) -> Reply | None:
    from statsmodels.stats.contingency_tables import mcnemar

    b, c = _counts(x)
    return Reply(reject=bool(mcnemar([[0, b], [c, 0]], exact=True).pvalue <= ALPHA))


def _ttest(x: Pairs, truth: float, seed: int) -> Reply | None:
    from scipy import stats

    found = stats.ttest_rel(x.y1.ravel(), x.y0.ravel())
    ci = found.confidence_interval(LEVEL)
    return limits(float(ci.low), float(ci.high), truth)


def _wilcoxon(x: Pairs, truth: float, seed: int) -> Reply | None:
    from scipy import stats

    d = x.tasks
    return Reply(reject=bool(d.any()) and bool(stats.wilcoxon(d).pvalue <= ALPHA))


def _permuted(x: Pairs, truth: float, seed: int) -> Reply | None:
    from scipy import stats

    p = stats.permutation_test((x.y1.mean(axis=1), x.y0.mean(axis=1)), lambda a, b, axis: (a - b).mean(axis=axis),
                               permutation_type="samples", vectorized=True, n_resamples=999,
                               rng=np.random.default_rng(seed)).pvalue  # fmt: skip
    return Reply(reject=bool(p <= ALPHA))


def _pairs(rng: np.random.Generator, tasks: int, repeats: int, a: float, b: float, rescue: float, harm: float,
           effect: bool, own: float = 0.3) -> tuple[Pairs, float]:  # fmt: skip
    """Tasks of chance Beta(a, b); a failing run is rescued and a passing one harmed, tasks differing in how often.

    Without an effect as many are harmed as rescued on average over all tasks.
    """
    p = rng.beta(a, b, tasks)
    fails, passes = b / (a + b), a / (a + b)
    if not effect:
        harm = rescue * fails / passes
    mine = rng.beta(1 / own, 1 / own, tasks) * 2.0
    y0 = rng.random((tasks, repeats)) < p[:, None]
    saved = rng.random((tasks, repeats)) < np.minimum(rescue * mine, 1.0)[:, None]
    broken = rng.random((tasks, repeats)) < np.minimum(harm * mine, 1.0)[:, None]
    y1 = np.where(y0, ~broken, saved)
    return Pairs(y0.astype(float), y1.astype(float)), fails * rescue - passes * harm


def paired(name: str, *, tasks: int, repeats: int = 1, a: float = 2.0, b: float = 1.0, rescue: float = 0.3) -> Cell:
    """Two systems on the same tasks."""

    def draw(rng: np.random.Generator, effect: bool) -> tuple[Pairs, float]:
        return _pairs(rng, tasks, repeats, a, b, rescue, 0.05, effect)

    methods = (
        Method("paired mean over tasks, t", _t),
        Method("sign-flip test over tasks", _flips, share=0.5),
        Method("sign-flip interval", _inverted, share=0.5),
        Method("exact McNemar of all pairs" + ("" if repeats == 1 else " (not for these)"), _mcnemar, foil=repeats > 1),
        Method("statsmodels mcnemar, exact, all pairs", _their_mcnemar, ours=False, needs="statsmodels", share=0.5),
        Method("scipy ttest_rel of all pairs", _ttest, ours=False),
        Method("scipy wilcoxon of task means", _wilcoxon, ours=False, share=0.5),
        Method("scipy permutation_test, samples", _permuted, ours=False, share=0.5),
    )
    return Cell(PAIRED, name, draw, methods, times=3)


def _contrast(d: np.ndarray, discordant: bool, truth: float) -> Reply | None:
    e = effect_estimate(d, discordant=discordant)
    return limits(e.low, e.high, truth)


def _effect(x: Pairs, truth: float, seed: int) -> Reply | None:
    return _contrast(x.tasks, bool((x.y0 != x.y1).any()), truth)


def recovery(name: str, *, tasks: int, replays: int = 1, rescue: float, harm: float) -> Cell:
    """One operation after an altered observation."""

    def draw(rng: np.random.Generator, effect: bool) -> tuple[Pairs, float]:
        return _pairs(rng, tasks, replays, 1.2, 1.0, rescue, harm, effect)

    methods = (
        Method("bootstrap over tasks (default)", _effect),
        Method("sign-flip test over tasks (default)", _flips, share=0.5),
        Method("paired mean over tasks, t", _t),
        Method("statsmodels mcnemar, exact, all pairs", _their_mcnemar, ours=False, needs="statsmodels"),
        Method("scipy ttest_rel of all pairs", _ttest, ours=False),
    )
    return Cell(RECOVERY, name, draw, methods, times=1.5)


def interaction(name: str, *, tasks: int) -> Cell:
    """Stale minus clean on the same tasks; without an effect both conditions are alike."""

    def draw(rng: np.random.Generator, effect: bool) -> tuple[Pairs, float]:
        stale, one = _pairs(rng, tasks, 1, 1.2, 1.0, 0.35, 0.03, True)
        clean, two = (
            _pairs(rng, tasks, 1, 3.0, 1.0, 0.1, 0.03, True)
            if effect
            else _pairs(rng, tasks, 1, 1.2, 1.0, 0.35, 0.03, True)
        )
        return Pairs(clean.y1 - clean.y0, stale.y1 - stale.y0), one - two

    methods = (
        Method("bootstrap over tasks (default)", lambda x, t, s: _contrast(x.tasks, True, t)),
        Method("sign-flip test over tasks (default)", _flips, share=0.5),
        Method("scipy ttest_rel", _ttest, ours=False),
    )
    return Cell(RECOVERY, name, draw, methods, times=1.5)


def bound(name: str, *, tasks: int, harm: float, replays: int = 1) -> Cell:
    """The one-sided 95% bound on harm against tasks that are harmed so often."""

    def draw(rng: np.random.Generator, effect: bool) -> tuple[np.ndarray, float]:
        own = rng.beta(harm * 4, (1 - harm) * 4, tasks) if replays > 1 else np.full(tasks, harm)
        return rng.binomial(replays, own) / replays, harm

    def ours(x: np.ndarray, truth: float, seed: int) -> Reply | None:
        top = harm_upper(x)
        return Reply(hit=truth <= top, width=top)

    def theirs(x: np.ndarray, truth: float, seed: int) -> Reply | None:
        from statsmodels.stats.proportion import proportion_confint

        _, top = proportion_confint(round(float(x.sum()) * replays), tasks * replays, 2 * ALPHA, method="beta")
        return Reply(hit=bool(truth <= top), width=float(top))

    methods = (
        Method("one-sided bound (width: the bound)", ours),
        Method("statsmodels proportion_confint, beta", theirs, ours=False, needs="statsmodels"),
    )
    return Cell(HARM, name, draw, methods, times=2, without=False)


def certificate(name: str, *, tasks: int, limit: float = 0.02) -> Cell:
    """Ten rules of rising true harm: a certificate errs where some certified rule harms more than the limit. The
    tuned rule takes the last one whose harm on the same tasks is within the limit."""
    rates = np.linspace(0.2, 2.0, 10) * limit

    def draw(rng: np.random.Generator, effect: bool) -> tuple[np.ndarray, np.ndarray]:
        return (rng.random(tasks)[None, :] < rates[:, None]).astype(float), rates

    def ours(x: np.ndarray, truth: np.ndarray, seed: int) -> Reply | None:
        n = fixed_sequence(list(x), limit=limit).certified
        return Reply(hit=not (truth[:n] > limit + 1e-12).any(), reject=n > 0)

    def tuned(x: np.ndarray, truth: np.ndarray, seed: int) -> Reply | None:
        fine = np.flatnonzero(x.mean(axis=1) <= limit)
        return Reply(hit=fine.size == 0 or bool(truth[fine[-1]] <= limit + 1e-12), reject=fine.size > 0)

    methods = (
        Method("certificate (coverage: limit kept; power: any certified)", ours),
        Method("threshold tuned on the same tasks", tuned, foil=True),
    )
    return Cell(HARM, name, draw, methods, times=2, without=False)


def cells() -> list[Cell]:
    """Few and many tasks, repeated runs of one task, rare events."""
    return [
        paired("20 tasks", tasks=20),
        paired("75 tasks", tasks=75),
        paired("300 tasks, rare changes", tasks=300, rescue=0.08),
        paired("40 tasks x 4 runs", tasks=40, repeats=4),
        paired("near the ceiling: 100 tasks", tasks=100, a=19.0, b=1.0, rescue=0.4),
        recovery("75 tasks, one run", tasks=75, rescue=0.25, harm=0.05),
        recovery("75 tasks, five replays", tasks=75, replays=5, rescue=0.2, harm=0.05),
        recovery("30 tasks, one run", tasks=30, rescue=0.35, harm=0.05),
        recovery("150 tasks, rare rescue", tasks=150, rescue=0.06, harm=0.01),
        interaction("stale minus clean, 75 tasks", tasks=75),
        bound("75 clean tasks, harm 2%", tasks=75, harm=0.02),
        bound("250 clean tasks, harm 2%", tasks=250, harm=0.02),
        bound("75 clean tasks x 5 replays, harm 4%", tasks=75, harm=0.04, replays=5),
        certificate("ten rules, 150 clean tasks, limit 2%", tasks=150),
        certificate("ten rules, 400 clean tasks, limit 2%", tasks=400),
    ]
