"""Pages without a browser: who may do what, whose will a form is, what is logged, what the API answers."""

from __future__ import annotations

import html
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec
import polars as pl
import pytest
from starlette.testclient import TestClient

from seatrial.errors import InputError, UsageError
from seatrial.records import Agent, Consent, Provenance, Step, Trace
from seatrial.records.tables import TRIAGE
from seatrial.server import ServerSettings
from seatrial.server.access import Holder, Who, tokens_for
from seatrial.server.app import make
from seatrial.server.jobs import Jobs
from seatrial.server.pages import PAGES
from seatrial.server.rendering import Highlight, prose
from seatrial.server.security import HEADERS, Rates
from seatrial.store import Store, frames, session_row, set_consent, step_rows
from seatrial.store.erase import erase

TOKENS = {role: f"token-of-the-{role}-here" for role in ("sender", "viewer", "labeller", "admin")}
HOLDERS = tuple(Holder(token=t, who=Who(name=f"a-{r}", role=r)) for r, t in TOKENS.items())  # type: ignore[arg-type]
HERE = "http://127.0.0.1:4318"
GETS = sorted({p.path for p in PAGES if "GET" in p.methods})
NAMES = ("id", "page", "from", "to", "step", "result", "q", "text", "run", "queue", "item", "model", "state", "field")
POSTS = sorted({p.path for p in PAGES if "POST" in p.methods})


def one(name: str, text: str = "hello", user: str | None = None) -> Trace:
    return Trace(
        id=name,
        agent=Agent(name="h"),
        model="m-1",
        user=user,
        provenance=Provenance(format="f", reader="r", reader_version="1", file=f"{name}.jsonl"),
        steps=(
            Step(index=0, event_class="human", text=text, time=1e9, source_ids=(f"{name}-0",)),
            Step(index=1, event_class="agent", text="done", model="m-1", time=1e9 + 5, source_ids=(f"{name}-1",)),
        ),
    )


def put(store: Store, traces: list[Trace]) -> None:
    rows = [session_row(t, store.put(t)) for t in traces]
    store.commit(frames(rows, [r for t in traces for r in step_rows(t)]))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store.open(tmp_path / "store", create=True, durable=False)
    put(made, [one("first-session-here"), one("other-session-here", user="user-0000000000000001")])
    return made


@pytest.fixture
def client(store: Store) -> Iterator[Callable[..., TestClient]]:
    made: list[TestClient] = []

    def opened(
        *holders: Holder, base: str = HERE, consent: Any = "assume", host: str = "127.0.0.1", **headers: str
    ) -> TestClient:
        settings = ServerSettings(suite=str(store.path.parent / "suite.jsonl"))
        app = make(store, settings, holders, consent=consent)
        client = TestClient(app, base_url=base, headers=headers, client=(host, 50000))
        client.__enter__()
        made.append(client)
        return client

    yield opened
    for each in made:
        each.__exit__(None, None, None)


def form_token(client: TestClient, path: str = "/triage") -> str:
    found = re.search(r'name="form_token" value="([0-9a-f]{64})"', client.get(path).text)
    assert found is not None
    return found.group(1)


def test_every_page_answers_and_carries_the_headers(client: Callable[..., TestClient]) -> None:
    opened = client()
    for path in GETS:
        answer = opened.get(path)
        lacks = answer.status_code == 400 and "is missing" in answer.text
        assert lacks or answer.status_code in (200, 404, 303), (path, answer.text)
        for name, value in HEADERS:
            assert answer.headers[name] == value, path
        assert answer.headers["cache-control"] in ("no-store", "no-cache")
        assert "unsafe-inline" not in answer.headers["content-security-policy"]
        assert not re.search(r"<script(?! src=)|\son\w+=|\sstyle=", answer.text), path


def test_another_name_for_this_machine_is_refused(client: Callable[..., TestClient]) -> None:
    opened = client()
    for path in GETS:
        assert opened.get(path, headers={"host": "evil.example:4318"}).status_code == 403, path


