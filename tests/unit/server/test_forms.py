"""Forms that are refused stay where they are, keep what was typed, and undo nobody's work; lists name what is gone."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from starlette.testclient import TestClient

from seatrial.records import Agent, Provenance, Step, Task, Trace
from seatrial.records.tables import ATTEMPTS, LABELS, TRIAGE
from seatrial.server import ServerSettings
from seatrial.server.app import make
from seatrial.server.jobs import Job, Jobs
from seatrial.server.pages import PAGES
from seatrial.server.security import Rates
from seatrial.store import Store, frames, session_row, step_rows
from seatrial.suites.writing import append, approve, complete

SESSION, MODEL = "session-that-went-wrong", "m" * 400
ITEMS = ["a", "b", "c", "d"]
HARM = "<b>typed</b> \"'&"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store.open(tmp_path / "store", create=True, durable=False)
    about = Provenance(format="made", reader="made", reader_version="1")
    steps = (
        Step(index=0, event_class="human", text="hello", time=1.0),
        Step(index=1, event_class="agent", text="done", model=MODEL, time=2.0),
    )
    trace = Trace(id=SESSION, agent=Agent(name="a"), model=MODEL, provenance=about, steps=steps)
    rows = [session_row(trace, made.put(trace, durable=False))]
    decided = {"session": SESSION, "state": "new", "kind": "session", "time": 1.0}
    attempts = [{"session": f"of-{run}", "run": run, "suite": "s", "task": "t", "trial": 0, "status": "passed"}
                for run in ("run-one", "run-two")]  # fmt: skip
    made.commit(
        frames(rows, list(step_rows(trace)))
        | {TRIAGE.name: pl.DataFrame([decided], schema=TRIAGE.schema())}
        | {ATTEMPTS.name: pl.DataFrame(attempts, schema=ATTEMPTS.schema())}
    )
    items = [{"id": i, "unit": "turn", "session": SESSION, "step": 0, "shown": f"turn {i}"} for i in ITEMS]
    made.save_result("label", "turns", {"command": "label queue", "result": {"unit": "turn", "items": items}})
    return made


@pytest.fixture
def suite(store: Store) -> Path:
    return store.path.parent / "suite.jsonl"


@pytest.fixture
def web(store: Store, suite: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    """Children refuse what they are given, in the words of a command line."""
    said = json.dumps({"error": {"message": "nobody asked anything in it", "hint": None}})

    def start(self: Jobs, title: str, arguments: Any, by: str, lane: str = "long", *, stored: bool = True) -> Job:
        return Job(id="j", title=title, arguments=list(arguments), by=by, state="failed", ended=1.0, said=[said])

    monkeypatch.setattr(Jobs, "start", start)
    monkeypatch.setattr(Jobs, "wait", lambda self, ident, timeout: start(self, "", [], ""))
    monkeypatch.setattr(Rates, "take", lambda self, caller: 0.0)
    with TestClient(make(store, ServerSettings(suite=str(suite))), base_url="http://127.0.0.1:1") as client:
        yield client


def form(web: TestClient, at: str, action: str) -> dict[str, str]:
    """The hidden fields of a form on a page, as a browser would send them."""
    page = web.get(at).text
    part = next(p for p in page.split("<form ")[1:] if re.search(rf'action="{re.escape(action)}[?"]', p))
    fields = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', part.partition("</form>")[0])
    return {name: html.unescape(value) for name, value in fields}


def draft(suite: Path, **given: Any) -> None:
    append(suite, Task(id="from-s", input="Close it.", extra={"draft": True, "from_session": SESSION}, **given))


LABEL = "/label/item?annotator=ana"
WRONG: tuple[tuple[str, str, dict[str, Any], str], ...] = (
    ("/triage", "/triage/dismiss", {"reason": "  "}, "needs a reason"),
    ("/triage", "/triage/incident", {"text": " \n"}, "needs a description"),
    ("/triage", "/triage/draft", {}, "Nobody asked anything in it"),
    (f"/session?id={SESSION}", "/triage/draft", {}, "Nobody asked anything in it"),
    ("/label", "/label/make", {"unit": "output", "n": "1e3", "criteria": HARM}, "whole number"),
    (LABEL, "/label/answer", {}, "Choose a label"),
    (LABEL, "/label/answer", {"label": ["other", "praise"]}, "exclude each other"),
    ("/jobs", "/jobs/start", {"what": "rank", "outcome": "guess"}, "no outcome"),
    ("/suites", "/suites/compare", {"baseline": "run-one", "candidate": "run-one"}, "not compared with itself"),
    ("/triage/draft?task=from-s", "/triage/approve", {"rubric": " ", "checks": HARM}, "not taken away here"),
)


@pytest.mark.parametrize(("at", "action", "typed", "why"), WRONG, ids=[f"{w[1]} {n}" for n, w in enumerate(WRONG)])
def test_a_refused_form_stays_with_the_reason_and_what_was_typed(
    web: TestClient, suite: Path, at: str, action: str, typed: dict[str, Any], why: str
) -> None:
    if action == "/triage/approve":
        draft(suite, rubric="as it was")
    sent = form(web, at, action)
    query = f"?id={SESSION}" if at.startswith("/session") else ""
    answer = web.post(action + query, data=sent | typed)
    assert answer.status_code == 400
    assert re.search(rf"<h1[^>]*>{re.escape(re.findall('<h1[^>]*>(.*?)</h1>', web.get(at).text)[0])}", answer.text)
    problem = answer.text.partition('id="problem"')[2]
    assert why in problem[:300]
    assert re.search(r'aria-describedby="problem', answer.text)
    assert HARM not in answer.text
    for value in (v for given in typed.values() for v in ([given] if isinstance(given, str) else given)):
        if value == "guess":
            continue  # no choice of the list
        kept = html.escape(value, quote=False).replace('"', "&#34;").replace("'", "&#39;")
        shown = f'value="{kept}"' in answer.text or f"{kept}</textarea>" in answer.text
        assert shown or re.search(rf'value="{kept}" (selected|[^>]*checked)', answer.text), value
    if "label" in typed:
        assert answer.text.count(" checked>") == 2


def test_every_form_of_a_page_can_be_shown_again() -> None:
    without = {p.path for p in PAGES if "POST" in p.methods and p.kind == "page" and p.form is None}
    assert without == {"/sign-out"}


def test_a_dismissal_undoes_no_decision_that_its_page_did_not_show(web: TestClient, store: Store) -> None:
    stale = form(web, "/triage", "/triage/dismiss")
    became = {"session": SESSION, "state": "task", "task": "from-s", "by": "ben", "kind": "session", "time": 2.0}
    store.commit({TRIAGE.name: pl.DataFrame([became], schema=TRIAGE.schema())})
    refused = web.post("/triage/dismiss", data=stale | {"reason": "not worth it"})
    assert refused.status_code == 409
    assert "This session became the task from-s (by ben), after your page was made" in refused.text
    assert "not worth it" in refused.text
    assert store.table(TRIAGE.name).collect()["state"].to_list() == ["task"]


@pytest.mark.parametrize("at", ["/triage", f"/session?id={SESSION}"])
def test_a_draft_undoes_no_dismissal_that_its_page_did_not_show(web: TestClient, store: Store, at: str) -> None:
    stale = form(web, at, "/triage/draft")
    aside = {"session": SESSION, "state": "dismissed", "reason": "a test of ours", "by": "ben", "kind": "session"}
    store.commit({TRIAGE.name: pl.DataFrame([aside], schema=TRIAGE.schema())}, replace_sessions=[SESSION])
    refused = web.post("/triage/draft", data=stale)
    assert refused.status_code == 409
    assert "This session was dismissed: a test of ours (by ben), after your page was made" in refused.text
    page = f"/session?id={SESSION}"
    assert "Set aside in triage</dt><dd><bdi>a test of ours</bdi>" in web.get(page).text
    told = web.post("/triage/draft", data=form(web, page, "/triage/draft"))
    assert told.status_code == 400, "whoever saw the dismissal may draft all the same: the child is asked"
    assert "Nobody asked anything in it" in told.text


@pytest.mark.parametrize("change", ["rubric", "checks"])
def test_two_tabs_do_not_overwrite_each_other(web: TestClient, suite: Path, change: str) -> None:
    draft(suite)
    sent = form(web, "/triage/draft?task=from-s", "/triage/approve")
    complete(suite, "from-s", {"max_turns": 7} if change == "checks" else {}, rubric="of ana")
    before = suite.read_bytes()
    refused = web.post("/triage/approve", data=sent | {"checks": "", "rubric": "of ben", "do": "save"})
    assert refused.status_code == 409
    assert "changed by somebody else meanwhile" in refused.text
    assert "of ben</textarea>" in refused.text
    assert "of ana</pre>" in refused.text
    assert suite.read_bytes() == before
    again = dict(re.findall(r'name="(was)" value="(\w+)"', refused.text))
    assert again["was"] == form(web, "/triage/draft?task=from-s", "/triage/approve")["was"] != sent["was"]


def test_approving_twice_says_that_it_was_approved(web: TestClient, suite: Path) -> None:
    draft(suite)
    sent = form(web, "/triage/draft?task=from-s", "/triage/approve")
    approve(suite, "from-s", by="ben", on="2026-01-01", rubric="of ben")
    refused = web.post("/triage/approve", data=sent | {"rubric": HARM, "checks": ""})
    assert refused.status_code == 409
    assert "<bdi>from-s</bdi> was approved by ben" in refused.text
    assert "&lt;b&gt;typed&lt;/b&gt; &#34;&#39;&amp;</textarea>" in refused.text
    suite.unlink()
    gone = web.post("/triage/approve", data=sent | {"rubric": "kept words", "checks": ""})
    assert gone.status_code == 404
    assert "kept words</textarea>" in gone.text


def test_a_session_that_has_a_draft_opens_it(web: TestClient, suite: Path) -> None:
    sent = form(web, "/triage", "/triage/draft")
    draft(suite)
    for what in ("draft", "task"):
        for at in ("/triage", f"/session?id={SESSION}"):
            page = web.get(at).text
            assert f"Open its {what}" in page
            assert 'action="/triage/draft' not in page
            assert at != "/triage" or re.search(rf">\s+{what} <a ", page), "words do not run together"
        opened = web.post("/triage/draft", data=sent)
        assert (opened.status_code, opened.url.query) == (200, b"task=from-s")
        assert ("was approved by ben" in opened.text) is (what == "task")
        if what == "draft":
            approve(suite, "from-s", by="ben", on="2026-01-01", rubric="r")


def test_back_walks_through_all_answers(web: TestClient) -> None:
    for label in ("praise", "complaint", "other"):
        sent = form(web, LABEL, "/label/answer")
        assert web.post("/label/answer", data=sent | {"label": label}).status_code == 200
    seen, at = [], LABEL
    while True:
        page = web.get(at).text
        seen += re.findall(r'name="item" value="(\w+)"', page)
        back = re.search(r'data-back href="([^"]+)"', page)
        if back is None:
            break
        at = html.unescape(back[1])
    assert seen == ["d", "c", "b", "a"]


def test_an_answer_of_another_tab_is_not_overwritten_unseen(web: TestClient, store: Store) -> None:
    here, there = form(web, LABEL, "/label/answer"), form(web, LABEL, "/label/answer")
    web.post("/label/answer", data=here | {"label": "praise"})
    assert web.post("/label/answer", data=there | {"label": "praise"}).status_code == 200, "the same, twice"
    refused = web.post("/label/answer", data=there | {"label": "complaint"})
    assert refused.status_code == 409
    assert "Meanwhile this item was labelled praise as ana" in refused.text
    kept: Callable[[], list[Any]] = lambda: store.table(LABELS.name).collect()["labels"].to_list()  # noqa: E731
    assert kept() == [["praise"]]
    (was,) = re.findall(r'name="was" value="(\w+)"', refused.text)
    assert web.post("/label/answer", data=there | {"label": "complaint", "was": was}).status_code == 200
    assert kept() == [["complaint"]]


@pytest.mark.parametrize(
    "address",
    [f"{LABEL}&queue=nonsense", f"{LABEL}&item=nonsense", "/label/agreement?queue=x", "/?result=x",
     "/scorecard?result=x", "/drift?result=x", "/suites?run=nonsense", "/suites?run=run-one&run=x",
     "/triage/draft?task=x"],
)  # fmt: skip
def test_what_an_address_names_is_shown_or_said_to_be_gone(web: TestClient, address: str) -> None:
    answer = web.get(address)
    assert answer.status_code == 404
    assert "There is no" in answer.text


def test_a_long_name_stays_short_in_lists(web: TestClient) -> None:
    for at, around in (("/sessions", "<td class=.w.><bdi>(m[^<]+)</bdi>"), ("/triage", "<bdi>(m[^<]+)</bdi>")):
        (cell,) = re.findall(around, web.get(at).text)
        assert len(cell) <= 60, at
