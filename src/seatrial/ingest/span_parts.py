"""What `span_traces` says of single spans: the agent that they name, their plain form for `extra`, their errors."""

from __future__ import annotations

from typing import Any

import msgspec

from seatrial.ingest.drafts import rest
from seatrial.ingest.span_fields import TOOL_CALL, text_at
from seatrial.ingest.spans import Span, Tree
from seatrial.records import Agent

_EXPORTERS = frozenset({"langfuse-sdk", "langsmith"})


def agent_of(tree: Tree, mine: list[Span], tools: list[dict[str, Any]] | None) -> Agent:
    """The agent that spans name: by the conventions, else its service, else its outermost agent span or library."""
    named = next(
        (n for s in mine if (n := text_at(s.attributes, ("gen_ai.agent.name", "agent_name"))) is not None), None
    )
    version = next((v for s in mine if (v := text_at(s.attributes, ("gen_ai.agent.version",))) is not None), None)
    resource = mine[0].resource if mine else {}
    service = resource.get("service.name")
    if named is None:
        tops = [span for span in mine if tree.role(span) == "agent"]
        if isinstance(service, str) and service and not service.startswith("unknown_service"):
            named, version = service, version or text_at(resource, ("service.version",))
        elif tops:
            named = tops[0].name
    scopes = [text_at(s.scope, ("name",)) for s in mine if tree.role(s) in ("llm", "agent")]
    scope = next((name for name in scopes if name is not None), None)
    if named is None and (scope is None or scope in _EXPORTERS) and mine:
        named = next((span.name for span in mine if tree.parent(span) is None), mine[0].name) or None
    return Agent(
        name=named or scope or "agent",
        version=version,
        tools=tuple(tools) if tools else None,
        extra={"scope": scope} if scope is not None else {},
    )


def kept(span: Span, attributes: dict[str, Any] | None = None, hide: frozenset[str] = frozenset()) -> dict[str, Any]:
    """A span as plain values, for `extra`."""
    given = span.attributes if attributes is None else attributes
    body = {
        "id": span.span_id,
        "trace_id": span.trace_id,
        "parent": span.parent_id,
        "name": span.name,
        "kind": span.kind,
        "start": span.start,
        "end": span.end,
        "status": None if span.status == "unset" else span.status,
        "status_message": span.status_message,
        "attributes": {k: v for k, v in given.items() if k not in hide} or None,
        "events": msgspec.to_builtins(span.events) or None,
        "scope": span.scope or None,
        "source": span.extra or None,
    }
    return rest(body)


def key_of(span: Span) -> tuple[str, str]:
    """What a span is told apart by."""
    return span.trace_id, span.span_id


def call_id_of(span: Span) -> str | None:
    """The id of the call that a tool's run answers; None where the span has none."""
    return text_at(span.attributes, TOOL_CALL)


def earliest(spans: list[Span]) -> int:
    """The earliest start, in nanoseconds; 0 where none is known."""
    return min((span.start for span in spans if span.start is not None), default=0)


def exception_of(span: Span) -> str:
    """The exception that a span recorded, as text; empty where it recorded none."""
    for event in span.events:
        if event.name == "exception":
            parts = [event.attributes.get(f"exception.{name}") for name in ("type", "message")]
            return ": ".join(str(part) for part in parts if part)
    return ""


def literal(text: str) -> Any:
    """Text of one flat Python dictionary of texts, as LangChain writes a tool's input, as an object."""
    body = text.strip()
    if (
        body.startswith("{'")
        and body.endswith("'}")
        and '"' not in body
        and "\\" not in body
        and body.count("'") % 4 == 0
    ):
        return body.replace("'", '"')
    return text
