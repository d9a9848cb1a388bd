"""Hidden bias and the Mann-Whitney reading, against published numbers and brute force."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import polars as pl
import pytest
import statsmodels.api as sm
from scipy.stats import fisher_exact, nchypergeom_fisher

from seatrial.causal import sensitivity
from seatrial.causal.ranking import rank


def test_robustness_value_of_the_darfur_example() -> None:
    """Cinelli & Hazlett (2020): t = 4.18 on 783 df gives RV = 13.9%."""
    assert sensitivity.robustness_value(4.18445, 783) == pytest.approx(0.13878, abs=2e-4)
    assert sensitivity.robustness_value(0.0, 10) == 0.0


def test_e_values_as_published() -> None:
    """VanderWeele & Ding (2017): RR 3.9 gives 7.26, its lower limit 1.8 gives 3.0; a protective .80 gives 1.81."""
    assert sensitivity.e_value(3.9) == pytest.approx(7.26, abs=0.005)
    assert sensitivity.e_value(1.8) == pytest.approx(3.0, abs=0.005)
    assert sensitivity.e_value(0.8) == pytest.approx(1.81, abs=0.005)
    assert sensitivity.e_value(1.0) == 1.0


def test_classical_t_is_that_of_ols() -> None:
    rng = np.random.default_rng(0)
    s, k, y = rng.integers(0, 4, 300), rng.integers(0, 3, 300), rng.random(300)
    n = np.array([[((s == i) & (k == j)).sum() for j in range(3)] for i in range(4)], float)
    b = np.array([[y[(s == i) & (k == j)].sum() for j in range(3)] for i in range(4)])
    fit = sm.OLS(y, np.column_stack([(k == 1).astype(float), np.eye(4)[s]])).fit()
    found = sensitivity.ols_t(n, b, float(y @ y), 1)
    assert found is not None
    assert found[0] == pytest.approx(fit.tvalues[0])
    assert found[1] == fit.df_resid


def test_gamma_solves_the_extended_hypergeometric_test() -> None:
    """At the reported Gamma the one-sided p, from SciPy's noncentral hypergeometric moments, is 5%."""
    n = np.array([[40.0, 60.0], [30.0, 20.0]])
    b = np.array([[30.0, 30.0], [20.0, 7.0]])
    gamma = sensitivity.rosenbaum_gamma(n, b, 0)
    assert gamma is not None
    assert gamma > 1
    mean = var = 0.0
    for (n0, n1), (b0, b1) in zip(n, b, strict=True):
        dist = nchypergeom_fisher(int(n0 + n1), int(b0 + b1), int(n0), gamma)
        mean, var = mean + dist.mean(), var + dist.var()
    z = (50 - mean - 0.5) / math.sqrt(var)
    assert z == pytest.approx(1.645, abs=0.002)


def test_gamma_is_one_without_an_effect_and_near_fisher_with_one() -> None:
    assert sensitivity.rosenbaum_gamma(np.array([[20.0, 20.0]]), np.array([[10.0, 10.0]]), 0) == 1.0
    assert sensitivity.rosenbaum_gamma(np.array([[20.0, 20.0]]), np.array([[0.0, 0.0]]), 0) is None
    tables = sensitivity._tables(np.array([[40.0, 40.0]]), np.array([[28.0, 15.0]]), 0)
    ours = sensitivity._p_at(tables, 28.0, 0.0, True)
    assert ours == pytest.approx(fisher_exact([[28, 12], [15, 25]], alternative="greater").pvalue, rel=0.15)


def _net_benefit_by_pairs(frame: pl.DataFrame, m: str) -> float:
    total = 0.0
    arms = sorted(frame["arm"].unique().to_list())
    for _kind, part in frame.group_by("task_type"):
        mine = part.filter(pl.col("arm") == m)["outcome"].to_list()
        inner = 0.0
        for other in arms:
            theirs = part.filter(pl.col("arm") == other)["outcome"].to_list()
            wins = sum((a > b) - (a < b) for a, b in itertools.product(mine, theirs))
            inner += wins / len(mine) / len(theirs) / len(arms)
        total += part.height / frame.height * inner
    return total


def test_net_benefit_counts_pairs(table: Callable[..., pl.DataFrame]) -> None:
    frame = table(240, graded=True, users=24, effect=0.2).with_columns(difficulty=pl.lit("easy"))
    found = rank(frame, outcome="outcome", draws=999, by=())
    for row in found.models:
        assert row.net_benefit is not None
        assert row.net_benefit.value == pytest.approx(_net_benefit_by_pairs(frame, row.model))
        assert row.net_benefit.low < row.net_benefit.value < row.net_benefit.high  # type: ignore[operator]


def test_net_benefit_of_a_binary_outcome_is_tau_and_so_is_its_error(table: Callable[..., pl.DataFrame]) -> None:
    from seatrial.causal import effect, prepare
    from seatrial.causal.uncertainty import contrasts, net_coefficients

    frame = table(600, effect=0.1).with_columns(_y=pl.col("outcome"))
    a = effect.stratified(prepare.sample(prepare.complete(frame)), observational=False)
    assert a is not None
    q = np.array([0.2, 0.3, 0.5])
    each = contrasts(a.moments, net_coefficients(q))
    found = sensitivity.net_benefit(a, q, level=0.95, refused=None, df=each.df)
    for m, estimate in enumerate(found):
        assert estimate is not None
        assert estimate.value == pytest.approx(each.value[m])
        assert estimate.se == pytest.approx(each.se_cr1[m])


def test_many_levels_take_the_sorting_path_to_the_same_answer() -> None:
    rng = np.random.default_rng(2)
    code, arm, y = rng.integers(0, 3, 200), rng.integers(0, 2, 200), rng.integers(0, 9, 200) / 8
    n = np.array([[((code == i) & (arm == j)).sum() for j in range(2)] for i in range(3)], float)
    direct = np.array(
        [[(y[(code == c) & (arm == j)] < v).mean() - (y[(code == c) & (arm == j)] > v).mean() for j in range(2)]
         for c, v in zip(code, y, strict=True)]
    )  # fmt: skip
    assert sensitivity._superiority(code, arm, y, n) == pytest.approx(direct)
    saved = sensitivity.LEVEL_CELLS
    try:
        sensitivity.LEVEL_CELLS = 0
        assert sensitivity._superiority(code, arm, y, n) == pytest.approx(direct)
    finally:
        sensitivity.LEVEL_CELLS = saved
