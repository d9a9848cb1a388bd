"""Who may do what, and what every answer carries: roles, forms of other sites, rates, the audit log, consent."""

from __future__ import annotations

import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from seatrial.records import Agent, Consent, Provenance, Step, Trace
from seatrial.server import ServerSettings, security
from seatrial.server.access import ROLES, Holder, Role, Who
from seatrial.server.app import make
from seatrial.server.jobs import Job, Jobs
from seatrial.server.pages import PAGES
from seatrial.server.receiver import Receiver
from seatrial.server.security import HEADERS, Rates
from seatrial.store import Store, frames, session_row, set_consent, step_rows

HERE = "http://127.0.0.1:4318"
THERE = "https://team.example"
SECRET = "words-that-nobody-may-see"
FORM = {"content-type": "application/x-www-form-urlencoded"}
POSTS = [page for page in PAGES if "POST" in page.methods]


def token(role: str) -> str:
    return f"{role}-token-of-some-length"


HOLDERS = tuple(Holder(token=token(r), who=Who(name=f"the {r}", role=r)) for r in ROLES)


def trace(name: str, user: str) -> Trace:
    about = Provenance(format="made", reader="made", reader_version="1")
    steps = (Step(index=0, event_class="human", text=f"{SECRET if 'with' in name else 'hello'}", time=1.0),)
    return Trace(id=name, agent=Agent(name="a"), model="m", provenance=about, steps=steps, user=user)


@pytest.fixture
def filled(tmp_path: Path) -> Store:
    store = Store.open(tmp_path / "store", create=True, durable=False)
    made = [trace("open-session", "user-a"), trace("withheld-session", "user-b")]
    rows = [session_row(t, store.put(t, durable=False)) for t in made]
    store.commit(frames(rows, [r for t in made for r in step_rows(t)]))
    set_consent(store, [Consent(subject="user-b", purposes=("rank",), time=1.0)])
    return store


@pytest.fixture(autouse=True)
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Jobs that would have been started."""
    found: list[str] = []

    def start(self: Jobs, title: str, arguments: Any, by: str, lane: str = "long", *, stored: bool = True) -> Job:
        found.append(title)
        return Job(id="j", title=title, arguments=list(arguments), by=by)

    monkeypatch.setattr(Jobs, "start", start)
    monkeypatch.setattr(Jobs, "wait", lambda self, ident, timeout: None)
    return found


Open = Callable[..., TestClient]


@pytest.fixture
def beyond(filled: Store) -> Open:
    """The application beyond this machine, behind TLS; `role` None: without a token."""

    def opened(role: Role | None = None) -> TestClient:
        app = make(filled, ServerSettings(), HOLDERS)
        headers = {"x-forwarded-proto": "https"}
        if role is not None:
            headers["authorization"] = f"Bearer {token(role)}"
        return TestClient(app, base_url=THERE, headers=headers, follow_redirects=False, raise_server_exceptions=False)

    return opened


def test_every_page_asks_for_its_role_and_none_for_less(beyond: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each address with each role: refused exactly where the role does not cover what it needs."""
    monkeypatch.setattr(Rates, "take", lambda self, caller: 0.0)
    for role in (None, *ROLES):
        client = beyond(role)
        for page in PAGES:
            for method in page.methods:
                json = {} if page.kind == "api" else None
                sent = {"json": json} if method == "POST" and json is not None else {}
                if method == "POST" and json is None:
                    sent = {"content": "", "headers": FORM}  # type: ignore[dict-item]
                answer = client.request(method, page.path, **sent)  # type: ignore[arg-type]
                where = (role, method, page.path)
                if role is None:
                    sign_in = answer.status_code == 303 and answer.headers["location"].startswith("/sign-in")
                    assert sign_in or answer.status_code == 401, where
                elif not Who(name="x", role=role).may(page.needs):
                    assert answer.status_code == 403, where
                else:
                    assert answer.status_code not in (401, 403), (where, answer.text)
                    assert answer.status_code < 500 or page.path == "/triage/approve", (where, answer.text)


