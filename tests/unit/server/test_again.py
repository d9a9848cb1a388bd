"""Ranking again from the page: on a store that did not change, the same numbers."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import msgspec
import pytest
from starlette.testclient import TestClient

from seatrial.cli.app import run
from seatrial.records import Agent, Provenance, Step, Trace
from seatrial.server import ServerSettings, again, stored
from seatrial.server.app import make
from seatrial.server.jobs import Job, Jobs
from seatrial.store import Store, frames, session_row, step_rows

FORM = {"content-type": "application/x-www-form-urlencoded"}


def trace(n: int) -> Trace:
    model, at = ("model-a", "model-b")[n % 2], 1_700_000_000.0 + n * 3600
    said = "Perfect, thank you!" if n % 3 else "No, that is wrong."
    steps = (
        Step(index=0, event_class="human", text=f"Please write report {n}.", time=at),
        Step(index=1, event_class="agent", text="Done.", model=model, time=at + 5),
        Step(index=2, event_class="human", text=said, time=at + 9),
        Step(index=3, event_class="agent", text="Done.", model=model, time=at + 15),
    )
    about = Provenance(format="made", reader="made", reader_version="1")
    return Trace(id=f"session-{n:03d}", agent=Agent(name="a"), model=model, user=f"u{n}", provenance=about, steps=steps)


def test_the_button_gives_the_same_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its id is made of its content, so an equal one is only dated anew."""
    path = tmp_path / "store"
    store = Store.open(path, create=True, durable=False)
    traces = [trace(n) for n in range(30)]
    rows = [session_row(t, store.put(t, durable=False)) for t in traces]
    store.commit(frames(rows, [r for t in traces for r in step_rows(t)]))
    place = ["--store", str(path), "--workers", "1"]
    given = ["--seed", "7", "--draws", "1234", "--level", "0.9", "--weights", "emphasis", "--where", "agent=a"]
    assert run(["rank", *place, *given]) == 0
    started: list[list[str]] = []

    def start(self: Jobs, title: str, arguments: list[str], by: str, *rest: Any, **named: Any) -> Job:
        started.append(arguments)
        return Job(id="j", title=title, arguments=arguments, by=by)

    monkeypatch.setattr(Jobs, "start", start)
    web = TestClient(make(store, ServerSettings()), base_url="http://127.0.0.1:1", follow_redirects=False)
    page = web.get("/").text
    form = page.partition('action="/jobs/start">')[2].partition("</form>")[0]
    fields = {p.partition('"')[0]: p.partition('value="')[2].partition('"')[0] for p in form.split('name="')[1:]}
    assert web.post("/jobs/start", data=fields).status_code == 303
    assert {"--seed=7", "--draws=1234", "--level=0.9", "--weights=emphasis", "--where=agent=a"} <= set(started[0])
    assert run([*started[0], *place]) == 0
    assert len(store.results("rank")) == 1
    assert run(["rank", *place, *given[2:]]) == 0
    assert len(store.results("rank")) == 2, "another seed gives another result"


def test_what_somebody_wrote_into_a_result_gives_no_other_option(tmp_path: Path) -> None:
    path = tmp_path / "store"
    store = Store.open(path, create=True, durable=False)
    odd = {"seed": "7 --out x", "draws": -5, "where": {"--html": "x", "agent": ["a"], "arm": "b"}}
    from_file = Path(__file__).parents[1] / "report" / "rankings.py"
    spec = importlib.util.spec_from_file_location("again_rankings", from_file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    ranking = msgspec.structs.replace(next(iter(module.RANKINGS.values()))(), basis=odd, outcome="--html=x")
    ident = store.save_result("rank", "by --html", {"seatrial": "1", "command": "rank", "result": ranking})
    kept = store.result(ident)
    made = again.options(stored.ranking(kept), kept.name)
    assert [w for w in made if not w.startswith(("--level=", "--weights="))] == ["--outcome", "auto", "--where=arm=b"]
