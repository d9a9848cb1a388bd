"""One file to prepared sessions: redacted, pseudonymised, packed. Pure, so that workers can do it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

from seatrial.canon import canonical
from seatrial.errors import SeatrialError
from seatrial.privacy import Pseudonyms, mask_home, redact
from seatrial.records import FileReport, Skip, Trace
from seatrial.store import session_row, step_rows
from seatrial.store.blobs import pack


class Reading(Protocol):
    """The traces of one file, and its account once they are exhausted (`ingest.FileReading`)."""

    def __iter__(self) -> Iterator[Trace]: ...

    @property
    def report(self) -> FileReport: ...


class ReadFile(Protocol):
    """Reads one file (`ingest.read_file`)."""

    def __call__(self, path: Path, *, format: str | None = None) -> Reading: ...


class How(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker needs to know. `key` is the store's pseudonym key; `user` names the user of traces
    that have none."""

    key: bytes
    format: str | None = None
    redact: bool = True
    user: str | None = None


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """A session ready to be kept: its blob, its rows, what was redacted."""

    session: str
    blob: str
    packed: bytes
    row: dict[str, Any]
    steps: list[dict[str, Any]]
    file: str
    redacted: dict[str, int] = {}

    def records(self, *, copied: bool) -> list[str]:
        """Source record ids of its own steps, or of the copied ones too."""
        return [r for s in self.steps if copied or not s["copied"] for r in s["source_ids"]]


class FileEnd(msgspec.Struct, frozen=True, kw_only=True):
    """The account of a file, after the last of its sessions; `lost` are sessions that cannot be stored."""

    report: FileReport
    lost: tuple[Skip, ...] = ()


Part = Prepared | FileEnd


def as_prepared(trace: Trace, file: str, redacted: dict[str, int]) -> Prepared:
    """Pack a trace that is already redacted and pseudonymised."""
    name, packed = pack(canonical(trace))
    return Prepared(
        session=trace.id,
        blob=name,
        packed=packed,
        row=session_row(trace, name),
        steps=step_rows(trace),
        file=file,
        redacted=redacted,
    )


def prepare(trace: Trace, how: How, file: str) -> Prepared:
    """Redact, pseudonymise and pack one trace.

    Raises:
        TypeError, ValueError, OverflowError, RecursionError: it holds something that JSON cannot.
    """
    counts: dict[str, int] = {}
    trace = pseudonymise(trace, Pseudonyms(how.key), how.user)
    if how.redact:
        trace, counts = redact(trace)
    return as_prepared(trace, file, counts)


def pseudonymise(trace: Trace, pseudonyms: Pseudonyms, user: str | None = None) -> Trace:
    """Users, subjects of consent and units that are users become pseudonyms; home folders leave the path."""
    raw = trace.user if trace.user is not None else user
    assigned, consent, source = trace.assignment, trace.consent, trace.provenance
    if assigned is not None and assigned.unit is not None and assigned.unit == raw:
        assigned = msgspec.structs.replace(assigned, unit=pseudonyms.of(raw))
    if consent is not None:
        consent = msgspec.structs.replace(consent, subject=pseudonyms.of(consent.subject))
    if source.file is not None:
        source = msgspec.structs.replace(source, file=mask_home(source.file))
    return msgspec.structs.replace(
        trace,
        user=None if raw is None else pseudonyms.of(raw),
        assignment=assigned,
        consent=consent,
        provenance=source,
    )


def parts_of(how: How, read_file: ReadFile, path: Path) -> Iterator[Part]:
    """The sessions of a file one by one, then its account. Memory: one session."""
    reading = read_file(path, format=how.format)
    lost = []
    for trace in reading:
        try:
            yield prepare(trace, how, str(path))
        except (TypeError, ValueError, OverflowError, RecursionError, SeatrialError) as error:
            lost.append(Skip(file=str(path), line=None, why=f"session {trace.id} cannot be stored: {error}"))
    yield FileEnd(report=reading.report, lost=tuple(lost))


def parts_of_batch(how: How, read_file: ReadFile, paths: Sequence[Path]) -> list[Part]:
    """`parts_of` for several small files: the unit of work of a worker process."""
    return [part for path in paths for part in parts_of(how, read_file, path)]


__all__ = [
    "FileEnd",
    "How",
    "Part",
    "Prepared",
    "ReadFile",
    "Reading",
    "as_prepared",
    "parts_of",
    "parts_of_batch",
    "prepare",
    "pseudonymise",
]
