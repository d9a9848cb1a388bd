"""Codex rollouts: who spoke, what was copied, what tokens were used, how calls ended."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from seatrial.ingest import Memory, read_file
from seatrial.ingest.codex.outputs import output_of
from seatrial.records import FileReport, Trace

META = {"id": "01900000-0000-7000-8000-000000000001", "cli_version": "1.2.3"}
OLD_TURN, NEW_TURN = "018f0000-0000-7000-8000-000000000001", "01910000-0000-7000-8000-000000000001"


def meta(**more: Any) -> dict[str, Any]:
    return {"timestamp": "2026-01-01T00:00:00Z", "type": "session_meta", "payload": META | more}


def item(**payload: Any) -> dict[str, Any]:
    return {"timestamp": "2026-01-01T00:00:01Z", "type": "response_item", "payload": payload}


def event(**payload: Any) -> dict[str, Any]:
    return {"timestamp": "2026-01-01T00:00:02Z", "type": "event_msg", "payload": payload}


def user(text: str) -> dict[str, Any]:
    return item(type="message", role="user", content=[{"type": "input_text", "text": text}])


def agent(text: str) -> dict[str, Any]:
    return item(type="message", role="assistant", content=[{"type": "output_text", "text": text}])


def call(call_id: str, **arguments: Any) -> dict[str, Any]:
    return item(type="function_call", name="exec_command", call_id=call_id, arguments=json.dumps(arguments))


def output(call_id: str, text: Any) -> dict[str, Any]:
    return item(type="function_call_output", call_id=call_id, output=text)


def tokens(total: int, last: int | None = None) -> dict[str, Any]:
    def counts(n: int) -> dict[str, int]:
        return {"input_tokens": n, "cached_input_tokens": n // 2, "output_tokens": n // 10, "total_tokens": n}

    info = {"total_token_usage": counts(total)} | ({"last_token_usage": counts(last)} if last is not None else {})
    return event(type="token_count", info=info)


def load(path: Path, *records: Any, seen: Memory | None = None) -> tuple[Trace, FileReport]:
    path.write_text("\n".join(json.dumps(record) for record in records))
    reading = read_file(path, seen=seen)
    (trace,) = reading
    assert reading.report.format == "codex"
    assert reading.report.n_bytes == path.stat().st_size
    return trace, reading.report


def said(trace: Trace) -> list[tuple[str, str | None, str]]:
    return [(step.event_class, step.kind, step.text) for step in trace.steps]


def test_only_typed_words_are_human(tmp_path: Path) -> None:
    trace, _ = load(
        tmp_path / "a.jsonl",
        meta(),
        item(type="message", role="developer", content=[{"type": "input_text", "text": "rules"}]),
        user("# AGENTS.md instructions for x\n\n<INSTRUCTIONS>y</INSTRUCTIONS>"),
        user("<environment_context>\n<cwd>x</cwd>\n</environment_context>"),
        user("do it"),
        event(type="user_message", message="do it"),
        user("<skill>\n<name>x</name>\n</skill>"),
        user("<widget>\nof some later version\n</widget>"),
        agent("done"),
        user("<b>no</b>"),
        event(type="user_message", message="<b>no</b>"),
        user("the last turn, whose event was never written"),
    )
    assert [s.text for s in trace.steps if s.event_class == "human"] == [
        "do it",
        "<b>no</b>",
        "the last turn, whose event was never written",
    ]
    kinds = [kind for who, kind, _ in said(trace) if who == "harness"]
    assert kinds == ["system_prompt", "system_prompt", "system_reminder", "skill", "widget"]


def test_the_event_of_a_turn_may_come_first_or_alone(tmp_path: Path) -> None:
    trace, _ = load(
        tmp_path / "a.jsonl",
        meta(),
        event(type="user_message", message="first", kind="plain"),
        user("first"),
        agent("a"),
        event(type="user_message", message="alone"),
        event(type="user_message", message="<environment_context>x</environment_context>", kind="environment_context"),
    )
    assert [s.text for s in trace.steps if s.event_class == "human"] == ["first", "alone"]


def test_an_interrupt_and_the_correction_after_it_are_two_steps(tmp_path: Path) -> None:
    trace, _ = load(
        tmp_path / "a.jsonl",
        meta(),
        user("go"),
        call("call_1", cmd="sleep 9"),
        output("call_1", "aborted by user after 1.5s"),
        user("<turn_aborted>\nThe user interrupted the previous turn.\n</turn_aborted>"),
        event(type="turn_aborted", reason="interrupted", turn_id="t"),
        user("no, the other one"),
    )
    assert [who for who, _, _ in said(trace)] == ["human", "agent", "interrupted", "human"]
    assert trace.steps[1].results[0].outcome == "interrupted"
    assert trace.steps[2].extra["turn_id"] == "t"


def test_a_repeated_total_is_no_usage_and_the_last_total_wins(tmp_path: Path) -> None:
    trace, _ = load(
        tmp_path / "a.jsonl",
        meta(),
        agent("a"),
        tokens(100),
        tokens(100),
        agent("b"),
        tokens(250),
        event(type="token_count"),
    )
    assert [step.usage.input_tokens for step in trace.steps if step.usage] == [100, 150]
    assert trace.totals.usage.input_tokens == 250
    assert trace.totals.usage.cached_tokens == 125


def test_a_total_that_went_down_began_anew(tmp_path: Path) -> None:
    trace, _ = load(tmp_path / "a.jsonl", meta(), agent("a"), tokens(100, 100), agent("b"), tokens(30, 20))
    assert trace.totals.usage.input_tokens == 120


def test_a_count_before_any_agent_turn_is_not_lost(tmp_path: Path) -> None:
    trace, _ = load(tmp_path / "a.jsonl", meta(), user("x"), tokens(40))
    assert trace.totals.usage.input_tokens == 40


def test_tokens_end_a_response_and_parallel_calls_are_one_step(tmp_path: Path) -> None:
    trace, _ = load(
        tmp_path / "a.jsonl",
        meta(),
        agent("look"),
        call("call_1", cmd="a"),
        call("call_2", cmd="b"),
        output("call_2", "Exit code: 0\nOutput:\nB"),
        output("call_1", "Process exited with code 3\nOutput:\nA"),
        tokens(10),
        call("call_3", cmd="c"),
        tokens(20),
    )
    assert [[c.id for c in step.tool_calls] for step in trace.steps] == [["call_1", "call_2"], ["call_3"]]
    assert [(r.call_id, r.outcome, r.exit_code) for r in trace.steps[0].results] == [
        ("call_2", "ok", 0),
        ("call_1", "error", 3),
    ]


@pytest.mark.parametrize("ordered", [True, False])
def test_a_fork_counts_its_parents_turns_once_in_any_order(tmp_path: Path, ordered: bool) -> None:
    started = event(type="task_started", turn_id=OLD_TURN)
    shared = [started, user("yes"), agent("one"), tokens(100, 100), event(type="task_complete", turn_id=OLD_TURN)]
    new = [event(type="task_started", turn_id=NEW_TURN), user("yes"), agent("two"), tokens(150, 50)]
    parent = {"id": "018e0000-0000-7000-8000-000000000001"}
    first = [meta(**parent), *shared]
    second = [meta(forked_from_id=parent["id"]), meta(**parent), *shared, *new]
    seen = Memory()
    paths = [(tmp_path / "p.jsonl", first), (tmp_path / "c.jsonl", second)]
    traces = {path.stem: load(path, *records, seen=seen)[0] for path, records in (paths if ordered else paths[::-1])}
    assert [step.copied for step in traces["p"].steps] == [False, False]
    assert [step.copied for step in traces["c"].steps] == [True, True, False, False]
    assert [traces[name].totals.usage.input_tokens for name in "pc"] == [100, 50]
    assert traces["c"].continues == parent["id"]


def test_a_fork_without_turn_ids_is_told_by_what_was_read(tmp_path: Path) -> None:
    shared = [user("yes"), agent("one"), tokens(100, 100)]
    parent = {"id": "parent"}
    seen = Memory()
    load(tmp_path / "p.jsonl", meta(**parent), *shared, user("yes"), agent("elsewhere"), seen=seen)
    trace, _ = load(
        tmp_path / "c.jsonl",
        meta(id="child", forked_from_id="parent"),
        *shared,
        user("now something else"),
        user("yes"),
        tokens(130, 30),
        agent("two"),
        seen=seen,
    )
    assert [(step.text, step.copied) for step in trace.steps] == [
        ("yes", True),
        ("one", True),
        ("now something else", False),
        ("yes", False),
        ("two", False),
    ]


def test_the_same_words_twice_are_no_copy(tmp_path: Path) -> None:
    trace, _ = load(tmp_path / "a.jsonl", meta(), user("yes"), agent("a"), user("yes"), agent("a"))
    assert not any(step.copied for step in trace.steps)


def test_sub_agents_name_their_parent(tmp_path: Path) -> None:
    source = {"subagent": {"thread_spawn": {"parent_thread_id": "p", "depth": 1}}}
    trace, _ = load(tmp_path / "a.jsonl", meta(source=source), agent("x"))
    assert (trace.parent, trace.continues) == ("p", None)


def test_two_threads_in_one_file_are_two_traces(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(json.dumps(r) for r in [meta(), user("a"), meta(id="other"), user("b")]))
    traces = list(read_file(path))
    assert [(t.id, t.steps[0].text) for t in traces] == [(META["id"], "a"), ("other", "b")]
    assert traces[0].provenance.byte_end == traces[1].provenance.byte_start


def test_bare_items_of_the_first_rollouts(tmp_path: Path) -> None:
    path = tmp_path / "rollout-2025-05-01-x.jsonl"
    records = [
        {"id": "s", "timestamp": "2025-05-01T00:00:00Z", "instructions": None},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]},
        {"type": "local_shell_call", "call_id": "c", "status": "completed", "action": {"command": ["ls"]}},
        {"type": "function_call_output", "call_id": "c", "output": '{"output":"x","metadata":{"exit_code":1}}'},
    ]
    path.write_text("\n".join(json.dumps(r, separators=(",", ":")) for r in records))
    (trace,) = read_file(path)
    assert trace.id == "s"
    assert (trace.steps[1].tool_calls[0].name, trace.steps[1].tool_calls[0].arguments) == (
        "local_shell",
        {"command": ["ls"]},
    )
    result = trace.steps[1].results[0]
    assert (result.exit_code, result.outcome, result.text) == (1, "error", "x")


def test_events_alone_still_make_turns(tmp_path: Path) -> None:
    trace, _ = load(
        tmp_path / "a.jsonl",
        meta(),
        event(type="user_message", message="q"),
        event(type="agent_reasoning", text="hm"),
        event(type="agent_message", message="a"),
    )
    assert [(step.event_class, step.text, step.reasoning) for step in trace.steps] == [
        ("human", "q", None),
        ("agent", "a", "hm"),
    ]


def test_what_is_not_known_is_kept(tmp_path: Path) -> None:
    trace, report = load(
        tmp_path / "a.jsonl", meta(odd=1), {"type": "new_thing", "payload": {"x": 1}}, event(type="later", y=2)
    )
    assert trace.extra["session_meta"]["odd"] == 1
    assert [record["payload"].get("x", record["payload"].get("y")) for record in trace.extra["unknown_records"]] == [
        1,
        2,
    ]
    assert [skip.noted for skip in report.skipped] == [True, True]


def test_a_torn_line_loses_one_line(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    whole = "\n".join(json.dumps(r) for r in [meta(), user("a\u2028b\u0085c")])
    path.write_text(whole + "\n" + json.dumps(user("torn"))[:-9])
    reading = read_file(path)
    (trace,) = reading
    assert [step.text for step in trace.steps] == ["a\u2028b\u0085c"]
    assert reading.report.skipped[0].line == 3
    assert reading.report.kept_bytes == len(whole.encode()) + 1


@pytest.mark.parametrize(
    ("raw", "ended", "outcome", "code"),
    [
        ("Chunk ID: 1\nProcess exited with code 1\nOutput:\nExit code: 0\n", {}, "error", 1),
        ("Process running with session ID 7\nOutput:\nExit code: 5", {}, "unknown", None),
        ("exec command rejected by user", {}, "rejected", None),
        ("patch rejected by user", {"success": False}, "rejected", None),
        ("apply_patch verification failed: no such lines", {}, "error", None),
        ("Plan updated", {}, "unknown", None),
        ("Wall time: 1 seconds\nOutput:\n{}", {"success": False}, "error", None),
        ([{"type": "input_text", "text": "seen"}, {"type": "input_image", "image_url": "x"}], {}, "unknown", None),
        ({"content": "x", "success": True}, {}, "ok", None),
        (None, {"exit_code": 2}, "error", 2),
        ("x …12 tokens truncated… y", {}, "unknown", None),
    ],
)
def test_outcomes(raw: Any, ended: dict[str, Any], outcome: str, code: int | None) -> None:
    found = output_of(raw, ended)
    assert (found.outcome, found.exit_code) == (outcome, code)
    assert found.truncated == ("truncated" in str(raw))


def test_a_replayed_record_has_the_same_id_in_both_files(tmp_path: Path) -> None:
    """Files are also read apart, by workers that share no memory: the ids alone must tell copies."""
    shared = [user("yes"), agent("one"), user("yes"), call("call_1", cmd="x")]
    first, _ = load(tmp_path / "p.jsonl", meta(id="parent"), *shared)
    second, _ = load(tmp_path / "c.jsonl", meta(id="child", forked_from_id="parent"), meta(id="parent"), *shared)
    assert [step.source_ids for step in first.steps] == [step.source_ids for step in second.steps]
    assert len({record for step in first.steps for record in step.source_ids}) == 4
    other, _ = load(tmp_path / "o.jsonl", meta(id="other"), *shared)
    assert {r for s in other.steps for r in s.source_ids}.isdisjoint(r for s in first.steps for r in s.source_ids)


@pytest.mark.parametrize("odd", [["session_meta"], {"a": 1}, 5, None])
def test_a_bare_record_whose_type_is_no_text_is_kept_as_unknown(tmp_path: Path, odd: Any) -> None:
    trace, report = load(tmp_path / "rollout-1.jsonl", meta(), {"type": odd, "id": "x"}, user("go"))
    assert [step.text for step in trace.steps] == ["go"]
    assert report.kept_bytes == report.n_bytes
    assert trace.extra["unknown_records"] == [{"type": odd, "id": "x"}]
