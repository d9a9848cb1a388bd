"""Ablation replay on any run: minimal, stable under its own result, blind to order where order is nothing."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.dimensions.ablation import Ablation, ablate
from seatrial.dimensions.actions import actions_of
from seatrial.dimensions.intent import intent_of

_spec = importlib.util.spec_from_file_location("shelf", Path(__file__).resolve().parents[1] / "shelf.py")
assert _spec is not None
assert _spec.loader is not None
shelf: Any = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(shelf)

KEYS = st.sampled_from(["a", "b", "c", "d"])
VALUES = st.sampled_from(["x", "y"])
WRITES = st.one_of(
    st.tuples(st.just("put"), st.fixed_dictionaries({"key": KEYS, "value": VALUES})),
    st.tuples(st.just("add"), st.fixed_dictionaries({"key": KEYS, "value": VALUES})),
    st.tuples(st.just("remove"), st.fixed_dictionaries({"key": KEYS})),
)
READS = st.one_of(
    st.tuples(st.just("read"), st.fixed_dictionaries({"key": st.just("old")})), st.tuples(st.just("clock"), st.just({}))
)
WANTED = st.dictionaries(st.sampled_from(["a", "b"]), st.sampled_from(["x", "y", "xy"]), max_size=2)


def found(calls: list[Any], wanted: dict[str, str]) -> Ablation:
    run = shelf.run(calls, intent=shelf.wants(**wanted), required=shelf.holding(**wanted), status="failed")
    made = ablate(run, actions_of(run.trace), intent_of(run.task))
    assert made.refusal is None
    return made


def relevant(calls: list[Any], wanted: dict[str, str]) -> list[bool | None]:
    made = found(calls, wanted)
    return [made.said[p].relevant for p in range(len(calls))]


def away(calls: list[Any], wanted: dict[str, str]) -> tuple[int, int]:
    """The distance of where these calls lead, computed here anew."""
    run = shelf.run(calls)
    items, start = run.trace.extra["final"]["items"], shelf.START["items"]
    unmet = sum(items.get(k) != v for k, v in wanted.items())
    outside = sum(items.get(k) != start.get(k) for k in items.keys() | start.keys() if k not in wanted)
    return unmet, outside


def outcomes(calls: list[Any]) -> list[str]:
    return [s.results[0].outcome for s in shelf.run(calls).trace.steps if s.results]


@given(st.lists(WRITES, max_size=7), WANTED)
@settings(max_examples=120, deadline=None)
def test_without_what_is_extraneous_the_end_is_no_further_and_nothing_more_can_go(
    calls: list[Any], wanted: dict[str, str]
) -> None:
    said = relevant(calls, wanted)
    kept = [c for c, r in zip(calls, said, strict=True) if r]
    assert away(kept, wanted) <= away(calls, wanted)
    for i in range(len(kept)):
        rest = kept[:i] + kept[i + 1 :]
        fails = any(o == "error" for o in outcomes(rest)[i:])
        assert fails or away(rest, wanted) > away(kept, wanted)


@given(st.lists(WRITES, max_size=7), WANTED)
@settings(max_examples=80, deadline=None)
def test_what_is_left_is_relevant_when_it_is_looked_at_again(calls: list[Any], wanted: dict[str, str]) -> None:
    kept = [c for c, r in zip(calls, relevant(calls, wanted), strict=True) if r]
    assert all(relevant(kept, wanted))


@given(st.lists(WRITES, max_size=6), WANTED, READS, st.integers(0, 6))
@settings(max_examples=80, deadline=None)
def test_a_look_that_nothing_uses_changes_no_other_verdict(
    calls: list[Any], wanted: dict[str, str], read: Any, place: int
) -> None:
    at = min(place, len(calls))
    said = relevant([*calls[:at], read, *calls[at:]], wanted)
    assert said[at] is False
    assert said[:at] + said[at + 1 :] == relevant(calls, wanted)


@given(st.permutations(["one", "two", "three", "four"]), st.integers(0, 4))
@settings(max_examples=40, deadline=None)
def test_the_order_of_what_is_irrelevant_is_nothing(order: list[str], place: int) -> None:
    litter = [("put", {"key": k, "value": "left"}) for k in order]
    calls = [*litter[:place], ("put", {"key": "a", "value": "x"}), *litter[place:]]
    said = relevant(calls, {"a": "x"})
    assert [c[1]["key"] for c, r in zip(calls, said, strict=True) if r] == ["a"]


@given(st.lists(WRITES, min_size=1, max_size=6), WANTED)
@settings(max_examples=40, deadline=None)
def test_the_same_run_gives_the_same_verdicts_at_a_bounded_cost(calls: list[Any], wanted: dict[str, str]) -> None:
    one, two = found(calls, wanted), found(calls, wanted)
    assert one == two
    assert one.cost.calls <= len(calls) * 41


@pytest.mark.full
@given(st.lists(st.one_of(WRITES, READS), max_size=12), WANTED)
@settings(max_examples=600, deadline=None)
def test_longer_runs_keep_their_distance(calls: list[Any], wanted: dict[str, str]) -> None:
    said = relevant(calls, wanted)
    assert away([c for c, r in zip(calls, said, strict=True) if r], wanted) <= away(calls, wanted)
