"""Killed in the middle of an ingest, a store verifies, and running it again completes it."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

from seatrial.intake.pipeline import run
from seatrial.records.tables import TABLES
from seatrial.store import Store

INGEST = """
import sys
from pathlib import Path
sys.path.insert(0, {here!r})
import fake_reader
from seatrial.intake import commit, pipeline
from seatrial.store import Store
commit.BATCH_SESSIONS = 4
store = Store.open(sys.argv[1], create=True)
print("ready", flush=True)
pipeline.run(store, [Path(p) for p in sys.argv[2:]], fake_reader.read_file)
print("done", flush=True)
"""


def content(store: Store) -> dict[str, list[dict[str, object]]]:
    return {t.name: store.table(t.name).collect().to_dicts() for t in TABLES}


@pytest.fixture(scope="module")
def files(fake: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("files")
    return [
        fake.write(folder / f"s{n:02}.jsonl", *(fake.say(f"{n}-{k}", f"{n} {k}", user="jane") for k in range(5)))
        for n in range(20)
    ]


def test_sigkill_at_random_moments(fake: ModuleType, files: list[Path], tmp_path: Path) -> None:
    whole = Store.open(tmp_path / "whole", create=True)
    (whole.path / "key").write_text("cd" * 32)
    start = time.monotonic()
    code = INGEST.format(here=str(Path(__file__).parent))
    command = [sys.executable, "-c", code]
    done = subprocess.run([*command, str(whole.path), *map(str, files)], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["ready", "done"]
    took = time.monotonic() - start
    expected = content(whole)

    rng = random.Random(7)
    store = Store.open(tmp_path / "store", create=True)
    (store.path / "key").write_text("cd" * 32)
    killed = 0
    for _ in range(4):
        process = subprocess.Popen([*command, str(store.path), *map(str, files)], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(rng.uniform(0, took / 3))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        killed += process.returncode == -signal.SIGKILL
        verified = store.verify()
        assert verified.ok, verified.problems
        # What is there is whole: each stored session is what the uninterrupted ingest stored.
        assert [r for r in expected["sessions"] if r["session"] in store.session_ids()] == content(store)["sessions"]
    assert killed >= 1
    run(store, files, fake.read_file)
    assert content(store) == expected
    verified = store.verify()
    assert verified.ok
    assert verified.unreferenced == 0


@pytest.mark.parametrize("stop", ["blob", "first table", "second table", "before the version", "torn version"])
def test_killed_at_the_worst_moments(
    stop: str, fake: ModuleType, files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each place between two writes of a commit, hit exactly: the commit happens wholly or not at all."""
    store = Store.open(tmp_path / "store", create=True)
    run(store, files[:3], fake.read_file)
    fake.write(tmp_path / "grown" / files[0].name, *(fake.say(f"0-{k}", f"0 {k}") for k in range(8)))
    later = [tmp_path / "grown" / files[0].name, files[3]]
    before, version = content(store), store.data_version

    class Killed(BaseException):
        pass

    def die(*_: object) -> None:
        raise Killed

    if stop == "blob":
        monkeypatch.setattr("seatrial.store.blobs.Blobs.sync", die)
    elif stop in ("first table", "second table"):
        real = type(store.delta).replace
        left = [1 if stop == "first table" else 2]

        def replace(self: object, *args: object) -> int:
            result = real(self, *args)  # type: ignore[arg-type]
            left[0] -= 1
            if left[0] == 0:
                raise Killed
            return result

        monkeypatch.setattr("seatrial.store.delta.DeltaTables.replace", replace)
    elif stop == "before the version":
        monkeypatch.setattr("seatrial.store.versions.Versions.append", die)
    else:

        def append(self: object, version: object) -> None:
            with open(store.path / "versions.jsonl", "ab") as out:
                out.write(b'{"number":2,"dig')
            raise Killed

        monkeypatch.setattr("seatrial.store.versions.Versions.append", append)
    with pytest.raises(Killed):
        run(store, later, fake.read_file)
    monkeypatch.undo()

    again = Store.open(store.path)
    assert again.data_version == version
    assert content(again) == before
    assert again.verify().ok
    result = run(again, later, fake.read_file)
    assert (result.added, result.replaced) == (1, 1)
    assert len(again.trace("s00").steps) == 8
    verified = again.verify()
    assert (verified.ok, verified.sessions, verified.unreferenced) == (True, 4, 0)
