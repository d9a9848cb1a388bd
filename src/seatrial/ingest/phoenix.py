"""Phoenix span exports to traces, and spans as OpenTelemetry's own console exporter prints them: one object per span.

Annotations are read with the spans, from the same file or from `annotations.json(l)` beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from seatrial.errors import FormatError
from seatrial.ingest.drafts import a_list, an_object, rest, text_or_none
from seatrial.ingest.jsontext import kind
from seatrial.ingest.otlp_spans import attributes_of
from seatrial.ingest.span_chat import parsed
from seatrial.ingest.span_feedback import Remark, beside, entries_of, remark_of
from seatrial.ingest.span_files import give_out, instant, whole_file
from seatrial.ingest.spans import Span, SpanEvent
from seatrial.ingest.values import values
from seatrial.records import ReadLog, Trace

_SHAPE = "spans with a context of trace_id and span_id"
_PLACED = (
    *("context", "parent_id", "name", "span_kind", "kind", "start_time", "end_time", "attributes", "events", "status"),
    *("status_code", "status_message", "resource", "annotations", "scope"),
)


class Phoenix:
    """Reads spans of Phoenix and of console exporters: one trace per conversation, sub-agents beside it."""

    name = "phoenix"
    version = "1"
    verified = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Sure when there are spans with a context, or annotations with their annotator."""
        if head.lstrip()[:1] not in (b"{", b"["):
            return 0.0
        spans = all(mark in head for mark in (b'"context', b'trace_id"', b'span_id"', b'"start_time"', b'"attributes'))
        return 0.95 if spans or (b'"annotator_kind"' in head and b'"name"' in head) else 0.0

    def read(self, path: Path, log: ReadLog) -> Iterator[Trace]:
        """One trace per conversation and sub-agent.

        Raises:
            FormatError: not JSON, or no spans.
        """
        spans: list[Span] = []
        remarks: list[Remark] = []
        for value in values(path, log, _SHAPE):
            taken = False
            whole = an_object(value.value)
            for entry in [whole] if span_of(whole) is not None else entries_of(value.value):
                body = an_object(entry)
                span = span_of(body)
                remark = remark_of(body) if span is None else None
                if span is not None:
                    spans.append(span)
                    for raw in a_list(parsed(body.get("annotations"))):
                        made = remark_of({"span_id": span.span_id, **an_object(raw)})
                        remarks.extend([made] if made is not None else [])
                elif remark is not None:
                    remarks.append(remark)
                else:
                    log.note(value.line, "an entry is no span or annotation and is left out")
                    continue
                taken = True
            if taken:
                log.kept(value.size, "span")
            elif value.start == 0 and value.end == path.stat().st_size:
                raise FormatError(f"expected {_SHAPE}", hint="export the spans again", file=str(path), line=1)
            else:
                log.skip(value.line, f"expected {_SHAPE}, found {kind(value.value)}", value.size)
        yield from give_out(spans, whole_file(self, path), log, [*remarks, *beside(path, log)])


def span_of(body: dict[str, Any]) -> Span | None:
    """The span of one object, nested or with dotted column names; None when it names no trace and span."""
    context = an_object(body.get("context"))
    trace_id = text_or_none(context.get("trace_id", body.get("context.trace_id")))
    span_id = text_or_none(context.get("span_id", body.get("context.span_id")))
    if trace_id is None or span_id is None:
        return None
    attributes = _flat(an_object(parsed(body.get("attributes"))))
    columns = {
        k.removeprefix("attributes."): v for k, v in body.items() if k.startswith("attributes.") and v is not None
    }
    attributes |= _flat(columns)
    span_kind = text_or_none(body.get("span_kind"))
    if span_kind is not None:
        attributes.setdefault("openinference.span.kind", span_kind)
    status = an_object(body.get("status"))
    code = str(status.get("status_code", body.get("status_code")) or "").upper()
    resource = an_object(body.get("resource"))
    return Span(
        trace_id=trace_id.removeprefix("0x"),
        span_id=span_id.removeprefix("0x"),
        parent_id=(text_or_none(body.get("parent_id")) or "").removeprefix("0x") or None,
        name=text_or_none(body.get("name")) or "",
        kind=(text_or_none(body.get("kind")) or "").removeprefix("SpanKind.").lower() or None,
        start=instant(body.get("start_time")),
        end=instant(body.get("end_time")),
        attributes=attributes,
        events=tuple(
            SpanEvent(
                name=text_or_none(event.get("name")) or "",
                time=instant(event.get("timestamp", event.get("time"))),
                attributes=an_object(event.get("attributes")),
            )
            for event in a_list(parsed(body.get("events")))
            if isinstance(event, dict)
        ),
        status="error" if code == "ERROR" else "ok" if code == "OK" else "unset",
        status_message=text_or_none(status.get("description", body.get("status_message"))),
        resource=attributes_of(resource.get("attributes")) if "attributes" in resource else resource,
        scope=an_object(body.get("scope")),
        extra={
            k: v for k, v in rest(body, *_PLACED).items() if not k.startswith(("attributes.", "context.")) and v != ""
        },
    )


_COLUMNS = ("attributes.", "context.")
_LISTED = ("messages", "tools", "tool_calls", "contents")


def _flat(attributes: dict[str, Any], prefix: str = "", depth: int = 0) -> dict[str, Any]:
    """Nested attributes under dotted names, numbered where they are lists of messages, calls or contents."""
    out: dict[str, Any] = {}
    for name, value in attributes.items():
        full = f"{prefix}{name}"
        if (
            depth < 12
            and isinstance(value, list)
            and name.rpartition(".")[2].endswith(_LISTED)
            and full.startswith("llm.")
        ):
            value = {str(n): entry for n, entry in enumerate(value)}
        nests = isinstance(value, dict) and (full in _GROUPS or full.startswith(_NESTED))
        if nests and depth < 12 and not full.endswith(("arguments", "json_schema")):
            out |= _flat(value, f"{full}.", depth + 1)
        else:
            out[full] = value
    return out


_GROUPS = frozenset({"llm", "tool", "openinference", "input", "output", "session", "user", "gen_ai"})
_NESTED = ("llm.", "openinference.", "gen_ai.")

READER = Phoenix()
