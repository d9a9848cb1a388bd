from __future__ import annotations

import numpy as np
import pytest
from scipy import stats as reference

from seatrial.errors import EvidenceError, UsageError
from seatrial.stats import (
    bootstrap_interval,
    interaction,
    mcnemar_exact,
    paired_mean,
    permutation_test,
    sign_flip_interval,
    sign_flip_test,
)


def test_two_groups_agree_with_scipy() -> None:
    a, b = [1.2, 3.4, 0.7, 2.2, 5.1], [0.3, 0.9, 1.1, 2.0]
    exact = reference.permutation_test(
        (a, b), lambda x, y: np.abs(np.mean(x) - np.mean(y)), alternative="greater", n_resamples=np.inf
    )
    ours = permutation_test(a, b)
    assert ours.exact
    assert ours.p_value == pytest.approx(exact.pvalue, abs=1e-12)


def test_own_statistic_and_default_agree() -> None:
    a, b = [1.0, 4.0, 2.0], [0.0, 5.0, 2.0, 1.0]
    given = permutation_test(a, b, statistic=lambda x, y: float(x.mean() - y.mean()))
    assert given.p_value == permutation_test(a, b).p_value


def test_monte_carlo_approaches_a_t_test_and_repeats() -> None:
    rng = np.random.default_rng(2)
    a, b = rng.normal(0.35, 1, 60), rng.normal(0, 1, 60)
    one, two = permutation_test(a, b, seed=4), permutation_test(a, b, seed=4)
    assert one == two
    assert not one.exact
    assert one.p_value == (1 + one.extreme) / (1 + one.total)
    assert one.p_value == pytest.approx(reference.ttest_ind(a, b).pvalue, abs=0.02)


def test_few_draws_are_refused_only_where_they_are_needed() -> None:
    assert permutation_test([1.0, 2.0], [3.0], draws=1).exact
    with pytest.raises(UsageError, match="999"):
        permutation_test(np.arange(40), np.arange(40), draws=998)
    with pytest.raises(UsageError, match="999"):
        sign_flip_test(np.arange(1, 40), draws=998)
    with pytest.raises(UsageError, match="seed"):
        sign_flip_test(np.arange(1, 40), seed=-1)


def test_nothing_to_test_is_an_error_with_a_name() -> None:
    with pytest.raises(EvidenceError):
        permutation_test([], [1.0])
    with pytest.raises(EvidenceError):
        sign_flip_test([])


def test_floating_ties_count() -> None:
    """0.1 + 0.2 and 0.3 differ in the last bit; the assignments tie all the same."""
    result = sign_flip_test([0.1, 0.2, 0.3, -0.6])
    assert (result.extreme, result.total) == (16, 16)


def test_sign_flips_agree_with_scipy_and_drop_zeros() -> None:
    d = np.array([1.5, -0.4, 2.2, 0.9, 3.0, -1.1, 0.6])
    exact = reference.permutation_test(
        (d,), lambda x: abs(x.mean()), permutation_type="samples", alternative="greater", n_resamples=np.inf
    )
    ours = sign_flip_test(d)
    assert ours.p_value == pytest.approx(exact.pvalue, abs=1e-12)
    assert sign_flip_test(np.append(d, [0.0] * 30)).p_value == ours.p_value
    assert sign_flip_test([0.0, 0.0]).p_value == 1.0


def test_random_flips_approach_the_exact_answer() -> None:
    d = np.random.default_rng(0).normal(0.4, 1, 20)
    exact = sign_flip_test(d)
    padded = sign_flip_test(np.append(d, [1e-9]), draws=40_000)
    assert not padded.exact
    assert padded.p_value == pytest.approx(exact.p_value, abs=4 * np.sqrt(exact.p_value / 40_000))


@pytest.mark.parametrize("n", [6, 9, 12])
def test_inverted_interval_is_the_set_of_shifts_not_rejected(n: int) -> None:
    d = np.random.default_rng(n).normal(1, 2, n)
    e = sign_flip_interval(d, level=0.9)
    assert e.low is not None
    assert e.high is not None
    for shift in np.linspace(e.low - 1, e.high + 1, 41):
        inside = e.low <= shift <= e.high
        assert (sign_flip_test(d - shift).p_value > 0.1 + 1e-12) == inside


def test_random_subsets_approach_the_exact_interval() -> None:
    d = np.random.default_rng(1).normal(1, 2, 20)
    exact, random = sign_flip_interval(d), sign_flip_interval(np.append(d, d.mean()), draws=40_000)
    assert [random.low, random.high] == pytest.approx([exact.low, exact.high], abs=0.1)


def test_too_few_pairs_have_no_interval() -> None:
    e = sign_flip_interval([1.0, 2.0, 3.0])
    assert (e.low, e.high) == (None, None)
    assert e.why == "3 pairs are too few for a 95% sign-flip interval"


def test_bootstrap_agrees_with_scipy() -> None:
    x = np.random.default_rng(0).exponential(size=40)
    theirs = reference.bootstrap((x,), np.mean, method="percentile", n_resamples=20_000, rng=1).confidence_interval
    ours = bootstrap_interval(x, draws=20_000)
    assert [ours.low, ours.high] == pytest.approx([theirs.low, theirs.high], abs=0.02)


def test_bootstrap_draws_whole_clusters() -> None:
    x = np.random.default_rng(0).normal(size=30)
    single, tenfold = bootstrap_interval(x), bootstrap_interval(np.repeat(x, 10), np.repeat(np.arange(30), 10))
    assert [tenfold.low, tenfold.high] == pytest.approx([single.low, single.high], abs=1e-9)
    assert bootstrap_interval([1.0, 2.0], ["a", "a"]).low is None


@pytest.mark.parametrize(("b", "c"), [(11, 2), (0, 6), (5, 5), (0, 0), (1, 30)])
def test_mcnemar_is_a_binomial_test(b: int, c: int) -> None:
    expect = reference.binomtest(b, b + c).pvalue if b + c else 1.0
    assert mcnemar_exact(b, c).p_value == pytest.approx(expect, abs=1e-12)


def test_paired_mean_is_the_paired_t() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=20), rng.normal(0.3, 1, 20)
    e = paired_mean(a, b)
    ci = reference.ttest_rel(b, a).confidence_interval()
    assert e is not None
    assert [e.low, e.high] == pytest.approx([ci.low, ci.high], abs=1e-10)


def test_paired_mean_averages_inside_tasks_first() -> None:
    e = paired_mean([0, 0, 0, 0, 0], [1, 1, 1, 0, 0], ["t1", "t1", "t1", "t2", "t3"])
    assert e is not None
    assert (e.value, e.n, e.n_clusters) == (pytest.approx(1 / 3), 5, 3)


def test_paired_edges() -> None:
    none = paired_mean([1, 0, 1], [1, 0, 1])
    assert none is not None
    assert none.high == pytest.approx(1 - 0.025 ** (1 / 3))
    assert paired_mean([], []) is None
    graded = paired_mean([0.1, 0.2], [0.3, 0.4])
    assert graded is not None
    assert (graded.low, graded.high) == (None, None)


def test_interaction_is_a_difference_of_differences() -> None:
    rng = np.random.default_rng(0)
    w, x, y, z = rng.normal(size=(4, 25))
    e = interaction(w, x, y, z)
    assert e is not None
    assert e.value == pytest.approx((z - y - x + w).mean())
    assert e.se == pytest.approx(reference.sem(z - y - x + w))
