"""LangSmith run exports to traces: lists or lines of runs, pages of the API, bulk exports, nested runs and feedback."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from seatrial.errors import FormatError
from seatrial.ingest.drafts import a_list, an_object, rest, text_or_none
from seatrial.ingest.jsontext import kind
from seatrial.ingest.span_chat import parsed
from seatrial.ingest.span_feedback import Remark, beside, remark_of
from seatrial.ingest.span_fields import money, number
from seatrial.ingest.span_files import give_out, instant, whole_file
from seatrial.ingest.spans import Span, SpanEvent
from seatrial.ingest.values import values
from seatrial.records import ReadLog, Trace

_SHAPE = "LangSmith runs: objects with id, run_type, inputs and outputs"
_PLACED = (
    *("id", "trace_id", "parent_run_id", "name", "run_type", "start_time", "end_time", "inputs", "outputs", "error"),
    *("child_runs", "feedback", "feedback_stats", "events", "extra", "status"),
)
_DEPTH = 100


class LangSmith:
    """Reads LangSmith runs: one trace per conversation, sub-agents beside it."""

    name = "langsmith"
    version = "1"
    verified = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Sure when there are runs with LangSmith's names."""
        if head.lstrip()[:1] not in (b"{", b"["):
            return 0.0
        marks = (
            b'"run_type"',
            b'"dotted_order"',
            b'"parent_run_id"',
            b'"trace_id"',
            b'"feedback_stats"',
            b'"child_runs"',
        )
        found = sum(mark in head for mark in marks)
        return (
            0.96
            if marks[0] in head and found >= 2
            else 0.96
            if b'"feedback_source"' in head and b'"run_id"' in head
            else 0.0
        )

    def read(self, path: Path, log: ReadLog) -> Iterator[Trace]:
        """One trace per conversation and sub-agent.

        Raises:
            FormatError: not JSON, or no runs.
        """
        spans: list[Span] = []
        remarks: list[Remark] = []
        for value in values(path, log, _SHAPE):
            body = an_object(value.value)
            pages = () if "run_type" in body else ("runs", "data", "feedback")  # a run may carry its own feedback
            entries = next((body[n] for n in pages if isinstance(body.get(n), list)), [value.value])
            found = [_take(entry, None, None, spans, remarks, 0) for entry in entries]
            if not any(found):
                if body and value.start == 0 and value.end == path.stat().st_size:
                    raise FormatError(f"expected {_SHAPE}", hint="export the runs again", file=str(path), line=1)
                log.skip(value.line, f"expected {_SHAPE}, found {kind(value.value)}", value.size)
                continue
            if missing := found.count(False):
                log.note(value.line, f"{missing} entries are no run or feedback and are left out")
            log.kept(value.size, "run")
        yield from give_out(spans, whole_file(self, path), log, [*remarks, *beside(path, log)])


def _take(
    entry: Any, trace_id: str | None, parent: str | None, spans: list[Span], remarks: list[Remark], depth: int
) -> bool:
    """Take in a run with its child runs, or a piece of feedback."""
    body = an_object(entry)
    run_id = text_or_none(body.get("id")) or text_or_none(body.get("run_id"))
    if "run_type" not in body or run_id is None:
        remark = remark_of(body)
        if remark is not None:
            remarks.append(remark)
        return remark is not None
    owner = text_or_none(body.get("trace_id")) or _first(body.get("dotted_order")) or trace_id or run_id
    spans.append(_span(body, run_id, owner, text_or_none(body.get("parent_run_id")) or parent))
    for name, stats in an_object(parsed(body.get("feedback_stats"))).items():
        if isinstance(stats, dict) and stats.get("avg") is not None:
            raw = {"key": name, "score": stats["avg"], "run_id": run_id, "trace_id": owner, "stats": stats}
            remark = remark_of(raw)
            remarks.extend([remark] if remark is not None else [])
    for raw in a_list(body.get("feedback")):
        remark = remark_of({"run_id": run_id, "trace_id": owner, **an_object(raw)})
        remarks.extend([remark] if remark is not None else [])
    if depth < _DEPTH:
        for child in a_list(body.get("child_runs")):
            _take(child, owner, run_id, spans, remarks, depth + 1)
    return True


def _first(order: Any) -> str | None:
    """The root's id, from a dotted order: a time, Z and the run's id for each level."""
    if not isinstance(order, str):
        return None
    return order.split(".")[0].partition("Z")[2] or None


def _span(body: dict[str, Any], run_id: str, owner: str, parent: str | None) -> Span:
    extra = an_object(parsed(body.get("extra")))
    metadata = an_object(extra.get("metadata"))
    called = an_object(extra.get("invocation_params"))
    run_type = text_or_none(body.get("run_type"))
    outputs = parsed(body.get("outputs"))
    attributes: dict[str, Any] = {
        "langsmith.span.kind": run_type,
        "langsmith.inputs": parsed(body.get("inputs")),
        "langsmith.outputs": outputs,
        "gen_ai.request.model": text_or_none(called.get("model")) or text_or_none(called.get("model_name")),
        "gen_ai.tool.definitions": called.get("tools"),
    }
    attributes |= {f"langsmith.metadata.{name}": value for name, value in metadata.items()}
    if "conversation_id" in metadata:
        attributes.setdefault("gen_ai.conversation.id", metadata["conversation_id"])
    if run_type == "llm":
        attributes |= _usage(body, an_object(outputs))
    failed = text_or_none(body.get("error"))
    if run_type != "llm":
        attributes["gen_ai.request.model"] = None
    return Span(
        trace_id=owner,
        span_id=run_id,
        parent_id=parent,
        name=text_or_none(body.get("name")) or "",
        start=instant(body.get("start_time")),
        end=instant(body.get("end_time")),
        attributes=rest(attributes),
        events=tuple(
            SpanEvent(
                name=text_or_none(event.get("name")) or "",
                time=instant(event.get("time")),
                attributes=rest(event, "name", "time"),
            )
            for event in a_list(body.get("events"))
            if isinstance(event, dict)
        ),
        status="error" if failed or body.get("status") == "error" else "unset",
        status_message=failed,
        resource=an_object(extra.get("runtime")),
        extra={k: v for k, v in rest(body, *_PLACED).items() if v not in ("", [], {})}
        | rest({"extra": rest(extra, "metadata", "runtime") or None}),
    )


def _usage(body: dict[str, Any], outputs: dict[str, Any]) -> dict[str, Any]:
    """Tokens of a model's run: only there do they count, since a chain's are those of the runs inside it."""
    found = an_object(outputs.get("usage_metadata"))
    older = an_object(an_object(outputs.get("llm_output")).get("token_usage")) or an_object(outputs.get("usage"))
    prompt = [number(v) for v in (body.get("prompt_tokens"), found.get("input_tokens"), older.get("prompt_tokens"))]
    answer = [
        number(v) for v in (body.get("completion_tokens"), found.get("output_tokens"), older.get("completion_tokens"))
    ]
    details = an_object(found.get("input_token_details"))
    return {
        "gen_ai.usage.input_tokens": next((n for n in prompt if n is not None), None),
        "gen_ai.usage.output_tokens": next((n for n in answer if n is not None), None),
        "gen_ai.usage.cache_read.input_tokens": number(details.get("cache_read")),
        "gen_ai.usage.cost": money(body.get("total_cost")),
    }


READER = LangSmith()
