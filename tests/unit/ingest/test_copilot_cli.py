"""Copilot CLI sessions: refusals, interrupts, sub-agents, what is not known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from seatrial.ingest import Memory, read_file
from seatrial.records import FileReport, Trace


def events(*records: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
    made = [("session.start", {"sessionId": "s", "copilotVersion": "1", "selectedModel": "m"}), *records]
    return [
        {"type": what, "data": data, "id": f"e{n}", "timestamp": f"2026-01-01T00:00:{n:02}Z", "parentId": None}
        for n, (what, data) in enumerate(made)
    ]


def load(path: Path, lines: list[Any], seen: Memory | None = None) -> tuple[list[Trace], FileReport]:
    path.write_text("\n".join(json.dumps(line) for line in lines))
    reading = read_file(path, seen=seen)
    traces = list(reading)
    assert reading.report.format == "copilot-cli"
    assert reading.report.n_bytes == path.stat().st_size
    return traces, reading.report


def request(call_id: str, **more: Any) -> tuple[str, dict[str, Any]]:
    asked = {"toolCallId": call_id, "name": "bash", "arguments": {"command": "ls"}}
    return "assistant.message", {"content": "", "toolRequests": [asked], "outputTokens": 3} | more


def done(call_id: str, success: bool = True, **more: Any) -> tuple[str, dict[str, Any]]:
    return "tool.execution_complete", {"toolCallId": call_id, "success": success} | more


def test_how_calls_end(tmp_path: Path) -> None:
    (trace,), _ = load(
        tmp_path / "a.jsonl",
        events(
            ("user.message", {"content": "go", "transformedContent": "<system_reminder>x</system_reminder> go"}),
            request("ok"),
            done("ok", result={"content": "x\n<exited with exit code 0>"}),
            request("failed"),
            done("failed", result={"content": "x\n<shellId: 3 completed with exit code 2>"}),
            request("running"),
            done("running", result={"content": "<command with shellId: 4 is still running after 30 seconds>"}),
            request("refused"),
            ("permission.completed", {"toolCallId": "refused", "result": {"kind": "denied-interactively-by-user"}}),
            done("refused", False, error={"message": "The user rejected this tool call.", "code": "rejected"}),
            request("broken"),
            done("broken", False, error={"message": "no such tool"}),
            request("open"),
            ("abort", {"reason": "user initiated"}),
            ("user.message", {"content": "not that"}),
        ),
    )
    results = {result.call_id: (result.outcome, result.exit_code) for step in trace.steps for result in step.results}
    assert results == {
        "ok": ("ok", 0),
        "failed": ("error", 2),
        "running": ("unknown", None),
        "refused": ("rejected", None),
        "broken": ("error", None),
    }
    assert [step.event_class for step in trace.steps[-2:]] == ["interrupted", "human"]
    assert trace.steps[0].text == "go"
    assert trace.totals.usage.output_tokens == 18


def test_what_a_sub_agent_did_is_its_own_trace(tmp_path: Path) -> None:
    traces, _ = load(
        tmp_path / "a.jsonl",
        events(
            request("task"),
            request("inner", parentToolCallId="task"),
            done("inner", result={"content": "x"}, parentToolCallId="task"),
            done("task", result={"content": "found"}),
        ),
    )
    own, sub = traces
    assert (sub.id, sub.parent, sub.parent_call) == ("s~task", "s", "task")
    assert own.steps[0].results[0].subagents == ("s~task",)
    assert [len(trace.steps) for trace in traces] == [1, 1]


def test_a_session_read_twice_counts_once(tmp_path: Path) -> None:
    seen = Memory()
    lines = events(("user.message", {"content": "a"}), request("c"))
    load(tmp_path / "a.jsonl", lines, seen)
    (again,), _ = load(tmp_path / "b.jsonl", lines, seen)
    assert [step.copied for step in again.steps] == [True, True]
    assert again.totals.usage.output_tokens is None


def test_injected_and_unknown(tmp_path: Path) -> None:
    (trace,), report = load(
        tmp_path / "a.jsonl",
        events(
            ("user.message", {"content": "from a skill", "source": "skill-x"}),
            ("system.notification", {"content": "<system_notification>x</system_notification>"}),
            ("session.compaction_complete", {"success": True, "summaryContent": "so far"}),
            ("new.event", {"x": 1}),
        ),
    )
    assert [(step.event_class, step.kind) for step in trace.steps] == [
        ("harness", "skill-x"),
        ("harness", "task_notification"),
        ("harness", "compact_summary"),
    ]
    assert trace.extra["unknown_records"][0]["data"] == {"x": 1}
    assert report.skipped[0].noted
