from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import stats as reference

from seatrial.errors import UsageError
from seatrial.stats import cluster_se, clustered_mean, crossed_se, effective_number, ratio_estimate


def sample(seed: int = 0, n: int = 300, groups: int = 23) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    g = rng.integers(0, groups, n)
    return np.clip(rng.normal(0.5, 0.1, groups)[g] + rng.normal(0, 0.1, n), 0, 1), g


def test_cluster_se_is_statsmodels_intercept_only() -> None:
    y, g = sample()
    fit = sm.OLS(y, np.ones(y.size)).fit(cov_type="cluster", cov_kwds={"groups": g, "use_correction": False})
    n_groups = np.unique(g).size
    assert cluster_se(y, g) == pytest.approx(fit.bse[0] * np.sqrt(n_groups / (n_groups - 1)), rel=1e-10)


def test_singletons_give_the_ordinary_standard_error() -> None:
    y, _ = sample()
    assert cluster_se(y, np.arange(y.size)) == pytest.approx(y.std(ddof=1) / np.sqrt(y.size), rel=1e-12)


def test_interval_is_t_with_one_degree_less_than_clusters() -> None:
    y, g = sample()
    e = clustered_mean(y, g)
    assert e is not None
    assert e.se is not None
    half = reference.t.ppf(0.975, np.unique(g).size - 1) * e.se
    assert [e.low, e.high] == pytest.approx([y.mean() - half, y.mean() + half], rel=1e-10)
    assert (e.n, e.n_clusters) == (300, 23)


@pytest.mark.parametrize(("value", "low", "high"), [(1.0, 0.025 ** (1 / 4), 1.0), (0.0, 0.0, 1 - 0.025 ** (1 / 4))])
def test_all_alike_keeps_a_width(value: float, low: float, high: float) -> None:
    e = clustered_mean([value] * 8, [1, 1, 2, 2, 3, 3, 4, 4])
    assert e is not None
    assert [e.low, e.high] == pytest.approx([low, high], abs=1e-12)


def test_alike_in_the_middle_keeps_a_width_too() -> None:
    e = clustered_mean([0.1] * 6, [1, 2, 3, 4, 5, 6])
    assert e is not None
    assert e.low is not None
    assert e.high is not None
    assert 0 < e.low < 0.1 < e.high < 1


def test_one_cluster_has_no_interval_and_says_why() -> None:
    e = clustered_mean([0.2, 0.4], ["a", "a"])
    assert e is not None
    assert (e.low, e.high, e.se) == (None, None, None)
    assert e.why == "one cluster: its spread cannot be estimated"


def test_unbounded_without_variation_has_no_interval() -> None:
    e = clustered_mean([7.0, 7.0], ["a", "b"], bounded=False)
    assert e is not None
    assert (e.value, e.low) == (7.0, None)
    assert e.why is not None


def test_nothing_is_none_and_nan_is_refused() -> None:
    assert clustered_mean([], []) is None
    assert cluster_se([1.0], ["a"]) is None
    with pytest.raises(UsageError, match="1 of 2 values are NaN"):
        clustered_mean([1.0, float("nan")], [1, 2])
    with pytest.raises(UsageError, match="different length"):
        clustered_mean([1.0, 0.0], [1])
    with pytest.raises(UsageError, match="bounded=False"):
        clustered_mean([1.0, 2.0], [1, 2])


def test_ratio_by_the_delta_method() -> None:
    rng = np.random.default_rng(3)
    g = np.repeat(np.arange(30), 4)
    den = rng.integers(1, 9, 120)
    num = rng.binomial(den, 0.7)
    e = ratio_estimate(num, den, g)
    assert e is not None
    a, b = np.bincount(g, num), np.bincount(g, den)
    gradient = np.array([1 / b.mean(), -a.mean() / b.mean() ** 2])
    delta = np.sqrt(gradient @ np.cov(a, b) @ gradient / 30)
    assert e.value == pytest.approx(num.sum() / den.sum())
    assert e.se == pytest.approx(delta, rel=1e-10)


def test_ratio_ignores_rows_that_carry_nothing() -> None:
    with_empty = ratio_estimate([1, 0, 2, 0], [2, 0, 3, 1], ["a", "z", "b", "c"])
    without = ratio_estimate([1, 2, 0], [2, 3, 1], ["a", "b", "c"])
    assert with_empty == without
    assert ratio_estimate([0], [0], ["a"]) is None
    with pytest.raises(UsageError, match="over a denominator of 0"):
        ratio_estimate([1], [0], ["a"])


def test_ratio_of_all_successes_keeps_a_width() -> None:
    e = ratio_estimate([3, 4, 5], [3, 4, 5], ["a", "b", "c"])
    assert e is not None
    assert [e.low, e.high] == pytest.approx([0.025 ** (1 / 3), 1.0], abs=1e-12)


def test_effective_number() -> None:
    assert effective_number([1, 1, 1, 1]) == pytest.approx(4)
    assert effective_number([0.97, 0.01, 0.01, 0.01]) == pytest.approx(1 / (0.97**2 + 3e-4))
    with pytest.raises(UsageError):
        effective_number([0.0, 0.0])


def test_crossed_errors() -> None:
    rng = np.random.default_rng(5)
    a, b = np.repeat(np.arange(20), 15), np.tile(np.arange(15), 20)
    y = rng.normal(size=20)[a] + rng.normal(size=15)[b] + rng.normal(size=300)
    larger, cgm = crossed_se(y, a, b), crossed_se(y, a, b, method="cgm")
    assert larger == max(cluster_se(y, a) or 0, cluster_se(y, b) or 0)
    cells = cluster_se(y, np.arange(300))
    assert cgm is not None
    assert cells is not None
    assert cgm**2 == pytest.approx((cluster_se(y, a) or 0) ** 2 + (cluster_se(y, b) or 0) ** 2 - cells**2)
    assert crossed_se([1.0, 2.0], [1, 1], [1, 2]) is None
