"""Traces to OTLP/JSON in the GenAI conventions, with an account of what those have no place for.

An agent is an ``invoke_agent`` span; each of its steps a ``chat`` span whose input is what is new since the last one;
each result of a call an ``execute_tool`` span. What is written is read again and compared: every field that does not
come back is named.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeGuard

import msgspec

from seatrial.canon import canonical, digest
from seatrial.errors import UsageError
from seatrial.ingest.losses import Loss, Written, same
from seatrial.ingest.otlp_spans import spans_of
from seatrial.ingest.span_traces import assemble
from seatrial.records import Provenance, Step, Trace

_NO_MOMENT = 2**64 / 1e9
"""The first time, in seconds, that 64 bits of nanoseconds cannot hold."""
_TRACE_ID = re.compile(r"[0-9a-f]{32}")
_SUBAGENT = re.compile(r"[0-9a-f]{32}~([0-9a-f]{16})")
_STEP_FIELDS = tuple(Step.__struct_fields__)
_NOT_COMPARED = frozenset({"index", "extra", "source_ids"})
_WHY = {
    "event_class": "the conventions know the roles system, user, assistant and tool",
    "kind": "the conventions have no kinds of message",
    "time": "a message has the time of the model call that it was given to",
    "results": "a tool's run has one output, a status, and an end only when it ended",
    "tool_calls": "calls belong to a model's answer, and have an id and arguments that are an object",
    "extra": "the conventions have no place for a source's own fields",
    "source_ids": "spans have ids of their own",
    "copied": "only what comes before the first answer is known to be copied",
}


def write(trace: Trace, subagents: Sequence[Trace] = ()) -> Written:
    """The request of a trace with its sub-agents (those whose `parent` it is, and theirs).

    Raises:
        UsageError: a sub-agent's parent is not among the traces given, or two traces have one id.
    """
    everyone = [trace, *subagents]
    by_id = {one.id: one for one in everyone}
    if len(by_id) < len(everyone):
        raise UsageError("two traces have the same id", hint="give each trace once")
    stray = sorted(one.id for one in subagents if one.parent not in by_id)
    if stray:
        raise UsageError(f"not a sub-agent of {trace.id}: {', '.join(stray)}", hint="its parent must be given too")
    trace_id = (
        trace.id
        if _TRACE_ID.fullmatch(trace.id) and set(trace.id) != {"0"}
        else digest(trace.id.encode(errors="replace"))[:32]
    )
    spans: list[dict[str, Any]] = []
    roots = {one.id: _root_id(one) for one in everyone}
    for one in everyone:
        spans.extend(_Writer(one, trace_id, roots).spans())
    resource = {"service.name": trace.agent.name} | (
        {"service.version": trace.agent.version} if trace.agent.version else {}
    )
    document = {
        "resourceSpans": [
            {
                "resource": {"attributes": _attributes(resource)},
                "scopeSpans": [{"scope": {"name": "seatrial"}, "spans": spans}],
            }
        ]
    }
    return Written(document=document, losses=tuple(_losses(everyone, document, trace_id)))


def write_file(path: Path, trace: Trace, subagents: Sequence[Trace] = ()) -> tuple[Loss, ...]:
    """Write the request of a trace to a file; what it could not hold.

    Raises:
        UsageError: as `write` does.
        OSError: the file cannot be written.
    """
    written = write(trace, subagents)
    path.write_bytes(msgspec.json.encode(written.document) + b"\n")
    return written.losses


def _root_id(trace: Trace) -> str:
    found = _SUBAGENT.fullmatch(trace.id)
    return found.group(1) if found else _span_id(trace.id, "root")


def _span_id(*parts: Any) -> str:
    return digest(canonical([str(part).encode(errors="replace").decode() for part in parts]))[:16]


class _Writer:
    """The spans of one trace."""

    def __init__(self, trace: Trace, trace_id: str, roots: dict[str, str]) -> None:
        self.trace = trace
        self.trace_id = trace_id
        self.root = roots[trace.id]
        times = [t for s in trace.steps for t in (s.time, *(r.time for r in s.results)) if t is not None]
        self.start = min(times) if times else None
        self.end = max(times) if times else None
        self.told = False
        self.parent: str | None = None
        if trace.parent is not None and trace.parent in roots:
            self.parent = (
                _span_id(trace.parent, "tool", trace.parent_call) if trace.parent_call else roots[trace.parent]
            )

    def spans(self) -> list[dict[str, Any]]:
        out = [self._root_span()]
        waiting: list[Step] = []
        before = self.start
        for step in self.trace.steps:
            if step.event_class != "agent" or step.copied:
                waiting.append(step)
                continue
            heard = [s.time for s in waiting if s.time is not None]
            begun = heard[-1] if heard else before
            if begun is not None and step.time is not None and begun > step.time:
                begun = step.time
            out.append(self._chat(step, waiting, begun if begun is not None else step.time))
            out.extend(self._tools(step))
            waiting = []
            before = step.time if step.time is not None else before
        return out

    def _root_span(self) -> dict[str, Any]:
        trace = self.trace
        said = [_user(step.text) for step in trace.steps if _is_user(step) and not step.copied]
        attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": trace.agent.name,
            "gen_ai.agent.version": trace.agent.version,
            "gen_ai.request.model": trace.model,
            "user.id": trace.user,
            "gen_ai.input.messages": _json(said) if said else None,
        }
        return self._span(self.root, self.parent, f"invoke_agent {trace.agent.name}", self.start, self.end, attributes)

    def _chat(self, step: Step, waiting: list[Step], begun: float | None) -> dict[str, Any]:
        usage = step.usage
        parts: list[dict[str, Any]] = []
        if step.reasoning:
            parts.append({"type": "reasoning", "content": step.reasoning})
        if step.text:
            parts.append({"type": "text", "content": step.text})
        for call in step.tool_calls:
            given = call.raw_arguments if call.raw_arguments is not None else call.arguments
            parts.append({"type": "tool_call", "id": call.id, "name": call.name, "arguments": given})
        attributes: dict[str, Any] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.response.model": step.model,
            "gen_ai.tool.definitions": self._tool_definitions(),
            "gen_ai.input.messages": _json([m for s in waiting for m in _messages(s)]) if waiting else None,
            "gen_ai.output.messages": _json([{"role": "assistant", "parts": parts}]) if parts else None,
        }
        if usage is not None:
            attributes |= {
                "gen_ai.usage.input_tokens": usage.input_tokens,
                "gen_ai.usage.output_tokens": usage.output_tokens,
                "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
                "gen_ai.usage.cost": usage.cost_usd,
            }
        span_id = _span_id(self.trace.id, "step", step.index)
        error = step.extra.get("error") if step.kind == "api_error" else None
        span = self._span(span_id, self.root, f"chat {step.model or ''}".strip(), begun, step.time, attributes)
        if step.kind == "api_error":
            span["status"] = {"code": 2, "message": error if isinstance(error, str) else "error"}
        return span

    def _tool_definitions(self) -> str | None:
        """The agent's tools, on its first model call alone."""
        tools, self.told = (self.trace.agent.tools if not self.told else None), True
        return _json(list(tools)) if tools else None

    def _tools(self, step: Step) -> list[dict[str, Any]]:
        calls = {call.id: call for call in step.tool_calls}
        out = []
        for result in step.results:
            call = calls.get(result.call_id or "")
            if call is None:
                continue
            given = call.raw_arguments if call.raw_arguments is not None else _json(call.arguments)
            attributes = {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": call.name,
                "gen_ai.tool.call.id": call.id,
                "gen_ai.tool.call.arguments": given,
                "gen_ai.tool.call.result": result.text,
            }
            begun = (
                step.time
                if step.time is not None and (result.time is None or step.time <= result.time)
                else result.time
            )
            span_id = _span_id(self.trace.id, "tool", call.id)
            span = self._span(span_id, self.root, f"execute_tool {call.name}", begun, result.time, attributes)
            if result.outcome == "error":
                span["status"] = {"code": 2}
            out.append(span)
        return out

    def _span(
        self,
        span_id: str,
        parent: str | None,
        name: str,
        start: float | None,
        end: float | None,
        attributes: dict[str, Any],
    ) -> dict[str, Any]:
        span: dict[str, Any] = {
            "traceId": self.trace_id,
            "spanId": span_id,
            "name": name,
            "kind": 1,
            "attributes": _attributes({k: v for k, v in attributes.items() if v is not None}),
        }
        if parent is not None:
            span["parentSpanId"] = parent
        if _is_moment(start):
            span["startTimeUnixNano"] = str(round(start * 1e6) * 1000)
        if _is_moment(end):
            span["endTimeUnixNano"] = str(round(end * 1e6) * 1000)
        return span


