"""Scores and annotations: people's become `explicit_feedback`, programs' and models' stay scores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from seatrial.ingest import read, read_file
from seatrial.ingest.span_feedback import remark_of
from seatrial.records import Signal
from seatrial.signals import extract


def export(*scores: dict[str, Any]) -> dict[str, Any]:
    call = {
        "id": "o-1",
        "traceId": "t-1",
        "type": "GENERATION",
        "name": "chat",
        "startTime": "2025-01-01T00:00:00Z",
        "endTime": "2025-01-01T00:00:02Z",
        "model": "m-1",
        "usageDetails": {"input": 3, "output": 1, "total": 4},
        "input": [{"role": "user", "content": "Book a flight"}],
        "output": {"role": "assistant", "content": "Booked."},
    }
    trace = {"id": "t-1", "projectId": "p", "sessionId": None, "bookmarked": False, "scores": list(scores)}
    return {"trace": trace, "observations": [call]}


def feedback(path: Path) -> list[Signal]:
    (trace,) = read(path)
    return [s for s in extract(trace).signals if s.kind == "explicit_feedback"]


def score(name: str, value: Any, source: str, **rest: Any) -> dict[str, Any]:
    return {"id": name, "name": name, "value": value, "source": source, "traceId": "t-1", **rest}


@pytest.mark.parametrize(
    ("given", "value"),
    [
        (score("user-feedback", 1, "API", dataType="BOOLEAN"), 1.0),
        (score("quality", 4, "ANNOTATION"), 0.75),
        (score("quality", 7, "ANNOTATION", config={"minValue": 0, "maxValue": 10}), 0.7),
        (score("thumbs", 0, "API", dataType="CATEGORICAL", stringValue="down"), 0.0),
        (score("quality", 0.5, "ANNOTATION", observationId="o-1"), 0.5),
    ],
)
def test_what_people_said_is_feedback(tmp_path: Path, given: dict[str, Any], value: float) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(export(given)))
    (signal,) = feedback(path)
    assert signal.value == pytest.approx(value)
    assert signal.model == "m-1"


@pytest.mark.parametrize(
    "given",
    [
        score("correctness", 1, "EVAL"),
        score("toxicity", 0.1, "ANNOTATION"),
        score("tool_calls", 3, "API"),
    ],
)
def test_what_programs_computed_is_kept_and_is_no_feedback(tmp_path: Path, given: dict[str, Any]) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(export(given)))
    assert feedback(path) == []
    (trace,) = read(path)
    assert trace.extra["scores"][0]["value"] == given["value"]


def test_scores_in_a_file_beside_are_looked_up(tmp_path: Path) -> None:
    (tmp_path / "traces.json").write_text(json.dumps(export()))
    (tmp_path / "scores.jsonl").write_text(json.dumps(score("user-feedback", 0, "API")) + "\n")
    assert [signal.value for signal in feedback(tmp_path / "traces.json")] == [0.0]
    reading = read_file(tmp_path / "scores.jsonl", format="langfuse")
    assert list(reading) == []
    assert any("are about no trace of this file" in note.why for note in reading.report.skipped)
    assert reading.report.kept_bytes == reading.report.n_bytes


@pytest.mark.parametrize(
    ("given", "person"),
    [
        ({"key": "user_rating", "score": 1, "run_id": "r", "feedback_source": {"type": "api"}}, True),
        ({"key": "quality", "score": 1, "run_id": "r", "feedback_source": {"type": "app"}}, True),
        ({"key": "quality", "score": 1, "run_id": "r", "feedback_source": {"type": "model"}}, False),
        ({"span_id": "s", "name": "q", "annotator_kind": "HUMAN", "result": {"score": 1}}, True),
        ({"span_id": "s", "name": "q", "annotator_kind": "LLM", "result": {"score": 1}}, False),
    ],
)
def test_who_said_it(given: dict[str, Any], person: bool) -> None:
    remark = remark_of(given)
    assert remark is not None
    assert remark.person is person
    assert remark.item["value"] == 1


def test_anything_else_is_no_remark() -> None:
    assert [remark_of(v) for v in (None, 3, {}, {"name": "x", "value": 1}, {"key": "a", "score": 1})] == [None] * 5
