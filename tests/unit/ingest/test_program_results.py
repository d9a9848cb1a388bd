"""Results that other programs write: Harbor, JUnit XML and promptfoo, each to status, task and trial."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from seatrial.ingest import read, read_file
from seatrial.ingest.harbor import status_of as harbor_status
from seatrial.records import Status, Trace


def rows(traces: Any) -> list[tuple[str | None, int | None, str | None]]:
    return [(t.task.id, t.attempt, t.outcome.status if t.outcome else None) for t in traces]


def trial(name: str, reward: float | None, exception: str | None = None) -> dict[str, Any]:
    return {
        "id": f"id-{name}",
        "task_name": name.rpartition("__")[0],
        "trial_name": name,
        "source": "bench",
        "agent_info": {"name": "helper", "version": "1", "model_info": {"name": "m-1", "provider": "p"}},
        "agent_result": {"n_input_tokens": 10, "n_cache_tokens": 4, "n_output_tokens": 2, "cost_usd": 0.5},
        "verifier_result": None if reward is None else {"rewards": {"reward": reward}},
        "exception_info": exception and {"exception_type": exception, "exception_message": "it broke"},
        "agent_execution": {"started_at": "2025-01-01T00:00:00Z", "finished_at": "2025-01-01T00:01:00Z"},
    }


def test_harbor_trials_of_one_task_are_numbered_by_name(tmp_path: Path) -> None:
    job = tmp_path / "job"
    for name, reward in (("t__aa", 1.0), ("t__bb", 0.0), ("u__cc", 0.5)):
        (job / name).mkdir(parents=True)
        (job / name / "result.json").write_text(json.dumps(trial(name, reward)))
    (job / "result.json").write_text(
        json.dumps({"id": "j", "n_total_trials": 3, "stats": {"n_trials": 3, "evals": {}}})
    )
    traces = list(read(job))
    assert rows(traces) == [("t", 0, "passed"), ("t", 1, "failed"), ("u", 0, "failed")]
    first = traces[0]
    assert (first.model, first.agent.name, first.task.suite, first.totals.wall) == ("m-1", "helper", "bench", 60.0)
    assert (first.totals.usage.input_tokens, first.totals.usage.cached_tokens) == (10, 4)
    reading = read_file(job / "result.json")
    assert list(reading) == []
    assert reading.report.kept_bytes == reading.report.n_bytes


def test_a_harbor_job_alone_gives_its_trials(tmp_path: Path) -> None:
    evals = {
        "helper__m-1__bench": {
            "reward_stats": {"reward": {"1.0": ["t__aa"], "0.0": ["t__bb"]}},
            "exception_stats": {"AgentTimeoutError": ["t__bb"], "DockerError": ["u__cc"]},
        }
    }
    path = tmp_path / "result.json"
    path.write_text(json.dumps({"n_total_trials": 3, "stats": {"evals": evals}}))
    traces = list(read(path))
    assert rows(traces) == [("t", 0, "passed"), ("t", 1, "timeout"), ("u", 0, "error_infra")]
    assert {(t.agent.name, t.model, t.task.suite) for t in traces} == {("helper", "m-1", "bench")}
    path.write_text(
        json.dumps({"n_total_trials": 2, "stats": {}, "trial_results": [trial("t__b", 0), trial("t__a", 1)]})
    )
    assert rows(read(path)) == [("t", 0, "passed"), ("t", 1, "failed")]


@pytest.mark.parametrize(
    ("reward", "exception", "status"),
    [
        (1.0, "AgentTimeoutError", "passed"),
        (0.0, "AgentTimeoutError", "timeout"),
        (None, "NonZeroAgentExitCodeError", "error_agent"),
        (None, "VerifierTimeoutError", "error_infra"),
        (None, None, "unscored"),
        (0.99, None, "failed"),
    ],
)
def test_harbor_statuses(reward: float | None, exception: str | None, status: Status) -> None:
    assert harbor_status(reward, exception) == status


REPORT = """<?xml version="1.0" encoding="UTF-8"?>
<testsuites>
  <testsuite name="evals"><properties><property name="model" value="m-1"/></properties>
    <testcase classname="a.b" name="good" time="1,000.5"/>
    <testcase classname="a.b" name="bad"><failure message="no &lt;b&gt;" type="X">trace</failure></testcase>
    <testcase classname="a.b" name="slow"><failure type="TimeoutError"/></testcase>
    <testcase name="broken"><error message="no fixture"/></testcase>
    <testcase name="left"><skipped/></testcase>
    <testcase name="flaky"><flakyFailure message="once"/></testcase>
    <testcase name="dead"><failure message="1"/><rerunFailure message="2"/></testcase>
    <testcase classname="a.b" name="good"/>
  </testsuite>
