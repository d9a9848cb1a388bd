"""One file to prepared sessions: redacted, pseudonymised, packed. Pure, so that workers can do it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

from seatrial.canon import canonical
from seatrial.errors import SeatrialError
from seatrial.privacy import Pseudonyms, mask_home, redact
from seatrial.records import Consent, FileReport, Skip, Trace
from seatrial.store import rows_of
from seatrial.store.blobs import pack

_TRACES = msgspec.json.Decoder(Trace)


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
    """A session ready to be kept: its blob, its rows, what was redacted, and numbers that no row can hold."""

    session: str
    blob: str
    packed: bytes
    row: dict[str, Any]
    steps: list[dict[str, Any]]
    file: str
    redacted: dict[str, int] = {}
    misfits: tuple[str, ...] = ()
    consent: Consent | None = None

    def records(self, *, copied: bool) -> list[str]:
        """Source record ids of its own steps, or of the copied ones too."""
        return [r for s in self.steps if copied or not s["copied"] for r in s["source_ids"]]


class FileEnd(msgspec.Struct, frozen=True, kw_only=True):
    """The account of a file, after the last of its sessions; `lost` are sessions that cannot be stored."""

    report: FileReport
    lost: tuple[Skip, ...] = ()


Part = Prepared | FileEnd


def as_prepared(trace: Trace, file: str, redacted: dict[str, int], *, check: bool = False) -> Prepared:
    """Pack a trace that is already redacted and pseudonymised. With `check`, one that would not come back is refused.

    Raises:
        msgspec.ValidationError: it would not come back.
    """
    written = canonical(trace)
    if check:
        _TRACES.decode(written)
    name, packed = pack(written)
    row, steps, misfits = rows_of(trace, name)
    return Prepared(
        session=trace.id,
        blob=name,
        packed=packed,
        row=row,
        steps=steps,
        file=file,
        redacted=redacted,
        misfits=misfits,
        consent=trace.consent,
    )


def prepare(trace: Trace, how: How, file: str) -> Prepared:
    """Redact, pseudonymise and pack one trace.

    Raises:
        TypeError, ValueError, OverflowError, RecursionError: it holds something that JSON cannot, or would not come
            back from it.
    """
    counts: dict[str, int] = {}
    trace = pseudonymise(trace, Pseudonyms(how.key), how.user)
    if how.redact:
        trace, counts = redact(trace)
    return as_prepared(trace, file, counts, check=True)


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
    broke: str | None = None
    n_traces = n_steps = 0
    traces = iter(reading)
    while True:
        try:
            trace = next(traces)
        except StopIteration:
            break
        except Exception as error:  # what one file does to a reader must not keep the others from being read
            broke = f"reading it broke: {type(error).__name__}: {error}"
            break
        n_traces, n_steps = n_traces + 1, n_steps + len(trace.steps)
        try:
            prepared = prepare(trace, how, str(path))
        except Exception as error:
            lost.append(Skip(file=str(path), line=None, why=f"session {trace.id} cannot be stored: {_why(error)}"))
        else:
            yield prepared
    report = reading.report if broke is None else _cut_short(path, broke, n_traces, n_steps)
    yield FileEnd(report=report, lost=tuple(lost))


def _why(error: Exception) -> str:
    known = isinstance(error, TypeError | ValueError | OverflowError | SeatrialError)
    return str(error) if known else f"{type(error).__name__}: {error}"


def _cut_short(path: Path, why: str, traces: int, steps: int) -> FileReport:
    size = path.stat().st_size if path.is_file() else 0
    return FileReport(
        file=str(path),
        format=None,
        status="kept" if traces else "skipped",
        traces=traces,
        steps=steps,
        n_bytes=size,
        skipped_bytes=size,
        skipped=(Skip(file=str(path), line=None, why=why, bytes=size),),
        why=None if traces else why,
    )


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