def test_a_viewer_may_not_label_and_a_labeller_may_not_start_jobs(beyond: Open, started: list[str]) -> None:
    for role, label, job in (("viewer", 403, 403), ("labeller", 404, 403), ("admin", 404, 303)):
        client = beyond(role)
        assert client.post("/label/answer", content="queue=x&item=y", headers=FORM).status_code == label, role
        assert client.post("/jobs/start", content="what=verify", headers=FORM).status_code == job, role
        assert client.post("/api/jobs/start", json={"what": "verify"}).status_code == (202 if job == 303 else 403)
        assert client.get("/audit").status_code == (200 if role == "admin" else 403)
    assert started == ["Verify the store"] * 2


@pytest.mark.parametrize("page", POSTS, ids=lambda page: page.path)
@pytest.mark.parametrize("signed_in", [False, True])
def test_no_form_of_another_site_is_taken(
    filled: Store, started: list[str], monkeypatch: pytest.MonkeyPatch, page: Any, signed_in: bool
) -> None:
    """With a cookie of ours: no token, a wrong one, another origin (null too), or another site: 403, nothing done."""
    monkeypatch.setattr(Rates, "take", lambda self, caller: 0.0)
    before = filled.data_version
    holders, base = (HOLDERS, "http://127.0.0.1:4318") if signed_in else ((), HERE)
    client = TestClient(
        make(filled, ServerSettings(), holders), base_url=base, follow_redirects=False, client=("127.0.0.1", 9)
    )
    if signed_in:
        assert client.post("/sign-in", data={"token": token("admin"), "to": "/"}).status_code == 303
    shown = client.get("/triage").text
    given = shown.split('name="form_token" value="')[1].split('"')[0]
    foreign = [
        {"origin": "https://evil.example"}, {"origin": "null"}, {"origin": "http://127.0.0.1:9"},
        {"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-site"},
    ]  # fmt: skip
    for headers in foreign:
        if page.kind == "api":
            assert client.post(page.path, json={"what": "verify"}, headers=headers).status_code == 403, headers
        else:
            sent = {"form_token": given, "what": "verify", "text": "x"}
            assert client.post(page.path, data=sent, headers=headers).status_code == 403, headers
    if page.kind == "page":
        for sent in ({}, {"form_token": ""}, {"form_token": "0" * 64}, {"form_token": given[:-1] + "x"}):
            assert client.post(page.path, data={**sent, "what": "verify", "text": "x"}).status_code == 403
    else:
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
            answer = client.post(page.path, content='{"what": "verify"}', headers={"content-type": kind})
            assert answer.status_code == 415, kind  # what another site's form can send without being asked
    assert started == []
    assert filled.data_version == before


def test_a_foreign_page_cannot_sign_a_browser_in(beyond: Open) -> None:
    for origin in ("https://evil.example", "null"):
        answer = beyond().post("/sign-in", data={"token": token("admin")}, headers={"origin": origin})
        assert answer.status_code == 403
        assert "set-cookie" not in answer.headers


def test_a_sign_in_that_is_no_form_is_refused_and_breaks_nothing(beyond: Open) -> None:
    for body in (
        "&".join(f"a{n}=1" for n in range(30)),
        b"\xff&\x00=%00&%ff",
        "token",
        "token=&to=//evil.example",
        b"",
    ):
        answer = beyond().post("/sign-in", content=body, headers=FORM)
        assert answer.status_code in (400, 401), body
        assert "set-cookie" not in answer.headers


def test_sign_in_is_refused_after_a_few_guesses(beyond: Open) -> None:
    client = beyond()
    statuses = [client.post("/sign-in", data={"token": f"a guess of some length {n}"}).status_code for n in range(12)]
    assert statuses[:8] == [401] * 8
    assert statuses[8:] == [429] * 4


