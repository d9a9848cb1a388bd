"""An open request counts as abandoned once the store has seen a day beyond it, and not before."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from seatrial import intake, scoring
from seatrial.engine.choice import LocalEngine
from seatrial.flows.extract import extract_store
from seatrial.store import Store

LINE = (
    '{{"type":"{who}","uuid":"{uuid}","parentUuid":null,"sessionId":"{session}","timestamp":"{time}","cwd":"/x",'
    '"version":"2.0.0","message":{message}}}\n'
)


def _session(folder: Path, name: str, day: int) -> None:
    user = '{"role":"user","content":"please fix the parser in the reader module"}'
    said = '{"role":"assistant","model":"m","id":"NAME","content":[{"type":"text","text":"Done."}]}'.replace(
        "NAME", name
    )
    rows = [("user", user), ("assistant", said), ("user", user.replace("parser", "writer"))]
    text = "".join(
        LINE.format(who=who, uuid=f"{name}{i}", session=name, time=f"2026-01-{day:02}T10:0{i}:00.000Z", message=message)
        for i, (who, message) in enumerate(rows)
    )
    (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")


def _abandoned(store: Store) -> dict[str, str | None]:
    extract_store(store, scoring.UNIT, engine=LocalEngine(1))
    rows = store.table("signals").filter(pl.col("kind") == "abandonment").sort("session").collect()
    return dict(zip(rows["session"], rows["dropped_by"], strict=True))


def test_a_later_session_shows_that_an_earlier_request_was_abandoned(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    store = Store.open(tmp_path / "store", create=True)
    _session(folder, "aaaa", 2)
    intake.ingest(store, [folder])
    first = _abandoned(store)
    assert str(first["aaaa"]).startswith("censored")
    _session(folder, "bbbb", 5)
    intake.ingest(store, [folder])
    second = _abandoned(store)
    assert second["aaaa"] is None
    assert str(second["bbbb"]).startswith("censored")
