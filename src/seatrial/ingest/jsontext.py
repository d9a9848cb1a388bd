"""JSON bytes to values, one item of a big file at a time, with the repairs that were made and where it broke.

msgspec decodes; what it refuses but other programs write (NaN, lone surrogates, bytes that are not UTF-8) is
read by the standard library instead and repaired, and the repair is named.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from seatrial.canon import content_hash, digest
from seatrial.errors import FormatError
from seatrial.ingest.lines import BOM
from seatrial.records import Provenance, Reader

_BROKEN = (msgspec.MsgspecError, ValueError, RecursionError)
_AT_BYTE = re.compile(r"\(byte (\d+)\)")
_TOKEN = re.compile(rb'[{}\[\]]|"(?P<key>(?:[^"\\]|\\.)*+)(?:"(?P<colon>\s*:)?|\\?\Z)', re.DOTALL)
_SURROGATE = re.compile("[\\ud800-\\udfff]")
_DEPTH = 200
TOO_DEEP = f"nested too deeply: more than {_DEPTH} levels"


class BadJSON(ValueError):
    """Bytes that are not JSON: why, and at which byte (0-based) it was noticed."""

    def __init__(self, why: str, at: int) -> None:
        super().__init__(why)
        self.why = why
        self.at = at


class Item(NamedTuple):
    """One element of a JSON array: its bytes [start, end), its value, and the repairs that it needed.

    `start` = `end` = 0 when the array had to be repaired as a whole, so that no element has bytes of its own.
    `broken` says why the element has no value; None: it has one.
    """

    start: int
    end: int
    value: Any
    repairs: tuple[str, ...] = ()
    broken: str | None = None

    def hash(self, data: bytes) -> str:
        """sha256 of the element's bytes in `data`; of its canonical JSON where it has no bytes of its own."""
        return digest(data[self.start : self.end]) if self.end else content_hash(self.value)

    def provenance(self, reader: Reader, path: Path, data: bytes) -> Provenance:
        """Where a trace made of this element comes from."""
        return Provenance(
            format=reader.name,
            reader=reader.name,
            reader_version=reader.version,
            file=str(path),
            byte_start=self.start,
            byte_end=self.end or None,
            content_hash=self.hash(data),
        )


def loads(data: bytes) -> tuple[Any, tuple[str, ...]]:
    """The value of JSON bytes, and the repairs that it took (none for what RFC 8259 allows).

    Raises:
        BadJSON: not JSON even so, or nested deeper than 200 levels.
    """
    data = data.removeprefix(BOM)
    try:
        value = msgspec.json.decode(data)
    except _BROKEN as error:
        value, repairs = _lenient(data, error)
    else:
        repairs = ()
    if len(data) > _DEPTH and data.count(b"[") + data.count(b"{") > _DEPTH and _deeper(value, _DEPTH):
        raise BadJSON(TOO_DEEP, 0)
    return value, repairs


def items(data: bytes, start: int = 0, end: int | None = None) -> Iterator[Item]:
    """The elements of the JSON array that is ``data[start:end]``, decoded one at a time.

    Raises:
        BadJSON: these bytes are not a JSON array.
    """
    if start == 0 and data.startswith(BOM):
        start = len(BOM)
    array = data if start == 0 and end is None else data[start:end]
    try:
        raws = msgspec.json.decode(array, type=list[msgspec.Raw])
    except _BROKEN:
        values, repairs = loads(array)
        if not isinstance(values, list):
            raise BadJSON(f"expected an array, found {kind(values)}", start) from None
        for value in values:
            yield Item(0, 0, value, repairs)
        return
    at = 0
    for raw in raws:
        piece = bytes(raw)
        at = array.index(piece, at)
        span = (start + at, start + at + len(piece))
        at += len(piece)
        try:
            value, repairs = loads(piece)
        except BadJSON as error:
            yield Item(*span, None, (), error.why)
        else:
            yield Item(*span, value, repairs)


def fields(data: bytes) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """The members of a JSON object, each still as JSON text, and the repairs; the last of equal names wins.

    Raises:
        BadJSON: not a JSON object.
    """
    data = data.removeprefix(BOM)
    try:
        members = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    except _BROKEN:
        value, repairs = loads(data)
    else:
        return {name: bytes(raw) for name, raw in members.items()}, ()
    if not isinstance(value, dict):
        raise BadJSON(f"expected an object, found {kind(value)}", 0)
    return {name: msgspec.json.encode(member) for name, member in value.items()}, repairs


