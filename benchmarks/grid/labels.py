"""Signals that stand for outcomes, with true labels on some sessions: net improvement of the last of three models."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import coverage_designs as designs
import numpy as np
import polars as pl

from grid.cell import LEVEL, Cell, Method, Reply, limits
from seatrial.causal import corrected, effect, ppi
from seatrial.causal.prepare import Sample
from seatrial.records import Estimate

TABLE = "Signals corrected by labels"
K = 3
Q = np.full(K, 1 / K)


class Signals(NamedTuple):
    """Sessions whose outcome is a signal, the true outcomes, and which of them are labelled."""

    sample: Sample
    y: np.ndarray
    labelled: np.ndarray


def _analysis(s: Signals) -> effect.Analysis:
    found = effect.stratified(s.sample, estimator="post-stratified", observational=False, covariates=())
    assert found is not None
    return found


def _labels(s: Signals) -> pl.DataFrame:
    at = s.labelled
    return pl.DataFrame({"session": s.sample.frame["session"].filter(pl.Series(at)), "label": s.y[at]})


def _last(found: list[Estimate] | None, truth: float) -> Reply | None:
    return None if found is None else limits(found[-1].low, found[-1].high, truth)


def powered(s: Signals, truth: float, seed: int) -> Reply | None:
    """Rank's prediction-powered net improvement."""
    return _last(ppi.estimate(_analysis(s), _labels(s), level=LEVEL).net(Q, LEVEL, None), truth)


def rogan_gladen(s: Signals, truth: float, seed: int) -> Reply | None:
    """Rank's Rogan-Gladen net improvement, error rates of each model."""
    return _last(corrected.estimate(_analysis(s), _labels(s)).net(Q, LEVEL, None), truth)


def _ols(arm: np.ndarray, y: np.ndarray, cluster: np.ndarray, truth: float) -> Reply | None:
    import statsmodels.api as sm

    x = np.column_stack([(arm == a).astype(float) for a in range(K)])
    fit = sm.OLS(y, x).fit(cov_type="cluster", cov_kwds={"groups": cluster})
    low, high = np.ravel(fit.t_test(np.eye(K)[-1] - Q).conf_int(1 - LEVEL))
    return limits(float(low), float(high), truth)


def signals_only(s: Signals, truth: float, seed: int) -> Reply | None:
    """statsmodels, cluster-robust, on the signal as if it were the outcome."""
    return _ols(s.sample.arm, s.sample.y, s.sample.cluster, truth)


def labels_only(s: Signals, truth: float, seed: int) -> Reply | None:
    """statsmodels, cluster-robust, on the labelled sessions alone."""
    at = s.labelled
    return _ols(s.sample.arm[at], s.y[at], s.sample.cluster[at], truth)


def ppi_py(s: Signals, truth: float, seed: int) -> Reply | None:
    """ppi-python's regression with effects coded to sum to zero, whose last coefficient is the net improvement."""
    from ppi_py import ppi_ols_ci

    arm = s.sample.arm
    x = np.column_stack([np.ones(arm.size)] + [(arm == a) * 1.0 - (arm == 0) for a in range(1, K)])
    at = s.labelled
    low, high = ppi_ols_ci(x[at], s.y[at], s.sample.y[at], x[~at], s.sample.y[~at], alpha=1 - LEVEL)
    return limits(float(low[-1]), float(high[-1]), truth)


METHODS = (
    Method("prediction-powered, CR3 t (default with labels)", powered),
    Method("Rogan-Gladen per model, jackknife t", rogan_gladen),
    Method("statsmodels, labelled sessions only", labels_only, ours=False, needs="statsmodels"),
    Method("ppi-python, sessions independent", ppi_py, ours=False, needs="ppi_py", share=0.2),
    Method("statsmodels, signal as if outcome", signals_only, ours=False, needs="statsmodels"),
)


def cell(name: str, *, labels: int, right: float, flatter: float = 0.0, **options: Any) -> Cell:
    """`right`: chance that the signal says what is true; `flatter`: share of the last model's failures that it praises
    all the same; `labels`: how many sessions are labelled."""
    base = designs.sessions(name, k=K, strata=1, gap=0.35, tilt=0.0, **options)
    none = designs.sessions(name, k=K, strata=1, gap=0.0, tilt=0.0, **options)

    def draw(rng: np.random.Generator, effect: bool) -> tuple[Signals, float]:
        design = base if effect else none
        sample = design.draw(rng)
        y = sample.y
        f = np.where(rng.random(sample.n) < right, y, 1 - y)
        f = np.where((sample.arm == K - 1) & (rng.random(sample.n) < flatter), 1.0, f)
        labelled = np.zeros(sample.n, dtype=bool)
        labelled[rng.choice(sample.n, labels, replace=False)] = True
        return Signals(dataclasses.replace(sample, y=f), y, labelled), float(design.truth[-1] - design.truth.mean())

    return Cell(TABLE, name, draw, METHODS, times=1.5)


def cells() -> list[Cell]:
    """Good and useless signals, few labels, users who repeat, and a model that is thanked for its failures."""
    many = {"n": 3000, "users": 1500}
    return [
        cell("good signal, 300 labels", labels=300, right=0.9, **many),
        cell("useless signal, 300 labels", labels=300, right=0.5, **many),
        cell("flattered model, 300 labels", labels=300, right=0.85, flatter=0.4, **many),
        cell("flattered model, 150 labels", labels=150, right=0.85, flatter=0.4, **many),
        cell("60 users, 600 labels", labels=600, right=0.85, n=2400, users=60, user_sd=1.2),
        cell("rare outcome (6%), 900 labels", labels=900, right=0.95, centre=-3.4, **many),
    ]
