"""What jobs say of sessions whose people agree no longer, and what the API takes for a job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from seatrial.records import Agent, Consent, Provenance, Step, Task, Trace
from seatrial.server import ServerSettings
from seatrial.server.app import make
from seatrial.server.jobs import Job, Jobs
from seatrial.server.security import Rates
from seatrial.store import Store, frames, session_row, set_consent, step_rows
from seatrial.suites.writing import append

TASK = "from-session-of-one-who-le"
GONE, ODD, STAYS = "session-of-one-who-left", "odd (id), with. all:", "session-of-one-who-stays"
FORM = {"content-type": "application/x-www-form-urlencoded"}


def trace(name: str) -> Trace:
    about = Provenance(format="made", reader="made", reader_version="1")
    steps = (Step(index=0, event_class="human", text="hello", time=1.0),)
    return Trace(id=name, agent=Agent(name="a"), model="m", user=f"person of {name}", provenance=about, steps=steps)


def job(ident: str, title: str, *arguments: str, said: tuple[str, ...] = ()) -> Job:
    return Job(id=ident, title=title, arguments=list(arguments), by="x", state="failed", said=list(said), ended=1.0)


MADE = [
    job("1", f"Draft a task from {GONE[:12]}", "task", "from-session", "--", GONE, said=(f"nothing in {GONE}.",)),
    job("2", f"Draft a task from {STAYS[:12]}", "task", "from-session", "--", STAYS, said=(f"nothing in {STAYS}.",)),
    job(
        "3", "Approve from-session-of-one-who-le", "task", "approve", "--", "suite.jsonl", "from-session-of-one-who-le"
    ),
    job("4", "Rank the models", "rank", said=(f"'{GONE}' cannot be read", "all others can", f"see {ODD}!")),
    job("5", "Draft", "task", "from-session", "--", ODD),
]


@pytest.fixture
def web(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TestClient:
    store = Store.open(tmp_path / "store", create=True, durable=False)
    traces = [trace(name) for name in (GONE, ODD, STAYS)]
    rows = [session_row(t, store.put(t, durable=False)) for t in traces]
    store.commit(frames(rows, [r for t in traces for r in step_rows(t)]))
    suite = tmp_path / "suite.jsonl"
    append(suite, Task(id=TASK, input="hello", extra={"draft": True, "from_session": GONE}))
    monkeypatch.setattr(Rates, "take", lambda self, caller: 0.0)
    monkeypatch.setattr(Jobs, "all", lambda self: MADE)
    return TestClient(make(store, ServerSettings(suite=str(suite))), base_url="http://127.0.0.1:1")


def test_a_job_names_no_session_that_may_not_be_shown(web: TestClient, tmp_path: Path) -> None:
    for path in ("/jobs", "/api/jobs"):
        assert all(text in web.get(path).text for text in (GONE, GONE[:12], "odd (id), with")), path
    gone = [Consent(subject=f"person of {name}", purposes=("rank",), time=1.0) for name in (GONE, ODD)]
    set_consent(Store.open(tmp_path / "store"), gone)
    made: Any = make(Store.open(tmp_path / "store"), ServerSettings(suite=str(tmp_path / "suite.jsonl")))
    web = TestClient(made, base_url="http://127.0.0.1:1")
    for path in ("/jobs", "/api/jobs"):
        text = web.get(path).text
        assert GONE not in text, path
        assert "one-who-le" not in text, path
        assert "odd (id)" not in text, path
        assert STAYS in text, path
        assert "all others can" in text, path
    jobs = {j["id"]: j for j in web.get("/api/jobs").json()["jobs"]}
    assert [jobs[n]["arguments"] for n in "13"] == [["task", "from-session"], ["task", "approve"]]
    assert jobs["2"]["said"] == [f"nothing in {STAYS}."]
    assert len(jobs["4"]["said"]) == 3


BODIES: list[dict[str, Any]] = [
    {}, {"what": None}, {"what": ["rank"]}, {"what": {"rank": 1}}, {"what": True},
    {"what": "rank", "outcome": ["auto"]}, {"what": "rank", "outcome": None},
    {"what": "rank", "outcome": 5}, {"what": "verify", "outcome": "nothing"},
]  # fmt: skip


@pytest.mark.parametrize("body", BODIES)
def test_a_value_of_another_kind_starts_nothing(
    web: TestClient, monkeypatch: pytest.MonkeyPatch, body: dict[str, Any]
) -> None:
    started: list[Any] = []
    monkeypatch.setattr(Jobs, "start", lambda *given, **named: started.append(given))
    answer = web.post("/api/jobs/start", json=body)
    assert answer.status_code == 400
    assert answer.json()["error"]["message"]
    assert web.post("/api/jobs/cancel", json={"job": body.get("what")}).status_code in (400, 404)
    assert started == []


@pytest.mark.parametrize("content", ["", "unit=turn", "n=5", "unit=turn&n=many", "unit=&n=5", "unit=person&n=5"])
def test_a_queue_is_drawn_only_of_what_was_said(web: TestClient, monkeypatch: pytest.MonkeyPatch, content: str) -> None:
    started: list[Any] = []
    monkeypatch.setattr(Jobs, "start", lambda *given, **named: started.append(given))
    page = web.get("/label").text
    token = page.partition('name="form_token" value="')[2].partition('"')[0]
    answer = web.post("/label/make", content=f"form_token={token}&{content}", headers=FORM)
    assert answer.status_code == 400
    assert web.post("/label/make", json={}).status_code == 415
    assert started == []
