"""Jobs that are remembered when the server is gone, and drafts that somebody wrote by hand."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
from starlette.testclient import TestClient

from seatrial.server import ServerSettings
from seatrial.server.app import make
from seatrial.server.joblog import FILE, JobLog, Record, lives, named, this_server
from seatrial.server.jobs import Job, Jobs
from seatrial.store import Store


def record(ident: str, state: str, server: str, created: float = 1.0) -> Record:
    return Record(
        id=ident, title="Rank the models", arguments=["rank"], by="ana", state=state, created=created, started=2.0,  # type: ignore[arg-type]
        server=server,
    )  # fmt: skip


def test_jobs_are_remembered_and_quick_ones_are_not(store: Store) -> None:
    jobs = Jobs(store.path)
    done = jobs.start("Verify", ["verify"], "ana")
    assert jobs.wait(done.id, 120) is not None
    quick = jobs.start("Look", ["sessions", "show", "--", "a-session-of-somebody"], "ana", "quick")
    assert jobs.wait(quick.id, 120) is not None
    jobs.close()
    assert "a-session-of-somebody" not in (store.path / FILE).read_text("utf-8")
    again = Jobs(store.path)
    (found,) = again.all()
    assert (found.id, found.state, found.status, found.by) == (done.id, "done", 0, "ana")
    assert found.ended is not None
    again.close()
    assert [j.id for j in Jobs(store.path).all()] == [done.id]


def test_a_job_of_a_server_that_died_is_interrupted_and_one_of_another_is_not_ours(store: Store) -> None:
    child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    assert child.stdin is not None
    log = JobLog(store.path)
    dead = f"{child.pid} of another time"
    log.note(record("a" * 12, "waiting", dead))
    log.note(record("a" * 12, "running", dead))
    log.note(record("b" * 12, "running", this_server()))
    with (store.path / FILE).open("ab") as file:
        file.write(b'{"id": 5}\nno json\n')
    assert lives(this_server())
    assert not lives(dead)
    assert not lives("nobody")
    with TestClient(make(store, ServerSettings()), base_url="http://127.0.0.1:1") as web:
        page = web.get("/jobs").text
        assert "interrupted" in page
        assert "the server stopped while it ran" in page
        (told,) = web.get("/api/jobs").json()["jobs"]
        assert (told["id"], told["state"]) == ("a" * 12, "interrupted")
    child.stdin.close()
    child.wait(30)


def until(jobs: Jobs, ident: str, state: str) -> Job:
    """A job, once it is in a state and has ended."""
    for _ in range(600):
        job = jobs.get(ident)
        if job is not None and job.state == state and job.ended is not None:
            return job
        time.sleep(0.05)
    raise AssertionError(f"{ident} never became {state}: {jobs.get(ident)}")


@pytest.mark.parametrize("end", ["cancelled", "unseen", "closed"])
def test_a_child_that_outlived_its_server_is_seen_waited_for_and_can_be_cancelled(store: Store, end: str) -> None:
    command = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True) as child:
        outlived(store, child, end)


def outlived(store: Store, child: subprocess.Popen[bytes], end: str) -> None:
    assert child.stdin is not None
    log = JobLog(store.path)
    left = msgspec.structs.replace(record("a" * 12, "running", "1 of another time"), process=named(child.pid))
    log.note(left)
    log.note(msgspec.structs.replace(left, id="b" * 12, process=f"{child.pid} of another time"))
    jobs = Jobs(store.path)
    seen = jobs.get("a" * 12)
    assert seen is not None
    assert (seen.state, seen.ended) == ("running", None)
    assert until(jobs, "b" * 12, "interrupted")
    after = jobs.start("Look", ["--version"], "ana")
    if end == "closed":
        jobs.close()
        assert child.wait(30) != 0
        assert [j.state for j in Jobs(store.path).all()] == ["interrupted"] * 3
        return
    assert jobs.get(after.id).state == "waiting"  # type: ignore[union-attr]
    if end == "cancelled":
        assert jobs.cancel("a" * 12)
    else:
        child.stdin.close()
    until(jobs, "a" * 12, end)
    assert (child.wait(30) == 0) is (end == "unseen")
    assert jobs.wait(after.id, 60).ended is not None  # type: ignore[union-attr]
    jobs.close()
    assert {j.id: j.state for j in Jobs(store.path).all()}["a" * 12] == end


def test_the_log_does_not_grow_for_ever(store: Store) -> None:
    log = JobLog(store.path)
    for n in range(1100):
        log.note(record(f"{n:012d}", "done", "1 1", created=float(n)))
    assert len(log.load(100)) == 100
    assert len((store.path / FILE).read_bytes().splitlines()) == 100
    assert [r.created for r in log.load(2)] == [1098.0, 1099.0]


def test_closing_interrupts_what_runs(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    real = subprocess.Popen
    monkeypatch.setattr("subprocess.Popen", lambda command, **given: real(["/bin/sh", "-c", "sleep 60"], **given))
    jobs = Jobs(store.path)
    running = jobs.start("Sleep", ["x"], "ana")
    jobs.start("Wait", ["x"], "ana")
    until = time.monotonic() + 20
    while jobs.get(running.id).state != "running" and time.monotonic() < until:  # type: ignore[union-attr]
        time.sleep(0.02)
    jobs.close()
    assert [j.state for j in Jobs(store.path).all()] == ["interrupted", "interrupted"]


GOOD = {"id": "good", "input": "Close the ticket.", "extra": {"draft": True}}
WRONG: tuple[dict[str, object], ...] = (
    {"max_turns": "five"}, {"max_turns": 0}, {"expected_tools": "Bash"}, {"expected_tools": [1]}, {"input": 5},
    {"check_final": 1.5}, {"rubric": ["a"]}, {"extra": {"draft": True, "why": 3}},
    {"extra": {"draft": True, "open": 4}}, {"reference": {"x": "\ud800"}}, {"id": "\ud800"}, {"tags": {}},
    {"must_pass": "yes"}, {"id": 7},
)  # fmt: skip


def test_drafts_that_do_not_fit_are_told_and_hide_no_other(store: Store, tmp_path: Path) -> None:
    suite = tmp_path / "written.jsonl"
    bad = [{**GOOD, "id": f"bad-{n}", **change} for n, change in enumerate(WRONG)]
    suite.write_text("\n".join(json.dumps(t) for t in (*bad, GOOD)) + "\nno json\n[1]\n", "utf-8")
    with TestClient(make(store, ServerSettings(suite=str(suite))), base_url="http://127.0.0.1:1") as web:
        page = web.get("/triage")
        assert page.status_code == 200
        assert page.text.count("cannot be shown") == len(WRONG)
        assert web.get("/triage/draft", params={"task": "good"}).status_code == 200
        for line, draft in enumerate(bad, 1):
            assert f"(line {line} of <code>{suite}</code>)" in page.text
            if draft["id"] == f"bad-{line - 1}":
                answer = web.get("/triage/draft", params={"task": str(draft["id"])})
                assert answer.status_code == 400
                assert "This draft cannot be shown" in answer.text
                assert f"correct line {line}" in answer.text.replace("Correct", "correct")
