"""Published and worked numbers for shares, pass^k, consistency, zero events and power."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seatrial.errors import UsageError
from seatrial.stats import (
    certified_consistency,
    clopper_pearson,
    consistency,
    pass_at_k,
    pass_hat_k,
    runs_for_consistency,
    wilson,
    zero_event_upper,
    zero_events_needed,
)

VECTORS: dict[str, Any] = json.loads((Path(__file__).parent / "proportions.json").read_text())


@pytest.mark.parametrize("case", VECTORS["wilson95"], ids=str)
def test_wilson(case: dict[str, Any]) -> None:
    e = wilson(case["k"], case["n"])
    assert e is not None
    assert [e.low, e.high] == pytest.approx(case["ci"], abs=6e-8)


@pytest.mark.parametrize("case", VECTORS["clopper_pearson95"], ids=str)
def test_clopper_pearson(case: dict[str, Any]) -> None:
    e = clopper_pearson(case["k"], case["n"])
    assert e is not None
    assert [e.low, e.high] == pytest.approx(case["ci"], abs=6e-8)


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_pass_hat_k_of_tau_bench(k: int) -> None:
    vector = VECTORS["pass_hat_k"]
    c = np.repeat([int(x) for x in vector["histogram_of_successes"]], list(vector["histogram_of_successes"].values()))
    e = pass_hat_k(np.full(c.size, vector["n_trials"]), c, k)
    assert e is not None
    assert e.value == pytest.approx(vector["expect"][str(k)], abs=5e-9)
    assert [e.low, e.high] == pytest.approx(vector["ci95_t"][str(k)], abs=6e-4)
    assert (e.n, e.n_clusters) == (50, 50)


@pytest.mark.parametrize("case", VECTORS["pass_at_k"], ids=str)
def test_pass_at_k(case: dict[str, Any]) -> None:
    if isinstance(case["expect"], str):
        with pytest.raises(UsageError, match="more than the 2 attempts"):
            pass_at_k(case["n"], case["c"], case["k"])
    else:
        assert pass_at_k(case["n"], case["c"], case["k"]) == pytest.approx(case["expect"], abs=1e-12)


@pytest.mark.parametrize("case", VECTORS["d3_unbiased"], ids=str)
def test_consistency(case: dict[str, Any]) -> None:
    assert consistency(case["c"], case["k"]) == pytest.approx(case["expect"], abs=1e-10)
    if "plug_in" in case:
        assert consistency(case["c"], case["k"], unbiased=False) == pytest.approx(case["plug_in"], abs=1e-12)


def test_certified_consistency() -> None:
    vector = VECTORS["certified_consistency"]
    assert certified_consistency(vector["identical_runs"], vector["level"]) == pytest.approx(
        vector["expect_p_at_least"], abs=1e-10
    )
    assert runs_for_consistency(0.9, vector["level"]) == vector["runs_for_0.90"]


def test_zero_harms() -> None:
    vector = VECTORS["zero_harm_bound"]
    assert zero_event_upper(vector["n"], vector["level"]) == pytest.approx(vector["expect_upper"], abs=1e-10)
    assert zero_events_needed(0.02, vector["level"]) == vector["n_for_0.02"]
    assert [zero_events_needed(x) for x in (0.02, 0.05, 0.01)] == [149, 59, 299]


def test_zero_events_needed_is_the_least() -> None:
    for limit in (0.5, 0.1, 0.013, 0.95):
        n = zero_events_needed(limit)
        assert zero_event_upper(n) <= limit + 1e-15
        assert n == 1 or zero_event_upper(n - 1) > limit
    assert math.isclose(zero_event_upper(0), 1.0)