@pytest.mark.parametrize("path", POSTS)
def test_a_form_of_another_site_changes_nothing(client: Callable[..., TestClient], store: Store, path: str) -> None:
    opened = client()
    token = form_token(opened)
    before = store.data_version
    data = {"form_token": token, "text": "x", "session": "first-session-here", "reason": "x", "what": "rank"}
    if path.startswith("/api/"):
        assert opened.post(path, data=data).status_code == 415
        crossed = opened.post(path, json={"what": "rank"}, headers={"origin": "http://evil.example"})
        assert crossed.status_code == 403
    else:
        for headers in ({"origin": "http://evil.example"}, {"sec-fetch-site": "cross-site"}, {"origin": "null"}):
            assert opened.post(path, data=data, headers=headers).status_code == 403, headers
        for wrong in ("", "0" * 64, "é"):
            assert opened.post(path, data={**data, "form_token": wrong}).status_code == 403
        assert TestClient(opened.app, base_url=HERE).post(path, data=data).status_code == 403, "another browser's"
    assert store.data_version == before
    assert not store.audit.newest()


def test_roles(client: Callable[..., TestClient]) -> None:
    """Each page is for its role and those above it, and for nobody else."""
    order = list(TOKENS)
    for role, token in TOKENS.items():
        opened = client(*HOLDERS, authorization=f"Bearer {token}")
        for page in PAGES:
            if "GET" not in page.methods or page.path == "/sign-out":
                continue
            status = opened.get(page.path).status_code
            allowed = order.index(role) >= order.index(page.needs)
            assert (status == 403) is not allowed, (role, page.path, status)
    stranger = client(*HOLDERS, authorization="Bearer nobody-knows-this-token")
    assert stranger.get("/api/sessions").status_code == 401
    assert client(*HOLDERS).get("/api/sessions").status_code == 401


def test_a_viewer_starts_nothing(client: Callable[..., TestClient]) -> None:
    opened = client(*HOLDERS, authorization=f"Bearer {TOKENS['viewer']}")
    assert opened.post("/api/jobs/start", json={"what": "rank"}).status_code == 403
    assert opened.post("/triage/incident", data={"text": "x"}).status_code == 403


def test_signing_in_and_out(client: Callable[..., TestClient], store: Store) -> None:
    opened = client(*HOLDERS)
    away = opened.get("/sessions?q=a", follow_redirects=False)
    assert away.headers["location"] == "/sign-in?to=%2Fsessions%3Fq%3Da"
    assert opened.post("/sign-in", data={"token": "wrong-token-wrong-token"}).status_code == 401
    assert opened.post("/sign-in", data={"token": TOKENS["sender"]}).status_code == 401
    come = opened.post("/sign-in", data={"token": TOKENS["labeller"], "to": "//evil.example"}, follow_redirects=False)
    assert come.headers["location"] == "/"
    cookie = come.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    assert opened.get("/triage").status_code == 200
    assert "a-labeller" in opened.get("/triage").text
    assert opened.get("/audit").status_code == 403
    assert opened.post("/triage/incident", data={"form_token": form_token(opened), "text": "bad"}).status_code == 200
    assert opened.post("/v1/traces", json={}).status_code in (401, 404, 405), "a cookie sends nothing"
    opened.post("/sign-out", data={"form_token": form_token(opened)})
    assert opened.get("/triage", follow_redirects=False).status_code == 303
    assert [e.what for e in store.audit.newest()][-1] == "signed in"


def test_a_changed_cookie_is_nobodys(client: Callable[..., TestClient]) -> None:
    opened = client(*HOLDERS)
    opened.post("/sign-in", data={"token": TOKENS["viewer"]})
    (name,) = [c for c in opened.cookies if c.startswith("seatrial")]
    good = opened.cookies[name]
    body, _, signed = good.partition(".")
    for bad in (good[:-1], "x" + good, f"{body[:-4]}AAAA.{signed}", ".", "", "é"[:0] + "a.b"):
        fresh = client(*HOLDERS, cookie=f"{name}={bad}")
        assert fresh.get("/sessions", follow_redirects=False).status_code == 303, bad


