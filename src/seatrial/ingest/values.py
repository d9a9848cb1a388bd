"""Files of JSON to their values: one per line, the elements of an array, or one for the whole file.

Framing, blank and torn lines are accounted for here; the caller accounts for each value that it is given.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from seatrial.canon import content_hash, digest
from seatrial.ingest.jsontext import BadJSON, items, line_of, loads, malformed
from seatrial.ingest.lines import BOM, lines, too_long
from seatrial.records import Provenance, Reader, ReadLog

_BY_LINE = (".jsonl", ".ndjson")


class Value(NamedTuple):
    """A JSON value of a file: where it stands (bytes [start, end), 1-based line) and the hash of its bytes."""

    value: Any
    start: int
    end: int
    line: int
    hash: str

    @property
    def size(self) -> int:
        """Bytes that the caller has to account for."""
        return self.end - self.start

    def provenance(self, reader: Reader, path: Path) -> Provenance:
        """Where a trace made of this value comes from."""
        return Provenance(
            format=reader.name,
            reader=reader.name,
            reader_version=reader.version,
            file=str(path),
            byte_start=self.start,
            byte_end=self.end or None,
            content_hash=self.hash,
        )


def by_line(path: Path, log: ReadLog) -> Iterator[Value]:
    """The values of a file of JSON lines. A line that is none is skipped with the reason."""
    start = 0
    with path.open("rb", buffering=1 << 18) as stream:
        for line in lines(stream):
            here, start = start, start + line.size
            if line.data is None:
                log.skip(line.number, too_long(line.size), line.size)
                continue
            if not line.data.strip():
                log.kept(line.size, "blank line")
                continue
            try:
                value, repairs = loads(line.data)
            except BadJSON as error:
                log.skip(line.number, error.why, line.size)
                continue
            for repair in repairs:
                log.note(line.number, repair)
            yield Value(value, here, start, line.number, digest(line.data))


def digest_of(path: Path, start: int, end: int) -> str:
    """sha256 of the bytes [start, end) of a file."""
    found = hashlib.sha256()
    with path.open("rb") as stream:
        stream.seek(start)
        while start < end and (piece := stream.read(min(end - start, 1 << 20))):
            found.update(piece)
            start += len(piece)
    return found.hexdigest()


def values(path: Path, log: ReadLog, expected: str, *, whole: bool = False) -> Iterator[Value]:
    """The values of a file of JSON lines, or of one JSON text: an array's elements, or the text's one value.

    `whole`: an array is one value. A file whose name does not tell is read as lines when its first line is a
    whole value and more follows.

    Raises:
        FormatError: one JSON text that does not parse; `expected` says what should be there.
    """
    if path.suffix.lower() in _BY_LINE:
        yield from by_line(path, log)
        return
    data = path.read_bytes()
    if not data.strip():
        log.kept(len(data), "blank line")
        return
    try:
        if data.removeprefix(BOM).lstrip()[:1] == b"[" and not whole:
            yield from _elements(data, log)
            return
        value, repairs = loads(data)
    except BadJSON as error:
        if _first_line_is_whole(data):
            yield from by_line(path, log)
            return
        raise malformed(path, data, error, expected) from None
    for repair in repairs:
        log.note(None, repair)
    yield Value(value, 0, len(data), 1, digest(data))


def _elements(data: bytes, log: ReadLog) -> Iterator[Value]:
    counted = 0
    for item in items(data):
        size = item.end - item.start
        counted += size
        line = line_of(data, item.start)
        if item.broken is not None:
            log.skip(line, item.broken, size)
            continue
        for repair in item.repairs:
            log.note(line, repair)
        mark = digest(data[item.start : item.end]) if item.end else content_hash(item.value)
        yield Value(item.value, item.start, item.end, line, mark)
    log.kept(len(data) - counted, "framing")


def _first_line_is_whole(data: bytes) -> bool:
    first, newline, more = data.removeprefix(BOM).lstrip().partition(b"\n")
    if not newline or not more.strip():
        return False
    try:
        value, _ = loads(first)
    except BadJSON:
        return False
    return isinstance(value, dict | list)
