"""Does the answer hang on a few clusters, extreme outcomes or one stratum? (METHODS 3.5)."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from seatrial.causal import cells
from seatrial.causal.cells import Cells, Floats, stratum_weights, tally
from seatrial.causal.effect import Analysis

BAGS = 500
REPLICATES = 499


def _means(a: Floats, b: Floats, n: Floats, weighting: cells.Weighting) -> Floats:
    """Post-stratified means of many tables (..., S, K); strata lacking an arm are left out of that table."""
    whole = (a > 0).all(axis=-1)
    h = np.where(whole, n.sum(axis=-1), 0.0)
    if weighting == "overlap":
        with np.errstate(divide="ignore"):
            h = np.where(whole, 1.0 / (1.0 / np.where(n > 0, n, 1.0)).sum(axis=-1), 0.0)
    mean = np.divide(b, a, out=np.zeros_like(b), where=a > 0)
    total = h.sum(axis=-1, keepdims=True)
    result: Floats = (h[..., None] * mean).sum(axis=-2) / np.where(total > 0, total, np.nan)
    return result


def bootstrap_median(built: Cells, coefficients: Floats, weighting: cells.Weighting, *, seed: int) -> Floats | None:
    """Median over 499 cluster bootstrap replicates of every contrast, (M,).

    Above 500 clusters, clusters are first put at random into 500 bags and bags are resampled: nearly the same
    distribution for far less work.
    """
    rng = np.random.default_rng(seed)
    group = built.cluster
    g_count = built.n_distinct
    if g_count > BAGS:
        group = rng.integers(0, BAGS, g_count)[built.cluster]
        g_count = BAGS
    size = built.n_strata * built.n_arms
    home = group * size + built.stratum * built.n_arms + built.arm
    parts = [tally(home, v * built.times[built.cluster], g_count * size) for v in (built.a, built.b, built.n)]
    parts = [part.reshape(g_count, size) for part in parts]
    shape = (-1, built.n_strata, built.n_arms)
    means = []
    block = max(1, min(REPLICATES, 4_000_000 // max(size, g_count)))
    for low in range(0, REPLICATES, block):
        count = min(block, REPLICATES - low)
        draw = rng.multinomial(g_count, np.full(g_count, 1.0 / g_count), size=count).astype(np.float64)
        a, b, n = ((draw @ part).reshape(shape) for part in parts)
        means.append(_means(a, b, n, weighting))
    values = np.concatenate(means) @ coefficients.T
    good = np.isfinite(values).all(axis=1)
    return np.median(values[good], axis=0) if good.sum() >= REPLICATES / 2 else None


def winsorised(analysis: Analysis, coefficients: Floats) -> Floats:
    """Contrasts with the outcome cut at its 10th and 90th percentiles, (M,)."""
    sample = analysis.sample
    low, high = np.quantile(sample.y, [0.1, 0.9])
    y = sample.y.clip(low, high)
    k = len(sample.arms)
    if analysis.paired:
        task = analysis.code * k + sample.arm
        built = analysis.cells
        mean = np.bincount(task, weights=y) / np.bincount(task)
        built = dataclasses.replace(built, b=mean)
    else:
        weight = None
        if not np.array_equal(analysis.cells.a, analysis.cells.n):
            weight = 1.0 / sample.probability
        built = cells.build(
            sample.cluster, analysis.code, sample.arm, y, weight=weight, n_strata=analysis.cells.n_strata, n_arms=k
        )
    means = _means(built.total(built.a), built.total(built.b), built.total(built.n), analysis.weighting)
    return np.asarray(coefficients @ means)


def leave_one_stratum_out(built: Cells, coefficients: Floats, weighting: cells.Weighting) -> Floats | None:
    """Smallest and largest value of every contrast when one stratum is left out, (M, 2); None with one stratum."""
    if built.n_strata < 2:
        return None
    a, b, n = built.total(built.a), built.total(built.b), built.total(built.n)
    h = np.where((a > 0).all(axis=1), stratum_weights(n, weighting), 0.0)
    mean = np.divide(b, a, out=np.zeros_like(b), where=a > 0)
    left = h.sum() - h
    usable = left > 1e-9 * h.sum()
    if usable.sum() < 2:
        return None
    without = ((h @ mean) - h[usable, None] * mean[usable]) / left[usable, None]
    values = without @ coefficients.T
    return np.column_stack([values.min(axis=0), values.max(axis=0)])


def report(analysis: Analysis, coefficients: Floats, *, seed: int) -> dict[str, Any]:
    """{"bootstrap_median", "winsorised": {arm: tau}, "leave_one_stratum_out": {arm: [low, high]}}.

    All three are of the post-stratified form, whatever estimator is the headline.
    """
    arms = analysis.sample.arms
    median = bootstrap_median(analysis.cells, coefficients, analysis.weighting, seed=seed)
    cut = winsorised(analysis, coefficients)
    spread = leave_one_stratum_out(analysis.cells, coefficients, analysis.weighting)
    named: dict[str, Any] = {
        "bootstrap_median": None if median is None else dict(zip(arms, median.tolist(), strict=True)),
        "winsorised": dict(zip(arms, cut.tolist(), strict=True)),
        "leave_one_stratum_out": None if spread is None else dict(zip(arms, spread.tolist(), strict=True)),
    }
    return named
