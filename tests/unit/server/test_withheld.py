"""What was made while a session could be shown, once its person has taken that back: nothing of it is said again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from seatrial.errors import InputError
from seatrial.records import Agent, Consent, Provenance, Step, Task, Trace
from seatrial.server import ServerSettings
from seatrial.server.app import make
from seatrial.server.pages import PAGES
from seatrial.server.security import Rates
from seatrial.server.withheld import without
from seatrial.store import Permission, Store, StoredResult, erase, frames, session_row, set_consent, step_rows
from seatrial.suites.writing import append

SECRET = "words-that-were-taken-back"
GONE, STAYS = "session-of-the-person-who-left", "session-of-the-person-who-stays"
FORM = {"content-type": "application/x-www-form-urlencoded"}


def trace(name: str, user: str) -> Trace:
    about = Provenance(format="made", reader="made", reader_version="1")
    steps = (Step(index=0, event_class="human", text="hello", time=1.0),)
    return Trace(id=name, agent=Agent(name="a"), model="m", provenance=about, steps=steps, user=user)


def item(session: str, shown: str) -> dict[str, Any]:
    return {"id": f"item-of-{session}", "unit": "turn", "session": session, "step": 0, "shown": shown}


RESULTS: dict[str, dict[str, Any]] = {
    "diff": {"task": "t", "baseline": GONE, "candidate": STAYS, "first": {"said": SECRET}},
    "gate": {"verdict": "REVIEW", "regressed_tasks": [{"task": "t", "diff": {"baseline": GONE, "left": SECRET}}]},
    "rank": {"models": [{"worst": [{"examples": [{"session": GONE, "text": SECRET}, {"session": STAYS}]}]}]},
    "judge": {"by": {GONE: {"reason": SECRET}, STAYS: {"reason": "fine"}}, "read": [GONE, STAYS]},
    "label": {"unit": "turn", "items": [item(GONE, SECRET), item(STAYS, "hello")]},
}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store.open(tmp_path / "store", create=True, durable=False)
    traces = [trace(GONE, "user-a"), trace(STAYS, "user-b")]
    rows = [session_row(t, made.put(t, durable=False)) for t in traces]
    made.commit(frames(rows, [r for t in traces for r in step_rows(t)]))
    for kind, held in RESULTS.items():
        command = "label queue" if kind == "label" else kind
        warnings = [f"{SECRET} ({GONE})", "the sun shines"]
        made.save_result(kind, kind, {"seatrial": "1", "command": command, "result": held, "warnings": warnings})
    for name in (GONE, STAYS):
        said = SECRET if name == GONE else "hello"
        draft = Task(id=f"from-{name[-5:]}", input=said, extra={"draft": True, "from_session": name, "open": [said]})
        append(tmp_path / "suite.jsonl", draft)
    return made


@pytest.fixture
def client(store: Store, monkeypatch: pytest.MonkeyPatch) -> Callable[[], TestClient]:
    monkeypatch.setattr(Rates, "take", lambda self, caller: 0.0)
    suite = str(store.path.parent / "suite.jsonl")
    return lambda: TestClient(make(store, ServerSettings(suite=suite)), base_url="http://127.0.0.1:1")


def told(client: TestClient, store: Store) -> set[str]:
    """Addresses whose answers hold the secret."""
    found = set()
    some: list[dict[str, str]] = [{}, {"task": "from--left"}]
    for head in store.results():
        some += [{"id": head.id}, {"result": head.id}, {"queue": head.id}]
    some += [{"queue": head.id, "item": f"item-of-{GONE}"} for head in store.results("label")]
    for page in PAGES:
        if "GET" in page.methods:
            for query in some:
                if SECRET in client.get(page.path, params=query).text:
                    found.add(f"{page.path} {'.'.join(query)}")
    return found


def withdraw(store: Store) -> None:
    set_consent(store, [Consent(subject="user-a", purposes=("rank", "label", "judge"), time=1.0)])


def test_no_page_quotes_a_session_whose_person_agrees_no_longer(client: Callable[[], TestClient], store: Store) -> None:
    before = told(client(), store)
    assert {"/result id", "/api/result id", "/label/item queue.item", "/triage ", "/triage/draft task"} <= before
    withdraw(store)
    assert told(client(), store) == set()


def test_no_page_quotes_a_session_that_was_erased(client: Callable[[], TestClient], store: Store) -> None:
    """The suite file is no part of the store: an erasure leaves it as it is, and nothing of it may be shown."""
    assert "/triage/draft task" in told(client(), store)
    erase(store, [GONE])
    web = client()
    assert told(web, store) == set()
    listed = web.get("/triage").text
    assert "a task is not shown (line 1 of" in listed
    assert "from-stays" in listed
    assert all(GONE not in line for line in (store.path / "audit.jsonl").read_text("utf-8").splitlines())


def test_what_stays_is_shown_and_says_how_much_is_left_out(client: Callable[[], TestClient], store: Store) -> None:
    withdraw(store)
    web = client()
    ids = {head.kind: head.id for head in store.results()}
    held = {kind: web.get("/api/result", params={"id": ids[kind]}) for kind in RESULTS}
    assert held["diff"].status_code == 404
    gate = held["gate"].json()["envelope"]
    assert gate["result"]["regressed_tasks"] == [{"task": "t", "diff": None}]
    assert gate["warnings"] == ["the sun shines", "1 passage is left out: about sessions that may not be shown"]
    assert held["rank"].json()["envelope"]["result"]["models"][0]["worst"][0]["examples"] == [{"session": STAYS}]
    assert held["judge"].json()["envelope"]["result"] == {"by": {STAYS: {"reason": "fine"}}, "read": [STAYS]}
    assert "passage is left out" in web.get("/result", params={"id": ids["gate"]}).text
    assert "hello" in web.get("/label/item", params={"queue": ids["label"]}).text
    listed = web.get("/triage").text
    assert "from-stays" in listed
    assert "from--left" not in listed


def test_a_draft_from_such_a_session_cannot_be_approved(client: Callable[[], TestClient], store: Store) -> None:
    withdraw(store)
    web = client()
    token = web.get("/triage").text.partition('name="form_token" value="')[2].partition('"')[0]
    body = f"form_token={token}&task=from--left&rubric=x"
    assert web.post("/triage/approve", content=body, headers=FORM).status_code == 404


def test_a_result_is_left_alone_where_everything_may_be_shown() -> None:
    kept = StoredResult(id="i", kind="diff", name="n", time=1.0, command="diff", envelope={"result": RESULTS["diff"]})
    assert without(kept, Permission(purpose="serve", denied={})) is kept
    with pytest.raises(InputError, match="may not be shown"):
        without(kept, Permission(purpose="serve", denied={GONE: "withdrawn"}))


def test_an_attempt_is_withheld_by_the_consent_that_names_it(store: Store, client: Callable[[], TestClient]) -> None:
    """An attempt is no session of the table, but its id may be what a consent is about."""
    held = {"task": "t", "baseline": "attempt-7", "candidate": "attempt-8", "first": {"said": SECRET}}
    envelope = {"seatrial": "1", "command": "diff", "result": held, "warnings": []}
    ident = store.save_result("diff", "of attempts", envelope)
    assert SECRET in client().get("/api/result", params={"id": ident}).text
    set_consent(store, [Consent(subject="attempt-7", purposes=("rank",), time=1.0)])
    assert client().get("/api/result", params={"id": ident}).status_code == 404
