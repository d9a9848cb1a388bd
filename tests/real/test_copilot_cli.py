"""Copilot CLI sessions: what comes out of the reader is what counting raw events with plain JSON says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from seatrial.ingest import read_file
from seatrial.records import FileReport, Trace

pytestmark = pytest.mark.real


def files(data: Path) -> list[Path]:
    found = sorted((data / "sessions" / "copilot-cli").rglob("*.jsonl"))
    assert len(found) >= 6
    return found


def raw(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().split(b"\n") if line.strip()]


def load(path: Path) -> tuple[list[Trace], FileReport]:
    reading = read_file(path)
    return list(reading), reading.report


def of(records: list[dict[str, Any]], what: str) -> list[dict[str, Any]]:
    return [record["data"] for record in records if record["type"] == what]


def test_every_byte_is_kept(data: Path) -> None:
    for path in files(data):
        traces, report = load(path)
        assert (report.format, report.status, len(traces)) == ("copilot-cli", "kept", 1)
        assert (report.kept_bytes, report.skipped_bytes) == (path.stat().st_size, 0)
        assert sum(report.records.values()) == len(raw(path))


def test_turns_calls_and_results(data: Path) -> None:
    for path in files(data):
        (trace,), _ = load(path)
        records = raw(path)
        said = [step.text for step in trace.steps if step.event_class == "human"]
        assert said == [message["content"] for message in of(records, "user.message")]
        assert not any("system_reminder" in text or "current_datetime" in text for text in said)
        messages = of(records, "assistant.message")
        agents = [step for step in trace.steps if step.event_class == "agent"]
        assert [(step.text, step.model) for step in agents] == [(m["content"], m["model"]) for m in messages]
        asked = [request["toolCallId"] for m in messages for request in m["toolRequests"]]
        assert [call.id for step in agents for call in step.tool_calls] == asked
        ends = {end["toolCallId"]: end for end in of(records, "tool.execution_complete")}
        results = {result.call_id: result for step in agents for result in step.results}
        assert results.keys() == ends.keys()
        for call_id, end in ends.items():
            text = end["result"]["content"] if "result" in end else end["error"]["message"]
            code = (
                text.rsplit("with exit code ", 1)[1].rstrip(">\n") if text.endswith(">") and "code " in text else None
            )
            assert results[call_id].text == text
            assert results[call_id].exit_code == (None if code is None else int(code))
            bad = not end["success"] or code not in (None, "0")
            assert (results[call_id].outcome == "error") == bad


def test_tokens_are_the_recorded_total_else_the_messages_sum(data: Path) -> None:
    for path in files(data):
        (trace,), _ = load(path)
        records = raw(path)
        put_out = sum(message["outputTokens"] for message in of(records, "assistant.message"))
        assert sum(step.usage.output_tokens or 0 for step in trace.steps if step.usage) == put_out
        ends = [m["usage"] for end in of(records, "session.shutdown") for m in end["modelMetrics"].values()]
        recorded = sum(usage["inputTokens"] for usage in ends)
        assert trace.totals.usage.input_tokens == (recorded or None)
        assert trace.totals.usage.output_tokens == (sum(u["outputTokens"] for u in ends) if recorded else put_out)
