"""Shift between windows, against formulas by hand, scipy, and populations that do or do not move."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats
from sklearn.metrics import roc_auc_score

from seatrial.errors import UsageError
from seatrial.stats.shift import _areas, classifier_test, population_stability, stability_test, window_difference


def test_the_index_is_the_sum_by_hand() -> None:
    a, b = np.array([10.5, 20.5, 0.5]), np.array([15.5, 10.5, 5.5])
    p, q = a / a.sum(), b / b.sum()
    assert population_stability([10, 20, 0], [15, 10, 5]) == pytest.approx(float(((p - q) * np.log(p / q)).sum()))
    assert population_stability([3, 3], [3, 3]) == 0.0
    # A bin that nobody is in says nothing.
    assert population_stability([3, 0, 5], [4, 0, 4]) == population_stability([3, 5], [4, 4])


@pytest.mark.parametrize(("a", "b"), [([1], [1, 2]), ([], []), ([-1, 2], [1, 1]), ([0, 0], [1, 1])])
def test_windows_that_cannot_be_compared_are_refused(a: list[float], b: list[float]) -> None:
    with pytest.raises(UsageError):
        population_stability(a, b)


def test_areas_are_those_of_another_library() -> None:
    rng = np.random.default_rng(0)
    scores, labels = np.round(rng.normal(size=(3, 60)), 1), (rng.random((3, 60)) < 0.4).astype(float)
    expected = [roc_auc_score(y, s) for s, y in zip(scores, labels, strict=True)]
    assert _areas(scores, labels) == pytest.approx(expected)


def test_one_session_a_cluster_is_the_test_of_welch_up_to_its_degrees_of_freedom() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(0, 1, 40), rng.normal(0.3, 2, 60)
    found = window_difference(np.r_[a, b], np.r_[np.zeros(40), np.ones(60)], np.arange(100))
    welch = scipy_stats.ttest_ind(b, a, equal_var=False)
    assert found.estimate.value == pytest.approx(b.mean() - a.mean())
    assert found.estimate.se == pytest.approx((b.mean() - a.mean()) / welch.statistic, rel=0.02)
    assert found.p_value == pytest.approx(welch.pvalue, rel=0.1)


def test_a_user_in_both_windows_is_one_cluster() -> None:
    """The same people before and after, each with a level of their own: the change is known far better than by
    independent samples."""
    rng = np.random.default_rng(2)
    person = rng.normal(0, 5, 50)
    values = np.r_[person, person + 0.5 + rng.normal(0, 0.1, 50)]
    later, who = np.r_[np.zeros(50), np.ones(50)], np.r_[np.arange(50), np.arange(50)]
    paired = window_difference(values, later, who).estimate
    alone = window_difference(values, later, np.arange(100)).estimate
    assert paired.se is not None
    assert alone.se is not None
    assert paired.se < 0.05 < alone.se
    assert paired.se == pytest.approx(np.diff(values.reshape(2, 50), axis=0).std(ddof=1) / math.sqrt(50), rel=0.05)


def test_few_clusters_give_no_interval_and_say_so() -> None:
    found = window_difference([0, 1, 1, 0, 1, 1], [0, 0, 0, 1, 1, 1], ["a", "a", "b", "c", "d", "d"])
    assert (found.estimate.low, found.p_value) == (None, None)
    assert found.estimate.why is not None


def _world(rng: np.random.Generator, moved: float, both: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Users with tastes of their own over three bins, uneven in size; half of them (or all) in both windows."""
    bins, later, users = [], [], []
    for user in range(40):
        taste = rng.dirichlet([1.0, 1.0, 1.0])
        for window in (0, 1):
            if not both and window != user % 2:
                continue
            p = taste * (1 + moved * window * np.array([1.0, 0.0, 0.0]))
            n = int(rng.integers(1, 12))
            bins.append(rng.choice(3, n, p=p / p.sum()))
            later.append(np.full(n, window))
            users.append(np.full(n, user))
    return np.concatenate(bins), np.concatenate(later), np.concatenate(users)


@pytest.mark.parametrize("both", [False, True])
def test_the_permutation_keeps_its_level_when_users_cluster(both: bool) -> None:
    rng = np.random.default_rng(3)
    p_values, naive = [], []
    for i in range(200):
        bins, later, users = _world(rng, 0.0, both)
        p_values.append(stability_test(bins, later, users, draws=199, seed=i).p_value)
        naive.append(stability_test(bins, later, np.arange(bins.size), draws=199, seed=i).p_value)
    assert np.mean(np.array(p_values) <= 0.05) <= 0.09
    if not both:
        assert np.mean(np.array(naive) <= 0.05) >= 0.2, "clusters matter here, so the test above can fail"


def test_a_moved_population_is_seen() -> None:
    rng = np.random.default_rng(4)
    bins, later, users = _world(rng, 6.0, True)
    assert stability_test(bins, later, users, draws=499).p_value <= 0.01
    features = np.eye(3)[bins]
    found = classifier_test(features, later, users, draws=199)
    assert found.value > 0.6
    assert found.p_value <= 0.02


def test_the_classifier_keeps_its_level_when_users_cluster() -> None:
    rng = np.random.default_rng(5)
    p_values = []
    for i in range(120):
        bins, later, users = _world(rng, 0.0, bool(i % 2))
        p_values.append(classifier_test(np.eye(3)[bins], later, users, draws=199, seed=i).p_value)
    assert np.mean(np.array(p_values) <= 0.05) <= 0.1


def test_the_difference_covers_in_both_kinds_of_windows() -> None:
    rng = np.random.default_rng(6)
    hit = []
    for i in range(400):
        values, later, users = [], [], []
        for user in range(30):
            level, change = rng.normal(0, 1), rng.normal(0.5, 0.3)
            for window in (0, 1) if i % 2 else (user % 2,):
                n = int(rng.integers(1, 8))
                values.append(level + change * window + rng.normal(0, 1, n))
                later.append(np.full(n, window))
                users.append(np.full(n, user))
        found = window_difference(np.concatenate(values), np.concatenate(later), np.concatenate(users)).estimate
        assert found.low is not None
        assert found.high is not None
        hit.append(found.low <= 0.5 <= found.high)
    assert 0.92 <= np.mean(hit) <= 0.985


def test_too_few_draws_or_clusters_are_refused() -> None:
    with pytest.raises(UsageError, match="at least 99"):
        stability_test([0, 1], [0, 1], [0, 1], draws=10)
    with pytest.raises(UsageError, match="folds"):
        classifier_test([[0.0], [1.0]], [0, 1], [0, 1], draws=99)
    with pytest.raises(UsageError, match="window is empty"):
        stability_test([0, 1], [1, 1], [0, 1], draws=99)
