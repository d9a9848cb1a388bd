"""A folder that other programs write to: what changed since the last look, once it has been quiet for a moment.

Looks with ``stat`` only, so that it works on every disk and network share. A file is taken up when its size and time
have stayed the same for `quiet` seconds, or it has waited for `longest` (a log that never falls quiet). What a file's
end may lack, a line that is still being written, a later look finds: reading the same bytes again changes nothing.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from seatrial import ingest as reading_room
from seatrial.errors import InputError, SeatrialError


class Seen(msgspec.Struct, frozen=True):
    """What tells one state of a file from another: which file, how long, when changed (ns)."""

    inode: int
    size: int
    changed: int


class _Waiting(msgspec.Struct):
    state: Seen
    since: float
    still: float


class Watch:
    """The files under some paths, and which of their states were taken up. `now` is any clock in seconds."""

    def __init__(self, paths: Sequence[Path], *, quiet: float = 2.0, longest: float = 30.0) -> None:
        self._paths = list(paths)
        self._quiet = quiet
        self._longest = longest
        self._taken: dict[Path, Seen] = {}
        self._states: dict[Seen, Path] = {}
        self._waiting: dict[Path, _Waiting] = {}
        self._first = True

    @property
    def waiting(self) -> int:
        """Files that have changed and are not quiet yet."""
        return len(self._waiting)

    def look(self, now: float) -> list[Path]:
        """Files to read now, in order. They count as taken up in the state that they had at this look.

        A file that was only renamed is not among them; one that was cut short or replaced is.
        """
        found = self._stat()
        for gone in [p for p in self._taken if p not in found]:
            self._states.pop(self._taken.pop(gone), None)
        for gone in [p for p in self._waiting if p not in found]:
            del self._waiting[gone]
        due = []
        for path, state in found.items():
            if self._taken.get(path) == state:
                self._waiting.pop(path, None)
                continue
            waiting = self._waiting.get(path)
            if waiting is None:
                # What was written long before the first look need not prove that it is quiet.
                age = time.time() - state.changed / 1e9 if self._first else 0.0
                waiting = self._waiting[path] = _Waiting(state, now, now - max(age, 0.0))
            elif waiting.state != state:
                waiting.state, waiting.still = state, now
            if now - waiting.still >= self._quiet or now - waiting.since >= self._longest:
                due.append(path)
                del self._waiting[path]
                self._take(path, state)
        self._first = False
        return due

    def _take(self, path: Path, state: Seen) -> None:
        self._states.pop(self._taken.get(path, state), None)
        self._taken[path] = state
        self._states[state] = path

    def put_back(self, paths: Sequence[Path]) -> None:
        """These could not be read into the store after all: the next look gives them again."""
        for path in paths:
            state = self._taken.pop(path, None)
            if state is not None:
                self._states.pop(state, None)

    def _stat(self) -> dict[Path, Seen]:
        found: dict[Path, Seen] = {}
        for path in self._paths:
            try:
                listed = reading_room.scan([path])
            except InputError:
                continue  # a folder that is not there yet, or a file being replaced
            for file in listed:
                try:
                    about = os.stat(file)
                except OSError:
                    continue
                found[file] = Seen(about.st_ino, about.st_size, about.st_mtime_ns)
        for file, state in found.items():
            before = self._states.get(state)
            if before is not None and before != file and before not in found:
                self._take(file, state)  # renamed
                self._taken.pop(before, None)
        return found


def follow(
    watch: Watch,
    take: Callable[[list[Path]], object],
    stop: threading.Event,
    *,
    every: float = 1.0,
    say: Callable[[str], None] = lambda text: None,
) -> None:
    """Look every so many seconds and hand what is to be read to `take`, until `stop` is set.

    Where `take` fails (the store is locked, a file went away meanwhile), the files come again with a later look.
    """
    pause = every
    while True:
        due = watch.look(time.monotonic())
        if due:
            try:
                take(due)
                pause = every
            except (SeatrialError, OSError) as error:
                watch.put_back(due)
                say(f"not read yet, trying again: {error}")
                pause = min(pause * 2, 60.0)
        if stop.wait(pause):
            return
