"""A session that breaks a detector is left out, counted and named; the others are ranked."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial import intake, scoring
from seatrial.engine.choice import LocalEngine
from seatrial.errors import SchemaError
from seatrial.flows.extract import extract_store, unextracted
from seatrial.flows.rank import RankOptions, rank_store
from seatrial.records import Trace
from seatrial.signals import commands
from seatrial.store import Store

LINE = (
    '{{"type":"{who}","uuid":"{name}{i}","parentUuid":null,"sessionId":"{name}","timestamp":"2026-01-02T10:0{i}:00.000Z"'
    ',"cwd":"/x","version":"2.0.0","message":{message}}}\n'
)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    folder = tmp_path / "logs"
    folder.mkdir()
    for name in ("aaaa", "bbbb", "cccc"):
        message = '{"role":"assistant","model":"m","id":"ID","content":[{"type":"text","text":"Done."}]}'
        said = message.replace("ID", name)
        rows = [("user", '{"role":"user","content":"fix the parser"}'), ("assistant", said)]
        text = "".join(LINE.format(who=who, name=name, i=i, message=m) for i, (who, m) in enumerate(rows))
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
    opened = Store.open(tmp_path / "store", create=True)
    intake.ingest(opened, [folder])
    return opened


def breaks(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    detect = commands.detect

    def broken(trace: Trace) -> commands.Detected:
        if "bbbb" in trace.id:
            raise error
        return detect(trace)

    monkeypatch.setattr(commands, "detect", broken)


def test_one_broken_session_leaves_the_others(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    breaks(monkeypatch, ZeroDivisionError("by nothing"))
    assert extract_store(store, scoring.UNIT, engine=LocalEngine(1)) == 3
    outcomes = store.table("outcomes").collect()
    assert outcomes.height == 2
    (left,) = unextracted(store, scoring.UNIT)
    assert left.n == 1
    assert "bbbb" in left.what
    assert left.why == "ZeroDivisionError: by nothing"
    assert left in rank_store(store, RankOptions()).dropped


def test_it_is_tried_again_and_then_counts(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        breaks(patch, RuntimeError("once"))
        extract_store(store, scoring.UNIT, engine=LocalEngine(1))
    assert extract_store(store, scoring.UNIT, engine=LocalEngine(1)) == 1
    assert store.table("outcomes").collect().height == 3
    assert unextracted(store, scoring.UNIT) == []


def test_an_error_of_our_own_stops_the_run(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    breaks(monkeypatch, SchemaError("another lexicon", hint="train again"))
    with pytest.raises(SchemaError):
        extract_store(store, scoring.UNIT, engine=LocalEngine(1))
