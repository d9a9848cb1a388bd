"""Shapes that once broke a reader or lost a record: values that cannot be hashed, lists a record has of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from seatrial import ingest


def read(tmp_path: Path, name: str, format: str, value: Any) -> tuple[list[Any], Any]:
    path = tmp_path / name
    path.write_text(json.dumps(value))
    reading = ingest.read_file(path, format=format)
    traces = list(reading)
    assert reading.report.kept_bytes + reading.report.skipped_bytes == reading.report.n_bytes
    assert not any("broke" in s.why for s in reading.report.skipped)
    return traces, reading.report


@pytest.mark.parametrize("odd", [["SPAN"], {"a": 1}])
def test_a_langfuse_type_that_cannot_be_hashed(tmp_path: Path, odd: Any) -> None:
    good = {"id": "o1", "traceId": "t1", "type": "GENERATION", "startTime": "2026-01-01T00:00:00Z", "model": "m",
            "input": [{"role": "user", "content": "hi"}], "output": {"role": "assistant", "content": "ho"}}  # fmt: skip
    traces, _ = read(tmp_path, "a.json", "langfuse", [good | {"id": "o2", "type": odd}, good])
    assert len(traces) == 1


def run(**fields: Any) -> dict[str, Any]:
    return {
        "id": "r1", "trace_id": "r1", "run_type": "llm", "name": "chat", "start_time": "2026-01-01T00:00:00",
        "inputs": {"messages": [{"role": "user", "content": "hi"}]}, "outputs": {"content": "ho"},
    } | fields  # fmt: skip


def test_a_langsmith_run_keeps_its_own_feedback(tmp_path: Path) -> None:
    traces, _ = read(tmp_path, "a.json", "langsmith", run(feedback=[{"key": "user_score", "score": 1}]))
    assert len(traces) == 1


def test_a_langsmith_message_type_that_cannot_be_hashed(tmp_path: Path) -> None:
    message = {"type": ["human"], "data": {"content": "hi"}}
    traces, _ = read(tmp_path, "a.json", "langsmith", run(inputs={"messages": [message]}))
    assert len(traces) == 1


def test_a_phoenix_span_keeps_its_own_annotations(tmp_path: Path) -> None:
    span = {
        "context": {"trace_id": "t1", "span_id": "s1"}, "name": "chat", "start_time": "2026-01-01T00:00:00Z",
        "end_time": "2026-01-01T00:00:01Z", "span_kind": "LLM",
        "attributes": {"llm.model_name": "m", "llm.input_messages.0.message.role": "user",
                       "llm.input_messages.0.message.content": "hi"},
        "annotations": [{"name": "correct", "annotator_kind": "HUMAN", "result": {"score": 1}}],
    }  # fmt: skip
    traces, _ = read(tmp_path, "a.json", "phoenix", span)
    assert len(traces) == 1
