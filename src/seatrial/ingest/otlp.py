"""OTLP trace data to traces: JSON as exporters and the Collector write it, and protobuf (extra ``[otel]``).

`otlp_spans` holds what a live receiver shares with this reader. Log records of GenAI events are put to the span that
they name.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from seatrial.errors import FormatError, MissingExtra
from seatrial.ingest import otlp_protobuf
from seatrial.ingest.drafts import an_object
from seatrial.ingest.jsontext import kind
from seatrial.ingest.otlp_spans import groups_of, log_records, spans_of, with_logs
from seatrial.ingest.span_feedback import beside
from seatrial.ingest.span_files import give_out, whole_file
from seatrial.ingest.spans import Span
from seatrial.ingest.values import values
from seatrial.records import ReadLog, Trace

_SHAPE = "OTLP trace data: an object with resourceSpans"
_MARKS = (b'"resourceSpans"', b'"resource_spans"', b'"resourceLogs"', b'"resource_logs"', b'"batches"')
_BINARY = (".pb", ".binpb", ".otlp")


class Otlp:
    """Reads OTLP files: one trace per conversation, sub-agents beside it."""

    name = "otlp"
    version = "1"
    verified = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Sure of the JSON by its first key; of protobuf by the file's name and first tag."""
        if path.suffix.lower() in _BINARY:
            return 0.9 if b"\n" in (head[:1], head[4:5]) else 0.0
        if head.lstrip()[:1] not in (b"{", b"["):
            return 0.0
        start = head.lstrip()[:400]
        if any(mark in start for mark in _MARKS[:4]):
            return 0.97
        return 0.97 if _MARKS[4] in start and b"Spans" in head else 0.0

    def read(self, path: Path, log: ReadLog) -> Iterator[Trace]:
        """One trace per conversation and sub-agent.

        Raises:
            FormatError: no OTLP data, or protobuf without the extra ``[otel]``.
        """
        if path.suffix.lower() in _BINARY:
            spans = self._protobuf(path, log)
        else:
            spans = self._json(path, log)
        yield from give_out(spans, whole_file(self, path), log, beside(path, log))

    def _json(self, path: Path, log: ReadLog) -> list[Span]:
        spans: list[Span] = []
        logs: list[dict[str, Any]] = []
        for value in values(path, log, _SHAPE):
            body = an_object(value.value)
            body = an_object(body.get("trace")) or body
            found = spans_of(body)
            records = list(log_records(body))
            if not found and not records and not groups_of(body):
                log.skip(value.line, f"expected {_SHAPE}, found {kind(value.value)}", value.size)
                continue
            log.kept(value.size, "request")
            spans.extend(found)
            logs.extend(records)
        return with_logs(spans, logs, log)

    def _protobuf(self, path: Path, log: ReadLog) -> list[Span]:
        try:
            return otlp_protobuf.read(path, log)
        except MissingExtra as error:
            raise FormatError(error.message, hint=error.hint, file=str(path)) from None


READER = Otlp()
