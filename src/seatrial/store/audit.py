"""Who saw and did what through the web application: one line of JSON each, kept in the store."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from seatrial.canon import canonical
from seatrial.store.durable import sync_path, write_atomic

FILE = "audit.jsonl"
"""The log's name in a store."""

ERASED = "(erased)"
_TAIL_BYTES = 512 * 1024


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One act. `who` is a name from the tokens' file, or ``this machine``; `what` is what was done (``saw``,
    ``labelled``, ``started``); `session` the session concerned, ``(erased)`` when that has been erased since."""

    time: float
    who: str
    role: str
    what: str
    session: str | None = None
    about: str | None = None


class Audit:
    """The log of one store. Safe between threads and processes: a line is one append."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._guard = threading.Lock()

    def note(self, who: str, role: str, what: str, *, session: str | None = None, about: str | None = None) -> None:
        """Add an entry.

        Raises:
            OSError: it cannot be written; what it would have told must then not happen.
        """
        self._add([Entry(time=round(time.time(), 3), who=who, role=role, what=what, session=session, about=about)])

    def saw(self, who: str, role: str, sessions: Sequence[str]) -> None:
        """Add an entry for each of some sessions that are about to be shown, in one append.

        Raises:
            OSError: they cannot be written; the sessions must then not be shown.
        """
        now = round(time.time(), 3)
        self._add([Entry(time=now, who=who, role=role, what="saw", session=session) for session in sessions])

    def _add(self, entries: Sequence[Entry]) -> None:
        left = memoryview(b"".join(canonical(entry) + b"\n" for entry in entries))
        with self._guard:
            fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                while left:
                    left = left[os.write(fd, left) :]
            finally:
                os.close(fd)

    def newest(self, n: int = 200) -> list[Entry]:
        """The last `n` entries, newest first. A line that does not parse is left out (`torn`)."""
        out: list[Entry] = []
        for line in reversed(self._tail()):
            if len(out) == n:
                break
            entry = _entry(line)
            out += [] if entry is None else [entry]
        return out

    def torn(self) -> int:
        """How many of the last lines cannot be read."""
        return sum(_entry(line) is None for line in self._tail())

    def _tail(self) -> list[bytes]:
        """The last lines, oldest first."""
        try:
            with open(self._path, "rb") as log:
                size = log.seek(0, os.SEEK_END)
                start = max(size - _TAIL_BYTES, 0)
                log.seek(start)
                lines = log.read().split(b"\n")
        except FileNotFoundError:
            return []
        return [line for line in (lines[1:] if start else lines) if line.strip()]

    def strike(self, sessions: Sequence[str]) -> int:
        """Take the ids of erased sessions out of the log; how many entries named one. That somebody saw one stays."""
        if not self._path.exists():
            return 0
        gone = frozenset(sessions)
        struck = 0
        with self._guard:
            lines = self._path.read_bytes().splitlines(keepends=True)
            kept = []
            for line in lines:
                try:
                    entry = msgspec.json.decode(line, type=Entry)
                except (msgspec.DecodeError, RecursionError):
                    struck += 1  # nobody can say what it names
                    continue
                named = entry.session in gone
                about = entry.about if entry.about is None or not any(s in entry.about for s in gone) else ERASED
                if named or about != entry.about:
                    struck += 1
                    session = ERASED if named else entry.session
                    line = canonical(msgspec.structs.replace(entry, session=session, about=about)) + b"\n"
                kept.append(line)
            if struck:
                write_atomic(self._path, b"".join(kept), mode=0o600)
                sync_path(self._path.parent)
        return struck


def _entry(line: bytes) -> Entry | None:
    try:
        return msgspec.json.decode(line, type=Entry)
    except (msgspec.DecodeError, RecursionError):
        return None
