"""Numbers are written one way, and what is not a number is never written as one."""

from __future__ import annotations

import math

import pytest

from seatrial.records import Estimate, RankInterval
from seatrial.report import numbers


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.1234, "points", "+12.3"),
        (-0.1234, "points", "−12.3"),
        (-0.0001, "points", "0.0"),
        (0.0, "points", "0.0"),
        (0.0512, "size", "5.1"),
        (0.641, "percent", "64.1%"),
        (1.0, "percent", "100.0%"),
        (2.345, "units", "+2.35"),
        (0.4449, "plain", "0.44"),
        (None, "points", "n/a"),
        (math.nan, "percent", "n/a"),
        (math.inf, "plain", "∞"),
        (-math.inf, "points", "−∞"),
    ],
)
def test_number(value: float | None, unit: numbers.Unit, text: str) -> None:
    assert numbers.number(value, unit) == text


def test_interval_needs_both_ends() -> None:
    assert numbers.interval(0.041, 0.205, "points") == "[+4.1, +20.5]"
    assert numbers.interval(0.58, 0.702, "percent") == "[58.0, 70.2]%"
    assert numbers.interval(None, 0.2) == "n/a"
    assert numbers.interval(0.1, None) == "n/a"


def test_estimate_says_when_there_is_no_interval() -> None:
    e = Estimate(value=0.5, low=None, high=None, level=0.95, n=3, n_clusters=1, method="mean")
    assert numbers.estimate(e, "percent") == "50.0% (no interval)"
    assert numbers.stacked(e, "percent") == "50.0%\nno interval"
    assert numbers.estimate(None) == "n/a"
    assert numbers.stacked(None) is None


@pytest.mark.parametrize(
    ("p", "text"), [(0.0343, "0.034"), (0.00099, "<0.001"), (1.0, "1.000"), (None, "n/a"), (math.nan, "n/a")]
)
def test_p_value(p: float | None, text: str) -> None:
    assert numbers.p_value(p) == text


def test_ranks() -> None:
    assert numbers.rank(RankInterval(value=2, low=1, high=3)) == "2 [1–3]"
    assert numbers.rank(None) == "n/a"


def test_anything_never_calls_none_zero() -> None:
    assert numbers.anything(None) == "n/a"
    assert numbers.anything({"a": None, "b": [1, 2.5]}) == "a n/a, b 1, 2.5"
    assert numbers.anything(True) == "yes"
    assert numbers.anything([]) == "none"
    assert numbers.anything(1234567) == "1,234,567"


def test_join_and_some() -> None:
    assert numbers.join(["a"]) == "a"
    assert numbers.join(["a", "b", "c"]) == "a, b and c"
    assert numbers.some(list("abcdefgh"), 3) == "a, b, c and 5 more"
    assert numbers.level(0.95) == "95%"