def test_pages_beyond_this_machine_need_tls(client: Callable[..., TestClient]) -> None:
    bearer = f"Bearer {TOKENS['admin']}"
    far = client(*HOLDERS, base="http://team.example", host="10.0.0.9", authorization=bearer)
    assert far.get("/").status_code == 403
    assert "TLS" in far.get("/").text
    assert "not encrypted" in client(*HOLDERS, base="http://team.example", host="10.0.0.9").get("/sign-in").text
    assert far.get("/", headers={"x-forwarded-proto": "https"}).status_code == 200


def test_guessing_tokens_is_slowed_down(client: Callable[..., TestClient]) -> None:
    opened = client(*HOLDERS)
    codes = [opened.post("/sign-in", data={"token": f"guess-number-{n:05d}"}).status_code for n in range(12)]
    assert codes[:5] == [401] * 5
    assert codes[-1] == 429


def test_rates() -> None:
    rates = Rates(burst=3, per_second=1.0, most=2)
    assert [rates.take("a", now=0.0) for _ in range(3)] == [0.0] * 3
    assert rates.take("a", now=0.0) == pytest.approx(1.0)
    assert rates.take("b", now=0.0) == 0.0
    assert rates.take("a", now=1.5) == 0.0


def test_who_saw_what_is_written_down_and_erased_with_the_session(
    client: Callable[..., TestClient], store: Store
) -> None:
    opened = client(*HOLDERS, authorization=f"Bearer {TOKENS['viewer']}")
    assert opened.get("/session", params={"id": "first-session-here"}).status_code == 200
    opened.get("/session/steps", params={"id": "first-session-here"})
    (entry,) = store.audit.newest()
    assert (entry.who, entry.role, entry.what, entry.session) == ("a-viewer", "viewer", "saw", "first-session-here")
    assert "first-session-here" in client(*HOLDERS, authorization=f"Bearer {TOKENS['admin']}").get("/audit").text
    assert erase(store, ["first-session-here"]).proof.ok
    (entry,) = store.audit.newest()
    assert entry.session == "(erased)"
    assert opened.get("/session", params={"id": "first-session-here"}).status_code == 404


def test_without_the_purpose_a_session_is_not_served(client: Callable[..., TestClient], store: Store) -> None:
    opened = client()
    assert "other-session-here" in opened.get("/sessions").text
    set_consent(store, [Consent(subject="user-0000000000000001", purposes=("rank",), time=1.0)])
    time.sleep(0.6)
    assert "other-session-here" not in opened.get("/sessions").text
    for path in ("/session", "/session/steps", "/session/text", "/api/session", "/api/session/steps"):
        assert opened.get(path, params={"id": "other-session-here"}).status_code == 404, path
    strict = client(consent="require")
    assert strict.get("/session", params={"id": "first-session-here"}).status_code == 404


def test_hostile_parameters_are_bad_input(client: Callable[..., TestClient]) -> None:
    opened = client()
    for value in ("<script>alert(1)</script>", "../../key", "\x00", "'", "9" * 400, "-1", "%00", "\u202e"):
        for path in GETS:
            answer = opened.get(path, params=dict.fromkeys(NAMES, value))
            assert answer.status_code < 429, (path, value)
            assert "<script>alert" not in answer.text or answer.headers["content-type"] == "application/json"


