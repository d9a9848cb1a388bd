"""Whatever quotes a session is in the audit log before it is sent: every page, address and download, every result."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from starlette.testclient import TestClient

from seatrial.records import Agent, Provenance, Step, Task, Trace
from seatrial.records.tables import ATTEMPTS, LABELS, SIGNALS
from seatrial.server import ServerSettings, site
from seatrial.server.access import ROLES, Holder, Who
from seatrial.server.app import make
from seatrial.server.pages import PAGES
from seatrial.server.security import Rates
from seatrial.store import Store, frames, session_row, step_rows
from seatrial.suites.writing import append

HOLDERS = tuple(Holder(token=f"{r}-token-of-some-length", who=Who(name=f"a-{r}", role=r)) for r in ROLES)
RUN = "run-of-this-test"
KINDS = ("label", "scorecard", "recover", "judge", "drift", "watch", "gate", "diff", "verify", "rank")
NAMES = (*KINDS, "attempt", "draft", "labelled", "signal", "read")


def session(name: str) -> str:
    return f"the-session-of-{name}"


def words(name: str) -> str:
    """What only that session says."""
    return f"only-{name}-says-this"


def trace(name: str) -> Trace:
    about = Provenance(format="made", reader="made", reader_version="1")
    steps = (Step(index=0, event_class="human", text=words(name), time=1.0),)
    return Trace(id=session(name), agent=Agent(name="a"), model="m", provenance=about, steps=steps)


def held(name: str) -> dict[str, Any]:
    """A result that quotes a session, each kind in another manner: beside the id, below it, or in a sentence."""
    if name == "label":
        item = {"id": "item-1", "unit": "turn", "session": session(name), "step": 0, "shown": words(name)}
        return {"unit": "turn", "items": [item]}
    if name == "gate":
        return {"verdict": "REVIEW", "by": {session(name): {"reason": words(name)}}}
    if name == "verify":
        return {"said": f"in ({session(name)}), step 3: {words(name)}"}
    return {"session": session(name), "said": words(name)}


def row(table: Any, **values: Any) -> pl.DataFrame:
    return pl.DataFrame([{n: values.get(n) for n in table.names}], schema=table.schema())


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store.open(tmp_path / "store", create=True, durable=False)
    traces = [trace(name) for name in NAMES if name != "attempt"]
    rows = [session_row(t, made.put(t, durable=False)) for t in traces]
    blob = made.put(trace("attempt"), durable=False)
    tables = frames(rows, [r for t in traces for r in step_rows(t)])
    tables[SIGNALS.name] = row(
        SIGNALS, session=session("signal"), step=0, kind="complaint", detector="d", version="1", confidence=0.9,
        quote=words("signal"),
    )  # fmt: skip
    tables[ATTEMPTS.name] = row(
        ATTEMPTS, session=session("attempt"), run=RUN, task="t", trial=0, status="failed", blob=blob,
        reason=f"it said {words('attempt')}",
    )  # fmt: skip
    tables[LABELS.name] = row(
        LABELS, session=session("labelled"), item="i", annotator="x", unit="turn", step=0, labels=["other"],
        turn=words("labelled"), time=1.0,
    )  # fmt: skip
    made.commit(tables)
    for kind in KINDS:
        command = "label queue" if kind == "label" else f"{kind} anything"
        made.save_result(kind, kind, {"seatrial": "1", "command": command, "result": held(kind), "warnings": []})
    extra = {"draft": True, "from_session": session("draft")}
    append(tmp_path / "suite.jsonl", Task(id="the-draft", input=words("draft"), extra=extra))
    return made


@pytest.fixture
def opened(store: Store, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], TestClient]:
    monkeypatch.setattr(Rates, "take", lambda self, caller: 0.0)
    monkeypatch.setattr(site, "_AGAIN_S", 0.0)  # every look is written down
    app = make(store, ServerSettings(suite=str(store.path.parent / "suite.jsonl")), HOLDERS)

    def client(role: str) -> TestClient:
        headers = {"x-forwarded-proto": "https", "authorization": f"Bearer {role}-token-of-some-length"}
        return TestClient(app, base_url="https://team.example", headers=headers, follow_redirects=False)

    return client


def addresses(store: Store) -> list[tuple[str, dict[str, str]]]:
    """Every address, asked for each thing that addresses ask for; those of results, for a result of every kind."""
    wanted = {"task": "the-draft", "run": RUN, "text": words("read"), "unit": "turn"}
    results = [{"id": head.id, "result": head.id, "queue": head.id} for head in store.results()]
    some = [{}, wanted, *({"id": session(name), "field": "text"} for name in ("read", "attempt")), results[0]]
    paths = [page.path for page in PAGES if "GET" in page.methods]
    return [(p, query) for p in paths for query in some + (results if p.endswith("/result") else [])]


def said_in(path: str, query: dict[str, str], text: str) -> set[str]:
    """Whose words an answer holds, beside those that were asked for and found nowhere."""
    found = {name for name in NAMES if words(name) in text}
    return found - {"read"} if "text" in query and session("read") not in text else found


def test_whatever_quotes_a_session_is_in_the_log_first(store: Store, opened: Callable[[str], TestClient]) -> None:
    log = store.path / "audit.jsonl"
    quoted: dict[str, set[str]] = {}
    web = opened("admin")
    for path, query in addresses(store):
        log.unlink(missing_ok=True)
        said = said_in(path, query, web.get(path, params=query).text)
        seen = {e.session for e in store.audit.newest(1000) if e.what == "saw" and e.who == "a-admin"}
        assert {session(name) for name in said} <= seen, (path, query)
        quoted.setdefault(path, set()).update(said)
    assert quoted["/result"] >= set(KINDS) - {"rank"}
    assert quoted["/api/result"] == set(KINDS)
    for path, name in QUOTING.items():
        assert name in quoted[path], path


QUOTING = {
    "/session": "read", "/session/steps": "read", "/session/text": "attempt", "/api/session/steps": "attempt",
    "/sessions": "read", "/sessions/further": "read", "/triage": "draft", "/triage/draft": "draft",
    "/suites/run": "attempt", "/label/item": "label", "/label/answers": "labelled",
}  # fmt: skip


def test_what_cannot_be_logged_is_not_shown(
    store: Store, opened: Callable[[str], TestClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("seatrial.store.audit.Audit._add", full)
    web = opened("viewer")
    for path, query in addresses(store):
        if path in QUOTING or path == "/api/result":
            assert not said_in(path, query, web.get(path, params=query).text), (path, query)


def test_a_queue_is_read_item_by_item_only(store: Store, opened: Callable[[str], TestClient]) -> None:
    """Whoever labels would find which session, and so which model, an item is from; a viewer may not label at all."""
    (queue,) = (head.id for head in store.results("label"))
    for role, status in (("viewer", 403), ("labeller", 403), ("admin", 200)):
        for path in ("/result", "/api/result"):
            answer = opened(role).get(path, params={"id": queue})
            assert answer.status_code == status, (role, path)
            assert (words("label") in answer.text) == (status == 200), (role, path)
    shown = opened("labeller").get("/label/item", params={"queue": queue}).text
    assert words("label") in shown
    assert session("label") not in shown
