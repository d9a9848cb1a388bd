"""Requests and answers: encodings, tokens, limits, and what reaches the store."""

from __future__ import annotations

import asyncio
import gzip
import http.client
import json
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from seatrial.errors import InputError, UsageError
from seatrial.server import ServerSettings
from seatrial.server.access import Holder, Who, is_loopback, tokens_for
from seatrial.server.app import make
from seatrial.server.body import drain as drain_body
from seatrial.server.receiver import Receiver, drain
from seatrial.store import Store

JSON = {"content-type": "application/json"}
PROTOBUF = {"content-type": "application/x-protobuf"}
TOKEN = "a-token-of-some-length"
FAST = ServerSettings(commit_after=0.0, max_body=200_000)

chat, request, body, attribute = None, None, None, None


def _load() -> None:
    import importlib.util

    spec = importlib.util.spec_from_file_location("serving_fixtures", Path(__file__).with_name("conftest.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    globals().update({n: getattr(module, n) for n in ("chat", "request", "body", "attribute")})


_load()


class Web:
    def __init__(self, store: Store, settings: ServerSettings = FAST, token: str | None = None) -> None:
        self.receiver = Receiver(store, settings)
        holders = () if token is None else (Holder(token=token, who=Who(name="admin", role="admin")),)
        app = make(store, settings, holders, receiver=self.receiver)
        self.client = TestClient(app, base_url="http://127.0.0.1:4318")

    def post(self, data: bytes, headers: dict[str, str] = JSON) -> Any:
        return self.client.post("/v1/traces", content=data, headers=headers)


@pytest.fixture
def web(store: Store) -> Iterator[Callable[..., Web]]:
    made: list[Web] = []

    def make_web(*arguments: Any) -> Web:
        made.append(Web(store, *arguments))
        return made[-1]

    yield make_web
    for one in made:
        one.receiver.close()


def proto(*spans: Any) -> bytes:
    module = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    from google.protobuf.json_format import ParseDict

    plain = json.loads(body(*spans))
    for group in plain["resourceSpans"]:
        for scoped in group["scopeSpans"]:
            for span in scoped["spans"]:
                for name in ("traceId", "spanId"):
                    import base64

                    span[name] = base64.b64encode(bytes.fromhex(span[name])).decode()
    return bytes(ParseDict(plain, module.ExportTraceServiceRequest()).SerializeToString())


def test_json_protobuf_and_gzip_give_the_same_session(store: Store, web: Callable[..., Web]) -> None:
    server = web()
    answer = server.post(body(chat(0, 0)))
    assert (answer.status_code, answer.json()) == (200, {})
    answer = server.post(gzip.compress(proto(chat(1, 0))), {**PROTOBUF, "content-encoding": "gzip"})
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["content-type"] == "application/x-protobuf"
    server.receiver.close()
    first, second = (store.trace(f"{n + 1:032x}") for n in range(2))
    assert [s.text for s in first.steps] == ["question 0.0", "done 0.0"]
    assert [s.text for s in second.steps] == ["question 1.0", "done 1.0"]
    assert first.user == second.user == store.pseudonyms()[0].of("jane")
    assert first.totals == second.totals


def test_a_conversation_grows_over_requests_and_stays_one(store: Store, web: Callable[..., Web]) -> None:
    server = web()
    for number in range(3):
        assert server.post(body(chat(0, number))).status_code == 200
        time.sleep(0.3)
    server.receiver.close()
    assert store.session_ids() == [f"{1:032x}"]
    assert len(store.trace(f"{1:032x}").steps) == 6
    row = store.table("sessions").collect().row(0, named=True)
    assert (row["input_tokens"], row["agent_turns"]) == (30, 3)


def test_traces_of_one_session_are_one_conversation_whatever_comes_first(store: Store, web: Callable[..., Web]) -> None:
    server = web()
    late = chat(5, 0, session="s-1")
    early = chat(2, 0, session="s-1")
    server.post(body(late))
    time.sleep(0.5)
    assert store.session_ids() == [late["traceId"]]
    server.post(body(early))
    server.receiver.close()
    # Named by its first trace: the earlier name is gone, not left beside it.
    assert store.session_ids() == [early["traceId"]]
    assert len(store.trace(early["traceId"]).steps) == 4
    assert store.verify().ok


def test_the_same_request_twice_and_the_same_span_in_others(store: Store, web: Callable[..., Web]) -> None:
    server = web()
    data = body(chat(0, 0), chat(1, 0))
    assert [server.post(data).status_code for _ in range(3)] == [200] * 3
    assert server.receiver.counts.repeated == 2
    server.post(body(chat(1, 0), chat(2, 0)))
    server.receiver.close()
    assert len(store.session_ids()) == 3
    assert store.table("steps").collect().height == 6


def test_after_a_restart_nothing_changes(store: Store, web: Callable[..., Web]) -> None:
    server = web()
    server.post(body(chat(0, 0)))
    server.receiver.close()
    version = store.data_version
    again = web()
    assert again.receiver.counts.recovered == 1
    assert again.post(body(chat(0, 0))).status_code == 200
    assert again.receiver.counts.repeated == 1
    again.receiver.close()
    assert store.data_version == version


def test_late_spans_stand_beside_a_settled_conversation(store: Store, web: Callable[..., Web]) -> None:
    settled = ServerSettings(commit_after=0.0, settle_after=0.0)
    server = web(settled)
    server.post(body(chat(0, 0)))
    time.sleep(1.0)
    assert len(store.session_ids()) == 1
    before = store.trace(f"{1:032x}")
    for data in (body(chat(0, 1)), body(chat(0, 0)), body(chat(0, 1))):  # something new, and what is there already
        server.post(data)
        time.sleep(0.8)
    server.receiver.close()
    names = store.session_ids()
    assert names == [f"{1:032x}", f"{1:032x}~late-{2:016x}"]
    assert store.trace(names[0]) == before
    late = store.trace(names[1])
    assert late.parent == names[0]
    assert [i for s in late.steps for i in s.source_ids] == [f"{2:016x}"]


@pytest.mark.parametrize(
    ("data", "headers", "status"),
    [
        (b"{", JSON, 400),
        (b"[]", JSON, 400),
        (b"\xff\xfe", JSON, 400),
        (b'{"resourceSpans":"x"}', JSON, 400),
        (b'{"resourceSpans":{}}', JSON, 400),
        (b'{"resourceSpans":3}', JSON, 400),
        (b'{"resource_spans":true}', JSON, 400),
        (b'{"resourceSpans":["x"]}', JSON, 400),
        (b'{"resourceSpans":[null]}', JSON, 400),
        (b'{"resourceSpans":[[]]}', JSON, 400),
        (b'{"resourceSpans":[{"scopeSpans":"x"}]}', JSON, 400),
        (b'{"resourceSpans":[{"scopeSpans":[1]}]}', JSON, 400),
        (b'{"resourceSpans":[{"scopeSpans":[{"spans":{}}]}]}', JSON, 400),
        (b'{"resourceSpans":[{"scopeSpans":[{"spans":["x"]}]}]}', JSON, 400),
        (b"[" * 5000, JSON, 400),
        (b"\x0a\xff\xff\xff\xff\x0f", PROTOBUF, 400),
        (b"{}", {"content-type": "text/plain"}, 415),
        (b"{}", {}, 415),
        (b"{}", {**JSON, "content-encoding": "br"}, 415),
        (b"x", {**JSON, "content-encoding": "gzip"}, 400),
        (b"x" * 200_001, JSON, 413),
        (gzip.compress(b" " * 200_001, mtime=0), {**JSON, "content-encoding": "gzip"}, 413),
    ],
)
def test_refused(web: Callable[..., Web], store: Store, data: bytes, headers: dict[str, str], status: int) -> None:
    server = web()
    answer = server.post(data, headers)
    assert answer.status_code == status
    assert answer.content
    server.receiver.close()
    assert store.session_ids() == []
    assert list((store.path / "spool").glob("*.spool")) == []


@pytest.mark.parametrize("data", [b"{}", b'{"resourceSpans":[]}', b'{"resourceSpans":null}',
                                  b'{"resourceSpans":[{"scopeSpans":[{}]}]}'])  # fmt: skip
def test_a_request_without_spans_is_no_error(web: Callable[..., Web], data: bytes) -> None:
    assert web().post(data).status_code == 200


@pytest.mark.parametrize(("token", "status"), [(None, 413), (TOKEN, 401)])
@pytest.mark.parametrize("length", ["told", "chunked"])
def test_a_refused_body_is_let_finish_so_that_the_answer_is_seen(
    web: Callable[..., Web], token: str | None, status: int, length: str
) -> None:
    """A real connection and a client that reads nothing before it has sent everything."""
    uvicorn = pytest.importorskip("uvicorn")
    app = web(FAST, token).client.app
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, http="h11", lifespan="off"))
        running = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        running.start()
        try:
            client = http.client.HTTPConnection("127.0.0.1", listening.getsockname()[1], timeout=20)
            piece, n = b"x" * (1 << 20), 16
            size = {"content-length": str(n << 20)} if length == "told" else {}
            client.request("POST", "/v1/traces", (piece for _ in range(n)), {**JSON, **size},
                           encode_chunked=length == "chunked")  # fmt: skip
            answer = client.getresponse()
            assert answer.status == status
            assert answer.getheader("connection") == "close"
            assert json.loads(answer.read())["message"]
            client.close()
        finally:
            server.should_exit = True
            running.join(20)


