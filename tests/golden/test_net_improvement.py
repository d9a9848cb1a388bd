"""METHODS 3's worked numbers."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seatrial.causal import balance, cells
from seatrial.causal.uncertainty import contrasts, net_coefficients
from seatrial.causal.variance import neyman_variance


@pytest.fixture(scope="module")
def vectors() -> dict[str, Any]:
    path = Path(__file__).parent / "net_improvement.json"
    return json.loads(path.read_text(encoding="utf-8"))


def test_hajek_with_uniform_baseline(vectors: dict[str, Any]) -> None:
    case = vectors["hajek_uniform_baseline"]
    names = sorted(case["outcomes"])
    y = np.concatenate([case["outcomes"][m] for m in names]).astype(float)
    arm = np.repeat([0, 1], [len(case["outcomes"][m]) for m in names])
    weight = 1.0 / np.array([case["assignment_probability"][m] for m in names])[arm]
    rows = np.arange(y.size)
    moments = cells.moments(cells.build(rows, np.zeros_like(rows), arm, y, weight=weight))
    each = contrasts(moments, net_coefficients(np.array([case["baseline"][m] for m in names])))
    expect = case["expect"]
    assert dict(zip(names, moments.mean, strict=True)) == pytest.approx(expect["mu"])
    assert moments.mean.mean() == pytest.approx(expect["mu_baseline"])
    assert dict(zip(names, each.value, strict=True)) == pytest.approx(expect["tau"])
    assert y.mean() == pytest.approx(expect["traffic_weighted_mean_is_wrong_baseline"])
    g = y.size
    plain = each.se_cr1[0] * math.sqrt((g - 1) / g)
    assert plain == pytest.approx(expect["se_linearised_no_small_sample_factor"], abs=1e-9)
    assert each.se_cr1[0] == pytest.approx(expect["se_with_G_over_G_minus_1"], abs=1e-9)
    assert each.se[0] == pytest.approx(expect["se_cr3"], abs=1e-9)
    assert each.se_cr1[0] != pytest.approx(expect["pooled_baseline_form_se_not_ours"], abs=1e-4)


def test_headline_is_the_equal_weight_mean_of_signals(vectors: dict[str, Any]) -> None:
    """The contrast of mean outcomes is the mean of the contrasts: one board for the mean of the five signals."""
    case = vectors["headline_is_equal_weight_mean_of_signals"]
    tau = np.array(case["tau_by_signal_pp"]) / 100
    # Two models whose five signals differ by exactly these contrasts from their average.
    five = np.stack([0.5 + tau, 0.5 - tau])
    arm = np.repeat([0, 1], 4)
    rows = np.arange(8)
    y = five.mean(axis=1)[arm]
    moments = cells.moments(cells.build(rows, np.zeros_like(rows), arm, y))
    each = contrasts(moments, net_coefficients(np.array([0.5, 0.5])))
    assert 100 * each.value[0] == pytest.approx(case["expect_pp"], abs=1e-9)
    assert round(100 * float(each.value[0]), 2) == case["published_pp"]


def test_permuted_effects_average_to_zero_and_are_not_the_estimate(vectors: dict[str, Any]) -> None:
    case = vectors["permuted_effects_average_to_zero"]
    y = np.array(case["y"], dtype=float)
    arm = np.array([0 if a == "a" else 1 for a in case["arm"]])
    rows = np.arange(y.size)

    def difference(labels: np.ndarray) -> float:
        moments = cells.moments(cells.build(rows, np.zeros_like(rows), labels, y))
        return float(contrasts(moments, np.array([[1.0, -1.0]])).value[0])

    relabelled = []
    for chosen in itertools.combinations(range(y.size), int((arm == 0).sum())):
        labels = np.ones(y.size, dtype=np.int64)
        labels[list(chosen)] = 0
        relabelled.append(difference(labels))
    assert len(relabelled) == 20
    assert np.mean(relabelled) == pytest.approx(case["expect"]["mean_over_all_relabelings"], abs=1e-12)
    assert difference(arm) == pytest.approx(case["expect"]["observed_difference_a_minus_b"])


def test_blocked_neyman(vectors: dict[str, Any]) -> None:
    case = vectors["blocked_neyman"]
    stratum, arm, y = [], [], []
    for s, (men_in, men_out, women_in, women_out) in enumerate(case["table_per_department"]["rows"]):
        for a, value, count in ((0, 1, men_in), (0, 0, men_out), (1, 1, women_in), (1, 0, women_out)):
            stratum += [s] * count
            arm += [a] * count
            y += [value] * count
    s_, a_, y_ = np.array(stratum), np.array(arm), np.array(y, dtype=float)
    rows = np.arange(y_.size)
    difference = np.array([[1.0, -1.0]])
    expect = case["expect"]
    pooled = y_[a_ == 0].mean() - y_[a_ == 1].mean()
    assert pooled == pytest.approx(expect["pooled"], abs=expect["tolerance"])
    built = cells.build(rows, s_, a_, y_)
    each = contrasts(cells.moments(built), difference)
    assert each.value[0] == pytest.approx(expect["stratified"], abs=expect["tolerance"])
    variance = neyman_variance(s_, a_, y_, difference)
    assert math.sqrt(variance[0]) == pytest.approx(expect["se"], abs=expect["tolerance"])


def test_sample_ratio_mismatch(vectors: dict[str, Any]) -> None:
    case = vectors["sample_ratio_mismatch"]
    counts, share = case["counts"], np.array(case["expected_share"])
    arm = np.repeat([0, 1], counts)
    p = np.broadcast_to(share, (arm.size, 2))
    value, df, p_value, how = balance.ratio_mismatch(arm, np.zeros_like(arm), p)
    assert value == pytest.approx(case["expect"]["chi2"], rel=1e-8)
    assert p_value == pytest.approx(case["expect"]["p"], rel=1e-6)
    assert (df, how) == (1, "chi-square")
