"""OTLP protobuf to spans: one request, or requests each behind its length (4 bytes, big-endian, as the Collector's
file exporter writes them)."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from seatrial.errors import FormatError, MissingExtra
from seatrial.ingest.otlp_spans import spans_of
from seatrial.ingest.spans import Span
from seatrial.records import ReadLog


def _request() -> Any:
    try:
        module = importlib.import_module("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    except ImportError as error:
        raise MissingExtra("otel", "reading OTLP protobuf") from error
    return module.ExportTraceServiceRequest()


def decode(data: bytes) -> list[Span]:
    """The spans of one serialised ``ExportTraceServiceRequest``.

    Raises:
        MissingExtra: the extra ``[otel]`` is not installed.
        FormatError: the bytes are no such request.
    """
    request = _request()
    to_dict = importlib.import_module("google.protobuf.json_format").MessageToDict
    broken = importlib.import_module("google.protobuf.message").DecodeError
    try:
        request.ParseFromString(data)
        found = to_dict(request)
    except (broken, ValueError, RecursionError, TypeError) as error:
        raise FormatError(
            f"not an OTLP trace request in protobuf: {str(error)[:200]}", hint="send or write OTLP trace data"
        ) from None
    return spans_of(found)


def read(path: Path, log: ReadLog) -> list[Span]:
    """The spans of a file; a broken request of several is skipped with the reason.

    Raises:
        MissingExtra: the extra ``[otel]`` is not installed.
        FormatError: the file is one request that cannot be read.
    """
    data = path.read_bytes()
    pieces = _framed(data)
    if pieces is None:
        spans = decode(data)
        log.kept(len(data), "request")
        return spans
    spans = []
    for n, piece in enumerate(pieces, 1):
        try:
            spans.extend(decode(piece))
        except FormatError as error:
            log.skip(None, f"request {n}: {error.message}", len(piece) + 4)
        else:
            log.kept(len(piece) + 4, "request")
    return spans


def _framed(data: bytes) -> list[bytes] | None:
    """The requests of a file of length-prefixed ones; None when it is not framed so."""
    pieces, at = [], 0
    while at + 4 <= len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        if size == 0 or at + 4 + size > len(data):
            return None
        pieces.append(data[at + 4 : at + 4 + size])
        at += 4 + size
    return pieces if pieces and at == len(data) else None
