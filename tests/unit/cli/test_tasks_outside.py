"""An erasure says which tasks quote what it erased: suite files are no part of the store."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from seatrial.cli.app import run
from seatrial.records import Agent, Provenance, Step, Trace
from seatrial.records.tables import TRIAGE
from seatrial.store import Store, frames, session_row, step_rows


@pytest.fixture
def store(tmp_path: Path) -> str:
    made = Store.open(tmp_path / "store", create=True, durable=False)
    about = Provenance(format="made", reader="made", reader_version="1")
    traces = [
        Trace(id=name, agent=Agent(name="a"), model="m", user="user-a", provenance=about,
              steps=(Step(index=0, event_class="human", text="hello", time=1.0),))
        for name in ("became-a-task", "set-aside")
    ]  # fmt: skip
    rows = [session_row(t, made.put(t, durable=False)) for t in traces]
    decided = [
        {"session": "became-a-task", "state": "task", "task": "from-it", "kind": "session", "time": 1.0},
        {"session": "set-aside", "state": "dismissed", "reason": "noise", "kind": "session", "time": 1.0},
    ]
    tables = frames(rows, [r for t in traces for r in step_rows(t)])
    made.commit(tables | {TRIAGE.name: pl.DataFrame(decided, schema=TRIAGE.schema())})
    return str(made.path)


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (["forget", "--session", "became-a-task"], True),
        (["forget", "--session", "set-aside"], False),
        (["consent", "withdraw", "--session", "became-a-task"], True),
        (["purge", "--before", "2000-01-01"], True),
    ],
    ids=["forget", "forget another", "withdraw", "purge"],
)
def test_a_task_made_from_what_is_erased_is_named(
    store: str, command: list[str], told: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*command, "--yes", "--store", store, "--json"]) == 0
    warnings = json.loads(capsys.readouterr().out)["warnings"]
    assert [w for w in warnings if "suite file" in w] == (
        ["made from what was erased, and still in a suite file, with its words: from-it; take it out there"] * told
    )
