"""What of a store or a suite is damaged is named by the page that passes over it, and hides nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from seatrial.records import Agent, Provenance, Step, Task, Trace
from seatrial.server import ServerSettings
from seatrial.server.app import make
from seatrial.store import Store, frames, session_row, step_rows
from seatrial.suites.writing import append

NAMES = ("whole-session", "torn-session", "last-session")
TORN = (b"", b"{}", b"[1,2", b'{"id": "x"', b"\xff\xfe", b"[" * 100_000)
KINDS = {"rank": "/", "scorecard": "/scorecard", "recover": "/recovery", "judge": "/judges", "drift": "/drift",
         "gate": "/suites", "diff": "/suites", "label": "/label"}  # fmt: skip


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store.open(tmp_path / "store", create=True, durable=False)
    about = Provenance(format="made", reader="made", reader_version="1")
    traces = [
        Trace(id=name, agent=Agent(name="a"), model="m", provenance=about,
              steps=(Step(index=0, event_class="human", text=f"needle in {name}", time=1.0 + n),))
        for n, name in enumerate(NAMES)
    ]  # fmt: skip
    rows = [session_row(t, made.put(t, durable=False)) for t in traces]
    made.commit(frames(rows, [r for t in traces for r in step_rows(t)]))
    return made


@pytest.fixture
def suite(store: Store) -> Path:
    return store.path.parent / "suite.jsonl"


@pytest.fixture
def web(store: Store, suite: Path) -> Iterator[TestClient]:
    with TestClient(make(store, ServerSettings(suite=str(suite))), base_url="http://127.0.0.1:1") as client:
        yield client


@pytest.mark.parametrize("kind", KINDS)
def test_a_torn_result_is_named(web: TestClient, store: Store, kind: str) -> None:
    ident = store.save_result(kind, "the newest", {"command": kind, "result": {}})
    assert ident not in web.get("/api/results").json()["unreadable"]
    path = store.path / "results" / f"{ident}.json"
    whole = path.read_bytes()
    for torn in (*TORN, whole[: len(whole) // 2], whole.replace(ident.encode(), f"{kind}-{'0' * 16}".encode())):
        path.write_bytes(torn)
        page = web.get(KINDS[kind])
        assert page.status_code == 200, torn[:20]
        assert f"result {ident} cannot be read: see seatrial verify" in page.text, torn[:20]
        assert web.get("/api/results", params={"kind": kind}).json() == {"results": [], "unreadable": [ident]}
    path.unlink()
    path.mkdir()
    assert ident in web.get(KINDS[kind]).text
    assert ident not in web.get("/jobs").text


def test_lines_of_a_suite_that_cannot_be_read_are_told(web: TestClient, suite: Path) -> None:
    assert "Damaged" not in web.get("/triage").text, "no suite yet is no damage"
    for name in ("one", "two"):
        append(suite, Task(id=name, input="Close it.", extra={"draft": True}))
    good = suite.read_bytes()
    suite.write_bytes(b"\xff\xfe\n" + good + b'{"id": "torn\n\n[1]\n' + b"[" * 50_000)
    for state in ("new", "task", "dismissed"):
        told = web.get("/triage", params={"state": state}).text
        assert f"4 lines of {suite} cannot be read (1, 4, 6, 7)" in told
    assert all(f"task={name}" in web.get("/triage").text for name in ("one", "two"))
    assert "4 lines" in web.get("/triage/draft", params={"task": "torn"}).text
    suite.unlink()
    suite.mkdir()
    assert f"the suite {suite} cannot be read" in web.get("/triage").text


def test_a_damaged_session_does_not_end_the_search(web: TestClient, store: Store) -> None:
    blob = store.blobs_of(["torn-session"])["torn-session"]
    (path,) = [p for p in (store.path / "blobs").rglob("*") if p.is_file() and blob in str(p).replace("/", "")]
    for torn in (b"", path.read_bytes()[:20], None):
        if torn is None:
            path.unlink()
        else:
            path.chmod(0o600)
            path.write_bytes(torn)
        for address in ("/sessions", "/sessions/further"):
            page = web.get(address, params={"text": "needle"})
            assert page.status_code == 200
            assert all(f"needle</mark> in {name}" in page.text for name in ("whole-session", "last-session"))
            assert "<bdi>torn-session</bdi> is damaged" in page.text
    assert "is damaged" not in web.get("/sessions", params={"text": "needle", "q": "whole"}).text


def test_torn_lines_of_the_logs_are_told(store: Store, suite: Path) -> None:
    store.audit.note("ana", "viewer", "saw", session="whole-session")
    with (store.path / "audit.jsonl").open("ab") as log:
        log.write(b'garbage\n\xff\xff{"a":\n')
    (store.path / "jobs.jsonl").write_bytes(json.dumps({"id": 5}).encode() + b"\n\n{torn\n")
    with TestClient(make(store, ServerSettings(suite=str(suite))), base_url="http://127.0.0.1:1") as web:
        assert "2 lines of the audit log cannot be read" in web.get("/audit").text
        assert "whole-session" in web.get("/audit").text
        assert "2 lines of the log of jobs cannot be read" in web.get("/jobs").text
