"""The rows of a results table, whatever file it is in: CSV, JSON, JSON lines or Parquet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from seatrial.errors import FormatError
from seatrial.ingest.jsontext import BadJSON, first_keys, items, kind, line_of, loads, malformed
from seatrial.ingest.lines import BOM, lines, too_long
from seatrial.records import ReadLog

_PARQUET = b"PAR1"
_SHAPE = "a JSON array of row objects with task, trial and passed or score"
_WRAPPERS = ("results", "rows", "attempts")


class Row(NamedTuple):
    """One row: its line (its row number in Parquet), its bytes, its cells, and its column names.

    `fixed`: every row has these columns; JSON rows have their own.
    """

    line: int | None
    size: int
    cells: Mapping[str, Any]
    columns: set[str]
    fixed: bool = True


def columns(path: Path, head: bytes) -> set[str]:
    """Column names that the head of a file shows; empty when it is no table."""
    if head.startswith(_PARQUET):
        return _parquet_columns(path)
    head = head.removeprefix(BOM)
    start = head.lstrip()[:1]
    if start in (b"[", b"{"):
        return first_keys(head)
    first, _, _ = head.partition(b"\n")
    if b"\0" in first or path.suffix.lower() not in (".csv", ".tsv", ".txt"):
        return set()
    return set(_header(first))


def names(path: Path) -> set[str]:
    """Column names of a table without rows."""
    with path.open("rb") as stream:
        return columns(path, stream.read(64 * 1024))


def rows(path: Path, log: ReadLog) -> Iterator[Row]:
    """The rows of a table; a row that cannot be parsed is skipped in `log`, and so is nothing else.

    Bytes that are no row (header, blank lines, framing) are kept in `log`; a row's own are the caller's to log.

    Raises:
        FormatError: the file is not a table.
    """
    with path.open("rb") as stream:
        head = stream.read(64 * 1024)
    if head.startswith(_PARQUET):
        yield from _parquet(path, log)
    elif head.removeprefix(BOM).lstrip()[:1] in (b"[", b"{"):
        yield from _json(path, log)
    else:
        yield from _csv(path, log)


def _csv(path: Path, log: ReadLog) -> Iterator[Row]:
    header: list[str] = []
    delimiter = ","
    pending: list[bytes] = []
    first = quotes = 0
    with path.open("rb") as stream:
        for line in lines(stream):
            if line.data is None:
                log.skip(line.number, too_long(line.size), line.size)
                continue
            pending.append(line.data)
            first = first or line.number
            quotes += line.data.count(b'"')
            if quotes % 2:
                if len(pending) >= _LONGEST_CELL:
                    yield from _torn(pending, header, delimiter, first, log)
                    pending, first, quotes = [], 0, 0
                continue
            data = b"".join(pending)
            if not header:
                text = data.decode("utf-8-sig", errors="replace")
                delimiter = _delimiter(text)
                header = _cells(text, delimiter) if text.strip() else []
                log.kept(len(data), "header" if header else "blank line")
            elif not data.strip():
                log.kept(len(data), "blank line")
            else:
                yield from _csv_row(data, header, delimiter, first, log)
            pending, first, quotes = [], 0, 0
    if pending:
        yield from _torn(pending, header, delimiter, first, log)


_LONGEST_CELL = 1000
"""Lines that a quoted cell may span; one that spans more is a quote that was never closed."""


def _torn(pending: list[bytes], header: list[str], delimiter: str, first: int, log: ReadLog) -> Iterator[Row]:
    """Lines after a quote that was never closed: the line that holds it is lost, the others are read again."""
    log.skip(first, "a quote is opened and never closed", len(pending[0]))
    for n, data in enumerate(pending[1:], first + 1):
        if not data.strip():
            log.kept(len(data), "blank line")
        elif header:
            yield from _csv_row(data, header, delimiter, n, log)
        else:
            log.skip(n, "the table has no header", len(data))


def _csv_row(data: bytes, header: list[str], delimiter: str, line: int, log: ReadLog) -> Iterator[Row]:
    cells = _cells(data.decode(errors="replace"), delimiter)
    if len(cells) > len(header):
        log.skip(line, f"expected {len(header)} cells, found {len(cells)}", len(data))
        return
    if len(cells) < len(header):
        log.note(line, f"expected {len(header)} cells, found {len(cells)}; the others are empty")
    yield Row(line, len(data), dict(zip(header, cells, strict=False)), set(header))


def _cells(text: str, delimiter: str) -> list[str]:
    try:
        parsed = next(csv.reader(io.StringIO(text.rstrip("\r\n"), newline=""), delimiter=delimiter), [])
    except csv.Error:
        return text.rstrip("\r\n").split(delimiter)
    return [cell.strip() for cell in parsed]


def _header(first: bytes) -> list[str]:
    text = first.decode(errors="replace").strip()
    return _cells(text, _delimiter(text)) if text else []


def _delimiter(header: str) -> str:
    return max(",;\t", key=header.count)


def _json(path: Path, log: ReadLog) -> Iterator[Row]:
    if _by_line(path):
        with path.open("rb") as stream:
            for line in lines(stream):
                if line.data is None:
                    log.skip(line.number, too_long(line.size), line.size)
                elif not line.data.strip():
                    log.kept(line.size, "blank line")
                else:
                    try:
                        value, repairs = loads(line.data)
                    except BadJSON as error:
                        log.skip(line.number, error.why, line.size)
                        continue
                    yield from _json_row(value, repairs, line.number, line.size, log)
        return
    data = path.read_bytes()
    counted = 0
    try:
        if data.removeprefix(BOM).lstrip()[:1] == b"[":
            for item in items(data):
                size = item.end - item.start
                counted += size
                line_number = line_of(data, item.start)
                if item.broken:
                    log.skip(line_number, item.broken, size)
                else:
                    yield from _json_row(item.value, item.repairs, line_number, size, log)
        else:
            table, _ = loads(data)
            listed = next((table[w] for w in _WRAPPERS if isinstance(table.get(w), list)), None)
            for value in [table] if listed is None else listed:
                yield from _json_row(value, (), None, 0, log)
    except BadJSON as error:
        raise malformed(path, data, error, _SHAPE) from None
    log.kept(len(data) - counted, "framing")


def _json_row(value: Any, repairs: tuple[str, ...], line: int | None, size: int, log: ReadLog) -> Iterator[Row]:
    if not isinstance(value, dict):
        log.skip(line, f"expected a row object, found {kind(value)}", size)
        return
    for repair in repairs:
        log.note(line, repair)
    yield Row(line, size, value, set(value), False)


def _by_line(path: Path) -> bool:
    if path.suffix.lower() in (".jsonl", ".ndjson"):
        return True
    with path.open("rb") as stream:
        for line in lines(stream):
            if line.data is None or line.data.strip():
                break
        else:
            return False
        try:
            value, _ = loads(line.data or b"")
        except BadJSON:
            return False
        return isinstance(value, dict) and any(later.data is None or later.data.strip() for later in lines(stream))


def _parquet(path: Path, log: ReadLog) -> Iterator[Row]:
    import polars as pl

    try:
        table = pl.read_parquet(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise FormatError(
            f"not a Parquet file that can be read: {str(error).splitlines()[0]}",
            hint="write it again",
            file=str(path),
        ) from None
    log.kept(path.stat().st_size, "table")
    found = set(table.columns)
    for n, cells in enumerate(table.iter_rows(named=True), 1):
        yield Row(n, 0, cells, found)


def _parquet_columns(path: Path) -> set[str]:
    import polars as pl

    try:
        return set(pl.read_parquet_schema(path))
    except (pl.exceptions.PolarsError, OSError):
        return set()
