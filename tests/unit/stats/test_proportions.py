from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import stats as reference
from statsmodels.stats.proportion import proportion_confint

from seatrial.errors import UsageError
from seatrial.stats import (
    beta_posterior,
    clopper_pearson,
    clustered_proportion,
    consistency,
    pass_at_k,
    pass_hat_k,
    wilson,
)


@pytest.mark.parametrize(("k", "n"), [(0, 7), (1, 29), (14, 20), (20, 20), (500, 1003)])
@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_intervals_agree_with_statsmodels(k: int, n: int, level: float) -> None:
    for ours, name in ((wilson, "wilson"), (clopper_pearson, "beta")):
        e = ours(k, n, level)
        assert e is not None
        assert [e.low, e.high] == pytest.approx(proportion_confint(k, n, 1 - level, name), abs=1e-10)


def test_nothing_scored_is_not_a_share() -> None:
    assert wilson(0, 0) is None
    assert clopper_pearson(0, 0) is None
    with pytest.raises(UsageError):
        wilson(3, 2)
    with pytest.raises(UsageError, match="level"):
        wilson(1, 2, level=95)


def test_beta_posterior() -> None:
    e = beta_posterior(3, 10, 0.9, prior=(1, 1))
    assert [e.low, e.high] == pytest.approx(reference.beta(4, 8).interval(0.9), abs=1e-10)
    assert beta_posterior(0, 0).value == 0.5


def test_clustered_proportion_of_singletons_is_nearly_wilson() -> None:
    values = [1] * 30 + [0] * 70
    e, plain = clustered_proportion(values, range(100)), wilson(30, 100)
    assert e is not None
    assert plain is not None
    assert [e.low, e.high] == pytest.approx([plain.low, plain.high], abs=2e-3)


def test_identical_attempts_count_once() -> None:
    once = clustered_proportion([1, 0, 0, 1, 1, 0, 1, 0], range(8))
    tenfold = clustered_proportion(np.repeat([1, 0, 0, 1, 1, 0, 1, 0], 10), np.repeat(np.arange(8), 10))
    assert once is not None
    assert tenfold is not None
    assert [tenfold.low, tenfold.high] == pytest.approx([once.low, once.high], abs=1e-9)


def test_all_passes_use_the_number_of_clusters() -> None:
    e = clustered_proportion([1] * 25, np.repeat(np.arange(5), 5))
    assert e is not None
    t = reference.t.ppf(0.975, 4)
    assert [e.low, e.high] == pytest.approx([5 / (5 + t * t), 1.0], abs=1e-12)


def test_equal_shares_in_every_cluster_use_the_number_of_clusters() -> None:
    e = clustered_proportion([1, 0] * 6, np.repeat(np.arange(6), 2))
    t = reference.t.ppf(0.975, 5)
    assert e is not None
    assert e.low == pytest.approx((0.5 + t * t / 12 - t * np.sqrt(0.25 / 6 + t * t / 144)) / (1 + t * t / 6))


def test_clustered_proportion_edges() -> None:
    assert clustered_proportion([], []) is None
    one = clustered_proportion([1, 0, 1], ["a"] * 3)
    assert one is not None
    assert (one.low, one.high) == (None, None)
    with pytest.raises(UsageError, match="clustered_mean"):
        clustered_proportion([0.5], ["a"])


@pytest.mark.parametrize(("n", "c", "k"), [(6, 4, 3), (5, 0, 2), (7, 7, 7), (8, 5, 1), (6, 2, 3)])
def test_pass_by_listing_every_choice(n: int, c: int, k: int) -> None:
    runs = [1] * c + [0] * (n - c)
    picks = list(combinations(runs, k))
    assert pass_hat_k(n, c, k) == pytest.approx(sum(all(p) for p in picks) / len(picks), abs=1e-12)
    assert pass_at_k(n, c, k) == pytest.approx(sum(any(p) for p in picks) / len(picks), abs=1e-12)


def test_pass_of_many_attempts_does_not_overflow() -> None:
    assert pass_hat_k(100_000, 99_000, 500) == pytest.approx(0.99**500, rel=0.05)


def test_tasks_with_too_few_attempts_are_left_out_and_counted() -> None:
    e = pass_hat_k([4, 4, 3, 4], [4, 2, 3, 0], 4)
    assert e is not None
    assert (e.value, e.n) == (pytest.approx(1 / 3), 3)
    assert "1 task with fewer than 4 attempts left out" in e.method
    assert pass_hat_k([1, 2], [1, 2], 4) is None


def test_all_equal_tasks_use_clopper_pearson_on_tasks() -> None:
    e, cp = pass_hat_k([5] * 12, [5] * 12, 5), clopper_pearson(12, 12)
    assert e is not None
    assert cp is not None
    assert [e.low, e.high] == pytest.approx([cp.low, cp.high], abs=1e-12)


def test_one_task_has_no_interval() -> None:
    e = pass_hat_k([5], [4], 1)
    assert e is not None
    assert (e.value, e.low) == (pytest.approx(0.8), None)


def test_pass_refuses_nonsense() -> None:
    for n, c, k in ((4, 5, 1), (4, 2, 0), (4, -1, 1)):
        with pytest.raises(UsageError):
            pass_hat_k(n, c, k)
    with pytest.raises(UsageError):
        pass_at_k([4.5], [1], 1)


def test_consistency_is_unbiased() -> None:
    for p in (0.1, 0.5, 0.8):
        mean = sum(reference.binom.pmf(c, 6, p) * consistency(c, 6) for c in range(7))
        assert mean == pytest.approx(1 - 4 * p * (1 - p), abs=1e-12)
    with pytest.raises(UsageError):
        consistency(1, 1)
