"""News is said when there is some: of sessions where sessions came, of a ranking where it would be another one now."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from starlette.testclient import TestClient

from seatrial.records import Agent, Consent, Provenance, Step, Trace
from seatrial.records.tables import LABELS, SIGNALS, TRIAGE
from seatrial.server import ServerSettings, index
from seatrial.server.app import make
from seatrial.store import Store, frames, session_row, set_consent, step_rows

CHANGED = "The store has changed since this was made"


def put(store: Store, name: str) -> None:
    about = Provenance(format="made", reader="made", reader_version="1")
    steps = (Step(index=0, event_class="human", text="hello", time=1.0),)
    made = Trace(id=name, agent=Agent(name="a"), model="m", provenance=about, steps=steps)
    store.commit(frames([session_row(made, store.put(made, durable=False))], step_rows(made)))


def add(store: Store, table: Any, **values: Any) -> None:
    row = pl.DataFrame([{n: values.get(n) for n in table.names}], schema=table.schema())
    store.commit({table.name: row}, replace_sessions=[values["session"]])


def label(store: Store) -> None:
    add(store, LABELS, session="first", item="i", annotator="x", unit="turn", step=0, labels=["other"], time=1.0)


def dismiss(store: Store) -> None:
    add(store, TRIAGE, session="first", state="dismissed", reason="no fault", kind="session", time=1.0)


def signal(store: Store) -> None:
    add(store, SIGNALS, session="first", step=0, kind="praise", detector="d", version="1", confidence=0.9)


def rank(store: Store) -> str:
    path = Path(__file__).parents[1] / "report" / "rankings.py"
    spec = importlib.util.spec_from_file_location("state_rankings", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    ranking = next(iter(module.RANKINGS.values()))()
    envelope = {"seatrial": "1", "command": "rank", "data_version": store.data_version, "result": ranking}
    return store.save_result("rank", "by model", {**envelope, "warnings": []})


class News:
    """What the site says of what is new since it was made."""

    def __init__(self, store: Store) -> None:
        self._web = TestClient(make(store, ServerSettings()), base_url="http://127.0.0.1:1")
        self._shown = self.page()

    def page(self) -> str:
        found = re.search(r'<body data-version="(\w+)">', self._web.get("/sessions").text)
        assert found is not None
        return found.group(1)

    def sessions(self) -> bool:
        """What the page's script compares."""
        now = self._web.get("/api/version").json()["sessions"]
        assert self.page() == now
        return bool(now != self._shown)

    def ranking(self, ident: str) -> bool:
        return CHANGED in self._web.get("/", params={"result": ident}).text

    def version(self) -> str:
        found = re.search(r"data version <code>([^<]+)</code>", self._web.get("/sessions").text)
        assert found is not None
        return found.group(1)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setattr(index, "_STATE_S", 0.0)
    made = Store.open(tmp_path / "store", create=True, durable=False)
    put(made, "first")
    return made


@pytest.mark.parametrize("decide", [label, dismiss])
def test_labels_and_decisions_are_no_news(store: Store, decide: Callable[[Store], None]) -> None:
    before = rank(store)
    news = News(store)
    decide(store)
    after = rank(store)
    assert not news.sessions()
    assert not news.ranking(before), "it would be the same now"
    assert not news.ranking(after), "it was made from this very version"
    assert news.version() == store.data_version


@pytest.mark.parametrize(
    ("change", "listed"),
    [
        (lambda store: put(store, "other"), True),
        (lambda store: set_consent(store, [Consent(subject="first", purposes=("serve",), time=1.0)]), True),
        (signal, False),
    ],
    ids=["session", "consent", "signal"],
)
def test_what_would_make_another_ranking_is_said(store: Store, change: Callable[[Store], None], listed: bool) -> None:
    before = rank(store)
    news = News(store)
    change(store)
    assert news.sessions() == listed
    assert news.ranking(before)
    assert not news.ranking(rank(store))


def test_a_ranking_of_a_version_that_is_gone_is_old(store: Store) -> None:
    ident = rank(store)
    kept = store.result(ident)
    odd = store.save_result("rank", "by hand", {**kept.envelope, "data_version": "9-000000000000"})
    news = News(store)
    assert news.ranking(odd)
    assert not news.ranking(ident)
