"""OpenAI chat logs in every wrapping."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from seatrial.ingest import read_file
from seatrial.records import FileReport, Trace

CALL = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": "{not json"}}
MESSAGES: list[Any] = [
    {"role": "developer", "content": "be brief"},
    {"role": "user", "content": [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "u"}}]},
    {"role": "assistant", "content": None, "tool_calls": [CALL], "annotations": ["kept"]},
    {"role": "tool", "tool_call_id": "c1", "content": "found"},
    {"role": "assistant", "content": "done"},
    {"role": "user", "content": "<system-reminder>x</system-reminder>"},
]
ANSWER = {
    "id": "r1",
    "object": "chat.completion",
    "created": 1700000000,
    "model": "m-1",
    "usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7},
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "hi"}}],
}


def load(path: Path, text: str, format: str = "auto") -> tuple[list[Trace], FileReport]:
    path.write_text(text)
    reading = read_file(path, format=format)
    traces = list(reading)
    assert reading.report.format == "openai-chat"
    assert reading.report.n_bytes == path.stat().st_size
    return traces, reading.report


def test_messages(tmp_path: Path) -> None:
    value = {"id": "x", "model": "m-1", "tools": [{"type": "function"}], "messages": MESSAGES, "temperature": 0}
    (trace,), _ = load(tmp_path / "a.json", json.dumps(value, indent=1))
    assert [(s.event_class, s.kind, s.text) for s in trace.steps] == [
        ("harness", "system_prompt", "be brief"),
        ("human", None, "look"),
        ("agent", None, ""),
        ("agent", None, "done"),
        ("harness", "system_reminder", "<system-reminder>x</system-reminder>"),
    ]
    assert trace.steps[1].extra["content"] == MESSAGES[1]["content"]
    calling = trace.steps[2]
    assert calling.tool_calls[0].raw_arguments == "{not json"
    assert calling.tool_calls[0].validity == "invalid"
    assert (calling.results[0].call_id, calling.results[0].text) == ("c1", "found")
    assert calling.extra == {"annotations": ["kept"]}
    assert (trace.model, trace.agent.tools, trace.extra["temperature"]) == ("m-1", ({"type": "function"},), 0)


@pytest.mark.parametrize(
    ("suffix", "text", "n", "steps"),
    [
        (".json", json.dumps(MESSAGES), 1, 5),
        (".json", json.dumps([{"messages": MESSAGES}, {"messages": MESSAGES}]), 2, 5),
        (".json", json.dumps([MESSAGES, MESSAGES]), 2, 5),
        (".json", json.dumps(ANSWER), 1, 1),
        (".json", json.dumps({"messages": MESSAGES, "response": ANSWER}), 1, 6),
        (".jsonl", f"{json.dumps({'messages': MESSAGES})}\n\n{json.dumps(MESSAGES)}\n", 2, 5),
        (".jsonl", "\n".join(map(json.dumps, MESSAGES)), 1, 5),
        (".jsonl", json.dumps({"custom_id": "a", "body": {"model": "m-1", "messages": MESSAGES}}), 1, 5),
        (".jsonl", json.dumps({"custom_id": "a", "response": {"status_code": 200, "body": ANSWER}}), 1, 1),
    ],
)
def test_wrappings(tmp_path: Path, suffix: str, text: str, n: int, steps: int) -> None:
    traces, report = load(tmp_path / f"a{suffix}", text)
    assert [len(t.steps) for t in traces] == [steps] * n
    assert len({t.id for t in traces}) == n
    assert report.skipped_bytes == 0


def test_a_response(tmp_path: Path) -> None:
    (trace,), _ = load(tmp_path / "a.json", json.dumps(ANSWER))
    (step,) = trace.steps
    assert (step.event_class, step.text, step.time) == ("agent", "hi", 1700000000.0)
    assert (trace.totals.usage.input_tokens, trace.totals.usage.output_tokens) == (5, 2)
    assert trace.extra["choice"] == {"index": 0, "finish_reason": "stop"}


def test_legacy_function_calls(tmp_path: Path) -> None:
    messages = [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": '{"a": 1}'}},
        {"role": "function", "name": "f", "content": "1"},
        {"role": "function", "name": "g", "content": "2"},
    ]
    (trace,), _ = load(tmp_path / "a.json", json.dumps({"messages": messages}))
    step = trace.steps[1]
    assert step.tool_calls[0].arguments == {"a": 1}
    assert [(r.call_id, r.text) for r in step.results] == [(step.tool_calls[0].id, "1"), (None, "2")]


def test_results_in_a_user_turn_are_no_persons_words(tmp_path: Path) -> None:
    messages = [
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "no", "is_error": True}]},
        {"role": "user", "content": [{"type": "text", "text": "thanks"}]},
    ]
    (trace,), _ = load(tmp_path / "a.json", json.dumps({"messages": messages}), "openai-chat")
    agent, person = trace.steps
    assert agent.tool_calls[0].arguments == {"a": 1}
    assert (agent.results[0].call_id, agent.results[0].outcome, agent.results[0].text) == ("t", "error", "no")
    assert (person.event_class, person.text) == ("human", "thanks")


def test_one_torn_line_loses_one_line(tmp_path: Path) -> None:
    good = json.dumps({"messages": MESSAGES})
    traces, report = load(tmp_path / "a.jsonl", f"{good}\n{good[:40]}\n{good}\n")
    assert len(traces) == 2
    (skip,) = report.skipped
    assert (skip.line, skip.bytes) == (2, 41)


def test_a_line_that_is_no_conversation_is_listed(tmp_path: Path) -> None:
    traces, report = load(tmp_path / "a.jsonl", f'{json.dumps({"messages": MESSAGES})}\n{{"a": 1}}\n')
    assert len(traces) == 1
    assert report.skipped[0].line == 2
    assert "messages or choices" in report.skipped[0].why


def test_a_recorded_verdict_is_an_outcome(tmp_path: Path) -> None:
    (trace,), _ = load(tmp_path / "a.json", json.dumps({"messages": MESSAGES, "passed": False, "task_id": "t"}))
    assert trace.outcome is not None
    assert (trace.outcome.status, trace.outcome.score, trace.task.id) == ("failed", 0.0, "t")
