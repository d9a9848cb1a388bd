"""What is remembered of long jobs when the server is gone: one line of JSON for each change, kept in the store.

A line holds no id of a session and nothing that a job printed: only the jobs of the forms are kept, whose words are on
a list, and what came out of them is among the store's results.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Literal

import msgspec

from seatrial.canon import canonical

FILE = "jobs.jsonl"
"""The log's name in a store."""

State = Literal["waiting", "running", "done", "failed", "cancelled", "interrupted", "unseen"]
OPEN = ("waiting", "running")
_LINES = 1000


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """A job as it was at one moment; `server` is the process that ran it, `process` the child that does the work."""

    id: str
    title: str
    arguments: list[str]
    by: str
    state: State
    created: float
    server: str
    process: str | None = None
    started: float | None = None
    ended: float | None = None
    status: int | None = None


class JobLog:
    """The log of one store. An absent or damaged one is an empty one; one that cannot be written stays as it is."""

    def __init__(self, store: Path) -> None:
        self._path = store / FILE
        self.torn = 0

    def note(self, record: Record) -> None:
        """Add how a job is now."""
        with contextlib.suppress(OSError):
            fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(fd, canonical(record) + b"\n")
            finally:
                os.close(fd)

    def load(self, most: int) -> list[Record]:
        """The last `most` jobs, oldest first. One that was open when its server died is interrupted from now on, unless
        its child lives on: that one is still running. One that another server runs is that server's, and left out.
        `torn` counts the lines that cannot be read."""
        try:
            lines = self._path.read_bytes().split(b"\n")
        except OSError:
            return []
        last: dict[str, Record] = {}
        for line in lines:
            try:
                record = msgspec.json.decode(line, type=Record)
            except (msgspec.DecodeError, RecursionError):
                self.torn += bool(line.strip())
                continue
            last[record.id] = record
        found = []
        for record in sorted(last.values(), key=lambda r: r.created)[-most:]:
            if record.state not in OPEN:
                found.append(record)
            elif not lives(record.server):
                if record.state == "running" and record.process is not None and lives(record.process):
                    found.append(record)
                    continue
                found.append(msgspec.structs.replace(record, state="interrupted"))
                self.note(found[-1])
        if len(lines) > _LINES and all(r.state not in OPEN for r in last.values()):
            self._shorten(found)
        return found

    def _shorten(self, records: list[Record]) -> None:
        beside = self._path.with_name(f"{FILE}.{os.getpid()}.tmp")
        with contextlib.suppress(OSError):
            fd = os.open(beside, os.O_WRONLY | os.O_TRUNC | os.O_CREAT, 0o600)
            with os.fdopen(fd, "wb") as file:
                file.writelines(canonical(r) + b"\n" for r in records)
            beside.replace(self._path)


def this_server() -> str:
    """Names this process, and no later one that gets its number."""
    return named(os.getpid())


def named(process: int) -> str:
    """Names a process that runs, and no later one that gets its number."""
    return f"{process} {_began(process)}"


def lives(server: str) -> bool:
    """Whether the process that `named` named is still there."""
    number, _, began = server.partition(" ")
    if not number.isdigit():
        return False
    try:
        os.kill(int(number), 0)
    except PermissionError:
        pass
    except (OSError, OverflowError):
        return False
    return _began(int(number)) == began


def _began(number: int) -> str:
    """When a process began, as the system says it; "" where it does not."""
    try:
        fields = Path(f"/proc/{number}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        return "" if fields[0] == "Z" else fields[19]
    except (OSError, IndexError):
        return ""
