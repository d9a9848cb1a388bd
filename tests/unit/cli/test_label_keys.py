"""Labelling at a real terminal: keys in, answers kept, and Ctrl-C ends a wait for keys."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import sys
import time
from pathlib import Path

import pytest

from seatrial.cli.app import run

PATIENCE = 120.0
"""Seconds until a command that does nothing is given up: long, since machines may be busy."""


@pytest.fixture
def store(tmp_path: Path) -> Path:
    said = [("user", "fix the parser"), ("assistant", "Done."), ("user", "works now, thanks"), ("assistant", "Glad."),
            ("user", "no, the other file"), ("assistant", "Sorry, done.")]  # fmt: skip
    chat = {"model": "toy-1", "messages": [{"role": role, "content": text} for role, text in said]}
    (tmp_path / "chat.jsonl").write_text(json.dumps(chat) + "\n", "utf-8")
    place = tmp_path / "store"
    assert run(["ingest", str(tmp_path / "chat.jsonl"), "--store", str(place)]) == 0
    return place


class Terminal:
    """A command whose terminal we are."""

    def __init__(self, *args: str) -> None:
        self.seen = b""
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            # A suite in the background of a script runs with interrupts ignored, and its children would inherit that.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.execv(sys.executable, [sys.executable, "-m", "seatrial", *args])

    def wait_for(self, text: bytes, times: int) -> None:
        end = time.monotonic() + PATIENCE
        while self.seen.count(text) < times:
            assert time.monotonic() < end, self.seen
            assert self._read(), self.seen

    def type(self, keys: bytes) -> None:
        os.write(self._fd, keys)

    def end(self) -> int:
        """The exit status; a command that does not end is killed and gives -9."""
        end = time.monotonic() + PATIENCE / 4
        while self._read() and time.monotonic() < end:
            pass
        if time.monotonic() >= end:
            os.kill(self.pid, 9)
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self._fd)
        return status

    def _read(self) -> bool:
        if not select.select([self._fd], [], [], 0.1)[0]:
            return True
        try:
            got = os.read(self._fd, 65_536)
        except OSError:  # how Linux says that the other side is closed
            return False
        self.seen += got
        return bool(got)


def test_keys_give_labels_and_interrupts_end_the_wait(store: Path, tmp_path: Path) -> None:
    out = tmp_path / "labels.jsonl"
    args = ["label", "--store", str(store), "--n", "50", "--random-share", "1", "--out", str(out)]
    first = Terminal(*args)
    first.wait_for(b"> ", 1)
    first.type(b"co\n")  # exclude each other
    first.wait_for(b"> ", 2)
    first.type(b"x\n")
    first.wait_for(b"> ", 3)
    first.type(b"\x03")
    assert first.end() == 130, first.seen
    assert b"seatrial: interrupted" in first.seen
    assert b"these labels exclude each other" in first.seen
    (kept,) = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    assert kept["labels"] == ["correction"]
    again = Terminal(*args)
    again.wait_for(b"> ", 1)
    assert b"1 of 1" in again.seen
    again.type(b"q\n")
    assert again.end() == 0
    assert len(out.read_text("utf-8").splitlines()) == 1