def test_what_is_drained_is_bounded() -> None:
    taken = 0

    async def endless(wait: float) -> AsyncIterator[bytes]:
        nonlocal taken
        while True:
            await asyncio.sleep(wait)
            taken += 1000
            yield b"x" * 1000

    asyncio.run(drain_body(endless(0.0), limit=10_000))
    assert taken == 11_000
    began = time.monotonic()
    asyncio.run(drain_body(endless(0.01), seconds=0.1))
    assert time.monotonic() - began < 5


def test_spans_without_valid_ids_are_rejected_and_said(web: Callable[..., Web]) -> None:
    server = web()
    broken = {**chat(0, 0), "traceId": "../../etc/passwd"}
    answer = server.post(body(broken, chat(1, 0)))
    assert answer.status_code == 200
    assert answer.json()["partialSuccess"]["rejectedSpans"] == "1"
    message = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    from seatrial.server.otlp import accepted

    parsed = message.ExportTraceServiceResponse.FromString(accepted("protobuf", 300))
    assert parsed.partial_success.rejected_spans == 300
    assert parsed.partial_success.error_message


def test_a_full_spool_asks_to_come_back(web: Callable[..., Web]) -> None:
    server = web(ServerSettings(max_spool=10))
    answer = server.post(body(chat(0, 0)))
    assert answer.status_code == 503
    assert int(answer.headers["retry-after"]) > 0


