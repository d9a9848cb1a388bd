"""ATIF: versions, parts, sub-agents, and what its account of losses says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import atif
import pytest

from seatrial.errors import FormatError, UsageError
from seatrial.ingest import read_file
from seatrial.ingest.atif import READER, VERSIONS, traces
from seatrial.ingest.atif_write import write
from seatrial.ingest.log import Log
from seatrial.records import Agent, Provenance, Step, ToolCall, ToolResult, Trace

HERE = Provenance(format="atif", reader="atif", reader_version="1")


def document(**changes: Any) -> dict[str, Any]:
    return {
        "schema_version": "ATIF-v1.8",
        "trajectory_id": "t-1",
        "agent": {"name": "a", "version": "1", "model_name": "m-1"},
        "steps": [
            {"step_id": 1, "source": "system", "message": "rules"},
            {"step_id": 2, "source": "user", "message": "please", "timestamp": "2025-01-01T00:00:00Z"},
            {
                "step_id": 3,
                "source": "agent",
                "message": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}],
                "tool_calls": [{"tool_call_id": "c", "function_name": "f", "arguments": {}}],
                "observation": {"results": [{"content": "out"}]},
                "metrics": {"prompt_tokens": 3, "logprobs": [-0.5]},
                "reasoning_effort": "high",
            },
        ],
    } | changes


def one(value: dict[str, Any]) -> Trace:
    return traces(value, HERE, [])[0]


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_is_read(tmp_path: Path, version: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(document(schema_version=version)))
    reading = read_file(path)
    (trace,) = reading
    assert reading.report.format == "atif"
    assert trace.provenance.extra == {"schema_version": version}
    assert [s.event_class for s in trace.steps] == ["harness", "human", "agent"]
    assert trace.steps[1].time == 1735689600.0


def test_a_newer_version_is_read_with_a_note(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(document(schema_version="ATIF-v1.9", mood="good")))
    reading = read_file(path)
    (trace,) = reading
    assert trace.extra == {"atif": {"mood": "good"}}
    assert "newer" in reading.report.skipped[0].why


def test_parts_and_a_lone_result() -> None:
    step = one(document()).steps[2]
    assert step.text == "one\ntwo"
    assert step.extra["atif"]["message"][1] == {"type": "text", "text": "two"}
    assert step.extra["atif"]["reasoning_effort"] == "high"
    assert step.results[0].call_id == "c"
    assert step.usage is not None
    assert (step.usage.input_tokens, step.usage.extra) == (3, {"atif": {"logprobs": [-0.5]}})
    assert one(document()).model == "m-1"


def test_embedded_sub_agents_are_traces_with_their_parent() -> None:
    child = document(trajectory_id="sub")
    ref = {"source_call_id": "c", "subagent_trajectory_ref": [{"trajectory_id": "sub"}]}
    parent = document(subagent_trajectories=[child])
    parent["steps"][2]["observation"]["results"] = [ref]
    main, sub = traces(parent, HERE, [])
    assert (sub.id, sub.parent, sub.parent_call) == ("t-1/sub", "t-1", "c")
    assert main.steps[2].results[0].subagents == ("t-1/sub",)
    back = traces(write(main, [sub]).document, HERE, [])
    assert [t.id for t in back] == ["t-1", "t-1/sub"]
    assert back[1].parent_call == "c"


def test_documents_of_one_session_are_different_traces() -> None:
    first = one({k: v for k, v in document(session_id="s").items() if k != "trajectory_id"})
    second = one({k: v for k, v in document(session_id="s", notes="x").items() if k != "trajectory_id"})
    assert first.id.startswith("s~")
    assert first.id != second.id


def test_a_bad_step_loses_one_step(tmp_path: Path) -> None:
    value = document()
    value["steps"].insert(1, "torn")
    path = tmp_path / "a.json"
    path.write_text(json.dumps(value))
    reading = read_file(path)
    (trace,) = reading
    assert len(trace.steps) == 3
    assert reading.report.skipped_bytes == len('"torn"')
    assert "steps[1]" in reading.report.skipped[0].why


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"schema_version": "ATIF-v1.8",\n"steps": [', "line 2"),
        ('{"schema_version": "ATIF-v2.0", "steps": []}', "ATIF-v2.0 is not read"),
        ('{"schema_version": "ATIF-v1.8"}', "no list of steps"),
        ('{"steps": []}', "names no ATIF version"),
        ("[]", "found an array"),
    ],
)
def test_a_file_that_is_no_document_is_refused(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(FormatError, match=why) as caught:
        list(READER.read(path, Log(str(path))))
    assert caught.value.file == str(path)
    assert "expected an ATIF document" in caught.value.message


def test_references_enter_no_other_folder(tmp_path: Path) -> None:
    inner = tmp_path / "in"
    inner.mkdir()
    (tmp_path / "secret.json").write_text(json.dumps(document(trajectory_id="secret")))
    value = document()
    ref = {"trajectory_path": "../secret.json"}
    value["steps"][2]["observation"]["results"][0]["subagent_trajectory_ref"] = [ref]
    path = inner / "a.json"
    path.write_text(json.dumps(value))
    (trace,) = read_file(path)
    assert trace.steps[2].results[0].subagents == ()


def test_the_account_says_what_atif_has_no_place_for() -> None:
    call = ToolCall(id="c", name="f", validity="unknown_tool")
    answer = ToolResult(call_id="c", outcome="error", exit_code=2, text="x")
    trace = Trace(
        id="t",
        agent=Agent(name="a"),
        provenance=HERE,
        steps=(
            Step(index=0, event_class="simulated_user", text="hi"),
            Step(index=1, event_class="agent", tool_calls=(call,), results=(answer,)),
        ),
    )
    written = write(trace)
    atif.Trajectory.model_validate(written.document)
    assert {loss.where: loss.fields for loss in written.losses} == {
        "agent": ("version",),
        "steps[0]": ("event_class",),
        "steps[1].tool_calls[0]": ("validity",),
        "steps[1].results[0]": ("outcome", "exit_code"),
    }
    assert all(loss.kept for loss in written.losses)
    assert one(written.document).steps == trace.steps


def test_a_hostile_document_cannot_set_what_is_not_its_own() -> None:
    value = document()
    value["extra"] = {"seatrial": {"steps": [], "provenance": {"format": "x"}, "attempt": "x", "agent": 3}}
    value["steps"][1]["extra"] = {"seatrial": {"index": 9, "event_class": "root"}}
    trace = one(value)
    assert len(trace.steps) == 3
    assert trace.steps[1].index == 1
    assert trace.steps[1].event_class == "human"
    assert trace.attempt is None


def test_sub_agents_need_their_parent() -> None:
    main = one(document())
    stray = one(document(trajectory_id="t-2"))
    with pytest.raises(UsageError, match="t-2"):
        write(main, [stray])
    with pytest.raises(UsageError, match="same id"):
        write(main, [main])
