"""Success rates corrected for the signal's own errors, which each model's labelled sessions measure (METHODS 1.5)."""

from __future__ import annotations

import dataclasses

import numpy as np
import polars as pl

from seatrial.causal import cells, effect
from seatrial.causal.cells import Floats, Moments, tally
from seatrial.causal.effect import Analysis
from seatrial.causal.ppi import FEWEST_LABELS, joined
from seatrial.causal.prepare import Codes
from seatrial.causal.uncertainty import contrasts, interval, net_coefficients, refusal
from seatrial.records import Estimate

FEWEST_OF_A_KIND = 5
"""Labelled successes, and failures, that a model needs: with fewer its error rates are not measured."""

LEAST_SURE = 3.0
"""Standard errors by which sensitivity + specificity must exceed 1."""


@dataclasses.dataclass(frozen=True, slots=True)
class Corrected:
    """Corrected means as moments (None: not applicable, `notes` says why), with each model's measured error rates."""

    moments: Moments | None
    arms: tuple[str, ...]
    sensitivity: Floats
    specificity: Floats
    notes: tuple[str, ...]

    def net(self, q: Floats, level: float, refused: str | None) -> list[Estimate] | None:
        """tau_m of every arm; None when it cannot be estimated."""
        if self.moments is None:
            return None
        each = contrasts(self.moments, net_coefficients(q))
        refused = refused or refusal(self.moments, self.arms, tested=False)
        return [
            interval(
                float(each.value[m]), float(each.se[m]), float(each.df[m]), level=level, n=self.moments.n,
                n_clusters=self.moments.n_clusters, refused=refused,
                method=f"Rogan-Gladen (sensitivity {self.sensitivity[m]:.2f}, specificity {self.specificity[m]:.2f}), "
                "jackknife t",
            )
            for m in range(q.size)
        ]  # fmt: skip


def estimate(analysis: Analysis, labels: pl.DataFrame) -> Corrected:
    """``mu_m = (p_m + q0_m - 1)/(q0_m + q1_m - 1)``: p_m the post-stratified share of sessions whose signal outcome is
    at least one half, q1_m and q0_m its sensitivity and specificity among the model's own labelled sessions, weighted
    by their inverse labelling probability.

    Every model has error rates of its own: common ones would keep the bias of models that elicit signals differently.
    The error leaves whole clusters out of all three parts at once.

    Raises:
        SchemaError, UsageError: as `ppi.estimate`.
    """
    arms = analysis.sample.arms
    k_count = len(arms)
    blank = np.full(k_count, np.nan)
    if analysis.paired or analysis.weighting == "overlap":
        return Corrected(None, arms, blank, blank, ())
    found, _ = joined(analysis, labels)
    if not np.isin(found.y, (0.0, 1.0)).all():
        return Corrected(None, arms, blank, blank, ("labels are graded: no Rogan-Gladen rates, which need yes and no",))
    says = (found.f >= 0.5).astype(float)
    kinds = np.stack([np.bincount(found.arm, weights=found.y == v, minlength=k_count) for v in (0.0, 1.0)])
    few = [a for a, n in zip(arms, kinds.T, strict=True) if n.sum() < FEWEST_LABELS or n.min() < FEWEST_OF_A_KIND]
    if few:
        why = f"too few labels to measure error rates of {', '.join(few)}: no Rogan-Gladen rates"
        return Corrected(None, arms, blank, blank, (why,))
    built = cells.build(
        analysis.sample.cluster, analysis.code, analysis.sample.arm, (analysis.sample.y >= 0.5).astype(float),
        weight=None if np.array_equal(analysis.cells.a, analysis.cells.n) else effect.inverse_p(analysis.sample),
        n_strata=len(analysis.stratum_labels), n_arms=k_count,
    )  # fmt: skip
    base = cells.moments(built, keep=True)
    assert base.jackknife is not None
    q1, q1_left = _rates(found.arm, found.cluster, found.w * found.y, says, k_count, built.n_distinct)
    q0, q0_left = _rates(found.arm, found.cluster, found.w * (1.0 - found.y), 1.0 - says, k_count, built.n_distinct)
    g = built.n_distinct
    informed, informed_left = q0 + q1 - 1.0, q0_left + q1_left - 1.0
    spread = np.sqrt((g - 1) / g * ((informed_left - informed_left.mean(axis=0)) ** 2).sum(axis=0))
    # A ratio whose denominator may be nought has no error that a jackknife could see.
    blind = [a for a, i, se in zip(arms, informed, spread, strict=True) if not i > LEAST_SURE * se]
    if blind:
        why = f"the signal may say nothing about success of {', '.join(blind)}: no Rogan-Gladen rates"
        return Corrected(None, arms, q1, q0, (why,))
    mean = (base.mean + q0 - 1.0) / informed
    left = (base.jackknife + q0_left - 1.0) / informed_left
    shift = left - left.mean(axis=0)
    cr3 = (g - 1) / g * shift.T @ shift
    moments = dataclasses.replace(
        base, name="Rogan-Gladen", mean=mean, cr1=cr3, cr3=cr3, part=(shift**2).sum(axis=0),
        g_star_k=np.minimum(base.g_star_k, _effective(found.arm, found.cluster, k_count, g)), influence=None,
        jackknife=None,
    )  # fmt: skip
    return Corrected(moments, arms, q1, q0, ())


def _rates(
    arm: Codes, cluster: Codes, weight: Floats, hit: Floats, k_count: int, g_count: int
) -> tuple[Floats, Floats]:
    """Weighted share of hits by arm, (K,), and the same with each cluster left out, (G, K)."""
    place, size = cluster * k_count + arm, g_count * k_count
    all_of, hits = (tally(place, w, size).reshape(g_count, k_count) for w in (weight, weight * hit))
    left = all_of.sum(axis=0) - all_of
    rate = hits.sum(axis=0) / all_of.sum(axis=0)
    out = np.divide(hits.sum(axis=0) - hits, left, out=np.full_like(left, np.nan), where=left > 1e-12)
    return rate, out


def _effective(arm: Codes, cluster: Codes, k_count: int, g_count: int) -> Floats:
    """Effective clusters of the labels by arm."""
    n = tally(cluster * k_count + arm, np.ones(arm.size), g_count * k_count).reshape(g_count, k_count)
    out: Floats = n.sum(axis=0) ** 2 / (n**2).sum(axis=0)
    return out
