"""Many statements at once: simultaneous intervals of net improvements, and rank intervals, for eight models."""

from __future__ import annotations

from typing import Any

import coverage_designs as designs
import numpy as np

from grid.cell import LEVEL, Cell, Method, Reply
from seatrial.causal import effect
from seatrial.causal.prepare import Sample
from seatrial.causal.uncertainty import contrasts, net_coefficients, pair_coefficients, ranks, refusal, simultaneous
from seatrial.stats.quantiles import two_sided_t

TABLE = "Eight models at once: all net improvements, all ranks"
K = 8


def _analysis(sample: Sample) -> effect.Analysis | None:
    found = effect.stratified(sample, estimator="post-stratified", observational=False, covariates=())
    if found is None or found.refused or refusal(found.moments, sample.arms, tested=False):
        return None
    return found


def together(sample: Sample, truth: np.ndarray, seed: int) -> Reply | None:
    """Simultaneous intervals: all truths inside; rejects where any model leaves zero."""
    analysis = _analysis(sample)
    if analysis is None:
        return None
    c = net_coefficients(np.full(K, 1 / K))
    found = [w for w in simultaneous(contrasts(analysis.moments, c), level=LEVEL, seed=seed) if w is not None]
    pairs = list(zip(found, c @ truth, strict=True))
    hit = all(low <= t <= high for (low, high), t in pairs)
    clear = any(not low <= 0 <= high for low, high in found)
    return Reply(hit, clear, float(np.mean([high - low for low, high in found])))


def singly(sample: Sample, truth: np.ndarray, seed: int) -> Reply | None:
    """The intervals of one model at a time, read as if they held together."""
    analysis = _analysis(sample)
    if analysis is None:
        return None
    c = net_coefficients(np.full(K, 1 / K))
    each = contrasts(analysis.moments, c)
    half = np.array([two_sided_t(LEVEL, df) for df in each.df]) * each.se
    hit = bool((np.abs(each.value - c @ truth) <= half).all())
    return Reply(hit, bool((np.abs(each.value) > half).any()), float(2 * half.mean()))


def rank_intervals(sample: Sample, truth: np.ndarray, seed: int) -> Reply | None:
    """Rank intervals: every true rank inside (ties may take any of their places); width in ranks. Rejects where some
    model is told apart from some other."""
    analysis = _analysis(sample)
    if analysis is None:
        return None
    found = ranks(analysis.moments, np.arange(K), level=LEVEL, seed=seed)
    best = [1 + int((truth > t + 1e-12).sum()) for t in truth]
    worst = [K - int((truth < t - 1e-12).sum()) for t in truth]
    hit = all(r.low <= b and w <= r.high for r, b, w in zip(found, best, worst, strict=True))
    return Reply(hit, any(r.low > 1 or r.high < K for r in found), float(np.mean([r.high - r.low for r in found])))


def tukey(sample: Sample, truth: np.ndarray, seed: int) -> Reply | None:
    """scipy tukey_hsd over sessions: all pairs inside; rejects where any pair differs."""
    from scipy import stats

    found = stats.tukey_hsd(*(sample.y[sample.arm == a] for a in range(K))).confidence_interval(LEVEL)
    return _pairs(found.low, found.high, truth)


def bonferroni(sample: Sample, truth: np.ndarray, seed: int) -> Reply | None:
    """statsmodels OLS of arm dummies, cluster-robust as shipped, every pair at alpha over the number of pairs."""
    import statsmodels.api as sm

    x = np.column_stack([(sample.arm == a).astype(float) for a in range(K)])
    fit = sm.OLS(sample.y, x).fit(cov_type="cluster", cov_kwds={"groups": sample.cluster})
    rows = pair_coefficients(K)
    ends = np.asarray(fit.t_test(rows).conf_int((1 - LEVEL) / len(rows)))
    low, high = np.zeros((K, K)), np.zeros((K, K))
    i, j = np.triu_indices(K, 1)
    low[i, j], high[i, j] = ends[:, 0], ends[:, 1]
    return _pairs(low, high, truth)


def _pairs(low: Any, high: Any, truth: np.ndarray) -> Reply:
    i, j = np.triu_indices(K, 1)
    gap = truth[i] - truth[j]
    inside = (low[i, j] <= gap) & (gap <= high[i, j])
    clear = (low[i, j] > 0) | (high[i, j] < 0)
    return Reply(bool(inside.all()), bool(clear.any()), float((high[i, j] - low[i, j]).mean()))


METHODS = (
    Method("simultaneous intervals (default)", together),
    Method("rank intervals (width in ranks)", rank_intervals),
    Method("each at 95%, read together", singly, foil=True),
    Method("statsmodels OLS, cluster-robust, Bonferroni over pairs", bonferroni, ours=False, needs="statsmodels"),
    Method("scipy tukey_hsd of sessions", tukey, ours=False, share=0.1),
)


def cell(name: str, **options: Any) -> Cell:
    """Eight models, with a spread of true means and with none."""
    one = options.pop("strata", 1)
    with_effect = designs.sessions(name, k=K, strata=one, gap=0.4, tilt=0.0, **options)
    without = designs.sessions(name, k=K, strata=one, gap=0.0, tilt=0.0, **options)

    def draw(rng: np.random.Generator, effect: bool) -> tuple[Sample, np.ndarray]:
        design = with_effect if effect else without
        return design.draw(rng), design.truth

    return Cell(TABLE, name, draw, METHODS, times=3.0)


def cells() -> list[Cell]:
    """Few and many users, uneven ones, sticky arms and a rare outcome."""
    return [
        cell("40 even users", n=1600, users=40),
        cell("300 even users", n=2400, users=300),
        cell("300 uneven users", n=3000, users=300, uneven=True),
        cell("sticky: 160 users, one model each", n=1600, users=160, sticky=True),
        cell("rare outcome (4%)", n=4000, users=400, centre=-3.8),
    ]
