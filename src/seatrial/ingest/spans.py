"""Spans as records: what every span format is read into, and what `span_traces` makes traces of.

A file reader and a live receiver fill in the same `Span`; nothing here knows where it came from.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

import msgspec

from seatrial.ingest.jsontext import BadJSON, loads

SpanStatus = Literal["unset", "ok", "error"]
SpanRole = Literal["llm", "tool", "agent", "other"]


class SpanEvent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that a span recorded at a moment. `time` is in nanoseconds since the epoch, None if unknown."""

    name: str
    time: int | None = None
    attributes: dict[str, Any] = {}


class Span(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One operation of a trace.

    `start` and `end` are nanoseconds since the epoch, None if unknown; spans of equal start keep the order in
    which they are given. `parent_id` None: a root. `extra` holds what the source has and a span lacks.
    """

    trace_id: str
    span_id: str
    parent_id: str | None = None
    name: str = ""
    kind: str | None = None
    start: int | None = None
    end: int | None = None
    attributes: dict[str, Any] = {}
    events: tuple[SpanEvent, ...] = ()
    status: SpanStatus = "unset"
    status_message: str | None = None
    resource: dict[str, Any] = {}
    scope: dict[str, Any] = {}
    extra: dict[str, Any] = {}


def seconds(nanoseconds: int | None) -> float | None:
    """Nanoseconds as the seconds of a step's time, rounded to the microsecond; None for no time."""
    if nanoseconds is None or not 0 < nanoseconds < 253_402_300_800_000_000_000:
        return None
    return round(nanoseconds / 1000) / 1e6


_KINDS: Mapping[str, Mapping[str, SpanRole]] = {
    "gen_ai.operation.name": {
        "chat": "llm",
        "text_completion": "llm",
        "generate_content": "llm",
        "completion": "llm",
        "execute_tool": "tool",
        "invoke_agent": "agent",
        "create_agent": "other",
        "embeddings": "other",
    },
    "openinference.span.kind": {"llm": "llm", "tool": "tool", "agent": "agent", "embedding": "other"},
    "langsmith.span.kind": {"llm": "llm", "tool": "tool", "embedding": "other"},
    "traceloop.span.kind": {"tool": "tool", "agent": "agent"},
    "langfuse.observation.type": {
        "generation": "llm",
        "tool": "tool",
        "agent": "agent",
        "embedding": "other",
    },
    "llm.request.type": {"chat": "llm", "completion": "llm", "embedding": "other"},
    "ai.operationId": {
        "ai.generateText": "llm",
        "ai.generateText.doGenerate": "llm",
        "ai.streamText": "llm",
        "ai.streamText.doStream": "llm",
        "ai.generateObject": "llm",
        "ai.generateObject.doGenerate": "llm",
        "ai.streamObject": "llm",
        "ai.streamObject.doStream": "llm",
        "ai.toolCall": "tool",
    },
}
_TOOL_MARKS = ("gen_ai.tool.name", "gen_ai.tool.call.id", "ai.toolCall.name")
_LLM_MARKS = (
    "gen_ai.request.model",
    "gen_ai.response.model",
    "gen_ai.prompt.0.role",
    "gen_ai.completion.0.role",
    "gen_ai.input.messages",
    "llm.input_messages.0.message.role",
)


def role_of(span: Span) -> SpanRole:
    """What a span is, by whichever convention says so; `other` where none does.

    A convention that names a kind wins over the mere presence of a model or a tool's name: an agent's span may
    carry both.
    """
    attributes = span.attributes
    if _is_beeai_bookkeeping(span):
        return "other"
    found: list[SpanRole] = []
    for name, kinds in _KINDS.items():
        value = attributes.get(name)
        if isinstance(value, str):
            role = kinds.get(value) or kinds.get(value.lower())
            if role is not None:
                found.append(role)
    order: tuple[SpanRole, ...] = ("tool", "llm", "agent", "other")
    for wanted in order:
        if wanted in found:
            return wanted
    if any(mark in attributes for mark in _TOOL_MARKS) or _is_tool_message(attributes):
        return "tool"
    if any(mark in attributes for mark in _LLM_MARKS):
        return "llm"
    if "gen_ai.agent.name" in attributes and "gen_ai.operation.name" not in attributes:
        return "agent"
    return "other"


_BEEAI = re.compile(r"(?:tool\..+\.(?:start|finish)|backend\..+\.chat\.(?:success|finish|newToken))(?:-\d+)?")


def _is_beeai_bookkeeping(span: Span) -> bool:
    """BeeAI records an operation's start, success and finish as spans of their own: of a tool's three only the
    success, of a model call's only the start is read. (A success holds the stream's pieces, and its limit of
    attributes cuts off all but the last; the next call's messages and the agent's span hold the words.)
    """
    target = span.attributes.get("target")
    return any(isinstance(name, str) and _BEEAI.fullmatch(name) is not None for name in (target, span.name))


def _is_tool_message(attributes: Mapping[str, Any]) -> bool:
    """Whether the output is a LangChain tool message: older exports know no other mark of a tool's run."""
    output = attributes.get("langfuse.observation.output")
    if isinstance(output, str) and output.startswith("{") and '"tool_call_id"' in output:
        try:
            output = loads(output.encode(errors="replace"))[0]
        except BadJSON:
            return False
    return isinstance(output, dict) and output.get("type") == "tool" and "tool_call_id" in output


DEEPEST = 500
"""Levels of parents that are looked at: no real trace has as many, and a made-up one must not take long."""


class Tree:
    """Spans by parentage. A span given twice is kept once, the fuller one; a parent that is not there is none."""

    def __init__(self, spans: Iterable[Span]) -> None:
        best: dict[tuple[str, str], Span] = {}
        self.repeated = 0
        for span in spans:
            key = (span.trace_id, span.span_id)
            there = best.get(key)
            if there is not None:
                self.repeated += 1
            if there is None or _weight(span) > _weight(there):
                best[key] = span
        self.spans: list[Span] = list(best.values())
        self.order = {id(span): n for n, span in enumerate(self.spans)}
        self.spans.sort(key=lambda span: span.start if span.start is not None else 0)
        self._by_key = best
        self._role = {id(span): role_of(span) for span in self.spans}

    def role(self, span: Span) -> SpanRole:
        """The role of a span of this tree."""
        return self._role[id(span)]

    def parent(self, span: Span) -> Span | None:
        """The span that this one is part of; None for a root, or where it is not among the spans."""
        if span.parent_id is None or span.parent_id == span.span_id:
            return None
        return self._by_key.get((span.trace_id, span.parent_id))

    def ancestors(self, span: Span) -> Iterator[Span]:
        """Parent, grandparent and so on, up to `DEEPEST`; a circle of parents ends where it closes."""
        met = {span.span_id}
        above = self.parent(span)
        while above is not None and above.span_id not in met and len(met) <= DEEPEST:
            yield above
            met.add(above.span_id)
            above = self.parent(above)

    def roots(self) -> list[Span]:
        """Spans without a parent among the spans, by start."""
        return [span for span in self.spans if self.parent(span) is None]


def _weight(span: Span) -> tuple[bool, int]:
    return span.end is not None, len(span.attributes) + len(span.events)
