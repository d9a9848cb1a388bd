"""The reader: lines in, traces out, with every byte of the file accounted for."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

from seatrial.ingest.claude_code.session import Session
from seatrial.ingest.claude_code.siblings import Siblings
from seatrial.ingest.claude_code.source import DECODE_ERRORS, KNOWN_TYPES, TOO_DEEP, Part, Record, decode, dissect
from seatrial.ingest.lines import lines, too_long
from seatrial.records import Provenance, ReadLog, Trace

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\Z")
_MARKS = (b'"sessionId"', b'"leafUuid"', b'"isSnapshotUpdate"')


class ClaudeCode:
    """Reads one session file. Memory holds one session at a time, and one line."""

    name = "claude-code"
    version = "1"
    verified = True

    def sniff(self, path: Path, head: bytes) -> float:
        """Sure when a whole line is an object of a known type with the marks of a session."""
        best = 0.0
        for line in head.split(b"\n")[:50]:
            if not any(mark in line for mark in _MARKS):
                continue
            try:
                record = decode(line)
            except DECODE_ERRORS:
                if b'"parentUuid"' in line or line.startswith(b'{"type":"file-history-snapshot"'):
                    best = 0.7
                continue
            if record.type in KNOWN_TYPES:
                return 0.95
        return best

    def read(self, path: Path, log: ReadLog) -> Iterator[Trace]:
        """The session's trace, then its sub-agents'; a file of several sessions gives each in turn."""
        yield from _Reading(path, log).traces()


class _Reading:
    def __init__(self, path: Path, log: ReadLog) -> None:
        self._path = path
        self._log = log
        self._named = _UUID.match(path.stem) is not None or path.stem.startswith("agent-")
        self._siblings = Siblings(path)
        self._noted: set[str] = set()
        self._taken: set[str] = set()
        self._session = self._fresh()
        self._hash = hashlib.sha256()
        self._start = self._end = 0

    def _fresh(self) -> Session:
        return Session(self._log, self._path.stem, self._siblings)

    def traces(self) -> Iterator[Trace]:
        log = self._log
        with self._path.open("rb", buffering=1 << 18) as stream:
            for number, data, size in lines(stream, on_skipped=lambda piece: self._hash.update(piece)):
                if data is None:
                    log.skip(number, too_long(size), size)
                    self._end += size
                    continue
                try:
                    record = decode(data)
                    clean = record.type in KNOWN_TYPES
                except DECODE_ERRORS:
                    clean = False
                if not clean:
                    yield from self._closer(number, data)
                else:
                    if record.sessionId != self._session.id and self._other(record):
                        yield from self._finish()
                    self._take(number, record, size)
                self._hash.update(data)
                self._end += size
        yield from self._finish()

    def _closer(self, number: int, data: bytes) -> Iterator[Trace]:
        """A line that is not one clean record of a known type: keep what can be kept of it."""
        if not data.strip():
            self._log.kept(len(data), "empty line")
            return
        try:
            parts = dissect(data)
        except RecursionError:
            self._log.skip(number, TOO_DEEP, len(data))
            return
        for part in parts:
            if part.record is None or part.whole is None:
                self._log.skip(number, part.why or "cannot be read", part.size)
                continue
            if part.note is not None:
                self._log.note(number, part.note)
            if self._other(part.record):
                yield from self._finish()
            self._part(number, part, part.record)

    def _take(self, number: int, record: Record, size: int) -> None:
        try:
            what = self._session.take(record, number)
        except RecursionError:
            self._log.skip(number, TOO_DEEP, size)
        else:
            self._log.kept(size, what)

    def _part(self, number: int, part: Part, record: Record) -> None:
        for field, value in (part.odd or {}).items():
            if self._session.keep_whole(number, "odd_values", {field: value}):
                self._log.note(number, f"{field} is of an unexpected type: kept in Trace.extra['odd_values']")
            else:
                self._log.note(number, f"{field} is of an unexpected type: not kept")
        if record.type in KNOWN_TYPES:
            self._take(number, record, part.size)
        else:
            self._unknown(number, record.type, part.whole, part.size)

    def _unknown(self, number: int, kind: str, value: object, size: int) -> None:
        if not self._session.keep_whole(number, "unknown_records", value):
            self._log.skip(number, f"a record of unknown type {kind!r}, and too many such records to keep", size)
            return
        if kind not in self._noted and len(self._noted) < 100:
            self._noted.add(kind)
            self._log.note(number, f"records of unknown type {kind!r}: kept in Trace.extra['unknown_records']")
        self._log.kept(size, f"unknown:{kind[:40]}" if len(self._noted) < 100 else "unknown")

    def _other(self, record: Record) -> bool:
        """Whether a new session begins here. In a file named after its session, others are its history."""
        return (
            record.sessionId is not None
            and self._session.id is not None
            and record.sessionId != self._session.id
            and not self._named
        )

    def _finish(self) -> Iterator[Trace]:
        session, start = self._session, self._start
        provenance = Provenance(
            format="claude-code",
            reader="claude-code",
            reader_version=ClaudeCode.version,
            file=str(self._path),
            byte_start=start,
            byte_end=self._end,
            content_hash=self._hash.hexdigest(),
        )
        yield from session.traces(provenance, self._taken)
        self._session = self._fresh()
        self._hash = hashlib.sha256()
        self._start = self._end


READER = ClaudeCode()