def _is_moment(seconds: float | None) -> TypeGuard[float]:
    """Whether the protocol's unsigned 64 bits of nanoseconds can hold a time; another is left out, and so is lost."""
    return seconds is not None and 0 < seconds < _NO_MOMENT


def _is_user(step: Step) -> bool:
    return step.event_class in ("human", "simulated_user", "interrupted")


def _user(text: str) -> dict[str, Any]:
    return {"role": "user", "parts": [{"type": "text", "content": text}]}


def _messages(step: Step) -> list[dict[str, Any]]:
    """The messages of a step that no model call of the trace made."""
    if step.event_class == "agent":
        parts: list[dict[str, Any]] = [{"type": "text", "content": step.text}] if step.text else []
        parts.extend(
            {"type": "tool_call", "id": c.id, "name": c.name, "arguments": c.arguments} for c in step.tool_calls
        )
        results = [
            {"role": "tool", "parts": [{"type": "tool_call_response", "id": r.call_id, "response": r.text}]}
            for r in step.results
            if r.call_id is not None
        ]
        return [{"role": "assistant", "parts": parts or [{"type": "text", "content": ""}]}, *results]
    if _is_user(step):
        return [_user(step.text)]
    return [{"role": "system", "parts": [{"type": "text", "content": step.text}]}] if step.text else []


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _attributes(values: dict[str, Any]) -> list[dict[str, Any]]:
    out = []
    for key, value in values.items():
        if isinstance(value, bool):
            typed: dict[str, Any] = {"boolValue": value}
        elif isinstance(value, int):
            typed = {"intValue": str(value)}
        elif isinstance(value, float):
            typed = {"doubleValue": value}
        else:
            typed = {"stringValue": value}
        out.append({"key": key, "value": typed})
    return out


