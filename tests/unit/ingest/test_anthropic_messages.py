"""Anthropic Messages logs, built to the public specification."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from seatrial.ingest import read_file
from seatrial.records import FileReport, Trace

TOOL_USE = {"type": "tool_use", "id": "toolu_1", "name": "bash", "input": {"command": "ls"}}
THINKING = {"type": "thinking", "thinking": "hm", "signature": "x"}
USAGE = {"input_tokens": 5, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 10, "output_tokens": 7}


def response(*blocks: dict[str, Any], **more: Any) -> dict[str, Any]:
    own = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": blocks}
    return own | {"stop_reason": "end_turn", "usage": USAGE} | more


def request(*messages: dict[str, Any]) -> dict[str, Any]:
    return {
        "model": "m",
        "max_tokens": 10,
        "system": "rules",
        "tools": [{"name": "bash", "input_schema": {}}],
        "messages": messages,
    }


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def load(path: Path, text: str) -> tuple[list[Trace], FileReport]:
    path.write_text(text)
    reading = read_file(path)
    traces = list(reading)
    assert reading.report.format == "anthropic-messages"
    assert reading.report.n_bytes == path.stat().st_size
    return traces, reading.report


@pytest.mark.parametrize("wrapped", [True, False])
def test_requests_that_repeat_the_conversation_are_one_trace(tmp_path: Path, wrapped: bool) -> None:
    answer = {"role": "assistant", "content": [THINKING, TOOL_USE]}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "no", "is_error": True}
    first, then = user("go"), [user([{"type": "text", "text": "go", "cache_control": {"type": "ephemeral"}}]), answer]
    entries = [
        (request(first), response(THINKING, TOOL_USE)),
        (request(*then, user([result])), response({"type": "text", "text": "done"})),
        (request(user("another conversation")), response({"type": "text", "text": "hello"})),
    ]
    lines = [{"request": a, "response": b} if wrapped else a | {"response": b} for a, b in entries]
    traces, _ = load(tmp_path / "a.jsonl", "\n".join(json.dumps(line) for line in lines))
    assert [[s.event_class for s in t.steps] for t in traces] == [
        ["harness", "human", "agent", "agent"],
        ["harness", "human", "agent"],
    ]
    trace = traces[0]
    agent = trace.steps[2]
    assert (agent.reasoning, agent.tool_calls[0].arguments) == ("hm", {"command": "ls"})
    assert [(r.call_id, r.outcome, r.text) for r in agent.results] == [("toolu_1", "error", "no")]
    usage = trace.totals.usage
    assert (usage.input_tokens, usage.output_tokens, usage.cached_tokens) == (230, 14, 200)
    assert trace.model == "m"
    assert trace.agent.tools is not None


def test_bare_messages_and_single_responses(tmp_path: Path) -> None:
    messages = [user("a"), {"role": "assistant", "content": [TOOL_USE]}, user("<system-reminder>x</system-reminder>")]
    (trace,), _ = load(tmp_path / "a.json", json.dumps(messages))
    assert [s.event_class for s in trace.steps] == ["human", "agent", "harness"]
    (trace,), _ = load(tmp_path / "b.json", json.dumps(response({"type": "text", "text": "x"})))
    assert [s.text for s in trace.steps] == ["x"]


def test_an_entry_that_is_none_is_skipped(tmp_path: Path) -> None:
    good = json.dumps(request(user("a")) | {"response": response(TOOL_USE)})
    traces, report = load(tmp_path / "a.jsonl", f'{good}\n{{"x": 1}}\n{good[:50]}\n')
    assert len(traces) == 1
    assert [skip.line for skip in report.skipped] == [2, 3]


def test_no_other_format_is_taken_for_it(tmp_path: Path) -> None:
    chat = {"messages": [user("a"), {"role": "assistant", "content": "b"}]}
    path = tmp_path / "a.json"
    path.write_text(json.dumps(chat))
    reading = read_file(path)
    assert len(list(reading)) == 1
    assert reading.report.format == "openai-chat"
