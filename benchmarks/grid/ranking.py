"""The difference of two arms by every estimator of `rank`, over designs that are easy, thin, sticky or confounded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import coverage_designs as designs
import numpy as np

from grid.cell import LEVEL, Cell, Method, Reply, limits
from grid.peers import DIFFERENCE, GEE
from seatrial.causal import bootstrap as boot
from seatrial.causal import effect, randomise
from seatrial.causal.prepare import Sample
from seatrial.causal.uncertainty import contrasts, refusal
from seatrial.stats.quantiles import two_sided_t

TABLE = "Difference of two models"
GAP = 0.12
DRAWS = 999
BOOTSTRAPS = 499


def _analysis(sample: Sample, estimator: effect.Estimator, overlap: effect.Overlap = "auto") -> effect.Analysis | None:
    names = ("prompt_chars",) if "prompt_chars" in sample.frame.columns else ()
    return effect.stratified(sample, estimator=estimator, overlap=overlap, observational=True, covariates=names)


def _row(k: int) -> np.ndarray:
    row = np.zeros((1, k))
    row[0, k - 1], row[0, 0] = 1.0, -1.0
    return row


def ours(estimator: effect.Estimator, overlap: effect.Overlap = "auto") -> Callable[[Any, Any, int], Reply | None]:
    """Rank's estimate of the last arm minus the first, CR3 and t, refusals kept."""

    def analyse(sample: Sample, truth: float, seed: int) -> Reply | None:
        analysis = _analysis(sample, estimator, overlap)
        if analysis is None or analysis.refused or refusal(analysis.moments, sample.arms, tested=False):
            return None
        each = contrasts(analysis.moments, _row(len(sample.arms)))
        half = two_sided_t(LEVEL, float(each.df[0])) * float(each.se[0])
        return limits(float(each.value[0]) - half, float(each.value[0]) + half, truth)

    return analyse


def bootstrap_t(sample: Sample, truth: float, seed: int) -> Reply | None:
    """The symmetric bootstrap-t that rank offers."""
    analysis = _analysis(sample, "post-stratified")
    if analysis is None or analysis.refused or refusal(analysis.moments, sample.arms, tested=False):
        return None
    each = contrasts(analysis.moments, _row(len(sample.arms)))
    t = boot.t_draws(analysis.cells, each.coefficients, seed=seed, replicates=BOOTSTRAPS)
    half = float(np.quantile(t[:, 0], LEVEL, method="higher") * each.se_cr1[0])
    return limits(float(each.value[0]) - half, float(each.value[0]) + half, truth)


def randomisation(sample: Sample, truth: float, seed: int) -> Reply | None:
    """Rank's randomisation test of the last arm's net improvement. A test only."""
    analysis = _analysis(sample, "post-stratified")
    if analysis is None:
        return None
    k = len(sample.arms)
    test = randomise.run(analysis, np.full(k, 1.0 / k), randomised=False, draws=DRAWS, seed=seed).test
    return None if test is None else Reply(reject=bool(test.p_values[-1] <= 1 - LEVEL))


POST = Method("post-stratified, CR3 t (default)", ours("post-stratified"), share=8.0)
BLIND = Method("post-stratified, blind to the column", ours("post-stratified"), share=3.0, foil=True)
LIN = Method("Lin regression, CR3 t", ours("lin"), share=4.0)
AIPW = Method("AIPW, CR3 t", ours("aipw"), share=4.0)
HAJEK = Method("Hájek, 1/p, CR3 t", ours("hajek"), share=4.0)
OVERLAP = Method("overlap weights, CR3 t", ours("post-stratified", "overlap_weights"), share=4.0)
ADDITIVE = Method("additive stratum model, CR3 t", ours("post-stratified", "additive"), share=4.0)
BOOT = Method("bootstrap-t on request", bootstrap_t, share=2.0)
TEST = Method("randomisation test", randomisation, share=2.0)


def cell(name: str, mine: tuple[Method, ...], *, impossible: bool = False, **options: Any) -> Cell:
    """A design with an effect of GAP on the logit between first and last arm, and the same without any effect."""
    tilt = options.pop("tilt", 0.3)
    with_effect = designs.sessions(name, gap=GAP, tilt=tilt, **options)
    without = designs.sessions(name, gap=0.0, tilt=0.0, **options)

    def draw(rng: np.random.Generator, effect: bool) -> tuple[Sample, float]:
        design = with_effect if effect else without
        return design.draw(rng), float(design.truth[-1] - design.truth[0])

    return Cell(TABLE, name, draw, mine + DIFFERENCE, times=0.6, impossible=impossible)


def cells() -> list[Cell]:
    """Few and many users, uneven ones, rare outcomes, sticky arms, gaps in the strata, and confounding."""
    plain, tested = (POST, LIN, AIPW), (POST, LIN, AIPW, TEST)
    return [
        cell("many even users", plain, n=1500, users=200),
        cell("many uneven users", plain, n=1500, users=200, uneven=True),
        cell("20 even users", (*tested, BOOT, GEE), n=900, users=20),
        cell("60 uneven users", (*tested, BOOT, GEE), n=1500, users=60, uneven=True),
        cell("rare outcome (3%)", plain, n=2400, users=200, centre=-4.2),
        cell("near the ceiling (95%)", plain, n=1500, users=150, centre=3.4),
        cell("thin arm (6% of sessions)", plain, n=1200, users=150, chances=(0.48, 0.46, 0.06)),
        cell("sticky: 60 users, one model each", (*tested, GEE), n=1500, users=60, sticky=True),
        cell("sticky, 150 uneven users", (*tested, BOOT), n=1500, users=150, sticky=True, uneven=True),
        cell("users keep to one stratum", (*plain, GEE), n=900, users=36, specialists=True),
        cell("recorded chances vary", (HAJEK, POST), n=1500, users=120, chances=(0.6, 0.3, 0.1), vary_p=True),
        cell("a model is missing in a stratum", (POST, OVERLAP, ADDITIVE), n=1200, users=150, absent=True, tilt=0.0),
        cell("confounded by task type", (*plain, OVERLAP), n=1200, users=150, confounded=True),
        cell("confounded by a column", (LIN, AIPW, BLIND), n=1200, users=150, covariate=0.7, confounded=True),
        cell("confounded by what no column holds", plain, impossible=True, n=1200, users=150, hidden=0.8),
    ]
