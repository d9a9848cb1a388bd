"""The JSON API against its own OpenAPI document: whatever is sent, the answer is one that the document promises."""

from __future__ import annotations

import time
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import HealthCheck, Phase, assume, given, seed, settings
from starlette.testclient import TestClient

from seatrial.records import Agent, Provenance, Step, ToolCall, ToolResult, Trace
from seatrial.server import ServerSettings
from seatrial.server.app import make
from seatrial.server.jobs import Job, Jobs
from seatrial.server.openapi import document
from seatrial.server.security import Rates
from seatrial.store import Store, frames, session_row, step_rows

EXAMPLES = 15
LONGEST_SENT = 65_000
"""Characters of a query that the client of these tests sends at most; the document allows more."""
OPERATIONS = sorted(
    (path, method) for path, methods in document()["paths"].items() for method in methods if path.startswith("/api/")
)
CASES = [(path, method, "positive") for path, method in OPERATIONS] + [
    (path, method, "negative")
    for path, method in OPERATIONS
    if document()["paths"][path][method].get("parameters") or method == "post"
]
"""Where nothing is asked for, nothing wrong can be sent."""


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A store with a few sessions, one of them with text that JSON must escape, and a result."""
    store = Store.open(tmp_path_factory.mktemp("fuzz") / "store", create=True, durable=False)
    made = []
    for name in ("a-session", "0", "nul\x00 and \u202e", "<script>"):
        call = ToolCall(id="c", name=name, arguments={"x": [1.5, None, "\x1b[2J"]})
        steps = (
            Step(index=0, event_class="human", text=f"wrong {name}", time=1.0),
            Step(index=1, event_class="agent", text="\x00\ud800".encode("utf-8", "replace").decode(), model="m",
                 tool_calls=(call,), results=(ToolResult(call_id="c", outcome="error", text="no"),)),
        )  # fmt: skip
        about = Provenance(format="made", reader="made", reader_version="1")
        made.append(Trace(id=name, agent=Agent(name="a"), model="m", provenance=about, steps=steps))
    rows = [session_row(t, store.put(t, durable=False)) for t in made]
    store.commit(frames(rows, [r for t in made for r in step_rows(t)]))
    envelope = {"seatrial": "0", "command": "verify", "data_version": None, "result": {"ok": True}, "warnings": []}
    store.save_result("verify", "all", envelope)
    return store


@pytest.fixture(scope="module")
def client(filled: Store) -> Any:
    return TestClient(make(filled, ServerSettings()), base_url="http://127.0.0.1:4318")


def test_the_document_names_every_address_of_the_api() -> None:
    from seatrial.server.pages import PAGES

    served = {(page.path, m.lower()) for page in PAGES if page.kind == "api" for m in page.methods}
    assert served == set(OPERATIONS)


@pytest.mark.parametrize(("path", "method", "mode"), CASES)
def test_every_answer_is_one_that_the_document_promises(
    client: Any, monkeypatch: pytest.MonkeyPatch, path: str, method: str, mode: str
) -> None:
    """No 5xx, no undocumented status, type or shape; what the document allows is taken, what it forbids refused."""
    schemathesis = pytest.importorskip("schemathesis")
    from schemathesis import checks
    from schemathesis.specs.openapi import checks as openapi

    started: list[Job] = []

    def start(self: Jobs, title: str, arguments: Any, by: str, lane: str = "long") -> Job:
        started.append(Job(id="0", title=title, arguments=list(arguments), by=by, created=time.time()))
        return started[-1]

    monkeypatch.setattr(Rates, "take", lambda self, caller: 0.0)
    monkeypatch.setattr(Jobs, "start", start)
    described = schemathesis.openapi.from_dict(document())
    operation = described[path][method.upper()]
    wanted = [
        checks.not_a_server_error, openapi.status_code_conformance, openapi.content_type_conformance,
        openapi.response_schema_conformance, openapi.negative_data_rejection,
    ]  # fmt: skip
    statuses = set()

    @seed(20)
    @settings(
        max_examples=EXAMPLES, deadline=None, database=None, phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(case=operation.as_strategy(generation_mode=schemathesis.GenerationMode(mode)))
    def answers(case: Any) -> None:
        sent = case.as_transport_kwargs(base_url="http://127.0.0.1:4318")
        sent = {k: v for k, v in sent.items() if k not in ("timeout", "cookies")}
        if isinstance(sent.get("data"), bytes | str):
            sent["content"] = sent.pop("data")
        assume(len(urlencode(sent.get("params") or {}, doseq=True)) < LONGEST_SENT)
        answer = client.request(**sent)
        statuses.add(answer.status_code)
        case.validate_response(answer, checks=wanted)

    answers()
    assert statuses
