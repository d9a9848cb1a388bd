"""Each check on small event lists and traces, worked by hand (METHODS 6.2)."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import seatrial
from seatrial import grading
from seatrial.errors import InputError
from seatrial.records import Agent, Provenance, Step, Task, ToolCall, ToolResult, ToolSpec, Trace, Verdict

SIX = {"required_present", "forbidden_absent", "ordered", "within_budget", "no_verbatim_retries", "no_invalid_args"}


def ran(tool: str, ok: bool = True, **args: Any) -> dict[str, Any]:  # type: ignore[no-untyped-def]
    return {"event": "executed", "tool": tool, "args": args, "ok": ok}


def refused(tool: str, reason: str | None = None, **args: Any) -> dict[str, Any]:  # type: ignore[no-untyped-def]
    return {"event": "refused", "tool": tool, "args": args, **({"reason": reason} if reason else {})}


def task(**fields: Any) -> Task:
    return Task(**{"id": "t", "input": "do it", **fields})


def every(task_: Task, events: list[dict[str, Any]]) -> dict[str, Verdict]:
    return {v.metric: v for v in grading.grade(task_, grading.of_events(events))}


def test_the_door_gives_the_six_names_as_verdicts_that_work_in_conditions() -> None:
    found = seatrial.grade_trajectory(task(expected_tools=["read"], max_turns=2), [ran("read")])
    assert set(found) == SIX
    assert found["required_present"]
    assert not found["ordered"]
    assert found["ordered"].passed is None
    assert all(v.reason and v.version for v in found.values())


def source_rule(task_: Task, trace: list[dict[str, Any]]) -> dict[str, bool]:
    """The course's own rule, restated, for cases where ours must say the same."""
    calls = [e for e in trace if e["event"] == "executed"]
    names = [c["tool"] for c in calls]
    left = iter(names)
    return {
        "required_present": all(t in names for t in task_.expected_tools),
        "forbidden_absent": not any(t in names for t in task_.forbidden_tools),
        "ordered": all(t in left for t in task_.expected_tools),
        "within_budget": len(calls) <= (task_.max_turns or 0),
        "no_verbatim_retries": not any(
            a["tool"] == b["tool"] and a["args"] == b["args"] and not a["ok"] for a, b in itertools.pairwise(calls)
        ),
        "no_invalid_args": not any(e["event"] == "refused" for e in trace),
    }


@pytest.mark.parametrize(
    "events",
    [
        [ran("read", id=1), ran("note", id=1)],
        [ran("note", id=1), ran("read", id=1)],
        [ran("read", id=1), ran("read", id=2), ran("note", id=1), ran("close"), ran("close", id=2)],
        [ran("read", id=1), ran("note", ok=False, id=1), ran("note", ok=False, id=1), ran("note", id=2)],
        [ran("read", id=1), refused("note", id="x"), ran("note", id=1)],
        [ran("drop"), ran("read"), ran("note")],
        [],
    ],
)
def test_agrees_with_the_source_where_the_methods_do_not_depart(events: list[dict[str, Any]]) -> None:
    t = task(expected_tools=["read", "note"], forbidden_tools=["drop"], max_turns=4, order="subsequence")
    assert {k: bool(v) for k, v in seatrial.grade_trajectory(t, events).items()} == source_rule(t, events)


def test_multiplicity_counts_and_only_successes() -> None:
    t = task(expected_tools=["note", "note"])
    assert not every(t, [ran("note")])["required_present"]
    assert every(t, [ran("note"), ran("note", n=2)])["required_present"]
    failed = every(t, [ran("note"), ran("note", ok=False)])["required_present"]
    assert failed.passed is False
    assert failed.value == 0.5
    assert failed.evidence["missing"] == {"note": 1}


def test_a_refused_forbidden_call_is_attempted_not_executed() -> None:
    found = every(task(forbidden_tools=["drop"]), [refused("drop", "policy")])["forbidden_absent"]
    assert found
    assert found.evidence == {"executed": {}, "attempted": {"drop": 1}}
    assert not every(task(forbidden_tools=["drop"]), [ran("drop", ok=False)])["forbidden_absent"]


@pytest.mark.parametrize(
    ("order", "tools", "passed"),
    [
        (None, ["b", "a"], None),
        ("none", ["b", "a"], None),
        ("subsequence", ["a", "x", "b", "c"], True),
        ("subsequence", ["b", "a", "c"], False),
        ("prefix 2", ["a", "b"], True),
        ("prefix 2", ["c", "a", "x", "b"], True),
        ("prefix 2", ["b", "a", "c"], False),
    ],
)
def test_order(order: str | None, tools: list[str], passed: bool | None) -> None:
    t = task(expected_tools=["a", "b", "c"], order=order)
    assert every(t, [ran(n) for n in tools])["ordered"].passed is passed