def _losses(given: list[Trace], document: dict[str, Any], trace_id: str) -> list[Loss]:
    """What differs between the traces and those that come of the document."""
    encoded = msgspec.json.decode(msgspec.json.encode(document))
    back = assemble(spans_of(encoded), Provenance(format="otlp", reader="otlp", reader_version="1")).traces
    read: dict[str, Trace] = {}
    for one in back:
        read[one.id.partition("~")[2] if one.parent is not None else ""] = one
    losses = []
    for one in given:
        top = one is given[0]
        other = read.get("" if top else _root_id(one))
        where = "trace" if top else f"trace {one.id}"
        if other is None:
            losses.append(
                Loss(where=where, fields=("steps",), why="the conventions show an agent by its model calls only")
            )
            continue
        losses.extend(_differences(where, one, other))
    return losses


def _differences(where: str, one: Trace, other: Trace) -> list[Loss]:
    fields = [
        name
        for name in (
            "id",
            "model",
            "task",
            "attempt",
            "assignment",
            "user",
            "outcome",
            "consent",
            "parent_call",
            "continues",
        )
        if getattr(one, name) != getattr(other, name)
    ]
    if (one.parent is None) != (other.parent is None):
        fields.append("parent")
    if (
        one.agent.name != other.agent.name
        or one.agent.version != other.agent.version
        or one.agent.tools != other.agent.tools
    ):
        fields.append("agent")
    if one.totals.wall != other.totals.wall or one.totals.usage != other.totals.usage:
        fields.append("totals")
    if one.extra:
        fields.append("extra")
    out = [Loss(where=where, fields=tuple(fields), why="the conventions have no place for it")] if fields else []
    if len(one.steps) != len(other.steps):
        why = f"{len(one.steps)} steps are read back as {len(other.steps)}: steps are shown by model calls only"
        return [*out, Loss(where=where, fields=("steps",), why=why)]
    prefix = "" if where == "trace" else f"{where} "
    for step, again in zip(one.steps, other.steps, strict=True):
        lost = [n for n in _STEP_FIELDS if n not in _NOT_COMPARED and not same(n, getattr(step, n), getattr(again, n))]
        lost.extend(name for name in ("extra", "source_ids") if getattr(step, name))
        if "results" not in lost and any(result.extra for result in step.results):
            lost.append("results.extra")
        for name in lost:
            why = _WHY.get(name.rpartition(".")[2], "the conventions hold it in another form")
            out.append(Loss(where=f"{prefix}steps[{step.index}]", fields=(name,), why=why))
    return out