def first_keys(head: bytes) -> set[str]:
    """The keys of the first object that is not inside another one, as far as these first bytes of a file show."""
    found: set[str] = set()
    opened: list[bytes] = []
    objects = 0  # of those that are open, counted apart: what is nested deeply is not gone through for every key
    for token in _TOKEN.finditer(head):
        mark = token.group(0)
        if mark in (b"{", b"["):
            opened.append(mark)
            objects += mark == b"{"
        elif mark in (b"}", b"]"):
            if opened:
                objects -= opened.pop() == b"{"
            if not objects and found:
                break
        elif objects == 1 and opened[-1] == b"{" and token.group("colon") is not None:
            found.add(token.group("key").decode(errors="replace"))
    return found


def too_deep(data: bytes) -> bool:
    """Whether these bytes, or the first of a file, open more arrays and objects in each other than `loads` reads."""
    level = 0
    if data.count(b"[") + data.count(b"{") <= _DEPTH:
        return False
    for token in _TOKEN.finditer(data):
        mark = token.group(0)
        if mark in (b"{", b"["):
            level += 1
            if level > _DEPTH:
                return True
        elif mark in (b"}", b"]"):
            level = max(level - 1, 0)
    return False


def line_of(data: bytes, at: int) -> int:
    """1-based line of the byte at `at`."""
    return data.count(b"\n", 0, at) + 1


def malformed(path: Path, data: bytes, error: BadJSON, expected: str) -> FormatError:
    """The error for a file that does not parse: names file, line, what was wrong and what was expected."""
    line = line_of(data, error.at)
    return FormatError(
        f"line {line}: {error.why}; expected {expected}",
        hint="write the file again from its source, or cut the broken part out",
        file=str(path),
        line=line,
    )


def kind(value: Any) -> str:
    """What a JSON value is, in words."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        return "a number"
    return {"str": "a string", "list": "an array", "dict": "an object"}.get(type(value).__name__, "something else")


def as_text(value: Any) -> str:
    """Canonical JSON text of a value that was expected to be a string; a string stays as it is."""
    return value if isinstance(value, str) else msgspec.json.encode(value, order="deterministic").decode()


def _lenient(data: bytes, first: Exception) -> tuple[Any, tuple[str, ...]]:
    repairs: dict[str, None] = {}
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = data.decode(errors="replace")
        repairs["bytes that are not UTF-8 were replaced"] = None

    def no_number(_: str) -> None:
        repairs["a number that is not finite was read as null"] = None

    def number(digits: str) -> float | None:
        value = float(digits)
        if math.isfinite(value):
            return value
        no_number(digits)
        return None

    try:
        value = json.loads(text, parse_constant=no_number, parse_float=number)
    except (ValueError, RecursionError) as error:
        raise BadJSON(*_place(data, first, error)) from None
    if _deeper(value, _DEPTH):
        raise BadJSON(TOO_DEEP, 0)
    try:
        msgspec.json.encode(value)
    except UnicodeEncodeError:
        value = _without_surrogates(value)
        repairs["half of a surrogate pair was replaced"] = None
    return value, tuple(repairs)


def _place(data: bytes, first: Exception, second: Exception) -> tuple[str, int]:
    if isinstance(first, RecursionError) or isinstance(second, RecursionError):
        return TOO_DEEP, 0
    at = _AT_BYTE.search(str(first))
    if at:
        return str(first)[: at.start()].strip().replace("JSON is malformed", "not valid JSON"), int(at.group(1))
    if isinstance(second, json.JSONDecodeError):
        return f"not valid JSON: {second.msg}", len(second.doc[: second.pos].encode(errors="replace"))
    return f"not valid JSON: {first}", len(data)


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", value)
    if isinstance(value, list):
        return [_without_surrogates(v) for v in value]
    if isinstance(value, dict):
        return {_without_surrogates(k): _without_surrogates(v) for k, v in value.items()}
    return value


def _deeper(value: Any, levels: int) -> bool:
    layer = [value]
    for _ in range(levels + 1):
        inner: list[Any] = []
        for outer in layer:
            if isinstance(outer, list):
                inner.extend(outer)
            elif isinstance(outer, dict):
                inner.extend(outer.values())
        layer = [v for v in inner if isinstance(v, list | dict)]
        if not layer:
            return False
    return True
