"""Exact and Hoeffding-Bentkus bounds on harm, and the fixed sequence that certifies."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from seatrial.errors import UsageError
from seatrial.recovery.bounds import effect_estimate, harm_upper, p_at_most
from seatrial.recovery.certify import fixed_sequence, needed, split_size
from seatrial.stats import bootstrap_interval


def test_tasks_needed_without_harm() -> None:
    assert [needed(limit) for limit in (0.01, 0.02, 0.05)] == [299, 149, 59]


@pytest.mark.parametrize(("harms", "n"), [(0, 149), (1, 149), (3, 60)])
def test_whole_harms_have_the_binomial_p(harms: int, n: int) -> None:
    values = np.repeat([1.0, 0.0], [harms, n - harms])
    assert p_at_most(0.02, values) == pytest.approx(stats.binom.cdf(harms, n, 0.02), rel=1e-12)
    assert harm_upper(values) == pytest.approx(stats.beta.ppf(0.95, harms + 1, n - harms), rel=1e-9)


def test_shares_have_the_hoeffding_bentkus_p() -> None:
    values = np.array([0.2] * 3 + [0.0] * 197)
    mean, limit, n = values.mean(), 0.05, 200
    h = mean * math.log(mean / limit) + (1 - mean) * math.log((1 - mean) / (1 - limit))
    expected = min(math.exp(-n * h), math.e * stats.binom.cdf(math.ceil(0.6 - 1e-9), n, limit))
    assert p_at_most(limit, values) == pytest.approx(expected, rel=1e-9)
    upper = harm_upper(values)
    assert p_at_most(upper, values) == pytest.approx(0.05, abs=1e-6)
    assert mean < upper < 1


def test_hoeffding_bentkus_is_valid() -> None:
    """At the limit itself a level-5% test rejects at most 5% of samples, whatever the distribution."""
    rng = np.random.default_rng(1)
    for draw in (lambda: rng.binomial(5, 0.05, 120) / 5, lambda: rng.beta(0.1, 1.9, 120)):
        rejected = np.mean([p_at_most(0.05, np.asarray(draw(), dtype=float)) <= 0.05 for _ in range(2000)])
        assert rejected <= 0.05 + 2.6 * math.sqrt(0.05 * 0.95 / 2000)


def test_sequence_stops_at_the_first_failure() -> None:
    none, one = np.zeros(150), np.eye(1, 150)[0]
    seen = fixed_sequence([none, none, one, none], limit=0.02)
    assert seen.certified == 2
    assert len(seen.p_values) == 3
    assert fixed_sequence([np.zeros(148)], limit=0.02).certified == 0
    assert fixed_sequence([np.zeros(149)], limit=0.02).certified == 1
    assert fixed_sequence([], limit=0.02).certified == 0


def test_split_takes_what_certification_needs() -> None:
    assert split_size(220) == 149
    assert split_size(400) == 236
    assert split_size(100) == 50
    assert split_size(100, limit=0.05) == 59


def test_arguments_are_checked() -> None:
    with pytest.raises(UsageError):
        p_at_most(0.0, np.zeros(3))
    with pytest.raises(UsageError):
        p_at_most(0.1, np.array([2.0]))
    with pytest.raises(UsageError):
        fixed_sequence([np.zeros(3)], confidence=1.0)


def test_shared_draws_are_the_percentile_bootstrap() -> None:
    values = np.random.default_rng(2).choice([-1.0, 0.0, 1.0], 80, p=[0.1, 0.6, 0.3])
    mine, reference = effect_estimate(values, discordant=True), bootstrap_interval(values, draws=10_000)
    assert mine.value == pytest.approx(reference.value)
    assert [mine.low, mine.high] == pytest.approx([reference.low, reference.high], abs=1.5 / 80)
    flat = effect_estimate(np.ones(5), discordant=True)
    assert (flat.low, flat.high) == (None, None)
    assert flat.why is not None
