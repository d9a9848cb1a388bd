"""OpenCode exports, built to the public specification."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from seatrial.ingest import read_file
from seatrial.ingest.catalogue import named
from seatrial.records import Trace


def user(*parts: dict[str, Any], **info: Any) -> dict[str, Any]:
    return {
        "info": {"id": "msg_u", "sessionID": "ses_1", "role": "user", "time": {"created": 1760000000000}} | info,
        "parts": parts,
    }


def assistant(*parts: dict[str, Any], **info: Any) -> dict[str, Any]:
    own = {"id": "msg_a", "sessionID": "ses_1", "role": "assistant", "modelID": "m", "time": {"created": 1760000001000}}
    return {"info": own | info, "parts": parts}


def tool(call_id: str, name: str = "bash", **state: Any) -> dict[str, Any]:
    return {"type": "tool", "callID": call_id, "tool": name, "state": {"input": {"command": "x"}} | state}


def load(tmp_path: Path, *messages: dict[str, Any]) -> Trace:
    path = tmp_path / "export.json"
    info = {"id": "ses_1", "version": "1.0.0", "title": "t", "parentID": "ses_0"}
    path.write_text(json.dumps({"info": info, "messages": messages}, indent=2))
    reading = read_file(path)
    (trace,) = reading
    assert (reading.report.format, reading.report.n_bytes) == ("opencode", path.stat().st_size)
    return trace


def test_it_says_that_no_real_file_was_seen() -> None:
    assert not named("opencode").verified


def test_turns_calls_and_usage(tmp_path: Path) -> None:
    spent = {"input": 5, "output": 2, "reasoning": 1, "cache": {"read": 100, "write": 10}}
    trace = load(
        tmp_path,
        user({"type": "text", "text": "do it"}, {"type": "text", "text": "file contents", "synthetic": True}),
        assistant(
            {"type": "step-start"},
            {"type": "reasoning", "text": "hm"},
            {"type": "text", "text": "looking"},
            tool("ok", status="completed", output="x", metadata={"exit": 0}, time={"start": 1, "end": 1760000002000}),
            tool("failed", status="completed", output="x", metadata={"exit": 2}),
            tool("refused", status="error", error="The user rejected permission to use this specific tool call."),
            tool("stopped", status="error", error="Tool execution aborted"),
            tool("broken", status="error", error="no such file"),
            tool("open", status="running"),
            tool("sub", "task", status="completed", output="found", metadata={"sessionId": "ses_2"}),
            {"type": "step-finish", "cost": 0.5, "tokens": spent},
            {"type": "patch", "hash": "h"},
            cost=0.75,
        ),
        assistant({"type": "text", "text": "the story so far"}, id="msg_s", summary=True),
        assistant(id="msg_b", error={"name": "MessageAbortedError", "data": {"message": "aborted"}}),
        user({"type": "text", "text": "no", "synthetic": False}),
        {"info": {"role": "odd"}, "parts": []},
    )
    assert [(s.event_class, s.kind) for s in trace.steps] == [
        ("human", None),
        ("agent", None),
        ("harness", "compact_summary"),
        ("agent", None),
        ("interrupted", "interrupted"),
        ("human", None),
    ]
    assert trace.steps[0].text == "do it"
    assert trace.steps[0].extra["injected"] == ["file contents"]
    step = trace.steps[1]
    assert {r.call_id: (r.outcome, r.exit_code) for r in step.results} == {
        "ok": ("ok", 0),
        "failed": ("error", 2),
        "refused": ("rejected", None),
        "stopped": ("interrupted", None),
        "broken": ("error", None),
        "sub": ("ok", None),
    }
    assert step.results[-1].subagents == ("ses_2",)
    usage = trace.totals.usage
    assert (usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.cost_usd) == (115, 2, 100, 0.5)
    assert (trace.id, trace.parent, trace.model, trace.agent.version) == ("ses_1", "ses_0", "m", "1.0.0")
    assert trace.extra["messages"] == [{"info": {"role": "odd"}, "parts": []}]


def test_reasoning_counts_as_output_when_the_total_says_so(tmp_path: Path) -> None:
    tokens = {"total": 13, "input": 5, "output": 2, "reasoning": 6, "cache": {"read": 0, "write": 0}}
    trace = load(tmp_path, assistant({"type": "text", "text": "x"}, tokens=tokens, cost=0))
    assert (trace.totals.usage.output_tokens, trace.totals.usage.cost_usd) == (8, 0.0)