@pytest.mark.parametrize("order", ["prefix 0", "prefix 4", "prefix", "sorted"])
def test_an_unknown_order_is_an_error_and_in_a_run_a_broken_check(order: str) -> None:
    t = task(expected_tools=["a", "b", "c"], order=order)
    with pytest.raises(InputError, match="order"):
        seatrial.grade_trajectory(t, [])
    broken = every(t, [])["ordered"]
    assert broken.passed is None
    assert broken.evidence == {"broke": True}


def test_budget_counts_turns_where_there_are_any_else_calls() -> None:
    t = task(max_turns=1, max_tool_calls=2)
    both = [{**ran("a"), "turn": 1}, {**ran("b"), "turn": 1}]
    assert every(t, both)["within_budget"]
    assert not every(t, [ran("a"), ran("b")])["within_budget"]
    assert every(t, both)["within_tool_calls"]
    assert not every(t, [*both, refused("c")])["within_tool_calls"]
    assert every(task(), both)["within_budget"].passed is None


@pytest.mark.parametrize(
    ("events", "n"),
    [
        ([ran("a", False, x=1), ran("a", True, x=1)], 1),
        ([ran("a", False, x=1), ran("b", False), ran("a", True, x=1)], 1),
        ([ran("a", False, x=1), ran("b", True), ran("a", True, x=1)], 0),
        ([ran("a", False, x=1), {**ran("b", True), "effect": "read"}, ran("a", True, x=1)], 1),
        ([ran("a", False, x=1), {**ran("b", True), "effect": "write"}, ran("a", True, x=1)], 0),
        ([ran("a", False, x=1), ran("a", True, x=2)], 0),
        ([{**ran("a", False), "transient": True}, ran("a", True)], 0),
        ([{**ran("a", False), "transient": True}, {**ran("a", False), "transient": True}, ran("a")], 1),
        ([ran("a", False), ran("a", False), ran("a", False)], 2),
        ([ran("a", True), ran("a", True)], 0),
        ([refused("a"), refused("a")], 1),
        ([{**ran("a", False), "turn": 1}, {**ran("a", False), "turn": 1}], 0),
    ],
)
def test_verbatim_retries(events: list[dict[str, Any]], n: int) -> None:
    found = every(task(), events)["no_verbatim_retries"]
    assert (found.value, found.passed) == (float(n), n == 0)


def test_argument_order_does_not_hide_a_retry() -> None:
    events = [
        {"event": "executed", "tool": "a", "args": {"x": 1, "y": 2}, "ok": False},
        {"event": "executed", "tool": "a", "args": {"y": 2, "x": 1}, "ok": False},
    ]
    assert not every(task(), events)["no_verbatim_retries"]


def test_recovery_is_the_share_of_failed_calls_after_which_something_changes() -> None:
    events = [ran("a", False, x=1), ran("a", False, x=1), ran("a", False, x=2), ran("b", False)]
    found = every(task(), events)["error_recovery"]
    assert found.value == pytest.approx(2 / 3)
    assert found.passed is False
    assert found.evidence == {"stopped_after_failure": 1}
    assert every(task(), [ran("a")])["error_recovery"].passed is None
    assert every(task(), [ran("a", False)])["error_recovery"].passed is None


def test_refusals_by_reason_are_three_checks() -> None:
    events = [
        {**refused("a"), "field": "amount"},
        refused("b", "policy"),
        refused("c", "unknown_tool"),
        refused("d", "user"),
    ]
    found = every(task(), events)
    assert found["no_invalid_args"].evidence == {"by_tool_and_field": {"a.amount": 1}}
    assert found["no_policy_refusals"].value == 1.0
    assert found["no_unknown_tools"].value == 1.0
    assert seatrial.grade_trajectory(task(), [refused("b", "policy")])["no_invalid_args"]


@pytest.mark.parametrize(
    "events",
    [["x"], [{"event": "executed"}], [{"event": "refused", "tool": "a", "reason": "mood"}],
     [{"event": "executed", "tool": "a", "args": {"x": object()}}]],
)  # fmt: skip
def test_bad_events_are_named(events: list[Any]) -> None:
    with pytest.raises(InputError, match="event 1"):
        seatrial.grade_trajectory(task(), events)


def trace(*steps: Step) -> Trace:
    numbered = tuple(
        Step(**{**{f: getattr(s, f) for f in s.__struct_fields__}, "index": i}) for i, s in enumerate(steps)
    )
    return Trace(
        id="s", agent=Agent(name="a"), provenance=Provenance(format="x", reader="x", reader_version="1"), steps=numbered
    )


