"""An OTLP/HTTP trace request to spans, and what is answered (OpenTelemetry Protocol 1.x, OTLP/HTTP)."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from seatrial.canon import canonical
from seatrial.errors import FormatError
from seatrial.ingest import otlp_protobuf
from seatrial.ingest.jsontext import BadJSON, kind, loads
from seatrial.ingest.otlp_spans import spans_of
from seatrial.ingest.spans import Span
from seatrial.server.body import Refused
from seatrial.server.spool import Encoding

TYPES: dict[Encoding, str] = {"json": "application/json", "protobuf": "application/x-protobuf"}

_TRACE_ID = re.compile(r"[0-9a-f]{32}")
_SPAN_ID = re.compile(r"[0-9a-f]{16}")


class Decoded(msgspec.Struct, frozen=True):
    """The spans of a request, and how many it holds that have no valid ids and are rejected."""

    spans: list[Span]
    rejected: int


def encoding_of(content_type: str) -> Encoding:
    """How a body of that content type is encoded.

    Raises:
        Refused: it is neither JSON nor protobuf.
    """
    plain = content_type.split(";")[0].strip().lower()
    for encoding, name in TYPES.items():
        if plain == name:
            return encoding
    raise Refused(415, f"content type {plain[:60]!r} is not supported; send {' or '.join(TYPES.values())}")


def decode(body: bytes, encoding: Encoding) -> Decoded:
    """The spans of a request.

    Raises:
        FormatError: it is no trace request.
        MissingExtra: protobuf, and the extra ``[otel]`` is not installed.
    """
    if encoding == "protobuf":
        found = otlp_protobuf.decode(body)
        total = len(found)
    else:
        try:
            value, _ = loads(body)
        except BadJSON as error:
            raise FormatError(f"not JSON: {error}") from None
        if not isinstance(value, dict):
            raise FormatError("expected an object with resourceSpans")
        total = _count(value)
        found = spans_of(value)
    sound = [s for s in found if _TRACE_ID.fullmatch(s.trace_id) and _SPAN_ID.fullmatch(s.span_id)]
    return Decoded(sound, max(total - len(sound), 0))


def _count(value: dict[str, Any]) -> int:
    """The spans of a request, whose levels must be lists of objects.

    Raises:
        FormatError: one is not; an empty answer to it would say that something was kept.
    """
    n = 0
    for group in _objects(value, "resourceSpans", "resource_spans", "batches"):
        for scoped in _objects(group, "scopeSpans", "scope_spans", "instrumentationLibrarySpans"):
            n += len(_objects(scoped, "spans"))
    return n


def _objects(value: dict[str, Any], *names: str) -> list[dict[str, Any]]:
    """The list of objects of the first of these names that is there; empty where none is, or where it is null."""
    name = next((n for n in names if n in value), None)
    found = None if name is None else value[name]
    if found is None:
        return []
    if not isinstance(found, list):
        raise FormatError(f"not OTLP: {name} is {kind(found)}, not a list")
    for item in found:
        if not isinstance(item, dict):
            raise FormatError(f"not OTLP: {name} holds {kind(item)}, where each item is an object")
    return found


def accepted(encoding: Encoding, rejected: int) -> bytes:
    """The answer to a request that is kept: ``ExportTraceServiceResponse``, empty unless spans were rejected."""
    why = "spans without a valid trace and span id"
    if encoding == "json":
        partial = {"partialSuccess": {"rejectedSpans": str(rejected), "errorMessage": why}} if rejected else {}
        return canonical(partial)
    if not rejected:
        return b""
    inner = b"\x08" + _varint(rejected) + _text(2, why)
    return b"\x0a" + _varint(len(inner)) + inner


def failed(encoding: Encoding, code: int, why: str) -> bytes:
    """The answer to a request that is refused: a ``google.rpc.Status``."""
    if encoding == "json":
        return canonical({"code": code, "message": why})
    return b"\x08" + _varint(code) + _text(2, why)


def _text(field: int, text: str) -> bytes:
    data = text.encode()
    return bytes([field << 3 | 2]) + _varint(len(data)) + data


def _varint(n: int) -> bytes:
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    return bytes([*out, n])
