"""Every file of the real inputs is read, or refused with a reason; every byte of it is accounted for."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from seatrial.ingest import Memory, read_file, scan
from seatrial.records import FileReport

pytestmark = pytest.mark.real

READ = {
    "atif": {"atif": 10},
    "inspect": {"inspect": 14},
    "native-examples": {"gemini-cli": 1, "mini-swe-agent": 1, "openhands": 1},
    "otel/jaeger-genai": {"jaeger": 2},
    "otel/langfuse-export": {"langfuse": 10},
    "sessions/claude-code": {"claude-code": 86},
    "sessions/codex": {"codex": 10},
    "sessions/copilot-cli": {"copilot-cli": 6},
    "sessions/specstory": {"specstory": 57},
    "swe/mini-swe-agent": {"mini-swe-agent": 2},
    "swe/openhands": {"openhands": 1},
    "swe/swe-agent": {"swe-agent": 12},
    "tau-bench": {"tau-bench": 1},
    "tau2/airline": {"tau2": 4},
    "tau2/policy-change": {"tau2": 2},
    "traps/claude-code": {"claude-code": 3},
}
"""Files that give sessions, by folder and by the format that they are recognised as."""

WITHOUT_SESSIONS = {
    "inspect/log_invalid.txt": "line 2: not valid JSON",
    "inspect/log_valid.txt": "it holds no session",
    "inspect/log_version_3.txt": "it holds no session",
    "inspect/log_with_nan.txt": "it holds no session",
}

NO_TRACES = ("alfworld", "judges", "labels", "reflexion-alfworld")
"""Folders that hold games, ratings, labels and results: nothing in them is a session."""

OTHERS = {"README.md", "atif/atif-1.8-schema.json", "sessions/index.json", "traps/answers.json"}


@pytest.fixture(scope="module")
def reports(data: Path) -> dict[str, FileReport]:
    seen = Memory()
    out = {}
    for file in scan([data]):
        reading = read_file(file, seen=seen)
        for _ in reading:
            pass
        out[file.relative_to(data).as_posix()] = reading.report
    return out


def test_every_byte_is_accounted_for(data: Path, reports: dict[str, FileReport]) -> None:
    assert len(reports) == sum(path.is_file() for path in data.rglob("*"))
    for name, report in reports.items():
        assert report.kept_bytes + report.skipped_bytes == report.n_bytes == (data / name).stat().st_size, name
        assert report.status == "kept" or report.why, name
        assert " broke: " not in (report.why or ""), name


def test_every_file_that_holds_sessions_is_read(reports: dict[str, FileReport]) -> None:
    kept = {name: r for name, r in reports.items() if r.status == "kept"}
    for folder, expected in READ.items():
        inside = Counter(r.format for name, r in kept.items() if name.startswith(f"{folder}/"))
        assert inside == expected, folder
    assert len(kept) == sum(n for formats in READ.values() for n in formats.values())
    assert all(report.traces > 0 for report in kept.values())


def test_what_is_not_read_says_why(reports: dict[str, FileReport]) -> None:
    left = {name: r for name, r in reports.items() if r.status != "kept"}
    for name, why in WITHOUT_SESSIONS.items():
        assert left[name].status == "skipped"
        assert why in (left[name].why or "")
    refused = {name: r for name, r in left.items() if name not in WITHOUT_SESSIONS}
    assert all(r.status == "refused" and "recognises" in (r.why or "") for r in refused.values())
    assert {name for name in refused if name.split("/")[0] not in NO_TRACES} == OTHERS
