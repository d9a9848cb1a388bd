"""Attempts that only a run's ledger holds are somebody's data too: forget and purge find them."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from seatrial.errors import EvidenceError, InputError
from seatrial.flows import steward
from seatrial.flows.attempts import resolve, runs
from seatrial.flows.run import RunOptions, run_suite
from seatrial.records import AgentTurn, Task
from seatrial.store import Store
from seatrial.suites import Suite


class Teller:
    name, version = "teller", "1"

    def begin(self, tools: Any, seed: int) -> Teller:
        return self

    def send(self, incoming: Any) -> AgentTurn:
        return AgentTurn(text=f"I answered {incoming.text}")


SUITE = Suite("s", tuple(Task(id=f"t{i}", input=f"secret words {i}") for i in range(2)))


@pytest.fixture
def cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store whose only run was cut short before its attempts became rows."""

    def broken(*given: Any, **named: Any) -> str:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Store, "commit", broken)
        with pytest.raises(KeyboardInterrupt):
            run_suite(SUITE, agent=Teller(), store=tmp_path, options=RunOptions(k=2, name="cut"))
    return tmp_path


def text_of(store: Path) -> bytes:
    return b"".join(p.read_bytes() for p in sorted(store.rglob("*")) if p.is_file())


def test_an_attempt_of_a_run_that_was_cut_short_is_forgotten(cut: Path) -> None:
    store = Store.open(cut)
    assert store.table("attempts").collect().height == 0
    done = steward.forget(store, steward.subject_of(store, sessions=["cut~t0~1"]))
    assert done.sessions == ("cut~t0~1",)
    assert (done.blobs, done.proof.ok) == (1, True)
    left = text_of(cut)
    assert b"cut~t0~1" not in left
    assert b"cut~t0~0" in left
    assert runs(Store.open(cut)).to_dicts()[0]["attempts"] == 3
    with pytest.raises(InputError, match="cut~t0~1"):
        steward.subject_of(store, sessions=["cut~t0~1"])
    again = run_suite(SUITE, agent=Teller(), store=cut, options=RunOptions(k=2, name="cut"))
    assert (again.result.counts.n_attempted, again.resumed) == (4, 3)


def test_a_purge_by_age_finds_them_and_leaves_what_is_newer(cut: Path) -> None:
    store = Store.open(cut)
    assert steward.purge(store, time.time() - 60, dry_run=True).sessions == 0
    assert steward.purge(store, time.time() + 60, dry_run=True).sessions == 4
    purged = steward.purge(store, time.time() + 60)
    assert purged.erased is not None
    assert (purged.sessions, purged.erased.blobs, purged.erased.proof.ok) == (4, 4, True)
    assert b"cut~" not in text_of(cut)
    with pytest.raises(EvidenceError):
        resolve(store, None)


def test_erasing_others_keeps_an_old_run_that_can_still_go_on(cut: Path) -> None:
    """A blob that no row names is loose after a day, unless the ledger of a run names it."""
    store = Store.open(cut)
    old = time.time() - 3 * 86_400
    for name in store.blobs.names():
        os.utime(store.blobs.path(name), (old, old))
    steward.purge(store, old)
    assert len(list(store.blobs.names())) == 4
    again = run_suite(SUITE, agent=Teller(), store=cut, options=RunOptions(k=2, name="cut"))
    assert again.resumed == 4


def test_a_finished_run_is_purged_with_its_verdicts_and_ledger(tmp_path: Path) -> None:
    run_suite(SUITE, agent=Teller(), store=tmp_path, options=RunOptions(k=1, name="whole"))
    store = Store.open(tmp_path)
    purged = steward.purge(store, time.time() + 60)
    assert purged.erased is not None
    assert purged.erased.rows["attempts"] == 2
    assert purged.erased.rows["verdicts"] > 2
    left = text_of(tmp_path)
    assert b"whole~" not in left
    assert b"secret words" not in left
    assert store.verify().ok


def test_what_is_missing_is_noted_in_every_table(tmp_path: Path) -> None:
    """One attempt of a whole run is erased: every table of the run, and the gate, says so."""
    from seatrial.flows.check import CheckOptions, check
    from seatrial.flows.run import stored
    from seatrial.report.chapters import suite as chapter

    answer = [{"path": "answer", "op": "contains", "value": "answered"}]
    suite = Suite("s", tuple(Task(id=f"t{i}", input=f"hi {i}", check_final=answer) for i in range(2)))
    for name in ("old", "new"):
        run_suite(suite, agent=Teller(), store=tmp_path, options=RunOptions(k=3, name=name))
    store = Store.open(tmp_path)
    _, _, whole = stored(store, "new")
    assert (whole.k, whole.short) == (3, ())
    steward.forget(store, steward.subject_of(store, sessions=["new~t1~2"]))
    _, _, result = stored(store, "new")
    assert (result.k, result.short) == (3, ("t1",))
    tables = [t for section in chapter.run("new", result) for t in section.tables]
    assert len(tables) == 4
    assert all("1 task has fewer than 3 attempts" in str(t.caption) for t in tables)
    beside = chapter.systems([("new", result), ("old", whole)], {})
    assert any("1 task has fewer than 3 attempts" in note for note in beside.notes)
    warned = check(Path("old"), Path("new"), CheckOptions(store=tmp_path)).comparison.warnings
    assert any("1 task has fewer than 3 attempts, such as t1" in w for w in warned)
