"""One decoded OTLP request to spans: what the file reader and a live receiver share."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from seatrial.ingest.drafts import a_list, an_object, rest, text_or_none
from seatrial.ingest.span_files import nanoseconds
from seatrial.ingest.spans import Span, SpanEvent, SpanStatus
from seatrial.records import ReadLog

_KIND = re.compile(r"SPAN_KIND_(\w+)")
_KINDS = ("unspecified", "internal", "server", "client", "producer", "consumer")
_KNOWN = frozenset(
    (
        *("traceId", "spanId", "parentSpanId", "name", "kind", "startTimeUnixNano", "endTimeUnixNano"),
        *("attributes", "events", "status"),
    )
)


def spans_of(request: Any) -> list[Span]:
    """The spans of one decoded OTLP/JSON request (``ExportTraceServiceRequest``); those without ids are left out."""
    spans = []
    for group in groups_of(an_object(request)):
        resource = attributes_of(an_object(_either(group, "resource")).get("attributes"))
        inner = _either(group, "scopeSpans") or group.get("instrumentationLibrarySpans")
        for scoped in a_list(inner):
            scope_body = an_object(an_object(scoped).get("scope") or an_object(scoped).get("instrumentationLibrary"))
            scope = rest(
                {
                    "name": scope_body.get("name") or None,
                    "version": scope_body.get("version") or None,
                    "attributes": attributes_of(scope_body.get("attributes")) or None,
                }
            )
            for raw in a_list(an_object(scoped).get("spans")):
                span = _span(an_object(raw), resource, scope)
                if span is not None:
                    spans.append(span)
    return spans


def groups_of(body: dict[str, Any]) -> list[dict[str, Any]]:
    """A request's groups of spans by resource; empty where it is no request."""
    found = _either(body, "resourceSpans") or body.get("batches")
    return [group for group in a_list(found) if isinstance(group, dict)]


def _span(body: dict[str, Any], resource: dict[str, Any], scope: dict[str, Any]) -> Span | None:
    trace_id, span_id = _id(_either(body, "traceId"), 16), _id(_either(body, "spanId"), 8)
    if trace_id is None or span_id is None:
        return None
    status = an_object(body.get("status"))
    return Span(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=_id(_either(body, "parentSpanId"), 8),
        name=text_or_none(body.get("name")) or "",
        kind=_span_kind(body.get("kind")),
        start=nanoseconds(_either(body, "startTimeUnixNano")) or None,
        end=nanoseconds(_either(body, "endTimeUnixNano")) or None,
        attributes=attributes_of(body.get("attributes")),
        events=tuple(
            SpanEvent(
                name=text_or_none(event.get("name")) or "",
                time=nanoseconds(_either(event, "timeUnixNano")) or None,
                attributes=attributes_of(event.get("attributes")),
            )
            for event in a_list(body.get("events"))
            if isinstance(event, dict)
        ),
        status=_status(status.get("code")),
        status_message=text_or_none(status.get("message")),
        resource=resource,
        scope=scope,
        extra={k: v for k, v in body.items() if _camel(k) not in _KNOWN and v not in (None, "", 0, [])},
    )


def _id(value: Any, n_bytes: int) -> str | None:
    """An id as lower-case hex; one in base64, as protobuf's own JSON has it, is turned into hex."""
    if not isinstance(value, str) or not value or set(value) == {"0"}:
        return None
    if len(value) != 2 * n_bytes and len(value) == 4 * -(-n_bytes // 3):
        try:
            return base64.b64decode(value, validate=True).hex()
        except binascii.Error:
            return value
    return value.lower()


def _status(code: Any) -> SpanStatus:
    if code in (2, "2", "STATUS_CODE_ERROR", "Error", "ERROR"):
        return "error"
    return "ok" if code in (1, "1", "STATUS_CODE_OK", "Ok", "OK") else "unset"


def _span_kind(value: Any) -> str | None:
    if isinstance(value, int) and 0 < value < len(_KINDS):
        return _KINDS[value]
    found = _KIND.fullmatch(value) if isinstance(value, str) else None
    return found.group(1).lower() if found and found.group(1) != "UNSPECIFIED" else None


def attributes_of(entries: Any) -> dict[str, Any]:
    """OTLP's list of keys and typed values as an object; the last of equal keys wins."""
    if isinstance(entries, dict):
        return entries
    return {e["key"]: _value(e.get("value"), 0) for e in a_list(entries) if isinstance(an_object(e).get("key"), str)}


def _value(value: Any, depth: int) -> Any:
    if not isinstance(value, dict) or depth > 50:
        return value
    for name, inner in value.items():
        match _camel(name):
            case "stringValue" | "boolValue" | "bytesValue":
                return inner
            case "intValue":
                return int(inner) if isinstance(inner, str) and re.fullmatch(r"-?\d{1,19}", inner) else inner
            case "doubleValue":
                return inner
            case "arrayValue":
                return [_value(v, depth + 1) for v in a_list(an_object(inner).get("values"))]
            case "kvlistValue":
                listed = a_list(an_object(inner).get("values"))
                return {
                    e["key"]: _value(e.get("value"), depth + 1)
                    for e in listed
                    if isinstance(an_object(e).get("key"), str)
                }
    return None


def log_records(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The log records of a request."""
    for group in a_list(_either(body, "resourceLogs")):
        for scoped in a_list(_either(an_object(group), "scopeLogs")):
            yield from (r for r in a_list(_either(an_object(scoped), "logRecords")) if isinstance(r, dict))


def with_logs(spans: list[Span], records: list[dict[str, Any]], log: ReadLog) -> list[Span]:
    """The spans with the log records that name them as events; records of no span here are noted."""
    if not records:
        return spans
    events: dict[tuple[str | None, str | None], list[SpanEvent]] = {}
    for record in records:
        attributes = attributes_of(record.get("attributes"))
        name = _either(record, "eventName") or attributes.get("event.name")
        body = _value(record.get("body"), 0)
        key = (_id(_either(record, "traceId"), 16), _id(_either(record, "spanId"), 8))
        events.setdefault(key, []).append(
            SpanEvent(
                name=name if isinstance(name, str) else "",
                time=nanoseconds(_either(record, "timeUnixNano")) or None,
                attributes=attributes | ({"body": body} if body is not None else {}),
            )
        )
    out = []
    for span in spans:
        mine = events.pop((span.trace_id, span.span_id), [])
        out.append(msgspec.structs.replace(span, events=(*span.events, *mine)) if mine else span)
    if events:
        log.note(None, f"{sum(map(len, events.values()))} log records name no span of this file and are left out")
    return out


def _either(body: dict[str, Any], camel: str) -> Any:
    """A member by its JSON name or by its protobuf name."""
    found = body.get(camel)
    return found if found is not None else body.get(re.sub(r"([A-Z])", lambda m: "_" + m.group(1).lower(), camel))


def _camel(name: str) -> str:
    head, *tail = name.split("_")
    return head + "".join(part.title() for part in tail)
