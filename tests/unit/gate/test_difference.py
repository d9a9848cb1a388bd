"""Differences of traces: what parted first, and what followed."""

from __future__ import annotations

from seatrial.gate.difference import closest, compact, difference
from seatrial.records import (
    Agent,
    Provenance,
    RecordedOutcome,
    Status,
    Step,
    TaskRef,
    ToolCall,
    ToolResult,
    Totals,
    Trace,
    Usage,
)

Call = tuple[str, dict[str, object], str]


def trace(name: str, calls: list[Call], *, said: str = "done", status: Status = "passed", cost: float = 1.0) -> Trace:
    steps = [Step(index=0, event_class="simulated_user", text="please refund order 7")]
    for i, (tool, arguments, result) in enumerate(calls, 1):
        failed = result.startswith("error")
        steps.append(
            Step(index=i, event_class="agent", tool_calls=(ToolCall(id=f"c{i}", name=tool, arguments=arguments),),
                 results=(ToolResult(call_id=f"c{i}", outcome="error" if failed else "ok", text=result),))
        )  # fmt: skip
    steps.append(Step(index=len(steps), event_class="agent", text=said))
    return Trace(
        id=name, agent=Agent(name="a"), provenance=Provenance(format="x", reader="x", reader_version="1"),
        task=TaskRef(id="refund"), steps=tuple(steps), outcome=RecordedOutcome(status=status),
        totals=Totals(usage=Usage(cost_usd=cost), wall=2.0),
    )  # fmt: skip


LOOK: Call = ("look", {"order": 7}, "found")
CHECK: Call = ("check_policy", {"order": 7}, "allowed")
PAY: Call = ("refund", {"order": 7, "amount": 20}, "paid")


def test_nothing_differs() -> None:
    d = difference(trace("a", [LOOK, PAY]), trace("b", [LOOK, PAY]))
    assert d.first is None
    assert {r.change for r in d.rows} == {"same"}


def test_a_call_that_was_left_out_is_the_first_divergence() -> None:
    d = difference(trace("a", [LOOK, CHECK, PAY]), trace("b", [LOOK, PAY], status="failed", cost=0.5))
    assert d.first is not None
    row = d.rows[d.first]
    assert row.change == "only baseline"
    assert row.baseline is not None
    assert row.baseline.name == "check_policy"
    assert d.summary == "the candidate did not call check_policy (step 2 of the baseline); it went on with refund"
    assert d.consequences["outcome"] == ("passed", "failed")
    assert d.consequences["cost, USD"] == (1.0, 0.5)
    assert d.consequences["calls from there"] == (2, 1)


def test_other_arguments_are_named() -> None:
    other: Call = ("refund", {"order": 7, "amount": 200}, "error: too much")
    d = difference(trace("a", [LOOK, PAY]), trace("b", [LOOK, other, PAY]))
    assert d.first is not None
    # The same call still pairs with the same call; the wrong one stands alone before it.
    assert d.rows[d.first].change == "only candidate"
    d = difference(trace("a", [LOOK, PAY]), trace("b", [LOOK, other]))
    assert "with other arguments (amount)" in d.summary
    assert d.consequences["failed calls from there"] == (0, 1)


def test_other_result_of_the_same_call() -> None:
    d = difference(trace("a", [LOOK]), trace("b", [("look", {"order": 7}, "not found")]))
    assert "another result" in d.summary


def test_words_count_only_where_all_calls_agree() -> None:
    d = difference(trace("a", [LOOK], said="refunded, thanks"), trace("b", [LOOK], said="sorry, no"))
    assert d.first is not None
    assert "words part" in d.summary
    d = difference(trace("a", [LOOK, PAY], said="x"), trace("b", [LOOK], said="y"))
    assert "refund" in d.summary


def test_alignment_does_not_lose_its_place_after_an_insertion() -> None:
    extra: Call = ("search", {"q": "x"}, "nothing")
    d = difference(trace("a", [LOOK, CHECK, PAY]), trace("b", [extra, LOOK, CHECK, PAY]))
    assert [r.change for r in d.rows].count("same") == 5
    assert [r.change for r in d.rows].count("only candidate") == 1


def test_the_closest_passing_and_failing_runs_are_compared() -> None:
    good = [trace("far", [PAY]), trace("near", [LOOK, CHECK, PAY])]
    bad = [trace("bad", [LOOK, CHECK], status="failed"), trace("fine", [PAY])]
    pair = closest(good, bad)
    assert pair is not None
    assert (pair[0].id, pair[1].id) == ("near", "bad")
    assert closest([], bad) is None


def test_compact_keeps_the_divergence_and_counts_the_rest() -> None:
    many = [("look", {"order": i}, "found") for i in range(40)]
    shown = compact(difference(trace("a", [*many, PAY]), trace("b", many)))
    assert shown["rows_before"] + len(shown["rows"]) + shown["rows_after"] == 43
    assert any(r["change"] == "only baseline" for r in shown["rows"])
    long = trace("a", [("look", {"x": "y" * 5000}, "z" * 5000)])
    row = compact(difference(long, long))["rows"][1]
    assert "characters more" in row["baseline"]["result"]
