"""Real Inspect logs: the accuracy in each header, its tokens, its samples and their messages come out of the traces."""

from __future__ import annotations

import json
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from seatrial.ingest import inspect_write, read, read_file
from seatrial.records import Trace

pytestmark = pytest.mark.real

ACCURACY = {
    "2025-05-12T20-28-26-04-00_security-guide.json": 1.0,
    "2025-09-23T08-09-58-04-00_popularity_DN2wbX2ZvACsBpjwptzBRo.eval": 0.63,
    "2025-09-23T08-09-58-04-00_security-guide_LuxZJVwvymC3S3SyoJczxB.eval": 0.6875,
    "2025-09-23T08-09-58-04-00_theory-of-mind_bbB4eRCx2rFJLyPH42Cj9r.eval": 0.83,
    "log_formats.eval": 0.0,
    "log_formats.json": 0.0,
    "log_images.json": 0.0,
    "log_images_tc.json": 0.0,
    "log_length_stop_reason.txt": 0.0,
    "log_message_deduplication.eval": 0.0,
    "log_read_sample.eval": 1.0,
    "log_read_sample.json": 1.0,
    "log_streaming.eval": 0.75,
}
WITHOUT_SAMPLES = ("log_valid.txt", "log_version_3.txt", "log_with_nan.txt")


def load(path: Path) -> list[Trace]:
    reading = read_file(path)
    traces = list(reading)
    report = reading.report
    assert report.format == "inspect"
    assert report.n_bytes == report.kept_bytes == path.stat().st_size
    return traces


def raw(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    if path.suffix != ".eval":
        log = json.loads(path.read_bytes())
        return log, log.get("samples", [])
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if name.startswith("samples/")]
        return json.loads(archive.read("header.json")), [json.loads(archive.read(name)) for name in names]


def mean(traces: list[Trace]) -> float:
    scores = [t.outcome.score for t in traces if t.outcome is not None and t.outcome.score is not None]
    assert len(scores) == len(traces)
    return sum(scores) / len(scores)


@pytest.mark.parametrize("name", ACCURACY)
def test_the_accuracy_in_the_header(data: Path, name: str) -> None:
    path = data / "inspect" / name
    traces = load(path)
    header, samples = raw(path)
    metrics = header["results"]["scores"][0]["metrics"]
    assert mean(traces) == pytest.approx(ACCURACY[name])
    assert mean(traces) == pytest.approx(next(iter(metrics.values()))["value"])
    assert len(traces) == len(samples)


@pytest.mark.parametrize("name", ACCURACY)
def test_samples_messages_and_tokens(data: Path, name: str) -> None:
    path = data / "inspect" / name
    traces = load(path)
    header, samples = raw(path)
    assert Counter((t.task.id, t.attempt) for t in traces) == Counter((str(s["id"]), s["epoch"]) for s in samples)
    for trace, sample in zip(traces, samples, strict=True):
        roles = Counter(message["role"] for message in sample["messages"])
        classes = Counter(step.event_class for step in trace.steps)
        assert classes["agent"] == roles["assistant"]
        assert classes["simulated_user"] == roles["user"]
        assert classes["harness"] == roles["system"]
        assert sum(len(step.results) for step in trace.steps) == roles["tool"]
        calls = sum(len(message.get("tool_calls") or []) for message in sample["messages"])
        assert sum(len(step.tool_calls) for step in trace.steps) == calls
        assert (trace.totals.wall is None) == ("total_time" not in sample)
    used: Counter[str] = Counter()
    for trace in traces:
        for counts in trace.totals.extra.get("model_usage", {}).values():
            used["input"] += counts["input_tokens"]
            used["output"] += counts["output_tokens"]
    stated = header["stats"].get("model_usage", {})
    if used:
        assert used["input"] == sum(counts["input_tokens"] for counts in stated.values())
        assert used["output"] == sum(counts["output_tokens"] for counts in stated.values())


