from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats as reference
from statsmodels.stats.multitest import multipletests

from seatrial.errors import EvidenceError, UsageError
from seatrial.stats import holm, max_t_quantile, rank_intervals, romano_wolf


def test_holm_is_statsmodels() -> None:
    p = [0.04, 0.001, 0.03, 0.5, 0.03, 1.0]
    assert holm(p) == pytest.approx(multipletests(p, method="holm")[1], abs=1e-15)
    assert holm([]).size == 0
    with pytest.raises(UsageError):
        holm([1.2])


def test_one_contrast_is_students_t() -> None:
    assert max_t_quantile([[4.0]], 9) == pytest.approx(reference.t.ppf(0.975, 9), abs=0.02)
    assert max_t_quantile([[4.0]], math.inf, level=0.9) == pytest.approx(reference.norm.ppf(0.95), abs=0.02)


def test_independent_contrasts() -> None:
    exact = reference.norm.ppf((1 + 0.95 ** (1 / 5)) / 2)
    assert max_t_quantile(np.eye(5) * [1, 2, 3, 4, 5], math.inf) == pytest.approx(exact, abs=0.02)


def test_pairs_of_equal_means_are_tukeys_studentised_range() -> None:
    k, df = 4, 15
    first, second = np.triu_indices(k, 1)
    contrast = np.eye(k)[first] - np.eye(k)[second]
    exact = reference.studentized_range.ppf(0.95, k, df) / math.sqrt(2)
    assert max_t_quantile(contrast @ contrast.T, df) == pytest.approx(exact, abs=0.03)


def test_singular_covariance_of_contrasts_against_the_mean() -> None:
    contrast = np.eye(6) - 1 / 6
    c = max_t_quantile(contrast, math.inf)
    assert 1.96 < c < reference.norm.ppf(1 - 0.025 / 6) + 0.02


def test_zero_variances_are_left_out() -> None:
    assert max_t_quantile(np.diag([1.0, 0.0]), 9) == max_t_quantile([[1.0]], 9)
    with pytest.raises(EvidenceError):
        max_t_quantile(np.zeros((2, 2)), 9)


def test_quantile_refuses_what_is_no_covariance() -> None:
    for bad in ([[1.0, 2.0]], [[1.0, 0.5], [0.1, 1.0]], [[-1.0]], [[math.nan]]):
        with pytest.raises(UsageError):
            max_t_quantile(bad, 9)
    with pytest.raises(UsageError, match="999"):
        max_t_quantile([[1.0]], 9, draws=100)
    with pytest.raises(UsageError):
        max_t_quantile([[1.0]], 0)


def step_down_by_definition(t: np.ndarray, null: np.ndarray) -> list[float]:
    """Westfall & Young, one hypothesis at a time."""
    left, out, floor = list(range(t.size)), [0.0] * t.size, 0.0
    while left:
        top = max(left, key=lambda j: (abs(t[j]), -j))
        worst = np.abs(null[:, left]).max(axis=1)
        floor = max(floor, (1 + int((worst >= abs(t[top])).sum())) / (1 + null.shape[0]))
        out[top] = floor
        left.remove(top)
    return out


def test_romano_wolf_by_definition() -> None:
    rng = np.random.default_rng(1)
    null = rng.standard_normal((2000, 5)) @ np.linalg.cholesky(0.5 * np.eye(5) + 0.5).T
    t = np.array([0.3, -3.4, 2.5, 1.9, 2.45])
    assert romano_wolf(t, null) == pytest.approx(step_down_by_definition(t, null), abs=1e-15)
    with pytest.raises(UsageError):
        romano_wolf(t, null[:, :3])
    with pytest.raises(UsageError, match="999"):
        romano_wolf(t, null[:10])


def test_ranks_separate_what_is_separate() -> None:
    found = rank_intervals([0.1, 0.9, 0.5], np.eye(3) * 1e-6, 50)
    assert [(r.low, r.value, r.high) for r in found] == [(3, 3, 3), (1, 1, 1), (2, 2, 2)]


def test_ranks_admit_what_is_unknown() -> None:
    found = rank_intervals([0.1, 0.9, 0.5], np.eye(3) * 10, 50)
    assert [(r.low, r.value, r.high) for r in found] == [(1, 3, 3), (1, 1, 3), (1, 2, 3)]


def test_ranks_by_the_definition_with_a_known_critical_value() -> None:
    k, df = 4, 20
    estimates = np.array([0.0, 3.0, 3.2, 9.0])
    critical = reference.studentized_range.ppf(0.95, k, df)  # times SE/sqrt(2) of a difference with SE sqrt(2)
    found = rank_intervals(estimates, np.eye(k), df)
    for m in range(k):
        gap = estimates - estimates[m]
        assert found[m].low == 1 + int((gap > critical).sum())
        assert found[m].high == k - int((gap < -critical).sum())


def test_ties_and_differences_without_variance() -> None:
    tied = rank_intervals([1.0, 1.0, 0.0], np.zeros((3, 3)), 9)
    assert [(r.low, r.value, r.high) for r in tied] == [(1, 1, 3), (1, 1, 3), (1, 3, 3)]
    assert [(r.low, r.value, r.high) for r in rank_intervals([5.0], [[1.0]], 9)] == [(1, 1, 1)]
    with pytest.raises(UsageError):
        rank_intervals([1.0, 2.0], [[1.0]], 9)
