"""Several processes and threads commit to one store, and nothing is lost."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from seatrial.errors import StoreError
from seatrial.records import Trace
from seatrial.store import Store
from seatrial.store.lock import Lock

WRITER = """
import sys
sys.path.insert(0, {here!r})
from conftest import keep, make
from seatrial.store import Store
store = Store.open(sys.argv[1], create=True)
for n in range(5):
    keep(store, [make(f"{{sys.argv[2]}}-{{n}}"), make("shared", n + 1, mark=sys.argv[2])])
"""


def test_two_processes_lose_nothing(tmp_path: Path) -> None:
    code = WRITER.format(here=str(Path(__file__).parent))
    path = tmp_path / "store"
    writers = [subprocess.Popen([sys.executable, "-c", code, str(path), name]) for name in ("a", "b")]
    while any(w.poll() is None for w in writers):
        # A reader in the meantime sees whole commits only: as many sessions as the version log says.
        if (path / "store.json").exists():
            store = Store.open(path)
            version = store.data_version
            sessions = store.table("sessions", version=version).collect()
            steps = store.table("steps", version=version).collect()
            assert set(steps["session"]) == set(sessions["session"])
            assert sessions["steps"].sum() == steps.height
        time.sleep(0.2)
    assert [w.returncode for w in writers] == [0, 0]
    store = Store.open(path)
    assert store.data_version.startswith("10-")
    assert set(store.session_ids()) == {f"{w}-{n}" for w in "ab" for n in range(5)} | {"shared"}
    result = store.verify()
    assert result.ok, result.problems
    assert result.unreferenced == 0


def test_threads_take_turns(store: Store, trace: Callable[..., Trace], put: Callable[..., str]) -> None:
    failures: list[BaseException] = []

    def write(name: str) -> None:
        try:
            for n in range(4):
                put(store, [trace(f"{name}{n}")])
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(name,)) for name in "abc"]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures
    assert len(store.session_ids()) == 12
    assert store.verify().ok


def test_a_lock_that_is_not_released_is_an_error_after_a_while(tmp_path: Path) -> None:
    one, two = Lock(tmp_path / "lock", 10), Lock(tmp_path / "lock", 0.05)
    with one.held():
        with one.held():  # re-entrant
            pass
        with pytest.raises(StoreError, match="another process"), two.held():
            pass
    with two.held():
        pass


def test_waiting_is_said_once_and_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seatrial.store.lock.SAY_AFTER_S", 0.05)
    said: list[str] = []
    one, two = Lock(tmp_path / "lock", 10), Lock(tmp_path / "lock", 0.3, say=said.append)
    with one.held(), pytest.raises(StoreError, match=r"for 0\.3 s.*wait for it to finish"), two.held():
        pass
    assert said == [f"waiting for another process that writes to {tmp_path} (up to 0.3 s)"]
    with two.held():
        pass
    assert len(said) == 1


def test_waiting_is_said_on_standard_error(tmp_path: Path) -> None:
    """A writer that finds the store locked says so after a second, and goes on once it is free."""
    path = tmp_path / "store"
    store = Store.open(path, create=True)
    code = WRITER.format(here=str(Path(__file__).parent))
    command = [sys.executable, "-c", code, str(path), "a"]
    with store.writing():
        writer = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert writer.stderr is not None
        line = writer.stderr.readline()
    assert line == f"seatrial: waiting for another process that writes to {path} (up to 120 s)\n"
    assert writer.communicate() == (None, "")
    assert writer.returncode == 0
