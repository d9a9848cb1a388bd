"""Peers' answers to the difference of two arms, called as their manuals say, and to shares and means over clusters."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from grid.cell import LEVEL, Method, Reply, limits
from seatrial.causal.prepare import Sample

RESAMPLES = 999


def two_arms(sample: Sample) -> tuple[np.ndarray, ...]:
    """Rows of the first and the last arm: treated (0 or 1), outcome, cluster, stratum."""
    last = len(sample.arms) - 1
    keep = (sample.arm == 0) | (sample.arm == last)
    stratum = sample.frame["task_type"].cast(pl.Categorical).to_physical().to_numpy()
    return (sample.arm[keep] == last).astype(float), sample.y[keep], sample.cluster[keep], stratum[keep]


def _design(sample: Sample, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Arm dummies, centred stratum dummies and covariate, all interactions; the contrast last minus first arm."""
    stratum = sample.frame["task_type"].cast(pl.Categorical).to_physical().to_numpy()
    parts = [(stratum == s).astype(float) for s in np.unique(stratum)[1:]]
    if "prompt_chars" in sample.frame.columns:
        parts.append(sample.frame["prompt_chars"].to_numpy())
    z = np.column_stack([p - p.mean() for p in parts]) if parts else np.zeros((sample.n, 0))
    arms = np.column_stack([(sample.arm == a).astype(float) for a in range(k)])
    x = np.column_stack([arms] + [arms[:, a : a + 1] * z for a in range(k)])
    contrast = np.zeros(x.shape[1])
    contrast[k - 1], contrast[0] = 1.0, -1.0
    return x, contrast


def ols(sample: Sample, truth: float, seed: int) -> Reply | None:
    """statsmodels OLS with every interaction, cluster-robust as shipped."""
    import statsmodels.api as sm

    x, contrast = _design(sample, len(sample.arms))
    keep = np.abs(x).sum(axis=0) > 0
    fit = sm.OLS(sample.y, x[:, keep]).fit(cov_type="cluster", cov_kwds={"groups": sample.cluster})
    low, high = np.ravel(fit.t_test(contrast[keep]).conf_int(1 - LEVEL))
    return limits(float(low), float(high), truth)


def gee(sample: Sample, truth: float, seed: int) -> Reply | None:
    """statsmodels GEE, exchangeable working correlation, identity link."""
    import statsmodels.api as sm

    x, contrast = _design(sample, len(sample.arms))
    keep = np.abs(x).sum(axis=0) > 0
    order = np.argsort(sample.cluster, kind="stable")
    model = sm.GEE(sample.y[order], x[order][:, keep], groups=sample.cluster[order],
                   cov_struct=sm.cov_struct.Exchangeable())  # fmt: skip
    low, high = np.ravel(model.fit().t_test(contrast[keep]).conf_int(1 - LEVEL))
    return limits(float(low), float(high), truth)


def welch(sample: Sample, truth: float, seed: int) -> Reply | None:
    """scipy ttest_ind without equal variances: sessions as if independent, no strata."""
    from scipy import stats

    treated, y, _, _ = two_arms(sample)
    ci = stats.ttest_ind(y[treated == 1], y[treated == 0], equal_var=False).confidence_interval(LEVEL)
    return limits(float(ci.low), float(ci.high), truth)


def _gap(a: np.ndarray, b: np.ndarray, axis: int = -1) -> Any:
    return a.mean(axis=axis) - b.mean(axis=axis)


def bootstrap(sample: Sample, truth: float, seed: int) -> Reply | None:
    """scipy bootstrap (percentile) of the difference: sessions as if independent, no strata."""
    from scipy import stats

    treated, y, _, _ = two_arms(sample)
    ci = stats.bootstrap(
        (y[treated == 1], y[treated == 0]), _gap, vectorized=True, n_resamples=RESAMPLES, confidence_level=LEVEL,
        method="percentile", rng=np.random.default_rng(seed),
    ).confidence_interval  # fmt: skip
    return limits(float(ci.low), float(ci.high), truth)


def permutation(sample: Sample, truth: float, seed: int) -> Reply | None:
    """scipy permutation_test of the difference: labels of sessions, no strata. A test only."""
    from scipy import stats

    treated, y, _, _ = two_arms(sample)
    p = stats.permutation_test(
        (y[treated == 1], y[treated == 0]), _gap, vectorized=True, n_resamples=RESAMPLES,
        rng=np.random.default_rng(seed),
    ).pvalue  # fmt: skip
    return Reply(reject=bool(p <= 1 - LEVEL))


def tea_tasting(sample: Sample, truth: float, seed: int) -> Reply | None:
    """tea-tasting RatioOfMeans, one row per user and variant, which is how it takes repeated measures."""
    import tea_tasting as tt

    treated, y, cluster, _ = two_arms(sample)
    rows = pl.DataFrame({"user": cluster, "variant": treated.astype(int), "y": y, "n": 1})
    table = rows.group_by("user", "variant").agg(pl.col("y", "n").sum()).sort("user", "variant")
    found: Any = tt.Experiment(r=tt.RatioOfMeans("y", "n")).analyze(table)["r"]
    return limits(found.effect_size_ci_lower, found.effect_size_ci_upper, truth)


DIFFERENCE = (
    Method("statsmodels OLS, interacted, cluster-robust", ols, ours=False, needs="statsmodels", share=3.0),
    Method("tea-tasting RatioOfMeans by user", tea_tasting, ours=False, needs="tea_tasting", share=3.0),
    Method("scipy ttest_ind, Welch", welch, ours=False),
    Method("scipy bootstrap of sessions", bootstrap, ours=False, share=1.0),
    Method("scipy permutation_test", permutation, ours=False, share=1.0),
)
GEE = Method("statsmodels GEE, exchangeable", gee, ours=False, needs="statsmodels", share=2.0)
"""Slow with many users: for the designs with few."""


def over_clusters(sums: np.ndarray, sizes: np.ndarray, truth: float, seed: int, null: float | None) -> Reply | None:
    """scipy bootstrap (BCa) of a pooled mean, clusters as units."""
    from scipy import stats

    def pooled(s: np.ndarray, n: np.ndarray, axis: int = -1) -> Any:
        return s.sum(axis=axis) / n.sum(axis=axis)

    ci = stats.bootstrap(
        (sums, sizes), pooled, paired=True, vectorized=True, n_resamples=RESAMPLES, confidence_level=LEVEL,
        rng=np.random.default_rng(seed),
    ).confidence_interval  # fmt: skip
    return limits(float(ci.low), float(ci.high), truth, null)
