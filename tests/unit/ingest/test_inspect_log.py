"""Inspect logs: statuses, scores, limits, missing attempts, archives that cannot be read, and what is cut out."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from seatrial.errors import UsageError
from seatrial.ingest import inspect_archive, read_file
from seatrial.ingest.inspect_sample import value_of
from seatrial.ingest.inspect_write import write
from seatrial.records import Agent, FileReport, Provenance, RecordedOutcome, Status, Step, ToolCall, ToolResult, Trace


def sample(**rest: Any) -> dict[str, Any]:
    return {"id": "s-1", "epoch": 1, "messages": [{"role": "user", "content": "hello"}], **rest}


def log(*samples: dict[str, Any], **rest: Any) -> dict[str, Any]:
    spec = {"task": "t", "run_id": "run-1", "model": "m-1", **rest.pop("eval", {})}
    return {"version": 2, "status": "success", "eval": spec, "samples": list(samples), **rest}


def load(path: Path, body: Any) -> tuple[list[Trace], FileReport]:
    path.write_text(json.dumps(body))
    reading = read_file(path)
    traces = list(reading)
    assert reading.report.n_bytes == path.stat().st_size
    return traces, reading.report


@pytest.mark.parametrize(
    ("given", "status", "score"),
    [
        ({"scores": {"match": {"value": "C"}}}, "passed", 1.0),
        ({"scores": {"match": {"value": "I"}}}, "failed", 0.0),
        ({"scores": {"match": {"value": "P"}}}, "failed", 0.5),
        ({"scores": {"match": {"value": True}}}, "passed", 1.0),
        ({"score": {"value": 0.25}}, "failed", 0.25),
        ({"scores": {"match": {"value": {"a": 1}}}}, "unscored", None),
        ({}, "unscored", None),
        ({"error": {"message": "sandbox lost"}}, "error_infra", None),
        ({"error": {"message": "x"}, "scores": {"match": {"value": "C"}}}, "error_infra", None),
        ({"limit": {"type": "time", "limit": 60}, "scores": {"match": {"value": "I"}}}, "timeout", 0.0),
        ({"limit": {"type": "message", "limit": 5}}, "timeout", None),
        ({"limit": {"type": "token", "limit": 5}, "scores": {"match": {"value": "C"}}}, "passed", 1.0),
        ({"limit": {"type": "operator", "limit": 1}}, "skipped", None),
        ({"limit": {"type": "operator", "limit": 1}, "scores": {"match": {"value": "I"}}}, "failed", 0.0),
    ],
)
def test_status_and_score(tmp_path: Path, given: dict[str, Any], status: Status, score: float | None) -> None:
    ((trace,), _) = load(tmp_path / "a.json", log(sample(**given)))
    assert trace.outcome is not None
    assert (trace.outcome.status, trace.outcome.score) == (status, score)


def test_a_score_that_is_no_number_is_unscored(tmp_path: Path) -> None:
    ((trace,), report) = load(tmp_path / "a.json", log(sample(scores={"match": {"value": float("nan")}})))
    assert trace.outcome is not None
    assert (trace.outcome.status, trace.outcome.score) == ("unscored", None)
    assert any("not finite" in note.why for note in report.skipped)


@pytest.mark.parametrize(
    ("value", "number"),
    [
        ("C", 1.0),
        ("N", 0.0),
        ("yes", 1.0),
        ("False", 0.0),
        ("0.5", 0.5),
        ("nan", None),
        ("x", None),
        ([1], None),
        (2, 2.0),
    ],
)
def test_values_of_scores(value: Any, number: float | None) -> None:
    assert value_of({"value": value}) == number


def test_the_first_scorer_of_the_header_is_the_outcome(tmp_path: Path) -> None:
    scores = {"style": {"value": 1}, "match": {"value": "I"}}
    results = {"scores": [{"name": "match", "metrics": {}}, {"name": "style", "metrics": {}}]}
    ((trace,), _) = load(tmp_path / "a.json", log(sample(scores=scores), results=results))
    assert trace.outcome is not None
    assert (trace.outcome.by, trace.outcome.score) == ("match", 0.0)
    assert set(trace.outcome.extra["scores"]) == {"style", "match"}


def test_planned_attempts_that_are_not_there_are_missing(tmp_path: Path) -> None:
    spec = {"dataset": {"sample_ids": ["s-1", 2]}, "config": {"epochs": 2}}
    traces, report = load(tmp_path / "a.json", log(sample(), sample(epoch=2), eval=spec, status="cancelled"))
    found = [(t.task.id, t.attempt, t.outcome.status if t.outcome else None) for t in traces]
    assert found == [("s-1", 1, "unscored"), ("s-1", 2, "unscored"), ("2", 1, "missing"), ("2", 2, "missing")]
    assert any("2 of 4 planned attempts are missing" in note.why for note in report.skipped)


def test_calls_thoughts_attachments_and_errors(tmp_path: Path) -> None:
    mark = "0" * 32
    body = sample(
        attachments={mark: "a long text"},
        messages=[
            {"role": "user", "content": f"attachment://{mark}", "source": "input"},
            {
                "role": "assistant",
                "id": "m1",
                "content": [{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "look"}],
                "tool_calls": [
                    {"id": "c1", "function": "bash", "arguments": {"cmd": "ls"}},
                    {"id": "c2", "function": "bash", "arguments": {}, "parse_error": "not JSON"},
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "a", "function": "bash"},
            {"role": "tool", "tool_call_id": "c2", "content": "", "error": {"type": "parsing", "message": "bad"}},
        ],
        events=[
            {
                "event": "model",
                "timestamp": "2025-01-01T00:00:00Z",
                "completed": "2025-01-01T00:00:02Z",
                "output": {
                    "model": "m-1x",
                    "choices": [{"message": {"id": "m1", "content": "look"}}],
                    "usage": {
                        "input_tokens": 10,
                        "output_tokens": 2,
                        "total_tokens": 17,
                        "input_tokens_cache_read": 5,
                    },
                },
            },
            {"event": "model", "output": {"choices": [{"message": {"id": "grader", "content": "GRADE: C"}}]}},
        ],
    )
    ((trace,), _) = load(tmp_path / "a.json", log(body))
    first, step = trace.steps
    assert (first.event_class, first.text) == ("simulated_user", "a long text")
    assert (step.text, step.reasoning, step.model) == ("look", "hm", "m-1x")
    assert [(c.name, c.arguments, c.validity) for c in step.tool_calls] == [
        ("bash", {"cmd": "ls"}, "unknown"),
        ("bash", {}, "invalid"),
    ]
    assert [(r.call_id, r.outcome, r.text) for r in step.results] == [("c1", "ok", "a"), ("c2", "error", "bad")]
    assert step.usage is not None
    assert (step.usage.input_tokens, step.usage.cached_tokens, step.usage.output_tokens) == (15, 5, 2)
    assert step.time == 1735689602.0


def test_a_sample_that_broke_off_is_taken_from_its_last_call(tmp_path: Path) -> None:
    pool = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "one", "id": "a"}]
    call = {
        "event": "model",
        "input": [],
        "input_refs": [[0, 2]],
        "output": {"choices": [{"message": {"role": "assistant", "content": "two", "id": "b"}}]},
    }
    ((trace,), _) = load(tmp_path / "a.json", log(sample(messages=[], message_pool=pool, events=[call])))
    assert [step.text for step in trace.steps] == ["hello", "one", "two"]


def archive(path: Path, members: dict[str, Any], method: int = zipfile.ZIP_DEFLATED) -> None:
    with zipfile.ZipFile(path, "w", method) as out:
        for name, value in members.items():
            out.writestr(name, json.dumps(value))


HEADER = {"version": 2, "status": "started", "eval": {"task": "t", "run_id": "r"}}


def test_an_unfinished_archive_is_read_from_its_journal(tmp_path: Path) -> None:
    path = tmp_path / "a.eval"
    archive(path, {"_journal/start.json": HEADER, "samples/s_epoch_1.json": sample()})
    reading = read_file(path)
    assert [t.task.id for t in reading] == ["s-1"]
    assert any("not finished" in note.why for note in reading.report.skipped)
    assert reading.report.kept_bytes == path.stat().st_size


def test_members_packed_with_zstandard_are_skipped_with_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "a.eval"
    archive(path, {"header.json": HEADER, "samples/a_epoch_1.json": sample(), "samples/b_epoch_1.json": sample(id="b")})
    data = bytearray(path.read_bytes())
    for start, shift in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        at = data.find(start, data.find(b"samples/a_epoch_1.json", data.find(start) if shift == 10 else 0) - 60)
        while b"samples/a_epoch_1.json" not in data[at : at + 80]:
            at = data.find(start, at + 1)
        data[at + shift : at + shift + 2] = (93).to_bytes(2, "little")
    path.write_bytes(data)
    reading = read_file(path)
    assert [t.task.id for t in reading] == ["b"]
    (lost,) = [skip for skip in reading.report.skipped if not skip.noted]
    assert "zstandard" in lost.why
    assert "inspect log convert" in lost.why
    assert lost.bytes > 0
    assert reading.report.n_bytes == path.stat().st_size


def test_a_member_that_unpacks_beyond_the_bound_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspect_archive, "LARGEST", 1000)
    path = tmp_path / "a.eval"
    archive(path, {"header.json": HEADER, "samples/a_epoch_1.json": sample(target="x" * 5000)})
    reading = read_file(path)
    assert list(reading) == []
    assert "larger than 1,000 bytes" in str(reading.report.why)


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.eval"
    path.write_bytes(b"PK\x03\x04 and no more")
    reading = read_file(path)
    assert list(reading) == []
    assert "the archive cannot be opened" in str(reading.report.why)
    archive(path, {"samples/a_epoch_1.json": sample()})
    reading = read_file(path)
    assert list(reading) == []
    assert "no header.json" in str(reading.report.why)


def _attempt(name: str, status: Status, score: float | None, **rest: Any) -> Trace:
    return Trace(
        id=name,
        agent=Agent(name="a"),
        provenance=Provenance(format="x", reader="x", reader_version="1"),
        model=rest.pop("model", "m-1"),
        outcome=RecordedOutcome(status=status, score=score, by="match"),
        steps=(
            Step(index=0, event_class="simulated_user", text="hello"),
            Step(
                index=1,
                event_class="agent",
                text="hi",
                tool_calls=(ToolCall(id="c", name="f", arguments={"a": 1}),),
                results=(ToolResult(call_id="c", outcome="rejected", text="no"),),
            ),
        ),
        **rest,
    )


def test_written_logs_keep_statuses_and_scores(tmp_path: Path) -> None:
    given = [
        _attempt("a", "passed", 1.0),
        _attempt("b", "failed", 0.5),
        _attempt("c", "timeout", 0.0),
        _attempt("d", "error_infra", None),
        _attempt("e", "unscored", None),
        _attempt("f", "skipped", None),
    ]
    traces, _ = load(tmp_path / "a.json", write(given, task="t").document)
    assert [(t.outcome.status, t.outcome.score) for t in traces if t.outcome] == [
        (t.outcome.status, t.outcome.score) for t in given if t.outcome
    ]
    assert [(r.call_id, r.outcome, r.text) for r in traces[0].steps[1].results] == [("c", "rejected", "no")]
    lost = write([_attempt("g", "error_agent", None)], task="t").losses
    assert any("outcome" in loss.fields for loss in lost)
    with pytest.raises(UsageError, match="has one model"):
        write([_attempt("a", "passed", 1.0), _attempt("b", "passed", 1.0, model="m-2")], task="t")
    with pytest.raises(UsageError, match="at least one attempt"):
        write([], task="t")