def test_the_api_says_what_its_document_says(client: Callable[..., TestClient]) -> None:
    from jsonschema import Draft202012Validator

    opened = client()
    document = opened.get("/api/openapi.json").json()
    served = {(p.path, m) for p in PAGES if p.kind == "api" for m in p.methods}
    assert {(path, m.upper()) for path, methods in document["paths"].items() for m in methods} == served
    for path, given in (
        ("/api/version", {}),
        ("/api/sessions", {"limit": "1"}),
        ("/api/session", {"id": "first-session-here"}),
        ("/api/session/steps", {"id": "first-session-here", "from": "1"}),
        ("/api/results", {}),
        ("/api/jobs", {}),
    ):
        schema = document["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
        answer = opened.get(path, params=given)
        assert answer.status_code == 200, path
        Draft202012Validator({**schema, "components": document["components"]}).validate(answer.json())
    tag = opened.get("/api/version").headers["etag"]
    assert opened.get("/api/version", headers={"if-none-match": tag}).status_code == 304
    assert len(opened.get("/api/session/steps", params={"id": "first-session-here"}).json()["steps"]) == 2


def test_a_form_that_comes_too_late_may_be_sent_again_from_our_own_page_only(client: Callable[..., TestClient]) -> None:
    """The fields come back for one more click, unless another site, or nobody we know of, had sent them."""
    opened = client()
    sent = {"form_token": "of-an-earlier-server", "text": 'it said "</form><script>'}
    late = opened.post("/triage/incident", data=sent, headers={"origin": HERE})
    assert late.status_code == 403
    assert "Send it again" in late.text
    assert "it said &#34;&lt;/form&gt;&lt;script&gt;" in late.text
    token = re.search(r'name="form_token" value="([^"]+)"', late.text.partition("<main")[2])
    assert token is not None
    again = {"form_token": token[1], "text": sent["text"]}
    assert opened.post("/triage/incident", data=again, headers={"origin": HERE}).url.path == "/triage"
    for origin in ({}, {"origin": "http://evil.example"}, {"origin": "http://127.0.0.1:9"}, {"origin": "null"}):
        foreign = opened.post("/triage/incident", data=sent, headers=origin)
        assert foreign.status_code == 403
        assert "Send it again" not in foreign.text, origin
        assert "it said" not in foreign.text, origin


def test_a_refusal_keeps_the_way_to_everything_else(client: Callable[..., TestClient]) -> None:
    viewer = client(*HOLDERS, authorization=f"Bearer {TOKENS['viewer']}")
    refused = viewer.get("/audit")
    assert refused.status_code == 403
    assert 'href="/sessions"' in refused.text
    assert 'href="/audit"' not in refused.text
    nobody = client(*HOLDERS)
    assert 'id="nav"' not in nobody.get("/sign-in").text
    signed_out = nobody.post("/triage/incident", data={"text": "x"})
    assert signed_out.status_code == 401
    assert 'href="/sign-in"' in signed_out.text
    wrong = client().post("/sessions", data={})
    assert (wrong.status_code, set(wrong.headers["allow"].split(", "))) == (405, {"GET", "HEAD"})
    assert "<h1>" in wrong.text
    assert client().post("/api/sessions", json={}).json()["error"]["message"] == "nothing can be done by POST here"


def test_only_known_jobs_are_started(client: Callable[..., TestClient]) -> None:
    opened = client()
    for body in ({}, {"what": "forget"}, {"what": "rank", "outcome": "--help"}, {"what": ["rank"]}):
        assert opened.post("/api/jobs/start", json=body).status_code == 400, body
    assert (
        opened.post("/api/jobs/start", content=b"[1", headers={"content-type": "application/json"}).status_code == 400
    )
    assert opened.post("/api/jobs/cancel", json={"job": "nothing"}).status_code == 404
    assert opened.get("/api/jobs").json() == {"jobs": []}


def test_a_job_runs_and_leaves_its_result(store: Store) -> None:
    jobs = Jobs(store.path)
    try:
        job = jobs.start("Verify", ["verify"], "ana")
        ended = jobs.wait(job.id, 120)
        assert ended is not None
        assert (ended.state, ended.status) == ("done", 0)
        assert '"command":"verify"' in ended.printed
        assert ended.progress is not None
        bad = jobs.wait(jobs.start("Bad", ["sessions", "show", "--", "no-such-session"], "ana", "quick").id, 120)
        assert bad is not None
        assert (bad.state, bad.status) == ("failed", 2)
        assert "no session" in bad.said[-1]
    finally:
        jobs.close()


def test_a_job_is_cancelled_with_what_it_started(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/sh")
    jobs = Jobs(store.path, most=1)
    try:
        monkeypatch.setattr("subprocess.Popen", _sleeping(store.path))
        running = jobs.start("Sleep", ["x"], "ana")
        until = time.monotonic() + 20
        while jobs.get(running.id).state != "running" and time.monotonic() < until:  # type: ignore[union-attr]
            time.sleep(0.02)
        waiting = jobs.start("Wait", ["x"], "ana")
        with pytest.raises(UsageError, match="waiting"):
            jobs.start("Too many", ["x"], "ana")
        assert jobs.cancel(waiting.id)
        time.sleep(0.3)
        assert jobs.cancel(running.id)
        ended = jobs.wait(running.id, 20)
        assert ended is not None
        assert (ended.state, ended.ended is not None) == ("cancelled", True)
        assert not jobs.cancel(running.id)
    finally:
        jobs.close()


def _sleeping(folder: Path) -> Callable[..., Any]:
    import subprocess

    real = subprocess.Popen

    def start(command: list[str], **given: Any) -> Any:
        return real(["/bin/sh", "-c", "sleep 60 & wait"], **given)

    return start


def test_lines_of_tokens(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text("# people\nadmin ana 0123456789abcdef\nviewer ben fedcba9876543210\n")
    holders = tokens_for("0.0.0.0", file, {})
    assert [(h.who.name, h.who.role) for h in holders] == [("ana", "admin"), ("ben", "viewer")]
    for bad in ("chief ana 0123456789abcdef\nviewer b 1123456789abcdef", "admin ana\nviewer b 0123456789abcdef"):
        file.write_text(bad)
        with pytest.raises(InputError, match="role name token"):
            tokens_for("127.0.0.1", file, {})
    file.write_text("admin a 0123456789abcdef\nviewer b 0123456789abcdef")
    with pytest.raises(InputError, match="same token"):
        tokens_for("127.0.0.1", file, {})


def test_text_is_escaped_marked_and_its_codes_are_seen() -> None:
    mark = Highlight(start=3, end=6, kind="complaint", fate="kept", ident="e0", title='"><b>')
    text = str(prose('<i>bad</i> \x1b[31m\u202e\ttab\n"&', [mark]))
    assert text.startswith("&lt;i&gt;<mark")
    assert ">bad</mark>&lt;/i&gt;" in text
    assert "ESC[31m" in text
    assert "U+202E" in text
    assert "\ttab\n" in text
    assert "<b>" not in text
    assert "\x1b" not in text


@pytest.mark.parametrize("name", ["nul\0inside", "line\r\nends", "100%41 sure", "a&b=c+d \u00e9"])
def test_any_session_id_can_be_posted_back_from_triage(
    client: Callable[..., TestClient], store: Store, name: str
) -> None:
    """What a browser sends is the form's value with NULs lost and line ends made alike: no id may need either."""
    put(store, [msgspec.structs.replace(one("bad"), id=name)])
    row = {"session": name, "state": "new", "reason": "", "kind": "session", "by": "me", "time": 1.0}
    store.commit({TRIAGE.name: pl.DataFrame([row], schema=TRIAGE.schema(), orient="row")})
    opened = client()
    posted = [html.unescape(v) for v in re.findall(r'name="session" value="([^"]*)"', opened.get("/triage").text)]
    wanted = [v for v in posted if unquote(v) == name]
    assert wanted
    assert all(v.isascii() and v.isprintable() for v in posted)
    data = {"form_token": form_token(opened), "session": wanted[0], "reason": "seen"}
    assert opened.post("/triage/dismiss", data=data).status_code == 200
    kept = store.table("triage").collect()
    assert kept.filter(kept["session"] == name)["state"].to_list() == ["dismissed"]
    if "\0" in name:
        assert opened.post("/triage/draft", data=data).status_code == 400
