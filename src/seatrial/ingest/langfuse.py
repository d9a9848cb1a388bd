"""Langfuse exports to traces: one trace with its observations as the interface saves it, pages of the public API, or
rows of a batch export (traces, observations and scores).

An observation becomes a span with the attribute names that Langfuse itself gives it on the wire, so that all that is
known about OpenTelemetry's and OpenInference's names holds here too.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from seatrial.errors import FormatError
from seatrial.ingest.drafts import a_list, an_object, rest, text_or_none
from seatrial.ingest.jsontext import kind
from seatrial.ingest.span_chat import parsed
from seatrial.ingest.span_feedback import Remark, beside, remark_of
from seatrial.ingest.span_files import give_out, instant, whole_file
from seatrial.ingest.spans import Span
from seatrial.ingest.values import values
from seatrial.records import ReadLog, Trace

_SHAPE = "a Langfuse export: traces with observations, observations, or scores"
_TYPES = frozenset(
    ["SPAN", "EVENT", "GENERATION", "AGENT", "TOOL", "CHAIN", "RETRIEVER", "EVALUATOR", "EMBEDDING", "GUARDRAIL"]
)
_PLACED = (
    *(
        "id",
        "traceId",
        "trace_id",
        "parentObservationId",
        "parent_observation_id",
        "name",
        "type",
        "startTime",
        "endTime",
    ),
    *(
        "start_time",
        "end_time",
        "input",
        "output",
        "model",
        "usageDetails",
        "usage_details",
        "costDetails",
        "cost_details",
    ),
    *("level", "statusMessage", "status_message", "metadata", "observations", "scores", "modelParameters"),
)


class Langfuse:
    """Reads Langfuse exports: one trace per conversation, sub-agents beside it."""

    name = "langfuse"
    version = "1"
    verified = True

    def sniff(self, path: Path, head: bytes) -> float:
        """Sure when there are observations or scores with Langfuse's names."""
        if head.lstrip()[:1] not in (b"{", b"["):
            return 0.0
        marks = (
            *(
                b'"projectId"',
                b'"observations"',
                b'"parentObservationId"',
                b'"usageDetails"',
                b'"traceId"',
                b'"bookmarked"',
            ),
            *(b'"observationId"', b'"parent_observation_id"', b'"usage_details"', b'"sessionId"', b'"project_id"'),
        )
        found = sum(mark in head for mark in marks)
        return 0.96 if found >= 3 else 0.0

    def read(self, path: Path, log: ReadLog) -> Iterator[Trace]:
        """One trace per conversation and sub-agent.

        Raises:
            FormatError: not JSON.
        """
        spans: list[Span] = []
        remarks: list[Remark] = []
        about: dict[str, dict[str, Any]] = {}
        for value in values(path, log, _SHAPE):
            entries = an_object(value.value).get("data")
            found = [_take(e, spans, remarks, about) for e in (entries if isinstance(entries, list) else [value.value])]
            if not any(found):
                if isinstance(value.value, dict) and value.start == 0 and value.end == path.stat().st_size:
                    raise FormatError(f"expected {_SHAPE}", hint="export the trace again", file=str(path), line=1)
                log.skip(value.line, f"expected {_SHAPE}, found {kind(value.value)}", value.size)
                continue
            if missing := found.count(False):
                log.note(value.line, f"{missing} entries are no trace, observation or score and are left out")
            log.kept(value.size, "export")
        yield from give_out(_bare(spans, about), whole_file(self, path), log, [*remarks, *beside(path, log)], about)


def _take(entry: Any, spans: list[Span], remarks: list[Remark], about: dict[str, dict[str, Any]]) -> bool:
    body = an_object(entry)
    if isinstance(body.get("observations"), list):
        head = an_object(body.get("trace")) or body
        trace_id = text_or_none(head.get("id"))
        if trace_id is not None:
            about[trace_id] = rest(head, "observations", "scores")
        for raw in body["observations"]:
            if (span := _span(an_object(raw), trace_id, head)) is not None:
                spans.append(span)
        scores = [*a_list(head.get("scores")), *(a_list(body.get("scores")) if body is not head else ())]
        remarks.extend(r for raw in scores if (r := remark_of(raw)) is not None)
        return trace_id is not None or bool(body["observations"])
    if text_or_none(body.get("type")) in _TYPES and (span := _span(body, None, {})) is not None:
        spans.append(span)
        return True
    if (remark := remark_of(body)) is not None:
        remarks.append(remark)
        return True
    if isinstance(body.get("id"), str) and ("timestamp" in body or "projectId" in body or "project_id" in body):
        about[body["id"]] = body
        return True
    return False


def _bare(spans: list[Span], about: dict[str, dict[str, Any]]) -> list[Span]:
    """The spans, each with its trace's session and user, and a span for each trace that has words and no spans."""
    have = {span.trace_id for span in spans}
    for trace_id, head in about.items():
        if trace_id not in have and (head.get("input") or head.get("output")):
            spans.append(
                Span(
                    trace_id=trace_id,
                    span_id=trace_id,
                    name=text_or_none(head.get("name")) or "",
                    start=instant(head.get("timestamp")),
                    attributes={"langfuse.trace.input": head.get("input"), "langfuse.trace.output": head.get("output")},
                )
            )
    for span in spans:
        head = about.get(span.trace_id, {})
        for name, keys in (("session", ("sessionId", "session_id")), ("user", ("userId", "user_id"))):
            found = next((head[key] for key in keys if isinstance(head.get(key), str) and head[key]), None)
            if found is not None:
                span.attributes.setdefault(f"langfuse.{name}.id", found)
    return spans


def _span(body: dict[str, Any], trace_id: str | None, head: dict[str, Any]) -> Span | None:
    def at(camel: str, snake: str) -> Any:
        return body[camel] if body.get(camel) is not None else body.get(snake)

    span_id, owner = text_or_none(body.get("id")), text_or_none(at("traceId", "trace_id")) or trace_id
    if span_id is None or owner is None:
        return None
    metadata = an_object(parsed(body.get("metadata")))
    attributes: dict[str, Any] = dict(an_object(parsed(metadata.get("attributes"))))
    attributes |= {f"langsmith.metadata.{k}": v for k, v in metadata.items() if k in ("thread_id", "ls_model_name")}
    kind_of = text_or_none(body.get("type"))
    given = {
        "langfuse.observation.type": kind_of.lower() if kind_of else None,
        "langfuse.observation.input": body.get("input"),
        "langfuse.observation.output": body.get("output"),
        "langfuse.observation.model.name": text_or_none(body.get("model")),
        "langfuse.observation.model.parameters": body.get("modelParameters"),
        "langfuse.observation.usage_details": at("usageDetails", "usage_details") or None,
        "langfuse.observation.cost_details": at("costDetails", "cost_details") or None,
    }
    attributes |= rest(given)
    level = body.get("level")
    return Span(
        trace_id=owner,
        span_id=span_id,
        parent_id=text_or_none(at("parentObservationId", "parent_observation_id")),
        name=text_or_none(body.get("name")) or "",
        start=instant(at("startTime", "start_time")),
        end=instant(at("endTime", "end_time")),
        attributes=attributes,
        status="error" if level == "ERROR" else "unset",
        status_message=text_or_none(at("statusMessage", "status_message")),
        resource=an_object(parsed(metadata.get("resourceAttributes"))),
        scope=an_object(parsed(metadata.get("scope"))),
        extra={k: v for k, v in rest(body, *_PLACED).items() if v not in ("", {}, [], 0)}
        | rest({"metadata": rest(metadata, "attributes", "resourceAttributes", "scope") or None}),
    )


READER = Langfuse()
