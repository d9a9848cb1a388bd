"""Claude Code sessions: each peculiarity of the format on its own."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from seatrial import ingest
from seatrial.canon import canonical
from seatrial.ingest.claude_code import READER
from seatrial.ingest.claude_code.speech import said
from seatrial.ingest.lines import LINE_LIMIT
from seatrial.records import FileReport, Step, Trace

_COUNT = iter(range(1, 1_000_000))


def record(type: str, **fields: Any) -> dict[str, Any]:
    n = next(_COUNT)
    base = {
        "type": type,
        "uuid": f"u{n}",
        "sessionId": "s",
        "timestamp": f"2026-01-01T00:{n // 60 % 60:02}:{n % 60:02}Z",
    }
    return {**base, **fields}


def user(content: Any, **fields: Any) -> dict[str, Any]:
    return record("user", message={"role": "user", "content": content}, **fields)


def agent(*blocks: dict[str, Any], id: str = "m", model: str = "model-a", **fields: Any) -> dict[str, Any]:
    usage = fields.pop("usage", {"input_tokens": 1, "output_tokens": 1})
    message = {"role": "assistant", "id": id, "model": model, "content": list(blocks), "usage": usage}
    return record("assistant", message=message, **fields)


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def call(id: str = "t", name: str = "Bash", **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": name, "input": arguments}


def answer(content: Any, id: str = "t", detail: Any = None, **fields: Any) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": id, "content": content, **fields}
    return user([block], **({} if detail is None else {"toolUseResult": detail}))


def read(folder: Path, *records: Any, name: str = "s.jsonl") -> tuple[list[Trace], FileReport]:
    data = b"".join(r if isinstance(r, bytes) else json.dumps(r).encode() + b"\n" for r in records)
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    reading = ingest.read_file(path, format="claude-code")
    traces = list(reading)
    assert reading.report.kept_bytes + reading.report.skipped_bytes == reading.report.n_bytes == len(data)
    return traces, reading.report


def steps(folder: Path, *records: Any) -> tuple[Step, ...]:
    traces, _ = read(folder, *records)
    return traces[0].steps


def test_streamed_records_of_one_message_are_one_step(tmp_path: Path) -> None:
    got = steps(
        tmp_path,
        user("go"),
        agent({"type": "thinking", "thinking": "hm"}, usage={"input_tokens": 5, "output_tokens": 1}),
        agent(text("Look"), usage={"input_tokens": 5, "output_tokens": 2}),
        agent(text("Then fix"), call("t1", command="ls")),
        answer("x", "t1"),
        agent(
            call("t2", command="pwd"),
            usage={
                "input_tokens": 5,
                "cache_creation_input_tokens": 30,
                "cache_read_input_tokens": 200,
                "output_tokens": 9,
            },
        ),
        answer("y", "t2"),
    )
    assert [s.event_class for s in got] == ["human", "agent"]
    step = got[1]
    assert (step.text, step.reasoning, step.model) == ("Look\nThen fix", "hm", "model-a")
    assert [c.id for c in step.tool_calls] == [r.call_id for r in step.results] == ["t1", "t2"]
    assert step.usage is not None
    assert (step.usage.input_tokens, step.usage.cached_tokens, step.usage.output_tokens) == (235, 200, 9)
    assert step.usage.extra == {"cache_creation_input_tokens": 30, "uncached_input_tokens": 5}
    assert len(step.source_ids) == 6


def test_a_grown_copy_of_a_block_replaces_it_and_a_repeated_one_adds_nothing(tmp_path: Path) -> None:
    got = steps(tmp_path, agent(text("One")), agent(text("One two")), agent(text("One two"), call()), agent(call()))
    assert (len(got), got[0].text, len(got[0].tool_calls)) == (1, "One two", 1)


def test_records_without_a_message_id_stand_alone(tmp_path: Path) -> None:
    first, second = agent(text("a")), agent(text("b"))
    del first["message"]["id"], second["message"]["id"]
    assert [s.text for s in steps(tmp_path, first, second)] == ["a", "b"]


def test_a_repeated_record_is_read_once_and_a_colliding_uuid_is_kept(tmp_path: Path) -> None:
    one = user("one")
    traces, report = read(tmp_path, one, one, {**user("two"), "uuid": one["uuid"]})
    assert [s.text for s in traces[0].steps] == ["one", "two"]
    assert report.records == {"user": 2, "duplicate": 1}


def test_records_of_another_file_are_copied_and_not_counted(tmp_path: Path) -> None:
    shared = [user("go"), agent(text("ok"), usage={"input_tokens": 7})]
    read(tmp_path, *shared, name="a.jsonl")
    read(tmp_path, *shared, user("more"), agent(text("yes"), id="m2", usage={"input_tokens": 11}), name="b.jsonl")
    first, second = ingest.read(tmp_path)
    assert [s.copied for s in first.steps] == [False, False]
    assert [s.copied for s in second.steps] == [True, True, False, False]
    assert (first.totals.usage.input_tokens, second.totals.usage.input_tokens) == (7, 11)
    assert first.id != second.id


@pytest.mark.parametrize(
    ("content", "event_class", "kind", "words"),
    [
        ("plain", "human", None, "plain"),
        ("<b>bold</b> idea", "human", None, "<b>bold</b> idea"),
        ("[1] is wrong", "human", None, "[1] is wrong"),
        ("<system-reminder>r</system-reminder>\n do it ", "human", None, "do it"),
        ("do it\n<system-reminder>r</system-reminder>", "human", None, "do it"),
        ("<system-reminder>r</system-reminder>", "harness", "reminder", "<system-reminder>r</system-reminder>"),
        ("<system-reminder>never closed", "human", None, "<system-reminder>never closed"),
        ("<ide_selection>x</ide_selection><ide_opened_file>y</ide_opened_file>why?", "human", None, "why?"),
        ("<command-name>/clear</command-name>", "harness", "command", "<command-name>/clear</command-name>"),
        ("<local-command-stdout></local-command-stdout>", "harness", "command_output", None),
        ("<bash-input>ls</bash-input>", "harness", "command", None),
        ("<task-notification><x/></task-notification>", "harness", "task_notification", None),
        ("<anything>\n<task-id>a</task-id>", "harness", "task_notification", None),
        ("[Request interrupted by user]", "interrupted", None, "[Request interrupted by user]"),
        ("This session is being continued from a previous conversation that", "harness", "compact_summary", None),
        ("Continue from where you left off.", "harness", "resume", None),
        ("Stop hook feedback:\n- no", "harness", "hook", None),
        ("  ", "harness", "empty", "  "),
    ],
)
def test_who_spoke(content: str, event_class: str, kind: str | None, words: str | None) -> None:
    (got,) = said(content)
    assert (got.event_class, got.kind) == (event_class, kind)
    assert got.text == (content if words is None else words)


def test_what_was_stripped_is_kept_apart() -> None:
    (got,) = said("<system-reminder>a</system-reminder>\n<ide_selection>b</ide_selection>\nhi")
    assert got.extra == {"stripped": ["<system-reminder>a</system-reminder>", "<ide_selection>b</ide_selection>"]}


def test_an_interruption_is_apart_from_the_correction_after_it(tmp_path: Path) -> None:
    got = steps(tmp_path, user([text("[Request interrupted by user for tool use]")]), user("no, use make"))
    assert [(s.event_class, s.text) for s in got] == [
        ("interrupted", "[Request interrupted by user for tool use]"),
        ("human", "no, use make"),
    ]
    joined = steps(tmp_path, user("[Request interrupted by user]\nno, use make"))
    assert [(s.event_class, s.text) for s in joined] == [
        ("interrupted", "[Request interrupted by user]"),
        ("human", "no, use make"),
    ]


def test_a_slash_command_keeps_its_name_and_arguments(tmp_path: Path) -> None:
    wrapper = (
        "<command-message>x</command-message>\n<command-name>/x</command-name>\n<command-args>fix it</command-args>"
    )
    (step,) = steps(tmp_path, user(wrapper))
    assert (step.event_class, step.extra) == ("harness", {"command": "/x", "arguments": "fix it"})


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"isMeta": True}, "meta"),
        ({"isCompactSummary": True, "isVisibleInTranscriptOnly": True}, "compact_summary"),
        ({"isVisibleInTranscriptOnly": True}, "transcript_only"),
        ({"planContent": "# Plan"}, "plan"),
        ({"origin": {"kind": "task-notification"}}, "task_notification"),
        ({"origin": {"kind": "human"}}, None),
    ],
)
def test_fields_that_say_who_wrote(tmp_path: Path, fields: dict[str, Any], kind: str | None) -> None:
    (step,) = steps(tmp_path, user("no, that is wrong", **fields))
    assert (step.event_class, step.kind) == ("human" if kind is None else "harness", kind)


@pytest.mark.parametrize(
    ("content", "is_error", "detail", "outcome", "exit_code"),
    [
        ("fine", None, {"stdout": "fine", "interrupted": False}, "ok", None),
        ("fine", False, None, "ok", None),
        ("Exit code 2\nboom", True, "Error: Exit code 2\nboom", "error", 2),
        ("bash: make: Permission denied", True, "Error: Exit code 126", "error", 126),
        ("<tool_use_error>File does not exist.</tool_use_error>", True, None, "error", None),
        ("The user doesn't want to proceed with this tool use. STOP", True, "User rejected tool use", "rejected", None),
        ("odd words", True, "User rejected tool use", "rejected", None),
        ("[Request interrupted by user for tool use]", True, None, "interrupted", None),
        ("<tool_use_error>Sibling tool call errored</tool_use_error>", True, None, "interrupted", None),
        ("half", False, {"stdout": "half", "interrupted": True}, "interrupted", None),
        ("the log says Exit code 3 here", None, None, "ok", None),
    ],
)
def test_outcomes_are_what_the_log_says(
    tmp_path: Path, content: str, is_error: bool | None, detail: Any, outcome: str, exit_code: int | None
) -> None:
    fields = {} if is_error is None else {"is_error": is_error}
    (step,) = steps(tmp_path, agent(call()), answer(content, detail=detail, **fields))
    (result,) = step.results
    assert (result.outcome, result.exit_code, result.text) == (outcome, exit_code, content)


def test_what_a_human_types_when_refusing_is_a_turn(tmp_path: Path) -> None:
    refusal = "The user doesn't want to proceed with this tool use. (…) the user said:\nmain is clean"
    got = steps(tmp_path, agent(call()), answer(refusal, is_error=True), user("go on"))
    assert [(s.event_class, s.kind, s.text) for s in got[1:]] == [
        ("human", "rejection", "main is clean"),
        ("human", None, "go on"),
    ]
    assert got[0].results[0].outcome == "rejected"
    clarify = refusal.replace("main is clean", "The user wants to clarify these questions.\n Ask again")
    assert len(steps(tmp_path, agent(call()), answer(clarify, is_error=True))) == 1


def test_calls_are_judged_by_what_the_harness_answered(tmp_path: Path) -> None:
    got = steps(
        tmp_path,
        agent(call("a", "Nope"), call("b", "Read"), call("c"), call("d"), call("e")),
        answer("<tool_use_error>Error: No such tool available: Nope</tool_use_error>", "a", is_error=True),
        answer("<tool_use_error>InputValidationError: Read failed</tool_use_error>", "b", is_error=True),
        answer("Exit code 1", "c", is_error=True),
        answer("ok", "d"),
    )
    assert [c.validity for c in got[0].tool_calls] == ["unknown_tool", "invalid", "valid", "valid", "unknown"]


def test_arguments_that_are_no_object_are_kept_as_text(tmp_path: Path) -> None:
    deep: Any = "x"
    for _ in range(300):
        deep = {"a": deep}
    blocks = [{**call("a"), "input": "rm -rf"}, {**call("b"), "input": [1]}, {**call("c"), "input": deep}]
    calls = steps(tmp_path, agent(*blocks))[0].tool_calls
    assert [(c.arguments, c.validity) for c in calls] == [({}, "invalid"), ({}, "invalid"), ({}, "unknown")]
    assert (calls[0].raw_arguments, calls[1].raw_arguments) == ("rm -rf", "[1]")
    assert json.loads(calls[2].raw_arguments or "") == deep


def test_results_with_parts_images_and_truncation(tmp_path: Path) -> None:
    got = steps(
        tmp_path,
        agent(call("a"), call("b"), call("c")),
        answer([text("one"), {"type": "image", "source": {"data": "AAAA"}}, text("two")], "a"),
        answer("x\n... [120 lines truncated] ...\ny", "b"),
        answer("no", "c", {"interrupted": False, "stderr": "warned", "returnCodeInterpretation": "No matches found"}),
        answer("whose?", "nobody's"),
    )
    first, second, third = got[0].results
    assert (first.text, first.extra, first.truncated) == ("one\ntwo", {"other_blocks": {"image": 1}}, False)
    assert second.truncated
    assert third.extra == {"return_code_interpretation": "No matches found", "stderr": "warned"}
    assert (got[1].event_class, got[1].kind, got[1].results[0].text) == ("harness", "orphan_result", "whose?")


def test_synthetic_and_api_error_turns_are_the_harness_and_billed_apart(tmp_path: Path) -> None:
    traces, _ = read(
        tmp_path,
        agent(text("Done"), usage={"input_tokens": 5, "output_tokens": 2}),
        agent(text("API Error: 529"), id="e", model="<synthetic>", isApiErrorMessage=True, usage={"input_tokens": 3}),
        agent(text("No response requested."), id="n", model="<synthetic>", usage={"input_tokens": 4}),
    )
    assert [(s.event_class, s.kind, s.model) for s in traces[0].steps] == [
        ("agent", None, "model-a"),
        ("harness", "api_error", None),
        ("harness", "synthetic", None),
    ]
    assert traces[0].model == "model-a"
    assert traces[0].totals.usage.input_tokens == 5
    assert traces[0].totals.extra["harness_usage"].input_tokens == 7


def test_a_session_without_a_model_or_tokens_says_none(tmp_path: Path) -> None:
    reply = agent(text("hi"))
    del reply["message"]["model"], reply["message"]["usage"]
    traces, _ = read(tmp_path, user("go"), reply)
    assert (traces[0].model, traces[0].totals.usage.input_tokens) == (None, None)


def test_words_queued_while_the_agent_works_are_kept_once(tmp_path: Path) -> None:
    got = steps(
        tmp_path,
        user("go"),
        agent(call()),
        record("queue-operation", operation="enqueue", content="stop that"),
        record("queue-operation", operation="enqueue", content="and hurry"),
        record("queue-operation", operation="enqueue", content='{"task_id":"b1"}'),
        record("queue-operation", operation="enqueue", content="/exit"),
        record("queue-operation", operation="enqueue", content="taken back"),
        record("queue-operation", operation="popAll", content="taken back"),
        record("queue-operation", operation="remove"),
        answer("ok"),
        user("and hurry"),
    )
    assert [(s.event_class, s.kind, s.text) for s in got if s.event_class != "agent"] == [
        ("human", None, "go"),
        ("human", "queued", "stop that"),
        ("harness", "command", "/exit"),
        ("human", None, "and hurry"),
    ]
    assert [s.index for s in got] == list(range(5))


def test_a_queued_command_may_come_as_an_attachment(tmp_path: Path) -> None:
    got = steps(
        tmp_path,
        record("queue-operation", operation="enqueue", content="stop that"),
        record("attachment", attachment={"type": "queued_command", "prompt": "stop that", "commandMode": "prompt"}),
        record("attachment", attachment={"type": "queued_command", "prompt": "x", "commandMode": "task-notification"}),
        record("attachment", attachment={"type": "todo_reminder", "content": []}),
    )
    assert [(s.event_class, s.kind, s.text) for s in got] == [
        ("human", None, "stop that"),
        ("harness", "task_notification", "x"),
    ]


def test_a_side_chain_is_a_trace_of_its_own(tmp_path: Path) -> None:
    spawn = agent(call("t1", "Task", prompt="p"), call("t2", "Task", prompt="q"))
    ask_p = user("p", isSidechain=True, parentUuid=None)
    ask_q = user("q", isSidechain=True, parentUuid=None)
    traces, _ = read(
        tmp_path,
        user("go"),
        spawn,
        ask_p,
        ask_q,
        agent(text("from q"), id="q", isSidechain=True, parentUuid=ask_q["uuid"]),
        agent(text("from p"), id="p", isSidechain=True, parentUuid=ask_p["uuid"]),
        answer("done", "t1", {"agentId": "aa"}),
        answer("done", "t2"),
    )
    main, first, second = traces
    assert [s.event_class for s in main.steps] == ["human", "agent"]
    assert [r.subagents for r in main.steps[1].results] == [(first.id,), (second.id,)]
    assert (first.id, first.parent, first.parent_call) == ("s:aa", "s", "t1")
    assert (second.parent, second.parent_call) == ("s", "t2")
    assert [(s.event_class, s.kind, s.text) for s in first.steps] == [
        ("harness", "subagent_prompt", "p"),
        ("agent", None, "from p"),
    ]
    assert second.steps[1].text == "from q"


def _progress(inner: dict[str, Any], agent_id: str = "a1") -> dict[str, Any]:
    data = {"type": "agent_progress", "agentId": agent_id, "message": inner, "prompt": "p"}
    return record("progress", data=data, parentToolUseID="t1", toolUseID="agent_msg")


def test_progress_records_of_a_sub_agent_become_its_trace(tmp_path: Path) -> None:
    traces, report = read(
        tmp_path,
        agent(call("t1", "Task", prompt="p")),
        _progress(user("p")),
        _progress(agent(call("x"), id="i", model="model-b")),
        _progress(answer("Exit code 1", "x", is_error=True)),
        record("progress", data={"type": "bash_progress", "output": "…"}),
        answer("done", "t1", {"agentId": "a1", "totalTokens": 12}),
    )
    main, sub = traces
    assert (sub.id, sub.parent, sub.parent_call, sub.model) == ("s:a1", "s", "t1", "model-b")
    assert [s.event_class for s in sub.steps] == ["harness", "agent"]
    assert sub.steps[1].results[0].exit_code == 1
    assert main.steps[0].results[0].subagents == ("s:a1",)
    assert report.records == {"assistant": 1, "progress:agent_progress": 3, "progress:bash_progress": 1, "user": 1}


@pytest.mark.parametrize("place", ["s/subagents/agent-a1.jsonl", "agent-a1.jsonl"])
def test_a_sub_agents_own_file_is_linked_and_read_once(tmp_path: Path, place: str) -> None:
    inner = [user("p"), agent(text("found"), id="i")]
    apart = [{**r, "isSidechain": True, "agentId": "a1"} for r in inner]
    read(tmp_path, *apart, name=place)
    read(
        tmp_path,
        agent(call("t1", "Task", prompt="p")),
        *map(_progress, inner),
        answer("done", "t1", {"agentId": "a1"}),
    )
    traces = {t.id: t for t in ingest.read(tmp_path)}
    assert set(traces) == {"s", "s:a1"}
    assert traces["s:a1"].parent == "s"
    assert traces["s:a1"].parent_call == "t1"
    assert traces["s"].steps[0].results[0].subagents == ("s:a1",)
    assert not any(s.copied for t in traces.values() for s in t.steps)


def test_system_records_and_bookkeeping(tmp_path: Path) -> None:
    traces, report = read(
        tmp_path,
        record("summary", summary="About it", leafUuid="x"),
        user("go"),
        record("system", subtype="stop_hook_summary", hookErrors=[]),
        record("system", subtype="stop_hook_summary", hookErrors=["exit 2"], content=""),
        record("system", subtype="turn_duration", durationMs=1500),
        record("system", subtype="compact_boundary", content="Conversation compacted"),
        record("pr-link", prUrl="https://example.test/1"),
        record("pr-link", prUrl="https://example.test/1"),
        {"type": "file-history-snapshot", "messageId": "m", "snapshot": {}},
    )
    (trace,) = traces
    assert [(s.kind, s.text) for s in trace.steps[1:]] == [
        ("hook", ""),
        ("compact_boundary", "Conversation compacted"),
    ]
    assert trace.steps[1].extra == {"hook_errors": ['"exit 2"']}
    assert trace.extra == {"summaries": ["About it"], "pr_links": ["https://example.test/1"]}
    assert trace.totals.extra == {"turn_ms": 1500.0}
    assert report.records["file-history-snapshot"] == 1


def test_unknown_records_are_kept_whole(tmp_path: Path) -> None:
    traces, report = read(tmp_path, user("go"), record("novel", deep={"a": [1]}))
    (kept,) = traces[0].extra["unknown_records"]
    assert kept["line"] == 2
    assert json.loads(kept["json"])["deep"] == {"a": [1]}
    assert [(s.line, s.noted) for s in report.skipped] == [(2, True)]


def test_a_file_of_unknown_records_alone_still_keeps_them(tmp_path: Path) -> None:
    (trace,), _ = read(tmp_path, record("novel"))
    assert (trace.steps, len(trace.extra["unknown_records"])) == ((), 1)
    assert read(tmp_path, record("summary", summary="x"))[0] == []


def test_a_torn_line_loses_one_line(tmp_path: Path) -> None:
    torn = json.dumps(user("lost")).encode()[:-9] + b"\n"
    traces, report = read(tmp_path, user("a"), torn, user("b"), b'{"type":"assis')
    assert [s.text for s in traces[0].steps] == ["a", "b"]
    assert [(s.line, s.bytes) for s in report.skipped] == [(2, len(torn)), (4, 14)]


def test_a_record_glued_to_a_torn_one_is_saved(tmp_path: Path) -> None:
    torn = json.dumps(user("lost")).encode()[:-9]
    traces, report = read(tmp_path, torn + json.dumps(user("saved")).encode() + b"\n")
    assert [s.text for s in traces[0].steps] == ["saved"]
    assert [(s.line, s.bytes) for s in report.skipped] == [(1, len(torn))]


def test_two_records_on_one_line_are_both_kept(tmp_path: Path) -> None:
    line = json.dumps(user("a")).encode() + json.dumps(user("b")).encode() + b"\n"
    traces, report = read(tmp_path, line)
    assert [s.text for s in traces[0].steps] == ["a", "b"]
    assert [(s.line, s.why, s.noted) for s in report.skipped] == [(1, "2 JSON objects on one line: all kept", True)]
    assert report.skipped_bytes == 0


@pytest.mark.parametrize("inside", ["\u2028", "\u2029", "\x85", "\x1c"])
def test_other_line_separators_stay_inside_their_record(tmp_path: Path, inside: str) -> None:
    raw = json.dumps(user(f"a{inside}b"), ensure_ascii=False).encode() + b"\n"
    assert [s.text for s in steps(tmp_path, raw)] == [f"a{inside}b"]


def test_damaged_text_is_repaired_and_noted(tmp_path: Path) -> None:
    bad = json.dumps(user("caf@ @")).encode().replace(b"@", b"\xe9", 1) + b"\n"
    lone = json.dumps(user("x")).encode().replace(b'"x"', b'"\\ud83d x"') + b"\n"
    traces, report = read(tmp_path, bad, lone)
    assert [s.text for s in traces[0].steps] == ["caf\ufffd @", "? x"]
    assert [s.line for s in report.skipped if s.noted] == [1]
    json.dumps([s.text for s in traces[0].steps], ensure_ascii=False).encode()


def test_values_of_another_type_are_read_where_that_is_safe_and_kept_where_not(tmp_path: Path) -> None:
    odd = agent(text("hi"), usage={"input_tokens": "12", "output_tokens": None})
    odd["timestamp"] = {"when": "then"}
    odd["isSidechain"] = None
    traces, report = read(tmp_path, odd)
    (step,) = traces[0].steps
    assert (step.text, step.time) == ("hi", None)
    assert step.usage is not None
    assert step.usage.input_tokens == 12
    assert traces[0].extra["odd_values"] == [{"line": 1, "json": '{"timestamp": {"when": "then"}}'}]
    assert [(s.line, s.noted) for s in report.skipped] == [(1, True)]


@pytest.mark.parametrize("line", [b"[1, 2]\n", b"7\n", b'"words"\n', b"null\n", b"\x00\x01\n", b"[" * 100_000 + b"\n"])
def test_a_line_that_is_no_object_is_skipped_with_a_reason(tmp_path: Path, line: bytes) -> None:
    traces, report = read(tmp_path, user("a"), line)
    assert len(traces[0].steps) == 1
    assert [(s.line, s.bytes) for s in report.skipped] == [(2, len(line))]


def test_deep_nesting_outside_what_is_read_costs_nothing(tmp_path: Path) -> None:
    deep = b'{"type":"user","uuid":"u","sessionId":"s","x":' + b"[" * 200_000 + b"]" * 200_000 + b"}\n"
    _, report = read(tmp_path, user("a"), deep, user("b"))
    assert [(s.line, s.why) for s in report.skipped] == [(2, "nested too deeply")]


@pytest.mark.parametrize("depth", [50, 300, 600, 950, 1500])
@pytest.mark.parametrize("where", ["result", "input", "unknown", "odd"])
def test_deep_nesting_anywhere_is_read_or_skipped_with_a_reason(tmp_path: Path, depth: int, where: str) -> None:
    block = '{"type":"tool_result","content":[', '"x"', "]}"
    before, middle, after = block if where == "result" else ('{"a":', "1", "}")
    deep = f"{before * depth}{middle}{after * depth}"
    line = {
        "result": '{"type":"user","uuid":"u","sessionId":"s","message":{"role":"user","content":[@]}}',
        "input": '{"type":"assistant","sessionId":"s","message":{"content":[{"type":"tool_use","id":"t","input":@}]}}',
        "unknown": '{"type":"novel","sessionId":"s","x":@}',
        "odd": '{"type":"user","sessionId":"s","cwd":@,"message":{"role":"user","content":"x"}}',
    }[where]
    traces, report = read(tmp_path, user("a"), line.replace("@", deep).encode() + b"\n", user("b"))
    assert [s.text for s in traces[0].steps][0::99] == ["a"]
    assert traces[0].steps[-1].text == "b"
    assert not any("broke" in s.why for s in report.skipped)
    canonical(traces[0])


def test_a_line_beyond_the_limit_is_skipped_and_the_hash_still_covers_the_file(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    with path.open("wb") as stream:
        stream.write(json.dumps(user("a")).encode() + b"\n")
        stream.write(b'{"type":"user","x":"')
        for _ in range(257):
            stream.write(b"y" * 1024 * 1024)
        stream.write(b'"}\n')
        stream.write(json.dumps(user("b")).encode() + b"\n")
    reading = ingest.read_file(path)
    (trace,) = reading
    assert [s.text for s in trace.steps] == ["a", "b"]
    (skip,) = reading.report.skipped
    assert (skip.line, skip.bytes) == (2, 257 * 1024 * 1024 + 23)
    assert f"{LINE_LIMIT:,}" in skip.why
    with path.open("rb") as stream:
        assert trace.provenance.content_hash == hashlib.file_digest(stream, "sha256").hexdigest()
    assert (trace.provenance.byte_start, trace.provenance.byte_end) == (0, path.stat().st_size)


def test_several_sessions_in_one_file_are_each_a_trace_with_its_bytes(tmp_path: Path) -> None:
    traces, _ = read(tmp_path, user("a"), user("b", sessionId="z"), user("c"), name="cat.jsonl")
    assert [t.id for t in traces] == ["s@cat", "z@cat", "s@cat~2"]
    data = (tmp_path / "cat.jsonl").read_bytes()
    spans = [(t.provenance.byte_start, t.provenance.byte_end) for t in traces]
    assert spans[0][0] == 0
    assert spans[-1][1] == len(data)
    for trace, (start, end) in zip(traces, spans, strict=True):
        assert trace.provenance.content_hash == hashlib.sha256(data[start:end]).hexdigest()


def test_a_file_named_after_its_session_is_one_trace(tmp_path: Path) -> None:
    name = "11111111-1111-4111-8111-111111111111"
    traces, _ = read(tmp_path, user("a", sessionId="old"), user("b", sessionId=name), name=f"{name}.jsonl")
    assert [(t.id, t.continues, len(t.steps)) for t in traces] == [(name, "old", 2)]


def test_wall_time_versions_and_place(tmp_path: Path) -> None:
    first = user("a", version="2.0", cwd="/w", gitBranch="main")
    traces, _ = read(tmp_path, first, user("b", version="2.1"))
    (trace,) = traces
    assert (trace.agent.name, trace.agent.version, trace.agent.extra) == (
        "claude-code",
        "2.0",
        {"versions": ["2.0", "2.1"]},
    )
    assert trace.extra == {"cwd": "/w", "git_branch": "main"}
    assert trace.totals.wall == trace.steps[1].time - trace.steps[0].time == 1.0  # type: ignore[operator]


@pytest.mark.parametrize(
    ("head", "sure"),
    [
        (json.dumps({"type": "user", "sessionId": "s", "message": {"role": "user", "content": "x"}}), True),
        (json.dumps({"type": "summary", "summary": "x", "leafUuid": "y"}), True),
        ('{"parentUuid":null,"sessionId":"s","type":"user","message":{"content":"a head cut sho', True),
        ('{"type":"session.start","data":{"sessionId":"x"},"parentId":null}', False),
        ('{"type":"session_meta","payload":{"id":"x"}}', False),
        ('{"task": "a", "trial": 0}', False),
        ("", False),
    ],
)
def test_sniffing(head: str, sure: bool) -> None:
    assert (READER.sniff(Path("x.jsonl"), head.encode()) > 0.5) is sure