def test_the_token(web: Callable[..., Web], store: Store) -> None:
    server = web(FAST, TOKEN)
    data = body(chat(0, 0))
    for given in (None, "Bearer", f"Bearer {TOKEN}x", f"Basic {TOKEN}", TOKEN, "Bearer \xe9"):
        headers = JSON if given is None else {**JSON, "authorization": given.encode("latin-1")}
        answer = server.post(data, headers)
        assert answer.status_code == 401, given
        assert answer.headers["www-authenticate"] == "Bearer"
    assert server.client.get("/healthz").status_code == 401
    assert server.post(data, {**JSON, "authorization": f"Bearer {TOKEN}"}).status_code == 200
    assert server.receiver.counts.requests == 1


def test_without_a_token_the_caller_must_name_this_machine(web: Callable[..., Web]) -> None:
    server = web()
    for host, status in (("localhost:4318", 200), ("[::1]:4318", 200), ("127.0.0.1", 200), ("evil.example", 403)):
        assert server.client.get("/healthz", headers={"host": host}).status_code == status, host


def test_who_needs_a_token(tmp_path: Path) -> None:
    for host in ("127.0.0.1", "localhost", "::1", "127.8.8.8"):
        assert is_loopback(host)
        assert tokens_for(host, None, {}) == ()
    for host in ("0.0.0.0", "::", "192.168.1.5", "my-host", "localhost.evil.example", ""):
        assert not is_loopback(host)
        with pytest.raises(UsageError, match="no token"):
            tokens_for(host, None, {})
        assert [h.token for h in tokens_for(host, None, {"SEATRIAL_TOKEN": TOKEN})] == [TOKEN]
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    (holder,) = tokens_for("0.0.0.0", tmp_path / "token", {"SEATRIAL_TOKEN": "x"})
    assert (holder.token, holder.who.role) == (TOKEN, "admin")
    for bad in ("", "short", "with a space in it all along", "ümläut-ümläut-ümläut"):
        with pytest.raises(UsageError, match="token"):
            tokens_for("127.0.0.1", None, {"SEATRIAL_TOKEN": bad})
    with pytest.raises(InputError):
        tokens_for("127.0.0.1", tmp_path / "absent", {})