</testsuites>
"""


def test_junit(tmp_path: Path) -> None:
    path = tmp_path / "report.xml"
    path.write_text(REPORT)
    reading = read_file(path)
    traces = list(reading)
    assert rows(traces) == [
        ("a.b::good", 0, "passed"),
        ("a.b::bad", 0, "failed"),
        ("a.b::slow", 0, "timeout"),
        ("broken", 0, "error_infra"),
        ("left", 0, "skipped"),
        ("flaky", 0, "failed"),
        ("flaky", 1, "passed"),
        ("dead", 0, "failed"),
        ("dead", 1, "failed"),
        ("a.b::good", 1, "passed"),
    ]
    assert {t.model for t in traces} == {"m-1"}
    assert traces[0].totals.wall == 1000.5
    assert traces[1].outcome is not None
    assert traces[1].outcome.extra == {"reason": "no <b>"}
    assert reading.report.kept_bytes == path.stat().st_size


@pytest.mark.parametrize(
    "declared",
    [
        '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]>',
        '<!DOCTYPE x SYSTEM "file:///etc/passwd">',
        '<!DOCTYPE x [<!ENTITY % e SYSTEM "http://localhost/e.dtd"> %e;]>',
    ],
)
def test_a_document_type_is_refused(tmp_path: Path, declared: str) -> None:
    path = tmp_path / "report.xml"
    path.write_text(f'{declared}<testsuite><testcase name="&b;"/></testsuite>')
    reading = read_file(path)
    assert list(reading) == []
    assert "declares a document type, which is refused" in str(reading.report.why)
    assert reading.report.skipped_bytes == path.stat().st_size


def test_a_torn_report_gives_the_cases_before_the_break(tmp_path: Path) -> None:
    path = tmp_path / "report.xml"
    path.write_text(REPORT[: REPORT.index("<error")])
    reading = read_file(path)
    assert len(list(reading)) == 3
    (lost,) = reading.report.skipped
    assert (lost.line, lost.why) == (7, "line 7: no element found")
    assert reading.report.n_bytes == path.stat().st_size
    assert lost.bytes == len(b'\n    <testcase name="broken">') + len("</testcase>")


def row(**rest: Any) -> dict[str, Any]:
    return {
        "promptIdx": 0,
        "testIdx": 0,
        "provider": {"id": "openai:m-1", "label": ""},
        "prompt": {"raw": "Say hi", "label": "short"},
        "vars": {},
        "response": {"output": "hi", "tokenUsage": {"total": 5, "prompt": 4, "completion": 1}},
        "success": True,
        "score": 1,
        "latencyMs": 1500,
        "failureReason": 0,
        "testCase": {"description": "greets"},
        **rest,
    }


def test_promptfoo(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    results = [
        row(),
        row(),
        row(success=False, score=0, failureReason=1, testIdx=1, testCase={}),
        row(success=False, score=0, failureReason=2, error="429", testIdx=2),
        row(prompt={"raw": "Please say hi", "label": "polite"}, promptIdx=1),
    ]
    path.write_text(
        json.dumps({"evalId": "e-1", "results": {"version": 3, "prompts": [], "results": results}, "config": {}})
    )
    reading = read_file(path)
    traces = list(reading)
    assert reading.report.format == "promptfoo"
    assert rows(traces) == [
        ("greets", 0, "passed"),
        ("greets", 1, "passed"),
        ("test-1", 0, "failed"),
        ("greets", 0, "error_infra"),
        ("greets", 0, "passed"),
    ]
    assert [t.agent.name for t in traces] == ["short", "short", "short", "short", "polite"]
    first = traces[0]
    assert (first.model, first.totals.wall, first.totals.usage.input_tokens) == ("openai:m-1", 1.5, 4)
    assert traces[3].outcome is not None
    assert traces[3].outcome.score is None
    (tmp_path / "results.jsonl").write_text("\n".join(json.dumps(r) for r in results[:3]))
    assert rows(read(tmp_path / "results.jsonl")) == rows(traces[:3])


def test_ids_differ_and_repeat(tmp_path: Path) -> None:
    path = tmp_path / "report.xml"
    path.write_text(REPORT)
    ids = [trace.id for trace in read(path)]
    assert len(set(ids)) == len(ids)
    assert ids == [trace.id for trace in read(path)]


def test_results_are_traces_without_steps(tmp_path: Path) -> None:
    path = tmp_path / "report.xml"
    path.write_text(REPORT)
    trace: Trace = next(iter(read(path)))
    assert trace.steps == ()
    assert trace.provenance.format == "junit"
    assert trace.provenance.extra["line"] == 4
