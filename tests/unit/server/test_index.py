"""Sessions by column: orders, pages, what waits for triage, and what is made once for each state of the store."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from seatrial.records import Consent
from seatrial.records.tables import TRIAGE
from seatrial.server.index import ORDERS, Index, Query
from seatrial.server.waiting import BAD, TABLES, board
from seatrial.store import Store, set_consent

N = 2_000


@pytest.fixture(scope="module")
def many() -> Any:
    path = Path(__file__).resolve().parents[3] / "benchmarks" / "million_sessions.py"
    spec = importlib.util.spec_from_file_location("million_sessions", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["million_sessions"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def filled(many: Any, tmp_path: Path) -> Store:
    store: Store = many.fill(tmp_path / "many", N)
    return store


def test_every_order_is_a_stable_one_and_pages_hold_each_session_once(filled: Store) -> None:
    snapshot = Index(filled, "assume").current()
    frame = snapshot.frame.filter(pl.col("parent").is_null())
    newest = frame["session"].to_list()
    by = {
        "errors": frame["tool_errors"], "complaints": frame["n_complaint"] + frame["n_correction"],
        "longest": frame["steps"], "cost": frame["cost_usd"],
    }  # fmt: skip
    assert newest == sorted(newest, reverse=True)
    for order in ORDERS:
        pages = [snapshot.find(Query(order=order), at, 500).rows for at in range(0, N, 500)]
        ids = [r["session"] for rows in pages for r in rows]
        if order in by:
            values = by[order].to_list()
            wanted = [newest[i] for i in sorted(range(len(values)), key=lambda i: -values[i])]
        else:
            wanted = newest if order == "newest" else newest[::-1]
        assert ids == wanted == snapshot.ids(Query(order=order)), order


def test_what_waits_for_triage_is_what_its_signals_and_decisions_say(filled: Store, many: Any) -> None:
    row = {"session": many.name(3), "state": "dismissed", "reason": "no", "kind": "session", "by": "me", "time": 1.0}
    incident = {**row, "session": "incident-1", "state": "new", "kind": "incident", "time": 9e9}
    unknown = {**row, "session": "gone-since"}
    filled.commit({TRIAGE.name: pl.DataFrame([row, incident, unknown], schema=TRIAGE.schema(), orient="row")})
    found = board(filled, Index(filled, "assume").current())
    main = set(filled.table("sessions").filter(pl.col("parent").is_null()).collect()["session"])
    against: dict[str, int] = {}
    for session, kind in filled.table("signals").select("session", "kind").collect().iter_rows():
        if kind in BAD and session in main:
            against[session] = against.get(session, 0) + 1
    wanted = dict.fromkeys(against, "new") | {many.name(3): "dismissed", "incident-1": "new"}
    assert dict(found.select("session", "state").iter_rows()) == wanted
    counts = found["against"].to_list()
    assert counts == sorted(counts, reverse=True)
    assert sum(counts) == sum(against.values()) + 1
    assert found.row(by_predicate=pl.col("session") == "incident-1", named=True)["incident"]


def test_what_is_derived_is_made_once_for_each_state(filled: Store, many: Any) -> None:
    index = Index(filled, "assume")
    made = []

    def make(snapshot: Any) -> int:
        made.append(snapshot.data_version)
        return len(made)

    assert [index.derived("x", TABLES, make) for _ in range(3)] == [1, 1, 1]
    row = {"session": many.name(3), "state": "dismissed", "kind": "session"}
    filled.commit({TRIAGE.name: pl.DataFrame([row], schema=TRIAGE.schema(), orient="row")})
    assert [index.derived("x", TABLES, make) for _ in range(2)] == [2, 2]
    set_consent(filled, [Consent(subject=many.name(3), purposes=("rank",), time=1.0)])
    index._checked = -1.0
    assert index.derived("x", TABLES, make) == 3
    for n in range(200):
        index.derived(("y", n), TABLES, make)
    assert len(index._derived) == 64
    assert index.derived("x", TABLES, make) == 204


def test_withheld_sessions_wait_for_nobody(filled: Store) -> None:
    before = board(filled, Index(filled, "assume").current())
    first = before["session"][0]
    set_consent(filled, [Consent(subject=first, purposes=("rank",), time=1.0)])
    after = board(filled, Index(filled, "assume").current())
    assert first not in set(after["session"])