def turn(*calls: tuple[str, dict[str, Any], str, dict[str, Any]], text: str = "") -> Step:
    return Step(
        index=0,
        event_class="agent",
        text=text,
        tool_calls=tuple(ToolCall(id=f"c{i}", name=n, arguments=a) for i, (n, a, _, _) in enumerate(calls)),
        results=tuple(
            ToolResult(call_id=f"c{i}", outcome=o, extra=e, text=e.get("text", ""))  # type: ignore[arg-type]
            for i, (_, _, o, e) in enumerate(calls)
        ),
    )


def test_a_trace_is_graded_by_turns_effects_and_refusals() -> None:
    tools = (
        ToolSpec(name="look", description="", parameters={}, effect="read"),
        ToolSpec(name="put", description="", parameters={}, effect="write"),
    )
    t = trace(
        turn(("put", {"x": 1}, "error", {})),
        turn(("look", {}, "ok", {})),
        turn(("put", {"x": 1}, "ok", {})),
        turn(("put", {"x": "1"}, "error", {"refused": "schema", "field": "x"})),
        turn(text="done"),
    )
    seen = grading.of_trace(t, tools=tools)
    found = {v.metric: v for v in grading.grade(task(max_turns=4), seen)}
    assert not found["no_verbatim_retries"]
    assert found["no_verbatim_retries"].steps == (2,)
    assert not found["within_budget"]
    assert found["within_budget"].value == 5.0
    assert found["no_invalid_args"].evidence == {"by_tool_and_field": {"put.x": 1}}
    assert seen.answer == "done"


def test_copied_steps_and_other_speakers_do_not_count() -> None:
    import msgspec

    copied = msgspec.structs.replace(turn(("drop", {}, "ok", {})), copied=True)
    said = Step(index=0, event_class="human", text="hello")
    found = seatrial.grade_trajectory(task(forbidden_tools=["drop"], max_turns=1), trace(copied, said, turn(text="x")))
    assert found["forbidden_absent"]
    assert found["within_budget"].value == 1.0


def test_a_log_that_names_no_outcome_gives_no_verdict_on_failures() -> None:
    t = trace(turn(("a", {}, "unknown", {})), turn(("a", {}, "unknown", {})))
    found = {v.metric: v for v in grading.grade(task(expected_tools=["a"]), grading.of_trace(t))}
    assert found["no_verbatim_retries"].passed is None
    assert found["error_recovery"].passed is None
    assert found["required_present"]


def test_waiting_after_a_transient_fault_is_recovery() -> None:
    fault = ("a", {}, "error", {"text": "503 service unavailable"})
    waited = trace(turn(fault), turn(("wait", {}, "ok", {})), turn(("a", {}, "ok", {})))
    found = {v.metric: v for v in grading.grade(task(), grading.of_trace(waited))}
    assert found["error_recovery"]
    assert found["no_verbatim_retries"]


FINAL = [
    {"path": "answer", "op": "contains", "value": "Closed"},
    {"path": "state.t.T1.status", "op": "eq", "value": "closed"},
    {"path": "", "op": "only_changed", "value": ["t.T1"]},
]


def ended(check: Any, answer: str | None, final: dict[str, Any] | None, start: dict[str, Any] | None = None) -> Any:
    line = grading.timeline([])
    verdicts = grading.grade(
        task(check_final=check), grading.Evidence(timeline=line, answer=answer, final=final, start=start)
    )
    return {v.metric: v for v in verdicts}, grading.outcome(verdicts)


def test_assertions_judge_answer_and_state_apart() -> None:
    start, final = {"t": {"T1": {"status": "open"}}}, {"t": {"T1": {"status": "closed"}}}
    found, (status, score, _) = ended(FINAL, "It is closed.", final, start)
    assert (found["final_answer"].passed, found["world_state"].passed, status, score) == (True, True, "passed", None)
    found, (status, _, reason) = ended(FINAL, "No.", {**final, "extra": 1}, start)
    assert (found["final_answer"].passed, found["world_state"].passed, status) == (False, False, "failed")
    assert "also changed: extra" in reason
    found, (status, _, reason) = ended(FINAL, "closed", None)
    assert (found["world_state"].passed, status) == (None, "unscored")
    assert "not recorded" in reason


def test_functions_judge_and_a_broken_one_is_never_a_pass() -> None:
    def good(answer: str, state: dict[str, Any]) -> bool:
        return answer == "x" and state["n"] == 1

    def graded(answer: str, state: dict[str, Any]) -> Verdict:
        return Verdict(metric="m", passed=False, reason="half", by="b", version="1", value=0.5)

    def by_metric(answer: str, state: dict[str, Any]) -> dict[str, bool]:
        return {"final_answer": True, "world_state": False}

    assert ended(good, "x", {"n": 1})[1][0] == "passed"
    assert ended(good, "x", {"n": 2})[1][0] == "failed"
    assert ended(graded, "x", {"n": 2})[1][:2] == ("failed", 0.5)
    found, (status, _, _) = ended(by_metric, "x", {})
    assert (found["final_answer"].passed, found["world_state"].passed, status) == (True, False, "failed")
    status, _, reason = ended(good, "x", {})[1]
    assert (status, "KeyError" in reason) == ("unscored", True)
    assert ended(lambda a, s: "yes", "x", {})[1][0] == "unscored"
    assert ended(None, "x", {})[1][0] == "unscored"


