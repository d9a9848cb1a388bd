"""Extraction works on what is new or changed, and a run that was stopped goes on where it was."""

from __future__ import annotations

from pathlib import Path

import pytest
from polars.testing import assert_frame_equal

from seatrial import scoring
from seatrial.engine.choice import LocalEngine
from seatrial.errors import StoreError
from seatrial.flows import extract
from seatrial.flows.extract import extract_store
from seatrial.records import Agent, Provenance, Step, ToolCall, ToolResult, Trace
from seatrial.store import Store, frames, session_row, step_rows

TABLES = ("signals", "calls", "corrections", "outcomes")


def _trace(number: int, said: str = "no, that is wrong") -> Trace:
    call = ToolCall(id="c", name="Bash", arguments={"command": f"ls src/{number}"})
    result = ToolResult(call_id="c", outcome="error", exit_code=2, text="ls: cannot access 'src': No such file")
    steps = (
        Step(index=0, event_class="human", text=f"fix module {number} please", time=1e9),
        Step(
            index=1, event_class="agent", text="Done.", model="m", tool_calls=(call,), results=(result,), time=1e9 + 9
        ),
        Step(index=2, event_class="human", text=said, time=1e9 + 20),
    )
    made = Provenance(format="synthetic", reader="test", reader_version="1")
    return Trace(id=f"s{number:02}", agent=Agent(name="a"), provenance=made, steps=steps)


def _keep(store: Store, *traces: Trace) -> None:
    rows = [session_row(t, store.put(t)) for t in traces]
    store.commit(frames(rows, [row for t in traces for row in step_rows(t)]))


def _extract(store: Store) -> int:
    return extract_store(store, scoring.UNIT, engine=LocalEngine(1))


def test_only_new_and_changed_sessions_are_worked_on(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "store", create=True)
    _keep(store, *(_trace(i) for i in range(6)))
    assert _extract(store) == 6
    assert _extract(store) == 0
    _keep(store, _trace(9), _trace(2, "perfect, thank you"))
    assert _extract(store) == 2
    other = Store.open(tmp_path / "other", create=True)
    _keep(other, *(_trace(i) for i in (0, 1, 3, 4, 5, 9)), _trace(2, "perfect, thank you"))
    assert _extract(other) == 7
    for name in TABLES:
        assert_frame_equal(store.table(name).collect(), other.table(name).collect())
    assert {"correction", "execution_error", "praise"} <= set(store.table("signals").collect()["kind"])


def test_a_stopped_run_goes_on_from_its_last_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extract, "BATCH", 2)
    monkeypatch.setattr(extract, "COMMIT_EVERY", 1)
    store = Store.open(tmp_path / "store", create=True)
    _keep(store, *(_trace(i) for i in range(7)))

    def stop(done: int, total: int | None, what: str) -> None:
        if done == 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        extract_store(store, scoring.UNIT, engine=LocalEngine(1), progress=stop)
    assert store.table("outcomes").collect()["session"].to_list() == ["s00", "s01", "s02", "s03"]
    assert _extract(store) == 3
    whole = Store.open(tmp_path / "whole", create=True)
    _keep(whole, *(_trace(i) for i in range(7)))
    monkeypatch.setattr(extract, "BATCH", 64)
    assert _extract(whole) == 7
    for name in TABLES:
        assert_frame_equal(store.table(name).collect(), whole.table(name).collect())


def test_a_batch_that_fails_names_its_sessions(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "store", create=True)
    _keep(store, _trace(1), _trace(2))
    for path in (tmp_path / "store" / "blobs").rglob("*.json.z"):
        path.unlink()
    with pytest.raises(StoreError, match=r"batch 1 \(s01 \.\. s02\)"):
        _extract(store)
