"""Gemini CLI sessions: tool calls, lines that grow, rewinds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from seatrial.ingest import read_file
from seatrial.records import Trace

HEAD = {"sessionId": "s", "projectHash": "h", "startTime": "2026-01-01T00:00:00Z"}


def load(path: Path) -> Trace:
    reading = read_file(path)
    (trace,) = reading
    assert (reading.report.format, reading.report.n_bytes) == ("gemini-cli", path.stat().st_size)
    return trace


def tool(status: str, answer: dict[str, Any]) -> dict[str, Any]:
    result = [{"functionResponse": {"id": "c", "name": "run_shell_command", "response": answer}}]
    return {"id": "c", "name": "run_shell_command", "args": {"command": "x"}, "status": status, "result": result}


@pytest.mark.parametrize(
    ("status", "answer", "outcome", "code"),
    [
        ("success", {"output": "Command: x\nOutput: y\nExit Code: 1\nSignal: (none)"}, "error", 1),
        ("success", {"output": "fine"}, "ok", None),
        ("error", {"error": "no such file"}, "error", None),
        ("cancelled", {"error": "[Operation Cancelled] Reason: User did not allow tool call"}, "rejected", None),
        ("cancelled", {"error": "[Operation Cancelled] Reason: User cancelled tool execution."}, "interrupted", None),
    ],
)
def test_how_calls_end(tmp_path: Path, status: str, answer: dict[str, Any], outcome: str, code: int | None) -> None:
    message = {"id": "m", "type": "gemini", "content": "", "toolCalls": [tool(status, answer)], "timestamp": "x"}
    path = tmp_path / "session-a.json"
    path.write_text(json.dumps(HEAD | {"messages": [message]}))
    (result,) = load(path).steps[0].results
    assert (result.call_id, result.outcome, result.exit_code) == ("c", outcome, code)
    assert result.text == next(iter(answer.values()))


def test_lines_grow_and_rewound_turns_stay_marked(tmp_path: Path) -> None:
    tokens = {"input": 10, "output": 2, "cached": 4, "thoughts": 3, "tool": 0, "total": 15}
    lines = [
        HEAD,
        {"id": "1", "type": "user", "content": [{"text": "a"}, {"text": "b"}], "timestamp": "2026-01-01T00:00:01Z"},
        {"id": "2", "type": "gemini", "content": "par", "timestamp": "2026-01-01T00:00:02Z"},
        {"id": "2", "type": "gemini", "content": "partly whole", "tokens": tokens, "model": "g"},
        {"$rewindTo": "2"},
        {"$set": {"summary": "short"}},
        {"id": "3", "type": "info", "content": "Request cancelled."},
        {"id": "4", "type": "error", "content": "quota"},
        {"id": "5", "type": "novel", "content": "?"},
    ]
    path = tmp_path / "session-a.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines))
    trace = load(path)
    assert [(s.event_class, s.text) for s in trace.steps] == [
        ("human", "a\nb"),
        ("agent", "partly whole"),
        ("interrupted", "Request cancelled."),
        ("harness", "quota"),
    ]
    assert [s.extra.get("rewound") for s in trace.steps] == [None, True, None, None]
    usage = trace.totals.usage
    assert (usage.input_tokens, usage.output_tokens, usage.cached_tokens) == (10, 5, 4)
    assert trace.extra["summary"] == "short"
    assert trace.extra["unknown_records"][0]["id"] == "5"