def test_too_many_requests_are_told_to_wait(beyond: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    # The clock stands still: a slow machine would fill the bucket as fast as it is emptied.
    monkeypatch.setattr(security, "time", types.SimpleNamespace(monotonic=lambda: 1_000.0, time=time.time))
    client = beyond("viewer")
    answers = [client.get("/api/version") for _ in range(400)]
    refused = [a for a in answers if a.status_code == 429]
    assert refused
    assert all(int(a.headers["retry-after"]) >= 1 for a in refused)
    assert {a.status_code for a in answers} == {200, 429}


def test_pages_are_not_shown_without_tls(filled: Store) -> None:
    client = TestClient(make(filled, ServerSettings(), HOLDERS), base_url="http://team.example")
    answer = client.get("/sessions", headers={"authorization": f"Bearer {token('viewer')}"})
    assert answer.status_code == 403
    assert "TLS" in answer.text


def test_every_answer_carries_the_headers(filled: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages, files, the API, the receiver, redirects and errors of every kind."""
    receiver = Receiver(filled, ServerSettings())
    client = TestClient(
        make(filled, ServerSettings(), receiver=receiver), base_url=HERE, follow_redirects=False,
        raise_server_exceptions=False,
    )  # fmt: skip
    asked = [("GET", page.path) for page in PAGES if "GET" in page.methods]
    asked += [("POST", page.path) for page in POSTS]
    asked += [
        ("GET", "/sign-in"), ("GET", "/static/app.css"), ("GET", "/static/app.js"), ("GET", "/favicon.ico"),
        ("GET", "/nothing"), ("GET", "/api/nothing"), ("GET", "/static/../app.py"), ("PUT", "/sessions"),
        ("DELETE", "/api/sessions"), ("POST", "/v1/traces"), ("GET", "/v1/traces"), ("GET", "/healthz"),
    ]  # fmt: skip
    try:
        for method, path in asked:
            answer = client.request(method, path)
            for name, value in HEADERS:
                assert answer.headers.get(name) == value, (method, path, answer.status_code)
            assert "cache-control" in answer.headers, path
        assert "unsafe" not in dict(HEADERS)["content-security-policy"]
        monkeypatch.setattr("seatrial.server.index.Index.current", lambda self: 1 / 0)
        for path in ("/sessions", "/api/sessions"):
            broken = client.get(path)
            assert broken.status_code == 500
            assert "ZeroDivision" not in broken.text
            assert all(broken.headers.get(name) == value for name, value in HEADERS), path
    finally:
        receiver.close()


def test_the_log_says_who_saw_which_session(beyond: Open, filled: Store) -> None:
    for role in ("viewer", "labeller"):
        for path in ("/session", "/session/steps", "/session/text", "/api/session", "/api/session/steps"):
            beyond(role).get(path, params={"id": "open-session", "field": "text"})
    seen = [(e.who, e.role, e.session) for e in filled.audit.newest() if e.what == "saw"]
    assert set(seen) == {(f"the {r}", r, "open-session") for r in ("viewer", "labeller")}
    text = beyond("admin").get("/audit").text
    assert "the viewer" in text
    assert "open-session" in text


def test_a_session_that_cannot_be_logged_is_not_shown(beyond: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: Any, **named: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("seatrial.store.audit.Audit._add", full)
    answer = beyond("viewer").get("/session?id=open-session")
    assert answer.status_code >= 500
    assert "hello" not in answer.text


def test_nothing_of_a_session_without_consent_to_serve_is_shown(
    beyond: Open, filled: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On every page, with every address that takes a session's id; and the log does not say that it was seen."""
    monkeypatch.setattr(Rates, "take", lambda self, caller: 0.0)
    client = beyond("admin")
    for page in PAGES:
        if "GET" not in page.methods or page.path == "/audit":
            continue
        for query in ({}, {"id": "withheld-session", "field": "text"}, {"text": SECRET[:14]}, {"q": "withheld"}):
            answer = client.get(page.path, params=query)
            assert SECRET not in answer.text, (page.path, query)
            if "id" in query and not page.path.startswith(("/session", "/api/session")):
                continue  # an id that means nothing there may be said back
            rows = answer.text.replace("q=withheld", "").replace('value="withheld"', "")
            assert "withheld-session" not in rows, (page.path, query)
    assert all(e.session != "withheld-session" for e in filled.audit.newest())
    assert client.post("/triage/draft", content="session=withheld-session", headers=FORM).status_code == 404
