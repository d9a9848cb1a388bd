"""ATIF goldens: read whole, linked across files, and valid before and after the round trip."""

from __future__ import annotations

import json
from pathlib import Path

import atif
import jsonschema
import msgspec
import pytest

from seatrial.ingest import read_file
from seatrial.ingest.atif_write import write_file
from seatrial.records import Trace

pytestmark = pytest.mark.real

SUMMARY = "terminus_2_hello-world-context-summarization"


def goldens(data: Path) -> list[Path]:
    found = sorted((data / "atif").glob("*trajectory*.json"))
    assert len(found) == 10
    return found


def one(path: Path) -> Trace:
    reading = read_file(path)
    (trace,) = reading
    assert reading.report.kept_bytes == path.stat().st_size
    assert not reading.report.skipped
    return trace


def test_goldens_are_valid_before_and_after_the_round_trip(data: Path, tmp_path: Path) -> None:
    schema = json.loads((data / "atif" / "atif-1.8-schema.json").read_text())
    for path in goldens(data):
        trace = one(path)
        written = tmp_path / path.name
        write_file(written, trace)
        for file in (path, written):
            document = json.loads(file.read_text())
            atif.Trajectory.model_validate(document)
            jsonschema.validate(document, schema)
        assert json.loads(written.read_text())["schema_version"] == "ATIF-v1.8"


def test_goldens_come_back_the_same(data: Path, tmp_path: Path) -> None:
    for path in goldens(data):
        trace = one(path)
        written = tmp_path / path.name
        write_file(written, trace)
        back = one(written)
        assert msgspec.structs.replace(back, provenance=trace.provenance) == trace
        assert back.provenance.extra["original"] == msgspec.to_builtins(trace.provenance)
        again = tmp_path / f"again-{path.name}"
        write_file(again, back)
        assert again.read_bytes() == written.read_bytes()


def test_what_goldens_say_is_what_the_written_documents_say(data: Path, tmp_path: Path) -> None:
    """Apart from our own key and the things that a version adds, the document is the source's."""
    for path in goldens(data):
        source = json.loads(path.read_text())
        written = tmp_path / path.name
        write_file(written, one(path))
        document = json.loads(written.read_text())
        for before, after in zip(source["steps"], document["steps"], strict=True):
            after.get("extra", {}).pop("seatrial", None)
            for name in ("source", "message", "timestamp", "model_name", "reasoning_content", "metrics", "tool_calls"):
                assert after.get(name) == before.get(name)
        assert document["agent"] == source["agent"]
        assert document["final_metrics"] == source["final_metrics"]
        assert document["session_id"] == source["session_id"]


def test_sub_agents_in_files_have_their_parent(data: Path) -> None:
    parent = one(data / "atif" / f"{SUMMARY}.trajectory.json")
    parts = ("summary", "questions", "answers")
    children = [one(data / "atif" / f"{SUMMARY}.trajectory.summarization-1-{part}.json") for part in parts]
    assert {child.parent for child in children} == {parent.id}
    named = [subagent for step in parent.steps for result in step.results for subagent in result.subagents]
    assert named == [child.id for child in children]
    assert [step.copied for step in children[0].steps] == [True, True, True, False, False]


def test_a_continuation_names_what_it_continues(data: Path) -> None:
    first = one(data / "atif" / f"{SUMMARY}-linear-history.trajectory.json")
    second = one(data / "atif" / f"{SUMMARY}-linear-history.trajectory.cont-1.json")
    assert second.continues == first.id
    assert second.parent is None
    assert first.continues is None


def test_a_harness_that_speaks_as_the_user_is_no_person(data: Path) -> None:
    humans = [step.text for path in goldens(data) for step in one(path).steps if step.event_class == "human"]
    assert humans == ['Create a file called hello.txt with "Hello, world!" as the content.\n']
