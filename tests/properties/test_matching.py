"""Matching is optimal, agrees with brute force on small cases, and never depends on listing order (METHODS 6.2)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial import grading
from seatrial.grading.match import Arguments, Mode, Reference, fits, match
from seatrial.records import Task

Call = tuple[str, dict[str, Any]]
arguments = st.dictionaries(st.sampled_from("xy"), st.sampled_from([0, 1, True, "1"]), max_size=2)
calls = st.lists(st.tuples(st.sampled_from("ab"), arguments), max_size=5)
references = st.lists(
    st.builds(Reference, tool=st.sampled_from("ab"), arguments=arguments,
              mode=st.sampled_from([None, None, "exact", "ignore", "subset", "superset"])), max_size=5,
)  # fmt: skip
argument_modes = st.sampled_from(["exact", "ignore", "subset", "superset"])
unordered = st.sampled_from(["unordered", "subset", "superset"])


def most(reference: Sequence[Reference], actual: Sequence[Call], how: Arguments, *, ordered: bool) -> int:
    """The largest number of pairs, by trying every injection of the shorter list."""
    n, m = len(reference), len(actual)
    best = 0
    for k in range(min(n, m), 0, -1):
        for left in itertools.combinations(range(n), k):
            arranged = itertools.combinations(range(m), k) if ordered else itertools.permutations(range(m), k)
            for right in arranged:
                if all(fits(reference[i], *actual[j], how) for i, j in zip(left, right, strict=True)):
                    return k
    return best


@settings(deadline=None)  # the first call loads the library that pairs
@given(references, calls, argument_modes, st.sampled_from(["strict", "unordered", "subset", "superset", "in_order"]))
def test_agrees_with_brute_force(reference: list[Reference], actual: list[Call], how: Arguments, mode: Mode) -> None:
    ordered = mode in ("strict", "in_order")
    pairs = most(reference, actual, how, ordered=ordered)
    found = match(reference, actual, mode, how)
    assert len(found.pairs) == pairs
    n, m = len(reference), len(actual)
    wanted = {"strict": pairs == n == m, "unordered": pairs == n == m, "subset": pairs == m}.get(mode, pairs == n)
    assert found.passed is wanted
    assert all(fits(reference[i], *actual[j], how) for i, j in found.pairs)
    assert len({i for i, _ in found.pairs}) == len({j for _, j in found.pairs}) == pairs


@settings(deadline=None)
@given(references, calls, argument_modes, unordered, st.randoms())
def test_listing_order_does_not_matter(
    reference: list[Reference], actual: list[Call], how: Arguments, mode: Mode, draws: Any
) -> None:
    before = match(reference, actual, mode, how)
    other_reference, other_actual = list(reference), list(actual)
    draws.shuffle(other_reference)
    draws.shuffle(other_actual)
    turned = [
        Reference(tool=r.tool, arguments=dict(reversed(r.arguments.items())), mode=r.mode) for r in other_reference
    ]
    after = match(turned, other_actual, mode, how)
    assert (after.passed, after.value, after.recall, after.precision) == (
        before.passed, before.value, before.recall, before.precision,
    )  # fmt: skip


@settings(deadline=None)
@given(references, calls, argument_modes)
def test_strict_is_the_strictest(reference: list[Reference], actual: list[Call], how: Arguments) -> None:
    modes: tuple[Mode, ...] = ("strict", "unordered", "subset", "superset", "in_order")
    passed = {mode: match(reference, actual, mode, how).passed for mode in modes}
    assert not passed["strict"] or all(passed.values())
    assert passed["unordered"] is (passed["subset"] and passed["superset"])
    assert not passed["in_order"] or passed["superset"]


@given(st.lists(st.sampled_from("abc"), max_size=6), st.lists(st.sampled_from("abcd"), max_size=8), st.randoms())
def test_the_order_of_expected_tools_does_not_matter_without_an_order(
    expected: list[str], made: list[str], draws: Any
) -> None:
    events = [{"event": "executed", "tool": t, "args": {}, "ok": True} for t in made]
    shuffled = list(expected)
    draws.shuffle(shuffled)
    first, second = (
        grading.grade_trajectory(Task(id="t", input="", expected_tools=tools), events) for tools in (expected, shuffled)
    )
    assert {k: (v.passed, v.value) for k, v in first.items()} == {k: (v.passed, v.value) for k, v in second.items()}


def test_a_greedy_pairing_would_miss_this() -> None:
    """The first reference call fits both calls, the second only the first: pairs must be chosen together."""
    reference = [Reference(tool="a", mode="ignore"), Reference(tool="a", arguments={"x": 1})]
    actual: list[Call] = [("a", {"x": 1}), ("a", {"x": 2})]
    found = match(reference, actual, "unordered")
    assert found.passed
    assert set(found.pairs) == {(0, 1), (1, 0)}
