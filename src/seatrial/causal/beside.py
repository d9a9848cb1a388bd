"""What is printed beside a ranking: robustness, diagnostics, bounds, and the basis it stands on (METHODS 3.5, 3.11)."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from seatrial.causal import design, robustness
from seatrial.causal.effect import Analysis
from seatrial.causal.options import Options
from seatrial.causal.prepare import Sample
from seatrial.causal.rows import Core
from seatrial.causal.variance import neyman_variance

VERSION = "1"
"""Version of the estimators; a ranking across versions is not comparable (METHODS 0.6)."""


def report(core: Core, lost: pl.DataFrame, *, seed: int) -> dict[str, Any]:
    """Robustness, diagnostics and bounds: METHODS 3.4's always-printed numbers, 3.5's checks, 0.1's bounds."""
    analysis, arms = core.analysis, core.analysis.sample.arms
    out: dict[str, Any] = {}
    if "additive" not in analysis.label:
        out |= robustness.report(analysis, core.each.coefficients, seed=seed)
    for name, mean in analysis.beside.items():
        out[name] = dict(zip(arms, (core.each.coefficients @ mean).tolist(), strict=True))
    moments = analysis.moments
    if not analysis.paired:
        plain = neyman_variance(analysis.code, analysis.sample.arm, analysis.sample.y, core.each.coefficients)
        out["se_ignoring_clusters"] = {
            a: None if np.isnan(v) else float(v**0.5) for a, v in zip(arms, plain, strict=True)
        }
    ratio = np.divide(core.each.se, core.each.se_cr1, out=np.full(len(arms), np.nan), where=core.each.se_cr1 > 0)
    out["cr3_over_cr1"] = {a: None if np.isnan(r) else float(r) for a, r in zip(arms, ratio, strict=True)}
    out["g_effective_by_model"] = dict(zip(arms, moments.g_star_k.tolist(), strict=True))
    out["degrees_of_freedom"] = dict(zip(arms, core.each.df.tolist(), strict=True))
    if core.test.test is not None:
        out["p_any"] = core.test.test.p_any
        if core.test.null_sd is not None:
            drawn = core.test.test.effects.std(axis=0)
            pairs = zip(arms, core.test.null_sd.tolist(), drawn.tolist(), strict=True)
            out["null_sd"] = {a: {"closed_form": x, "draws": y} for a, x, y in pairs}
    elif core.test.why:
        out["randomisation_test"] = core.test.why
    if analysis.sample.bounded:
        bounds = _excluded_bounds(core, lost)
        if bounds:
            out["excluded_bounds"] = bounds
        strata = analysis.strata
        if strata is not None and (strata.retained < 1.0 or "additive" in analysis.label):
            out["manski"] = core.manski
    return out


def _excluded_bounds(core: Core, lost: pl.DataFrame) -> dict[str, list[float]]:
    """Worst and best tau if every session without an outcome had failed or passed (METHODS 0.1), strata as estimated.

    Worst counts the model's own lost sessions as 0 and the others' as 1; best the reverse. Lost sessions are spread
    over strata like the model's scored ones.
    """
    sample = core.analysis.sample
    n_lost = np.array([lost.filter(pl.col("arm") == a).height for a in sample.arms], dtype=np.float64)
    if n_lost.sum() == 0:
        return {}
    n = np.bincount(sample.arm, minlength=len(sample.arms)).astype(np.float64)
    share = n_lost / (n + n_lost)
    failed = core.analysis.moments.mean * (1 - share)
    passed = failed + share
    c = core.each.coefficients
    low = np.where(c > 0, c, 0) @ failed + np.where(c < 0, c, 0) @ passed
    high = np.where(c > 0, c, 0) @ passed + np.where(c < 0, c, 0) @ failed
    return {a: [float(x), float(y)] for a, x, y in zip(sample.arms, low, high, strict=True)}


def basis(
    sample: Sample, analysis: Analysis | None, with_arm: pl.DataFrame, roster: tuple[str, ...],
    verdict: design.Verdict, options: Options,
) -> dict[str, Any]:  # fmt: skip
    """METHODS 3.11's basis: what this number stands on."""
    mix: dict[str, float] = {}
    if analysis is not None and not analysis.paired:
        shares = np.bincount(analysis.code, minlength=len(analysis.stratum_labels)) / analysis.sample.n
        mix = dict(zip(analysis.stratum_labels, shares.tolist(), strict=True))
    by = {
        c: sorted(with_arm[c].drop_nulls().unique().to_list())
        for c in ("task_type_by", "difficulty_by")
        if c in with_arm.columns
    }
    used = sample if analysis is None else analysis.sample
    return dict(options.basis) | {
        "estimator_version": VERSION,
        "roster": list(roster),
        "window": design.basis_window(with_arm),
        "n_sessions": with_arm.height,
        "n_scored": sample.n,
        "n_estimate": used.n,
        "cluster": used.cluster_kind,
        "n_clusters": used.n_clusters,
        "one_user": sample.one_user,
        "for": "this user" if sample.one_user else None,
        "strata": list(options.strata) if not (analysis and analysis.paired) else ["task"],
        "strata_mix": mix,
        "strata_by": by,
        "retained_share": None if analysis is None else analysis.retained,
        "n_tasks": len(verdict.tasks) or None,
        "seed": options.seed,
        "draws": options.draws,
    }
