"""Whatever the outcomes: cells sum to one, order does not matter, swapping the branches swaps rescue and harm."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.recovery.bounds import harm_upper, p_at_most
from seatrial.recovery.contrast import contrast
from seatrial.recovery.router import Model, Router, from_json
from seatrial.recovery.table import Floats, Row, from_rows

OUTCOMES = st.lists(
    st.lists(st.tuples(st.sampled_from([0, 1]), st.sampled_from([0, 1])), min_size=1, max_size=3),
    min_size=2, max_size=8,
)  # fmt: skip


def rows(outcomes: list[list[tuple[int, int]]], *, swap: bool = False) -> list[Row]:
    return [
        Row(None, {"task": f"t{i}", "condition": "clean", "operation": "refresh", "delay": 1, "replay": k,
                   "y0": pair[swap], "y1": pair[1 - swap]})
        for i, pairs in enumerate(outcomes) for k, pair in enumerate(pairs)
    ]  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(OUTCOMES, st.randoms(use_true_random=False))
def test_cells(outcomes: list[list[tuple[int, int]]], shuffled: object) -> None:
    (r,) = contrast(from_rows(rows(outcomes))).rows
    assert math.isclose(r.stable_success + r.rescue + r.harm + r.stable_failure, 1.0)
    assert math.isclose(r.effect.value, r.rescue - r.harm, abs_tol=1e-12)
    listed = rows(outcomes)
    shuffled.shuffle(listed)  # type: ignore[attr-defined]
    (again,) = contrast(from_rows(listed)).rows
    assert again == r
    (back,) = contrast(from_rows(rows(outcomes, swap=True))).rows
    assert (back.rescue, back.harm) == pytest.approx((r.harm, r.rescue))
    assert back.p_value == pytest.approx(r.p_value)
    assert r.harm_upper is not None
    assert r.harm <= r.harm_upper <= 1.0


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([0.0, 0.2, 0.5, 1.0]), min_size=1, max_size=60), st.floats(0.01, 0.9))
def test_bounds_agree_with_each_other(values: list[float], limit: float) -> None:
    import numpy as np

    harms: Floats = np.array(values)
    rejected = p_at_most(limit, harms) <= 0.05
    # "Harm exceeds the limit" is rejected exactly where the bound lies below the limit.
    upper = harm_upper(harms)
    if abs(upper - limit) > 1e-6:
        assert rejected == (upper < limit)
    more = harms.copy()
    more[0] = 1.0
    assert harm_upper(more) >= upper - 1e-9


@settings(max_examples=60, deadline=None)
@given(st.floats(-50, 50), st.floats(-50, 50), st.floats(-5, 5), st.floats(-3, 3))
def test_routers_survive_json(intercept: float, weight: float, threshold: float, feature: float) -> None:
    models = {
        n: Model(intercept if i % 2 else -intercept, {"f": weight, "delay": 0.1}, logistic=True)
        for i, n in enumerate(("err", "wrong_pass", "wrong_rescued", "wrong_harmed", "clean_pass", "clean_harmed",
                               "without", "with"))
    }  # fmt: skip
    router = Router("direct", "refresh", (1, 2), ("f",), models, {"score": threshold, "least_harm": 0.01, "cost": 0.0})
    again = from_json(router.to_json())
    assert again.plain() == router.plain()
    assert again.decide({"f": feature}, delay=2) == router.decide({"f": feature}, delay=2)
