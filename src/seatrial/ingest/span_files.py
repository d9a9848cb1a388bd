"""What the readers of span files share: where traces come from, times in nanoseconds, and handing traces out."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from seatrial.ingest.span_feedback import Remark, attach
from seatrial.ingest.span_traces import assemble
from seatrial.ingest.spans import Span
from seatrial.records import Provenance, Reader, ReadLog, Trace

_LATEST = 253_402_300_800 * 10**9
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def whole_file(reader: Reader, path: Path) -> Provenance:
    """The provenance of traces whose spans lie anywhere in the file."""
    found = hashlib.sha256()
    size = 0
    with path.open("rb") as stream:
        while piece := stream.read(1 << 20):
            found.update(piece)
            size += len(piece)
    return Provenance(
        format=reader.name,
        reader=reader.name,
        reader_version=reader.version,
        file=str(path),
        byte_end=size,
        content_hash=found.hexdigest(),
    )


def give_out(
    spans: list[Span],
    origin: Provenance,
    log: ReadLog,
    remarks: Iterable[Remark] = (),
    about: Mapping[str, dict[str, Any]] | None = None,
) -> Iterator[Trace]:
    """The traces of all spans of a file, with what was said about them; what found no place is noted.

    `about` holds, by the spans' trace id, what the source says about a whole invocation; it goes to `extra`.
    """
    found = assemble(spans, origin)
    traces, lost = attach(found.traces, remarks)
    if lost:
        log.note(None, f"{lost} scores or annotations are about no trace of this file")
    if found.repeated:
        log.note(None, f"{found.repeated} spans came twice; the fuller of each counts")
    if spans and not found.traces:
        log.note(None, f"{len(spans)} spans, none of a model call or a tool")
    for trace in traces:
        known = [about[i] for i in trace.extra["trace_ids"] if about and i in about]
        if known and trace.parent is None:
            trace = msgspec.structs.replace(trace, extra={**trace.extra, "source": known})
        yield trace


def nanoseconds(value: Any, unit: int = 1) -> int | None:
    """A number of units of `unit` nanoseconds, also as text, as nanoseconds; None for what is no time."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 25:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if value != value or not 0 <= value <= _LATEST:
        return None
    found = int(value * unit)
    return found if found <= _LATEST else None


def instant(value: Any) -> int | None:
    """ISO 8601 text, or a number of seconds or milliseconds, as nanoseconds; None for what is no time."""
    if isinstance(value, str):
        try:
            when = datetime.fromisoformat(value.strip())
        except ValueError:
            return nanoseconds(value)
        if when.tzinfo is None:
            when = when.replace(tzinfo=UTC)
        try:
            apart = when - _EPOCH
        except OverflowError:
            return None
        return nanoseconds((apart.days * 86_400 + apart.seconds) * 10**6 + apart.microseconds, 1000)
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        return None
    return nanoseconds(value, 10**9 if value < 10**11 else 10**6)
