"""JSON that is nested without end, or is none: whoever sends it is told so, and what is stored of it breaks no page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from seatrial.records import Agent, Provenance, Step, Trace
from seatrial.server import ServerSettings
from seatrial.server.app import make
from seatrial.server.jobs import Job, Jobs
from seatrial.server.pages import PAGES
from seatrial.server.pages.drafts import _refusal
from seatrial.server.receiver import Receiver
from seatrial.server.security import Rates
from seatrial.store import Store, frames, session_row, step_rows

BODIES = {
    "lists": b"[" * 100_000,
    "objects": b'{"a":' * 50_000,
    "closed": b"[" * 100_000 + b"]" * 100_000,
    "inside": b'{"what": "rank", "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "surrogate": b'{"what": "\\ud800", "job": "\\udfff"}',
    "no text": b'{"what": "\xff\xfe"}',
    "number": b'{"what": 1e99999, "job": NaN}',
    "null": b"null",
}
POSTS = sorted({p.path for p in PAGES if "POST" in p.methods} | {"/sign-in", "/v1/traces"})
JSON = {"content-type": "application/json"}
DEEP = "[" * 100_000 + "]" * 100_000


@pytest.fixture
def web(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    def refused(self: Jobs, *args: object, **named: object) -> Job:
        raise AssertionError("no job is started by what cannot be read")

    monkeypatch.setattr(Rates, "take", lambda self, caller: 0.0)
    monkeypatch.setattr(Jobs, "start", refused)
    store = Store.open(tmp_path / "store", create=True, durable=False)
    steps = (Step(index=0, event_class="human", text="hello", time=1.0),)
    about = Provenance(format="made", reader="made", reader_version="1")
    made = Trace(id="a-session", agent=Agent(name="a"), model="m", provenance=about, steps=steps)
    store.commit(frames([session_row(made, store.put(made, durable=False))], step_rows(made)))
    receiver = Receiver(store, ServerSettings())
    app = make(store, ServerSettings(suite=str(tmp_path / "suite.jsonl")), receiver=receiver)
    yield TestClient(app, base_url="http://127.0.0.1:1", follow_redirects=False, raise_server_exceptions=False)
    receiver.close()


@pytest.mark.parametrize("name", BODIES)
def test_a_body_that_cannot_be_read_is_refused_everywhere(web: TestClient, name: str) -> None:
    body = BODIES[name]
    for path in POSTS:
        answer = web.post(path, content=body, headers=JSON)
        where = (path, answer.status_code, answer.text[:200])
        assert answer.status_code < 500, where
        if path.startswith("/api/"):
            assert answer.status_code == 400 or (answer.status_code == 404 and name in ("surrogate", "number")), where
        elif path == "/v1/traces" and name in ("lists", "objects", "closed", "inside", "null"):
            assert answer.status_code == 400, where
        elif path not in ("/v1/traces", "/sign-in"):
            assert answer.status_code == 415, where
    form = {"content-type": "application/x-www-form-urlencoded"}
    for path in POSTS:
        assert web.post(path, content=body, headers=form).status_code < 500, path


def test_a_span_that_is_nested_without_end_is_refused(web: TestClient) -> None:
    value = '{"arrayValue":{"values":[' * 20_000 + "]}}" * 20_000
    for depth in (value, '{"arrayValue":{"values":[' * 60 + '{"intValue": "1"}' + "]}}" * 60):
        span = f'{{"traceId": "{1:032x}", "spanId": "{1:016x}", "attributes": [{{"key": "k", "value": {depth}}}]}}'
        body = f'{{"resourceSpans": [{{"scopeSpans": [{{"spans": [{span}]}}]}}]}}'
        assert web.post("/v1/traces", content=body, headers=JSON).status_code in (200, 400)


def test_what_is_stored_so_breaks_no_other_page(web: TestClient, tmp_path: Path) -> None:
    """Files that somebody damaged by hand: a result, the logs of jobs and looks, the suite."""
    store = Store.open(tmp_path / "store")
    envelope = {"seatrial": "1", "command": "verify", "result": {"ok": True}, "warnings": []}
    ident = store.save_result("verify", "deep", envelope)
    (file,) = (tmp_path / "store" / "results").glob("*.json")
    whole = file.read_text("utf-8")
    for name in ("audit.jsonl", "jobs.jsonl"):
        with open(tmp_path / "store" / name, "a", encoding="utf-8") as log:
            log.write('{"x": ' + DEEP + "}\n")
    (tmp_path / "suite.jsonl").write_text(f'{{"id": "t", "input": "i", "extra": {{"draft": true, "x": {DEEP}}}}}\n')
    for deep in (DEEP, "[" * 300 + "]" * 300, "[" * 700 + "]" * 700):
        file.write_text(whole.replace('"ok":true', f'"ok":{deep}'), "utf-8")
        for page in PAGES:
            if "GET" in page.methods:
                query = {"id": "a-session" if "session" in page.path else ident, "field": "text"}
                answer = web.get(page.path, params=query)
                damaged = page.path in ("/result", "/api/result") and len(deep) > 1000
                assert answer.status_code < 500 or (damaged and answer.status_code == 503), (page.path, answer.text)
                assert "it is not your doing" not in answer.text, page.path
    assert Jobs(tmp_path / "store").all() == []


def test_what_a_command_says_is_read_whatever_it_is() -> None:
    assert "failed" in _refusal([DEEP, "[]", "null", '{"error": 5}', json.dumps({"error": {}})], "It").message
