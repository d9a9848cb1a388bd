"""Power, looks, sample ratio, and the door of the room."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from scipy import stats as reference
from statsmodels.stats.power import NormalIndPower

from seatrial import stats
from seatrial.errors import EvidenceError, UsageError
from seatrial.stats import (
    attempts_needed,
    clustered_sample_size,
    confidence_sequence,
    mde,
    mixture_bound,
    point_rule_false_alarm,
    rho_for,
    sample_ratio_test,
    sample_size,
)


def test_importing_the_room_loads_no_numerical_library() -> None:
    code = "import sys, seatrial.stats; print(sorted({'numpy', 'scipy', 'numba'} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_every_promised_name_exists_and_is_documented() -> None:
    for name in stats.__all__:
        assert getattr(stats, name).__doc__, name
    assert dir(stats) == sorted(stats.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        stats.nothing  # noqa: B018


def test_sample_size_of_two_means_is_statsmodels() -> None:
    n = NormalIndPower().solve_power(effect_size=0.25, alpha=0.05, power=0.8)
    assert sample_size(0.25, 0.0, 1.0) == int(np.ceil(n))


def test_one_sided_mde_is_the_gates() -> None:
    assert mde(0.02, two_sided=False) == pytest.approx(0.02 * (1.644853627 + 0.841621234), rel=1e-8)
    with pytest.raises(UsageError):
        mde(-1.0)


@pytest.mark.parametrize("omega2", [0.0006, 0.0018, 0.003])
def test_attempts_needed_is_the_least(omega2: float) -> None:
    z = reference.norm.ppf(0.95) + reference.norm.ppf(0.8)
    delta, tasks, s2, k_a = 0.05, 40, 0.1, 8
    k = attempts_needed(delta, omega2, s2, k_a, s2, tasks)
    assert k is not None
    assert z**2 * (omega2 + s2 / k_a + s2 / k) / tasks <= delta**2
    assert z**2 * (omega2 + s2 / k_a + s2 / (k - 1)) / tasks > delta**2
    assert attempts_needed(0.02, 0.05, s2, k_a, s2, tasks) is None
    assert attempts_needed(0.02, 0.0, 0.0, 1, 0.0, 10) == 1
    with pytest.raises(UsageError):
        attempts_needed(0.0, 0.1, 0.1, 1, 0.1, 10)


def test_design_effect() -> None:
    alone = clustered_sample_size(0.02, 0.25, 1.0, 0.3)
    assert alone == sample_size(0.02, 0.0, 0.25)
    assert clustered_sample_size(0.02, 0.25, 11.0, 0.1) == pytest.approx(2 * alone, abs=1)
    assert clustered_sample_size(0.02, 0.25, 1.0, 0.3, share=0.05) < alone


def test_point_rule_by_simulation() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.binomial(50, 0.7, (2, 200_000))
    assert point_rule_false_alarm(50, 0.7, 0.04) == pytest.approx((a - b > 2).mean(), abs=0.004)
    assert point_rule_false_alarm(50, 0.7, 0.04, strict=False) == pytest.approx((a - b >= 2).mean(), abs=0.004)
    assert point_rule_false_alarm(50, 1.0, 0.04) == 0.0
    with pytest.raises(UsageError):
        point_rule_false_alarm(0, 0.5, 0.1)


def test_sequence_is_tightest_at_its_target() -> None:
    rho = rho_for(400.0)
    best = mixture_bound(400.0, rho)
    assert all(mixture_bound(400.0, rho * x) > best - 1e-2 for x in (0.5, 0.8, 1.25, 2.0))
    assert confidence_sequence(0.05, rho) > reference.norm.ppf(0.975) * 0.05
    for bad in (lambda: rho_for(0.0), lambda: confidence_sequence(0.0, 1.0), lambda: rho_for(1.0, 2.0)):
        with pytest.raises(UsageError):
            bad()


def test_sample_ratio_over_strata_is_scipys_sum() -> None:
    counts, shares = np.array([[60, 40, 55], [30, 18, 22]]), np.array([[0.4, 0.3, 0.3], [0.5, 0.25, 0.25]])
    chi2, p = sample_ratio_test(counts, shares)
    parts = [reference.chisquare(c, s * c.sum()) for c, s in zip(counts, shares, strict=True)]
    assert chi2 == pytest.approx(sum(x.statistic for x in parts), rel=1e-12)
    assert p == pytest.approx(reference.chi2.sf(chi2, 4), rel=1e-12)


def test_small_expected_counts_are_simulated() -> None:
    chi2, p = sample_ratio_test([[4, 0]], [[0.5, 0.5]], draws=20_000)
    assert chi2 == pytest.approx(4.0)
    assert p == pytest.approx(2 / 16, abs=0.01)


def test_a_unit_in_a_forbidden_arm_breaks_the_plan() -> None:
    assert sample_ratio_test([[10, 10, 1]], [[0.5, 0.5, 0.0]])[1] == 0.0
    assert sample_ratio_test([[10, 10, 0], [0, 0, 0]], [[0.5, 0.5, 0.0], [0.2, 0.4, 0.4]])[1] == pytest.approx(1.0)
    with pytest.raises(EvidenceError):
        sample_ratio_test([[5, 0]], [[1.0, 0.0]])
    with pytest.raises(UsageError, match="sum to 1"):
        sample_ratio_test([[5, 5]], [[0.5, 0.6]])
