"""The checks of a draft, completed in the browser as text: what is refused comes back, and nothing is run."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from seatrial.records import Task
from seatrial.server import ServerSettings
from seatrial.server.app import make
from seatrial.server.jobs import Job, Jobs
from seatrial.store import Store
from seatrial.suites.writing import append

FORM = {"content-type": "application/x-www-form-urlencoded"}
HOSTILE = '</textarea><script>alert(1)</script> "&amp;'
HOLDS = [{"path": "answer", "op": "contains", "value": "T-104"}]
Post = Callable[[dict[str, str]], Any]


@pytest.fixture
def suite(store: Store) -> Path:
    path = store.path.parent / "suite.jsonl"
    append(path, Task(id="from-a", input="Close it.", expected_tools=[HOSTILE], extra={"draft": True, "open": []}))
    return path


@pytest.fixture
def web(store: Store, suite: Path) -> Iterator[TestClient]:
    with TestClient(make(store, ServerSettings(suite=str(suite))), base_url="http://127.0.0.1:1") as client:
        yield client


def fields(web: TestClient) -> dict[str, str]:
    """What a browser would send of the draft's form."""
    page = web.get("/triage/draft", params={"task": "from-a"}).text
    sent = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', page))
    for name, text in re.findall(r'<textarea id="(\w+)"[^>]*>\n(.*?)</textarea>', page, re.DOTALL):
        sent[name] = html.unescape(text)
    assert HOSTILE not in page
    return sent


def test_checks_are_saved_or_come_back_with_the_reason(web: TestClient, suite: Path) -> None:
    sent = fields(web)
    shown = json.loads(sent["checks"])
    assert shown["expected_tools"] == [HOSTILE]
    wrong = json.dumps({**shown, "check_final": [{"path": "answer", "op": "<eval>"}]})
    refused = web.post("/triage/approve", data=sent | {"checks": wrong, "rubric": "typed", "do": "save"})
    assert refused.status_code == 400
    assert "&#39;&lt;eval&gt;&#39; is not one of" in refused.text
    assert html.escape(wrong, quote=False)[:40].replace('"', "&#34;") in refused.text
    assert ">\ntyped</textarea>" in refused.text
    assert "check_final" not in json.loads(suite.read_text())
    right = json.dumps({**shown, "check_final": HOLDS})
    saved = web.post("/triage/approve", data=sent | {"checks": right, "rubric": "", "do": "save"})
    assert "It stays a draft" in saved.text
    kept = json.loads(suite.read_text())
    assert (kept["check_final"], kept["extra"]["draft"], kept["expected_tools"]) == (HOLDS, True, [HOSTILE])
    stale = web.post("/triage/approve", data=sent | {"checks": '{"max_turns": 3}', "do": "save"})
    assert stale.status_code == 409
    assert "somebody else meanwhile" in stale.text
    assert web.post("/triage/approve", data=fields(web)).url.path == "/triage"
    assert "draft" not in json.loads(suite.read_text())["extra"]


@pytest.mark.parametrize("checks", ["", "{}\0", "x" * 70_000])
def test_what_no_command_can_be_given_is_refused_here(
    web: TestClient, checks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty field changes nothing, and approves by the rubric alone."""
    started: list[list[str]] = []

    def start(self: Jobs, title: str, arguments: Any, by: str, lane: str = "long", *, stored: bool = True) -> Job:
        started.append(list(arguments))
        return Job(id="j", title=title, arguments=started[-1], by=by, state="done", ended=1.0)

    monkeypatch.setattr(Jobs, "start", start)
    monkeypatch.setattr(Jobs, "wait", lambda self, ident, timeout: start(self, "", [], ""))
    answer = web.post("/triage/approve", data=fields(web) | {"checks": checks, "rubric": "done"})
    assert answer.status_code == (200 if checks == "" else 400)
    assert [a[:2] for a in started if a] == ([["task", "approve"]] if checks == "" else [])
