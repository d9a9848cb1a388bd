"""Tokens and cookies: what ends a browser's session, where a token is taken, how guessing ends, and who may send."""

from __future__ import annotations

import re
import time
import types
from collections.abc import Callable, Iterator

import pytest
from starlette.requests import Request
from starlette.testclient import TestClient

from seatrial.server import ServerSettings, security
from seatrial.server.access import ROLES, Holder, Who
from seatrial.server.app import make
from seatrial.server.body import Refused
from seatrial.server.receiver import Receiver
from seatrial.store import Store

HOLDERS = tuple(Holder(token=f"{r}-token-of-some-length", who=Who(name=f"a-{r}", role=r)) for r in ROLES)
THERE = "https://team.example"
TLS = {"x-forwarded-proto": "https"}
Open = Callable[..., TestClient]


@pytest.fixture
def opened(store: Store) -> Iterator[Open]:
    receiver = Receiver(store, ServerSettings())
    app = make(store, ServerSettings(), HOLDERS, receiver=receiver)

    def client(host: str = "10.0.0.1", **headers: str) -> TestClient:
        given = {**TLS, **headers}
        return TestClient(app, base_url=THERE, headers=given, client=(host, 5), follow_redirects=False)

    yield client
    receiver.close()


@pytest.fixture(autouse=True)
def still(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock of rates stands still: a slow machine fills no bucket while a test empties it."""
    clock = types.SimpleNamespace(monotonic=lambda: 1_000.0, time=time.time)
    monkeypatch.setattr(security, "time", clock)


def bearer(role: str) -> str:
    return f"Bearer {role}-token-of-some-length"


def sign_in(web: TestClient, role: str = "viewer") -> str:
    answer = web.post("/sign-in", data={"token": f"{role}-token-of-some-length"})
    assert answer.status_code == 303
    return answer.headers["set-cookie"].partition(";")[0]


def test_signing_out_ends_the_cookie_and_every_copy_of_it(opened: Open, store: Store) -> None:
    first, other = sign_in(opened()), sign_in(opened())
    web = opened(cookie=first)
    found = re.search(r'name="form_token" value="([0-9a-f]+)"', web.get("/sessions").text)
    assert found is not None
    assert web.post("/sign-out", data={"form_token": found.group(1)}).status_code == 303
    for path in ("/sessions", "/api/sessions", "/triage"):
        assert opened(cookie=first).get(path).status_code in (303, 401), path
    assert opened(cookie=other).get("/sessions").status_code == 200, "another browser of the same person stays"
    assert store.audit.newest()[0].what == "signed out"


def test_the_list_of_ended_sessions_is_bounded_and_none_comes_back(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(security, "_MOST_ENDED", 3)
    gate = security.Gate(HOLDERS)
    cookies = {key: gate.cookie(HOLDERS[1].who, key) for key in ("a", "b", "c", "d", "e")}
    for key in cookies:
        gate.sign_out(key)
        assert len(gate._ended) <= 3

    def request(cookie: str) -> Request:
        header = [(b"cookie", f"seatrial={cookie}".encode()), (b"host", b"team.example")]
        return Request({"type": "http", "headers": header, "client": ("10.0.0.1", 5)})

    for cookie in cookies.values():
        with pytest.raises(Refused):
            gate.visit(request(cookie))
    assert gate.visit(request(gate.cookie(HOLDERS[1].who))).who.role == "viewer"


def test_a_token_is_taken_only_where_nobody_reads_along(opened: Open) -> None:
    plain = {"x-forwarded-proto": "http"}
    answer = opened(**plain).post("/sign-in", data={"token": "admin-token-of-some-length"})
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers
    assert "not encrypted" in answer.text
    safe = opened().post("/sign-in", data={"token": "admin-token-of-some-length"})
    assert "secure" in safe.headers["set-cookie"].lower()


@pytest.mark.parametrize("path", ["/api/version", "/sessions", "/healthz", "/v1/traces"])
def test_guessing_bearer_tokens_ends_soon(opened: Open, path: str) -> None:
    """And the right one does not show itself among the guesses."""
    method = "POST" if path == "/v1/traces" else "GET"

    def status(given: str, host: str = "10.0.0.1") -> int:
        return opened(host, authorization=given).request(method, path).status_code

    assert opened("10.0.0.1", authorization=bearer("sender")).get("/healthz").status_code == 200
    seen = [status(f"Bearer guess-number-{n:06d}") for n in range(60)]
    assert set(seen[:10]) <= {401, 303}
    assert set(seen[20:]) == {429}
    waiting = opened(authorization="Bearer guess-number-0").get("/api/version")
    assert int(waiting.headers["retry-after"]) >= 1
    assert status(bearer("admin")) == 429, "even the right one, from where it was never used"
    assert opened("10.0.0.1", authorization=bearer("sender")).get("/healthz").status_code == 200, "one in use goes on"
    assert status(bearer("admin"), "10.0.0.2") not in (401, 403, 429), "and elsewhere nothing is known of it"


def test_who_looks_sends_nothing(opened: Open) -> None:
    """Otherwise whoever may read a ranking could feed it."""
    for role in ROLES:
        status = opened(authorization=bearer(role)).post("/v1/traces", json={}).status_code
        assert status == (200 if role in ("sender", "admin") else 403), role
