"""What a span's attributes say, under the names of every convention: messages, tokens, money, model, tool, session.

Conventions read: OpenTelemetry GenAI (``gen_ai.prompt.N.*`` and ``gen_ai.completion.N.*``; message events; and
``gen_ai.input.messages`` with parts), OpenInference, Langfuse, LangSmith, OpenLLMetry, Vercel AI SDK, Google ADK.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from seatrial.ingest.drafts import a_list, an_object
from seatrial.ingest.messages import amount
from seatrial.ingest.span_chat import Said, Speaker, Talk, parsed, talk_of, words_of
from seatrial.ingest.spans import Span
from seatrial.records import Usage

_LARGEST = 2**53
_EVENT_SPEAKERS: Mapping[str, Speaker] = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "agent",
    "gen_ai.tool.message": "tool",
    "gen_ai.choice": "agent",
}
_INPUTS = (
    "gen_ai.input.messages",
    "gcp.vertex.agent.llm_request",
    "ai.prompt.messages",
    "langfuse.observation.input",
    "langsmith.inputs",
    "traceloop.entity.input",
    "gen_ai.prompt",
    "input.value",
    "ai.prompt",
    "langfuse.trace.input",
)
_OUTPUTS = (
    "gen_ai.output.messages",
    "gcp.vertex.agent.llm_response",
    "langfuse.observation.output",
    "langsmith.outputs",
    "traceloop.entity.output",
    "gen_ai.completion",
    "output.value",
    "langfuse.trace.output",
)
_INDEXED = ("gen_ai.prompt.", "gen_ai.completion.", "llm.input_messages.", "llm.output_messages.")
CONSUMED = frozenset((*_INPUTS, *_OUTPUTS, "gen_ai.system_instructions", "ai.response.text", "ai.response.toolCalls"))
"""Attributes that are messages: they become steps and are not repeated in `extra`."""


def rest_of(span: Span) -> dict[str, Any]:
    """The attributes of a model call that are not messages."""
    return {k: v for k, v in span.attributes.items() if k not in CONSUMED and not k.startswith(_INDEXED)}


def talk_in(span: Span) -> Talk | None:
    """What a model call, agent or root was given: the first convention that has messages in a known shape."""
    attributes = span.attributes
    found = _indexed(attributes, "gen_ai.prompt.", "user") or _indexed(attributes, "llm.input_messages.", "user")
    event = _details(span, "gen_ai.input.messages")
    plain: Talk | None = None
    shaped = Talk(said=found) if found else None
    if shaped is None:
        for value in (event, *(attributes.get(name) for name in _INPUTS)):
            talk = talk_of(value, "user")
            if talk is not None and talk.shaped and talk.said:
                shaped = talk
                break
            plain = plain or talk
    if shaped is None and (heard := _events(span, lambda name: name != "gen_ai.choice")):
        shaped = Talk(said=heard)
    best = shaped or plain
    system = words_of(attributes.get("gen_ai.system_instructions"))
    if system and (best is None or all(one.who != "system" for one in best.said)):
        said = [Said(who="system", text=system), *(best.said if best is not None else [])]
        best = Talk(said=said, shaped=best is None or best.shaped)
    return best


def talk_out(span: Span) -> Talk | None:
    """What a model call answered."""
    attributes = span.attributes
    found = _indexed(attributes, "gen_ai.completion.", "agent") or _indexed(attributes, "llm.output_messages.", "agent")
    if found:
        return Talk(said=found)
    plain: Talk | None = None
    event = _details(span, "gen_ai.output.messages")
    for value in (event, *(attributes.get(name) for name in _OUTPUTS)):
        talk = talk_of(value, "agent")
        if talk is not None and talk.shaped and talk.said:
            return talk
        plain = plain or talk
    text, calls = attributes.get("ai.response.text"), talk_of(attributes.get("ai.response.toolCalls"), "agent")
    if text or (calls and calls.shaped):
        made = [call for s in calls.said for call in s.calls] if calls and calls.shaped else []
        return Talk(said=[Said(who="agent", text=text if isinstance(text, str) else "", calls=made)])
    if said := _events(span, lambda name: name == "gen_ai.choice"):
        return Talk(said=said)
    return plain


def _indexed(attributes: Mapping[str, Any], prefix: str, who: Speaker) -> list[Said]:
    """Messages that are spread over numbered attributes."""
    nested: dict[str, Any] = {}
    for name, value in attributes.items():
        if name.startswith(prefix):
            _put(nested, name[len(prefix) :].split(".", 20), value)
    said: list[Said] = []
    for number in sorted((n for n in nested if n.isdigit()), key=int):
        message = _listed(nested[number])
        if not isinstance(message, dict):
            continue
        message = an_object(message.get("message")) or message
        message.setdefault("role", "assistant" if who == "agent" else "user")
        talk = talk_of([_openinference(message)], who)
        said.extend(talk.said if talk and talk.shaped else [])
    return said


def _put(into: dict[str, Any], path: list[str], value: Any) -> None:
    for part in path[:-1]:
        inner = into.get(part)
        if not isinstance(inner, dict):
            inner = into[part] = {}
        into = inner
    into[path[-1]] = value


def _listed(value: Any) -> Any:
    """Objects whose names are numbers as lists."""
    if not isinstance(value, dict):
        return value
    if value and all(name.isdigit() for name in value):
        return [_listed(value[name]) for name in sorted(value, key=int)]
    return {name: _listed(inner) for name, inner in value.items()}


def _openinference(message: dict[str, Any]) -> dict[str, Any]:
    """A message with ``tool_call`` and ``message_content`` wrappers taken off; others as they are."""
    out = dict(message)
    calls = message.get("tool_calls")
    if isinstance(calls, list):
        out["tool_calls"] = [an_object(c).get("tool_call", c) for c in calls]
    contents = message.get("contents")
    if isinstance(contents, list):
        out["content"] = [an_object(c).get("message_content", c) for c in contents]
        del out["contents"]
    elif isinstance(out.get("content"), str):
        content = parsed(out["content"])
        if isinstance(content, list) and content and all(isinstance(p, dict) and "type" in p for p in content):
            out["content"] = content
    legacy = {part: message.get(f"function_call_{part}") for part in ("name", "arguments_json")}
    if legacy["name"]:
        out["function_call"] = {"name": legacy["name"], "arguments": legacy["arguments_json"]}
    return out


def _events(span: Span, wanted: Any) -> list[Said]:
    """Messages that are events of the span, or that the span lists in an ``events`` attribute."""
    entries: list[tuple[str, Any]] = [(event.name, event.attributes) for event in span.events]
    for entry in a_list(parsed(span.attributes.get("events"))):
        if isinstance(entry, dict) and isinstance(entry.get("event.name"), str):
            entries.append((entry["event.name"], entry))
    said: list[Said] = []
    for name, attributes in entries:
        who = _EVENT_SPEAKERS.get(name)
        if who is None or not wanted(name):
            continue
        body = an_object(attributes.get("body")) or attributes
        inner = parsed(body.get("message"))
        message = dict(inner if isinstance(inner, dict) else body)
        for field in ("tool_calls", "content", "parts"):
            message[field] = parsed(message[field]) if field in message and field != "content" else message.get(field)
        message = {k: v for k, v in message.items() if v is not None}
        if who == "tool" and "id" in message:
            message["tool_call_id"] = message["id"]
        if message.get("role") is None:
            message["role"] = {"agent": "assistant"}.get(who, who)
        talk = talk_of([message], who)
        said.extend(talk.said if talk and talk.shaped else [])
    return said


def _details(span: Span, name: str) -> Any:
    """Messages in an event that holds the details of the whole operation."""
    return next((event.attributes[name] for event in span.events if name in event.attributes), None)


def number(value: Any) -> int | None:
    """A count, also where it is written as text; None for anything else."""
    if isinstance(value, str) and re.fullmatch(r"\d{1,15}(\.0+)?", value):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 <= value <= _LARGEST and value == int(value) else None


def money(value: Any) -> float | None:
    """An amount, also where it is written as text; None for anything else."""
    if isinstance(value, str) and re.fullmatch(r"\d+(\.\d+)?([eE][-+]?\d+)?", value):
        value = float(value)
    found = amount(value)
    return found if found is not None and found >= 0 else None


def first(attributes: Mapping[str, Any], names: Iterable[str]) -> Any:
    """The first of these attributes that is there."""
    return next((attributes[n] for n in names if attributes.get(n) not in (None, "")), None)


def usage_of(span: Span) -> Usage | None:
    """Tokens and money of one span; None when it records neither."""
    a = span.attributes
    prompt = number(first(a, ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt")))
    answer = number(
        first(a, ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.token_count.completion"))
    )
    cached = number(
        first(
            a,
            (
                "gen_ai.usage.cache_read.input_tokens",
                "gen_ai.usage.cache_read_input_tokens",
                "gen_ai.usage.details.cache_read_tokens",
                "llm.token_count.prompt_details.cache_read",
                "ai.usage.cachedInputTokens",
            ),
        )
    )
    if prompt is None and answer is None:
        prompt = number(first(a, ("ai.usage.promptTokens", "ai.usage.inputTokens")))
        answer = number(first(a, ("ai.usage.completionTokens", "ai.usage.outputTokens")))
    details = an_object(parsed(a.get("langfuse.observation.usage_details")))
    if prompt is None and answer is None and details:
        prompt, answer, cached = _buckets(details)
    cost = money(first(a, ("gen_ai.usage.cost", "operation.cost", "llm.cost.total", "gen_ai.cost.total_cost")))
    if cost is None:
        costs = an_object(parsed(a.get("langfuse.observation.cost_details")))
        cost = money(costs.get("total"))
        if cost is None and (parts := [m for m in map(money, costs.values()) if m is not None]):
            cost = sum(parts)
    if prompt is None and answer is None and cost is None:
        return None
    return Usage(input_tokens=prompt, output_tokens=answer, cached_tokens=cached, cost_usd=cost)


def _buckets(details: Mapping[str, Any]) -> tuple[int | None, int | None, int | None]:
    """Langfuse's usage: kinds of tokens that add up to the total, or a total of `input` and `output` with their parts.

    The cached part is inside `input` where `input` and `output` alone make the total, else beside it.
    """
    counts = {name: n for name, value in details.items() if (n := number(value)) is not None}
    prompt, answer, total = counts.get("input"), counts.get("output"), counts.get("total")
    inward = {n: v for n, v in counts.items() if n != "input" and ("input" in n or "cache" in n or "prompt" in n)}
    outward = {n: v for n, v in counts.items() if n not in inward and n not in ("input", "output", "total")}
    cached = next((v for n, v in inward.items() if "cache" in n and "creation" not in n and "write" not in n), None)
    if total is not None and (prompt or 0) + (answer or 0) < total:
        if inward:
            prompt = (prompt or 0) + sum(inward.values())
        if outward:
            answer = (answer or 0) + sum(outward.values())
    return prompt, answer, cached


MODEL = (
    "gen_ai.response.model",
    "ai.response.model",
    "llm.model_name",
    "langfuse.observation.model.name",
    "gen_ai.request.model",
    "ai.model.id",
    "langsmith.metadata.ls_model_name",
    "llm.request.model",
)
SESSION = (
    "langfuse.session.id",
    "session.id",
    "gen_ai.conversation.id",
    "langsmith.metadata.thread_id",
    "langsmith.metadata.session_id",
    "traceloop.association.properties.session_id",
    "ai.telemetry.metadata.sessionId",
)
USER = (
    "langfuse.user.id",
    "user.id",
    "enduser.id",
    "langsmith.metadata.user_id",
    "traceloop.association.properties.user_id",
    "ai.telemetry.metadata.userId",
)
TOOL_NAME = ("gen_ai.tool.name", "tool.name", "ai.toolCall.name", "traceloop.entity.name")
TOOL_CALL = ("gen_ai.tool.call.id", "ai.toolCall.id", "tool_call.id", "tool.id")
TOOL_INPUT = (
    "gen_ai.tool.call.arguments",
    "gcp.vertex.agent.tool_call_args",
    "ai.toolCall.args",
    "tool_arguments",
    "tool.parameters",
    "langfuse.observation.input",
    "langsmith.inputs",
    "traceloop.entity.input",
    "gen_ai.prompt",
    "input.value",
)
TOOL_OUTPUT = (
    "gen_ai.tool.call.result",
    "gcp.vertex.agent.tool_response",
    "ai.toolCall.result",
    "tool_response",
    "langfuse.observation.output",
    "langsmith.outputs",
    "traceloop.entity.output",
    "gen_ai.completion",
    "output.value",
)


def text_at(attributes: Mapping[str, Any], names: Iterable[str]) -> str | None:
    """The first of these attributes that is a text."""
    return next((v for n in names if isinstance(v := attributes.get(n), str) and v), None)


def tools_of(span: Span) -> list[dict[str, Any]]:
    """The tools that a model call was offered."""
    a = span.attributes
    given = a_list(parsed(first(a, ("gen_ai.tool.definitions", "gen_ai.request.tools"))))
    if not given:
        given = [parsed(t) for t in a_list(parsed(a.get("ai.prompt.tools")))]
    nested: dict[str, Any] = {}
    for name, value in a.items():
        for prefix in ("llm.tools.", "llm.request.functions."):
            if not given and name.startswith(prefix):
                _put(nested, name[len(prefix) :].split(".", 20), parsed(value))
    for entry in a_list(_listed(nested)):
        schema = an_object(an_object(entry).get("tool")).get("json_schema", entry)
        given = [*given, schema]
    return [tool for tool in given if isinstance(tool, dict)]
