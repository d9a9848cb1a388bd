"""Worked numbers of the confidence sequence, of power, of the point rule and of the sample-ratio test."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from scipy import stats as reference

from seatrial.stats import (
    clopper_pearson,
    confidence_sequence,
    mde,
    mixture_bound,
    point_rule_false_alarm,
    rho_for,
    sample_ratio_test,
    sample_size,
)


def load(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((Path(__file__).parent / f"{name}.json").read_text())
    return found


def test_normal_mixture() -> None:
    vector = load("sequential")
    rho = rho_for(vector["v_opt"], vector["alpha"])
    assert rho == pytest.approx(vector["expect"]["rho"], abs=1e-8)
    assert mixture_bound(vector["v_opt"], rho, vector["alpha"]) == pytest.approx(
        vector["expect"]["bound_at_v_100"], abs=1e-7
    )
    # The radius on the mean is the boundary of the sum divided by the information.
    assert confidence_sequence(0.1, rho) == pytest.approx(vector["expect"]["bound_at_v_100"] / 100, abs=1e-9)


@pytest.mark.parametrize("case", load("proportions")["power"]["cases"], ids=str)
def test_sample_size(case: dict[str, Any]) -> None:
    assert sample_size(case["delta"], case["omega2"], case["s2"], k_a=case["k"]) == case["expect"]


def test_mde_undoes_sample_size() -> None:
    n = sample_size(0.03, 1 / 9, 1 / 6)
    assert mde(math.sqrt((1 / 9 + 2 / 6) / n)) == pytest.approx(0.03, rel=1e-3)
    assert mde(math.sqrt((1 / 9 + 2 / 6) / n)) <= 0.03


def test_point_rule() -> None:
    vector = load("gate")
    expect, n = vector["expect"], vector["tasks"] * vector["runs"]
    p = (1 - math.sqrt(1 - 4 * vector["mean_p_times_1_minus_p"])) / 2
    strict = point_rule_false_alarm(n, p, vector["threshold"])
    assert strict == pytest.approx(expect["exact_strict"], abs=5e-9)
    assert point_rule_false_alarm(n, p, vector["threshold"], strict=False) == pytest.approx(
        expect["exact_at_least"], abs=5e-9
    )
    # The worked number (.83672697) is not 1 - (1 - .26081277)^6 = .83687267 of its own line: two digits slipped.
    assert 1 - (1 - strict) ** 6 == pytest.approx(expect["any_of_six_exact_strict"], abs=2e-4)
    sd = math.sqrt(2 * vector["mean_p_times_1_minus_p"] / n)
    assert sd == pytest.approx(expect["sd"], abs=5e-9)
    normal = float(reference.norm.sf(vector["threshold"] / sd))
    assert normal == pytest.approx(expect["normal_approximation_one_metric"], abs=5e-9)


def test_sample_ratio_mismatch() -> None:
    vector = load("net_improvement")["sample_ratio_mismatch"]
    chi2, p = sample_ratio_test([vector["counts"]], [vector["expected_share"]])
    assert chi2 == pytest.approx(vector["expect"]["chi2"], abs=5e-9)
    assert p == pytest.approx(vector["expect"]["p"], rel=1e-8)


def test_clopper_pearson_is_the_zero_harm_bound() -> None:
    e = clopper_pearson(0, 75, level=0.90)
    assert e is not None
    assert e.high == pytest.approx(load("proportions")["zero_harm_bound"]["expect_upper"], abs=1e-10)
