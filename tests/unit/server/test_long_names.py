"""Whatever is listed can be opened, however long its id or its model's name is."""

from __future__ import annotations

import contextlib
import html
import re
import threading
import time
from pathlib import Path

import httpx
import pytest
import uvicorn
from starlette.testclient import TestClient

from seatrial.records import Agent, Provenance, Step, Trace
from seatrial.server import ServerSettings
from seatrial.server.app import make
from seatrial.server.run import _listen, configured
from seatrial.server.words import LONGEST_NAME
from seatrial.store import Store, frames, session_row, step_rows

IDS = ("a" * 2_001, "b" * 12_000, "é" * 3_000, "\U0001f600" * 4_000, "c" * LONGEST_NAME)
MODEL = "m" * 3_000


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store.open(tmp_path / "store", create=True, durable=False)
    about = Provenance(format="made", reader="made", reader_version="1")
    steps = (
        Step(index=0, event_class="human", text="hello there", time=1.0),
        Step(index=1, event_class="agent", text="done", model=MODEL, time=2.0),
    )
    traces = [Trace(id=i, agent=Agent(name="a"), model=MODEL, provenance=about, steps=steps) for i in IDS]
    rows = [session_row(t, made.put(t, durable=False)) for t in traces]
    made.commit(frames(rows, [r for t in traces for r in step_rows(t)]))
    return made


def test_every_link_of_the_list_leads_to_its_session(store: Store) -> None:
    web = TestClient(make(store, ServerSettings()), base_url="http://127.0.0.1:1")
    listed = web.get("/sessions", params={"model": MODEL})
    links = {html.unescape(link) for link in re.findall(r'href="(/session\?[^"]*)"', listed.text)}
    assert len(links) == len(IDS)
    for link in links:
        assert "hello there" in web.get(link).text, len(link)
    for ident in IDS:
        for path in ("/session/steps", "/session/text"):
            assert "hello there" in web.get(path, params={"id": ident, "field": "text"}).text, (path, len(ident))
        for path in ("/api/session", "/api/session/steps"):
            assert web.get(path, params={"id": ident}).status_code == 200, (path, len(ident))
    found = web.get("/api/sessions", params={"model": MODEL}).json()
    assert {s["session"] for s in found["sessions"]} == set(IDS)
    assert web.get("/api/session", params={"id": "x" * (LONGEST_NAME + 1)}).status_code == 400


def test_the_server_lets_such_addresses_in_and_none_without_end(store: Store) -> None:
    settings = ServerSettings()
    with _listen("127.0.0.1", 0) as listening:
        server = uvicorn.Server(configured(make(store, settings), settings))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        while not server.started and thread.is_alive():
            time.sleep(0.01)
        base = f"http://127.0.0.1:{listening.getsockname()[1]}"
        try:
            for ident in IDS:
                assert "hello there" in httpx.get(f"{base}/session/steps", params={"id": ident}).text, len(ident)
            with contextlib.suppress(httpx.TransportError):  # it hangs up, and the answer may be lost with that
                assert httpx.get(base, headers={"x": "y" * 2**22}).status_code in (400, 431)
        finally:
            server.should_exit = True
            thread.join(30)