def test_beyond_loopback_it_does_not_start_without_a_token(serving: Callable[..., Any], tmp_path: Path) -> None:
    server = serving(tmp_path, "--host", "0.0.0.0", environ={"SEATRIAL_TOKEN": ""})
    assert server.listen() is None
    assert server.process.wait(30) == 2
    assert "token" in "".join(server.said)


def test_secrets_are_redacted_and_the_spool_can_be_emptied(store: Store, web: Callable[..., Web]) -> None:
    server = web()
    server.post(body(chat(0, 0, said="write to jane.roe@corp.example about")))
    server.receiver.close()
    assert "jane.roe" not in store.trace(f"{1:032x}").steps[1].text
    assert list((store.path / "spool").glob("*.spool"))
    assert drain(store) == []
    assert list((store.path / "spool").glob("*.spool")) == []
    assert store.verify().ok


def test_old_sessions_are_erased_while_it_runs(store: Store) -> None:
    receiver = Receiver(store, FAST)
    receiver.receive(body(chat(0, 0)), "json")  # its spans are of 2023
    receiver.close()
    assert len(store.session_ids()) == 1
    said: list[str] = []
    again = Receiver(store, FAST, retention_days=30, say=said.append)
    time.sleep(1.0)
    again.close()
    assert store.session_ids() == []
    assert any("erased" in text for text in said)


def test_forgetting_looks_into_the_spool(
    store: Store, web: Callable[..., Web], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from seatrial.cli.app import run

    monkeypatch.chdir(store.path.parent)
    server = web()
    server.post(body(chat(0, 0, user="jane-of-the-spool"), chat(1, 0, user="bob")))
    command = ["forget", "jane-of-the-spool", "--store", str(store.path), "--yes", "--json"]
    assert run(command) == 4, "a receiver holds the spool"
    assert "stop it" in json.loads(capsys.readouterr().err.splitlines()[-1])["error"]["hint"]
    server.receiver.close()
    (segment,) = (store.path / "spool").glob("*.spool")
    assert segment.stat().st_size > 0
    assert run(command) == 0
    result = json.loads(capsys.readouterr().out)["result"]
    assert (result["sessions"], result["proof"]["found"]) == (1, [])
    assert store.session_ids() == [f"{2:032x}"]
    assert list((store.path / "spool").glob("*.spool")) == []
    assert store.verify().ok
