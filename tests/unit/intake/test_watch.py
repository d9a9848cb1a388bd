"""A folder that changes: what is taken up, when, and that what was half written is made good."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import ModuleType

import pytest

from seatrial.errors import StoreError
from seatrial.intake.pipeline import run
from seatrial.intake.watch import Watch, follow
from seatrial.store import Store


def write(path: Path, text: str, age: float = 0.0) -> Path:
    path.write_text(text)
    moment = time.time() - age
    os.utime(path, (moment, moment))
    return path


def test_a_file_is_taken_up_once_it_is_quiet(tmp_path: Path) -> None:
    watch = Watch([tmp_path], quiet=2.0, longest=30.0)
    assert watch.look(0.0) == []
    file = write(tmp_path / "a.jsonl", "1\n")
    assert watch.look(10.0) == []
    assert watch.look(11.0) == []
    write(file, "1\n2\n")
    assert watch.look(12.0) == [], "it changed: quiet begins again"
    assert watch.look(13.0) == []
    assert watch.look(14.0) == [file]
    assert watch.look(15.0) == []
    assert watch.waiting == 0


def test_a_file_that_never_falls_quiet_is_taken_up_all_the_same(tmp_path: Path) -> None:
    watch = Watch([tmp_path], quiet=2.0, longest=10.0)
    watch.look(0.0)
    file = tmp_path / "a.jsonl"
    taken = []
    for second in range(1, 25):
        write(file, "x" * second)
        taken += [second] * (watch.look(float(second)) == [file])
    assert taken == [11, 22]


def test_what_was_there_before_is_read_at_once(tmp_path: Path) -> None:
    old = write(tmp_path / "old.jsonl", "1\n", age=3600)
    write(tmp_path / "new.jsonl", "1\n")
    assert Watch([tmp_path], quiet=2.0).look(0.0) == [old]


def test_renamed_cut_short_replaced_and_gone(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", "1\n2\n", age=100)
    watch = Watch([tmp_path], quiet=0.0)
    assert watch.look(0.0) == [file]
    renamed = file.rename(tmp_path / "b.jsonl")
    assert watch.look(1.0) == [], "a new name is no new content"
    write(renamed, "1\n", age=50)
    assert watch.look(2.0) == [renamed], "cut short"
    os.replace(write(tmp_path / "c.tmp", "9\n", age=50), renamed)
    assert watch.look(3.0) == [renamed], "another file under the name"
    renamed.unlink()
    assert watch.look(4.0) == []
    write(renamed, "9\n", age=50)
    assert watch.look(5.0) == [renamed], "back again"


def test_a_folder_may_come_later(tmp_path: Path) -> None:
    watch = Watch([tmp_path / "later"], quiet=0.0)
    assert watch.look(0.0) == []
    (tmp_path / "later").mkdir()
    file = write(tmp_path / "later" / "a.jsonl", "1\n")
    assert watch.look(1.0) == [file]


def test_what_could_not_be_read_comes_again(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", "1\n", age=100)
    stop = threading.Event()
    tried: list[list[Path]] = []
    said: list[str] = []

    def take(due: list[Path]) -> None:
        tried.append(due)
        if len(tried) == 1:
            raise StoreError("the store is locked")
        stop.set()

    follow(Watch([tmp_path], quiet=0.0), take, stop, every=0.01, say=said.append)
    assert tried == [[file], [file]]
    assert "locked" in said[0]


def test_a_torn_last_line_is_made_good(fake: ModuleType, store: Store, tmp_path: Path) -> None:
    whole = fake.write(tmp_path / "whole", *(fake.say(f"r{n}", f"words {n}") for n in range(4))).read_bytes()
    file = tmp_path / "s.jsonl"
    watch = Watch([file], quiet=0.0)
    for end in (len(whole) // 3, len(whole) // 2 + 3, len(whole)):
        file.write_bytes(whole[:end])
        run(store, watch.look(float(end)), fake.read_file)
    assert store.session_ids() == ["s"]
    assert [s.text for s in store.trace("s").steps] == [f"words {n}" for n in range(4)]
    assert store.verify().ok


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_ends_cleanly(tmp_path: Path, number: int) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", "from seatrial.cli import main; main()", "ingest", "logs", "--watch", "--quiet", "0.1",
         "--store", "store", "--json"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    assert process.stdout is not None
    assert "watching" in process.stderr.readline()
    line = '{"messages": [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}]}\n'
    (folder / "chat.jsonl").write_text(line)
    assert '"added":1' in process.stdout.readline()
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    assert out == ""
    assert Store.open(tmp_path / "store").verify().ok