@pytest.mark.parametrize(
    ("answer", "way", "place"),
    [(True, True, "sound"), (True, False, "lucky"), (False, True, "unlucky"), (False, False, "failed"),
     (None, True, None), (True, None, None)],
)  # fmt: skip
def test_answer_against_trajectory(answer: bool | None, way: bool | None, place: str | None) -> None:
    assert grading.quadrant(answer, way) == place


@pytest.mark.parametrize(
    "events", [[{"event": "Executed", "tool": "a"}], [{"tool": "a", "ok": True}], [{}, {"event": 1}]]
)
def test_events_of_which_none_is_known_are_no_pass(events: list[dict[str, Any]]) -> None:
    with pytest.raises(InputError, match=r"event 1 .*executed, refused, answer"):
        seatrial.grade_trajectory(task(forbidden_tools=["a"]), events)


def test_some_unknown_events_are_told_in_the_evidence() -> None:
    events = [ran("a"), {"event": "Executed", "tool": "b"}, {"event": "answer", "text": "done"}]
    found = seatrial.grade_trajectory(task(forbidden_tools=["b"]), events)
    assert all(v.evidence["unrecognised_events"] == [2] for v in found.values())
    assert all(v.evidence["unrecognised_events"] == [2] for v in every(task(), events).values())
    assert "unrecognised_events" not in seatrial.grade_trajectory(task(), events[:1])["ordered"].evidence


def test_doing_nothing_is_a_trace_too() -> None:
    assert seatrial.grade_trajectory(task(), [])["forbidden_absent"]


def deep(n: int) -> Any:
    value: Any = 1
    for _ in range(n):
        value = [value]
    return value


@pytest.mark.parametrize(
    "events",
    [
        None, {}, "abc", 3, [None], [{"event": "executed"}], [ran("a", x=deep(3_000))], [ran("a", x="\ud800")],
        [ran("\ud800")], [{**ran("a"), "text": deep(3_000)}], [{**refused("a"), "reason": deep(3_000)}],
        [{**ran("a"), "event": deep(3_000)}], [{**ran("a"), "ok": "false"}], [{**ran("a"), "ok": 0}],
        [{**ran("a"), "transient": "false"}], [ran("a", x=object())],
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_bad_input(events: Any) -> None:
    with pytest.raises(InputError):
        seatrial.grade_trajectory(task(max_turns=3), events)


def test_arguments_of_a_trace_that_are_no_json_are_bad_input() -> None:
    for value in (deep(3_000), "\ud800"):
        call = ToolCall(id="1", name="a", arguments={"x": value})
        step = Step(index=0, event_class="agent", tool_calls=(call,))
        source = Provenance(format="f", reader="r", reader_version="1")
        with pytest.raises(InputError, match="step 0"):
            seatrial.grade_trajectory(task(), Trace(id="t", agent=Agent(name="a"), provenance=source, steps=(step,)))


@pytest.mark.parametrize(
    "fields", [{"max_turns": "3"}, {"max_turns": True}, {"expected_tools": "abc"}, {"forbidden_tools": None},
               {"expected_tools": [1]}, {"order": 3}],
)  # fmt: skip
def test_a_task_with_a_field_of_another_type_is_bad_input(fields: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(fields))):
        seatrial.grade_trajectory(task(**fields), [ran("a")])


def test_a_turn_on_some_events_only_counts_calls_and_says_so() -> None:
    events = [{**ran("a"), "turn": 1}, ran("b"), ran("c")]
    found = seatrial.grade_trajectory(task(max_turns=2), events)["within_budget"]
    assert (found.passed, found.value) == (False, 3.0)
    assert found.reason == "3 calls (only 1 of 3 events carry a turn), budget 2"


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        (1, 1.0, True), (0, -0.0, True), (2**70, float(2**70), True), ([{"y": 2.0}], [{"y": 2}], True),
        (1, True, False), (1.0, True, False), (1, 1.5, False), (1, "1", False), (None, float("nan"), False),
    ],
)  # fmt: skip
def test_equal_numbers_are_the_same_arguments(first: Any, second: Any, same: bool) -> None:
    found = seatrial.grade_trajectory(task(), [ran("a", False, x=first), ran("a", False, x=second)])
    assert found["no_verbatim_retries"].passed is not same
