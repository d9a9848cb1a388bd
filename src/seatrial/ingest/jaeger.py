"""Jaeger exports to traces: the JSON that its user interface and its query service give out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from seatrial.errors import FormatError
from seatrial.ingest.drafts import a_list, an_object, rest, text_or_none
from seatrial.ingest.jsontext import kind
from seatrial.ingest.span_files import give_out, nanoseconds, whole_file
from seatrial.ingest.spans import Span, SpanEvent
from seatrial.ingest.values import values
from seatrial.records import ReadLog, Trace

_SHAPE = "a Jaeger export: an object whose data is a list of traces with spans and processes"


class Jaeger:
    """Reads Jaeger exports: one trace per conversation, sub-agents beside it."""

    name = "jaeger"
    version = "1"
    verified = True

    def sniff(self, path: Path, head: bytes) -> float:
        """Sure when there are spans with Jaeger's names."""
        if head.lstrip()[:1] not in (b"{", b"["):
            return 0.0
        marks = (b'"traceID"', b'"spanID"', b'"operationName"', b'"references"', b'"processes"')
        return 0.97 if sum(mark in head for mark in marks) >= 3 else 0.0

    def read(self, path: Path, log: ReadLog) -> Iterator[Trace]:
        """One trace per conversation and sub-agent.

        Raises:
            FormatError: not JSON, or no Jaeger export.
        """
        spans: list[Span] = []
        for value in values(path, log, _SHAPE):
            traces = an_object(value.value).get("data", [value.value])
            found = [trace for trace in a_list(traces) if isinstance(an_object(trace).get("spans"), list)]
            if not found:
                raise FormatError(f"expected {_SHAPE}, found {kind(value.value)}", file=str(path), line=value.line)
            log.kept(value.size, "export")
            for trace in found:
                for raw in trace["spans"]:
                    span = _span(raw, an_object(trace.get("processes")))
                    if span is None:
                        log.note(value.line, "a span without ids is left out")
                    else:
                        spans.append(span)
        yield from give_out(spans, whole_file(self, path), log)


def _span(raw: Any, processes: dict[str, Any]) -> Span | None:
    body = an_object(raw)
    trace_id, span_id = text_or_none(body.get("traceID")), text_or_none(body.get("spanID"))
    if trace_id is None or span_id is None:
        return None
    parents = [an_object(r) for r in a_list(body.get("references"))]
    parent = next((r.get("spanID") for r in parents if r.get("refType") in (None, "CHILD_OF", "FOLLOWS_FROM")), None)
    attributes = _tags(body.get("tags"))
    process = an_object(body.get("process")) or an_object(processes.get(str(body.get("processID"))))
    start = nanoseconds(body.get("startTime"), 1000)
    length = nanoseconds(body.get("duration"), 1000)
    failed = attributes.pop("error", None) in (True, "true")
    code = attributes.pop("otel.status_code", None)
    scope = {k: attributes.pop(f"otel.scope.{k}") for k in ("name", "version") if f"otel.scope.{k}" in attributes}
    return Span(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=parent if isinstance(parent, str) else text_or_none(body.get("parentSpanID")),
        name=text_or_none(body.get("operationName")) or "",
        kind=text_or_none(attributes.pop("span.kind", None)),
        start=start,
        end=start + length if start is not None and length is not None else None,
        attributes=attributes,
        events=tuple(_event(entry) for entry in a_list(body.get("logs"))),
        status="error" if failed or code == "ERROR" else "ok" if code == "OK" else "unset",
        status_message=text_or_none(attributes.pop("otel.status_description", None)),
        resource=_tags(process.get("tags")) | rest({"service.name": process.get("serviceName")}),
        scope=scope,
        extra=rest(
            body,
            *("traceID", "spanID", "parentSpanID", "references", "operationName", "startTime", "duration", "tags"),
            *("logs", "processID", "process"),
        ),
    )


def _tags(tags: Any) -> dict[str, Any]:
    found = {}
    for tag in a_list(tags):
        if isinstance(tag, dict) and isinstance(tag.get("key"), str):
            found[tag["key"]] = tag.get("value")
    return found


def _event(entry: Any) -> SpanEvent:
    fields = _tags(an_object(entry).get("fields"))
    name = fields.pop("event", fields.pop("name", ""))
    return SpanEvent(
        name=name if isinstance(name, str) else "",
        time=nanoseconds(an_object(entry).get("timestamp"), 1000),
        attributes=fields,
    )


READER = Jaeger()
