"""Fisher's maize, the six children, the two by two: exact randomisation tests with published answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats as reference

from seatrial.stats import permutation_test, row_permutation, sign_flip_interval, sign_flip_test

VECTORS: dict[str, Any] = json.loads((Path(__file__).parent / "randomisation.json").read_text())


@pytest.mark.parametrize("name", ["six_children", "two_by_two"])
def test_two_groups(name: str) -> None:
    case = VECTORS[name]
    result = permutation_test(case["treated"], case["control"])
    expect = case["expect"]
    assert (result.extreme, result.total, result.exact) == (expect["extreme"], expect["total"], True)
    assert result.p_value == pytest.approx(expect["extreme"] / expect["total"], abs=1e-15)


def test_six_children_agree_with_the_stratified_test_of_two_arms() -> None:
    case = VECTORS["six_children"]
    y = np.array(case["treated"] + case["control"], dtype=float)
    result = row_permutation(np.zeros(6, int), np.repeat([0, 1], 3), y, baseline=[0.5, 0.5])
    assert result.exact
    assert result.draws == case["expect"]["total"]
    assert result.p_values == pytest.approx([0.8, 0.8], abs=1e-15)


def test_darwin_maize() -> None:
    case = VECTORS["darwin_maize_pairs"]
    d, expect = case["differences_eighths_inch"], case["expect"]
    result = sign_flip_test(d)
    assert (result.extreme, result.total, result.exact) == (expect["extreme"], expect["total"], True)
    assert result.p_value == expect["p"]
    assert result.statistic * len(d) == pytest.approx(expect["observed"])
    assert reference.ttest_1samp(d, 0).pvalue == pytest.approx(expect["t_test_p"], abs=6e-5)


def test_darwin_maize_interval_by_inversion() -> None:
    case = VECTORS["darwin_maize_pairs"]
    e = sign_flip_interval(case["differences_eighths_inch"])
    assert [e.low, e.high] == pytest.approx(case["expect"]["ci95_by_inversion"], abs=case["expect"]["ci_tolerance"])
    # The limit is where the test itself changes its mind.
    d = np.array(case["differences_eighths_inch"], dtype=float)
    assert e.low is not None
    assert sign_flip_test(d - e.low - 1e-9).p_value > 0.05
    assert sign_flip_test(d - e.low + 1e-6).p_value <= 0.05
