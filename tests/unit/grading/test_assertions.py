"""Declarative assertions: every op both ways, paths, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from seatrial.errors import InputError
from seatrial.grading.assertions import OPS, judge, parse
from seatrial.suites.schema import ASSERTION

STATE: dict[str, Any] = {
    "n": 3,
    "f": 1.0,
    "yes": True,
    "word": "Hello World",
    "list": ["a", "b", "a.b"],
    "tickets": {"T1": {"status": "closed", "tags": ["x"]}, "T2": {"status": "open", "tags": []}},
    "a.b": {"c/d": 1},
    "none": None,
}

BOTH = [
    ("n", "eq", 3, 4),
    ("f", "eq", 1, 2),
    ("yes", "eq", True, 1),
    ("n", "ne", 4, 3),
    ("n", "lt", 4, 3),
    ("n", "le", 3, 2),
    ("n", "gt", 2, 3),
    ("n", "ge", 3, 4),
    ("word", "lt", "Z", "A"),
    ("f", "approx", 1.0000001, 1.1),
    ("n", "in", [1, 3], [1, 2]),
    ("n", "not_in", [1, 2], [3]),
    ("word", "contains", "hello", "bye"),
    ("list", "contains", "a", "c"),
    ("tickets", "contains", "T1", "T9"),
    ("word", "not_contains", "bye", "WORLD"),
    ("word", "contains_all", ["hello", "world"], ["hello", "bye"]),
    ("word", "contains_any", ["bye", "world"], ["bye"]),
    ("word", "matches", r"^Hello \w+$", r"^World"),
    ("word", "not_matches", r"^World", r"Hello"),
    ("list", "length", 3, 2),
    ("list", "type", "array", "object"),
    ("none", "type", "null", "string"),
    ("tickets.T1.tags.0", "eq", "x", "y"),
    ("list.-1", "eq", "a.b", "a"),
    ("/a.b/c~1d", "eq", 1, 2),
]


def ok(**assertion: Any) -> bool | None:
    (one,) = parse([assertion])
    return judge(one, answer="The answer is 42.", state=STATE, start=STATE).ok


@pytest.mark.parametrize(("path", "op", "right", "wrong"), BOTH)
def test_every_op_can_hold_and_fail(path: str, op: str, right: Any, wrong: Any) -> None:
    assert ok(path=path, op=op, value=right) is True
    assert ok(path=path, op=op, value=wrong) is False


def test_every_op_is_tested_and_published() -> None:
    others = {"exists", "absent", "unchanged", "changed", "only_changed"}
    assert {row[1] for row in BOTH} | others == set(OPS) == set(ASSERTION["properties"]["op"]["enum"])


def test_presence_and_absence() -> None:
    assert ok(path="tickets.T1", op="exists") is True
    assert ok(path="tickets.T9", op="exists") is False
    assert ok(path="tickets.T9", op="absent") is True
    assert ok(path="none", op="exists") is True


def test_something_absent_fits_nothing() -> None:
    assert ok(path="tickets.T9.status", op="eq", value=None) is False
    assert ok(path="tickets.T9.status", op="ne", value="x") is False


def test_star_means_every_one_and_there_must_be_one() -> None:
    assert ok(path="tickets.*.status", op="in", value=["open", "closed"]) is True
    assert ok(path="tickets.*.status", op="eq", value="closed") is False
    assert ok(path="tickets.*.status", op="eq", value="closed", quantifier="any") is True
    assert ok(path="tickets.*.status", op="eq", value="gone", quantifier="none") is True
    assert ok(path="nothing.*", op="eq", value=1) is False
    assert ok(path="nothing.*", op="eq", value=1, quantifier="none") is True


def test_the_answer() -> None:
    assert ok(path="answer", op="matches", value=r"\b42\b") is True
    (one,) = parse([{"path": "answer", "op": "contains", "value": "x"}])
    assert judge(one, answer=None, state=STATE).ok is False


def changed(path: str, op: str, value: Any = None) -> bool | None:
    after = {**STATE, "n": 4, "tickets": {**STATE["tickets"], "T3": {"status": "open"}}}
    (one,) = parse([{"path": path, "op": op, **({"value": value} if value else {})}])
    return judge(one, answer=None, state=after, start=STATE).ok


def test_changes_from_the_start() -> None:
    assert changed("n", "changed") is True
    assert changed("n", "unchanged") is False
    assert changed("word", "unchanged") is True
    assert changed("", "unchanged") is False
    assert changed("tickets", "changed") is True
    assert changed("tickets.T1", "unchanged") is True
    assert changed("", "only_changed", ["n", "tickets.T3"]) is True
    assert changed("", "only_changed", ["n"]) is False
    assert changed("tickets.*", "only_changed", ["n", "tickets.*"]) is True


def test_nothing_recorded_is_no_verdict() -> None:
    (one,) = parse([{"path": "n", "op": "eq", "value": 3}])
    assert judge(one, answer="x", state=None).ok is None
    (one,) = parse([{"path": "n", "op": "unchanged"}])
    assert judge(one, answer="x", state=STATE).ok is None


@pytest.mark.parametrize(
    "bad",
    [
        {"path": "n", "op": "equals", "value": 1},
        {"path": "n", "op": "eq"},
        {"path": "n"},
        {"path": "n", "op": "eq", "value": 1, "strict": True},
        {"path": "n", "op": "in", "value": 3},
        {"path": "n", "op": "matches", "value": "("},
        {"path": "n", "op": "length", "value": "3"},
        {"path": "n", "op": "type", "value": "int"},
        {"path": "answer", "op": "unchanged"},
        {"path": 3, "op": "eq", "value": 1},
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(bad: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="assertion 2"):
        parse([{"path": "n", "op": "exists"}, bad])


def test_a_hostile_pattern_takes_no_time() -> None:
    (one,) = parse([{"path": "answer", "op": "matches", "value": "(a+)+$"}])
    assert judge(one, answer="a" * 50_000 + "b", state=None).ok is False
