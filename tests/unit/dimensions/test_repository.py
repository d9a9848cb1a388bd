"""What a run did to a repository: files nobody asked about, tests that fail since."""

from __future__ import annotations

from typing import Any

import msgspec

from seatrial.dimensions.card import scorecard
from seatrial.dimensions.completion import Completion
from seatrial.dimensions.repository import touched
from seatrial.records import Agent, Attempt, Evidence, Provenance, StateChange, Task, Trace

INTENT = {"allowed": [{"tool": "edit_file", "arguments": [], "paths": ["/files/src~1prices.py", "tests"]}]}
CHANGES = (
    StateChange(path=("files", "src/prices.py"), kind="changed", before="a", after="b"),
    StateChange(path=("files", "scratch.txt"), kind="added", after="x"),
    StateChange(path=("tests", "test_total"), kind="changed", before=True, after=False),
    StateChange(path=("tests", "test_net"), kind="changed", before=False, after=True),
)


def run(changes: Any = CHANGES, start: Any = None, intent: Any = INTENT) -> Evidence:
    state = {"files": {"src/prices.py": "a"}, "tests": {}} if start is None else start
    trace = Trace(
        id="x", agent=Agent(name="a"), extra={"start": state, "changes": msgspec.to_builtins(changes)},
        provenance=Provenance(format="seatrial-attempt", reader="r", reader_version="1"),
    )  # fmt: skip
    task = Task(id="t", input="fix", intent=intent)
    return Evidence(attempt=Attempt(task="t", trial=0, status="failed"), task=task, trace=trace)


def test_unrelated_files_and_newly_failing_tests_are_named() -> None:
    found = touched(run())
    assert found is not None
    assert (found.files, found.unrelated, found.newly_failing) == (2, ("scratch.txt",), ("test_total",))


def test_without_an_intent_no_file_is_unrelated() -> None:
    found = touched(run(intent=None))
    assert found is not None
    assert (found.unrelated, found.newly_failing) == ((), ("test_total",))


def test_other_worlds_are_no_repository() -> None:
    assert touched(run(start={"tickets": {}})) is None
    assert touched(Evidence(attempt=Attempt(task="t", trial=0, status="failed"))) is None


def test_the_scorecard_counts_them() -> None:
    found = scorecard([run(), run(changes=())], (Completion(),), agent="a").repository
    assert (found["runs"], found["touched_unrelated"], found["broke_tests"]) == (2, 1, 1)
    assert found["unrelated_files"] == {"scratch.txt": 1}