def test_a_graders_tokens_are_not_the_agents(data: Path) -> None:
    path = data / "inspect" / "2025-09-23T08-09-58-04-00_security-guide_LuxZJVwvymC3S3SyoJczxB.eval"
    traces, (header, samples) = load(path), raw(path)
    agents = sum(trace.totals.usage.input_tokens or 0 for trace in traces)
    assert agents == sum(sample["output"]["usage"]["input_tokens"] for sample in samples)
    assert agents < header["stats"]["model_usage"]["openai/gpt-4o-mini"]["input_tokens"]


def test_epochs_are_kept_apart(data: Path) -> None:
    traces = load(data / "inspect" / "log_streaming.eval")
    assert sorted((t.task.id, t.attempt) for t in traces) == [("1", 1), ("1", 2), ("2", 1), ("2", 2)]
    assert len({t.id for t in traces}) == 4


@pytest.mark.parametrize("stem", ["log_formats", "log_read_sample"])
def test_one_run_as_an_archive_and_as_json_has_the_same_steps(data: Path, stem: str) -> None:
    (packed,), (plain,) = load(data / "inspect" / f"{stem}.eval"), load(data / "inspect" / f"{stem}.json")

    def facts(trace: Trace) -> list[Any]:
        return [(s.event_class, s.text, s.model, s.tool_calls, s.usage) for s in trace.steps]

    assert facts(packed) == facts(plain)
    assert packed.outcome is not None
    assert plain.outcome is not None
    assert (packed.outcome.status, packed.outcome.score) == (plain.outcome.status, plain.outcome.score)


def test_tool_errors_and_refusals(data: Path) -> None:
    path = data / "inspect" / "log_tool_call_error.json"
    (trace,) = load(path)
    messages = raw(path)[1][0]["messages"]
    results = [result for step in trace.steps for result in step.results]
    wanted = ["rejected" if m["error"]["type"] == "approval" else "error" if m["error"] else "ok" for m in messages]
    assert [result.outcome for result in results] == wanted
    assert trace.outcome is not None
    assert trace.outcome.status == "unscored"


@pytest.mark.parametrize("name", WITHOUT_SAMPLES)
def test_logs_without_samples_are_read_and_hold_no_session(data: Path, name: str) -> None:
    reading = read_file(data / "inspect" / name)
    assert list(reading) == []
    assert reading.report.kept_bytes == (data / "inspect" / name).stat().st_size
    notes = [note.why for note in reading.report.skipped]
    assert notes == (["a number that is not finite was read as null"] if "nan" in name else [])


def test_a_torn_log_is_refused_with_its_line(data: Path) -> None:
    reading = read_file(data / "inspect" / "log_invalid.txt")
    assert list(reading) == []
    assert reading.report.why is not None
    assert reading.report.why.startswith("line 2: not valid JSON")
    assert reading.report.n_bytes == 30


def test_scores_are_written_and_read(data: Path, tmp_path: Path) -> None:
    traces = load(data / "inspect" / "2025-09-23T08-09-58-04-00_theory-of-mind_bbB4eRCx2rFJLyPH42Cj9r.eval")
    inspect_write.write_file(tmp_path / "a.json", traces, task="theory-of-mind")
    again = list(read(tmp_path / "a.json"))
    assert mean(again) == pytest.approx(0.83)
    for trace, other in zip(traces, again, strict=True):
        strip = [msgspec.structs.replace(s, extra={}, usage=None) for s in trace.steps]
        assert strip == [msgspec.structs.replace(s, extra={}, usage=None) for s in other.steps]


@pytest.mark.parametrize("at", [0.02, 0.5, 0.97])
def test_torn_and_corrupted_logs_never_break(data: Path, tmp_path: Path, at: float) -> None:
    for path in sorted((data / "inspect").iterdir()):
        whole = path.read_bytes()
        cut = int(len(whole) * at)
        for n, hurt in enumerate((whole[:cut], whole[:cut] + b"\0\xff" + whole[cut + 2 :])):
            other = tmp_path / f"{n}{path.suffix}"
            other.write_bytes(hurt)
            reading = read_file(other)
            list(reading)
            assert reading.report.n_bytes == len(hurt)
            assert not any(" broke: " in skip.why for skip in reading.report.skipped)
