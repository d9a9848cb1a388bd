"""Parts of an ATIF document to parts of a trace: agent, step, call, result, metrics.

What ATIF says and the trace model lacks is kept in ``extra["atif"]`` of the part; ATIF's own ``extra`` lies beside
it. What a trace says and ATIF lacks is written to ``extra["seatrial"]`` of the part by `atif_write`, as the fields
that differ from what is read without it, and is put back here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

from seatrial.ingest.messages import arguments_of, text_of
from seatrial.ingest.times import moment
from seatrial.ingest.user_text import spoken
from seatrial.records import Agent, EventClass, Step, ToolCall, ToolResult, Totals, Usage

OURS = "seatrial"
NATIVE = "atif"

Resolve = Callable[[str], str]
"""A `trajectory_id` of a reference to the id of the trace that it means."""

Part = TypeVar("Part", bound=msgspec.Struct)

_NOT_OURS = {"Step": ("index",), "Trace": ("steps", "agent", "totals", "provenance")}
"""Fields that a document may not set through ``extra["seatrial"]``."""


def same(trajectory_id: str) -> str:
    """The resolution of a reference that nothing is known about."""
    return trajectory_id


def step(raw: Mapping[str, Any], index: int, resolve: Resolve = same) -> Step:
    """A step, its results matched with its calls."""
    source = raw.get("source")
    message = raw.get("message")
    text, parts = text_of(message)
    native = unplaced(raw, _STEP)
    if parts is not None or (message is not None and not isinstance(message, str)):
        native["message"] = message
    event_class: EventClass = "harness"
    kind = "system_prompt" if source == "system" and index == 0 else None
    if source == "agent":
        event_class = "agent"
    elif source == "user":
        said = spoken(text)
        event_class, kind = said.event_class, said.kind
        if said.text != text:
            native["message"] = message
            text = said.text
    if source not in ("system", "user", "agent") or (source == "user" and event_class == "harness"):
        native["source"] = source
    calls = tuple(tool_call(c, f"call-{index}-{n}") for n, c in enumerate(_list(raw, "tool_calls", native)))
    results = _results(raw, calls, native, resolve)
    time = moment(raw.get("timestamp"))
    _keep_unread(native, raw, "timestamp", time)
    reasoning = _text(raw, "reasoning_content", native)
    copied = raw.get("is_copied_context")
    if copied is not None and copied is not True:
        native["is_copied_context"] = copied
    metrics = raw.get("metrics")
    if metrics is not None and not isinstance(metrics, dict):
        native["metrics"] = metrics
    return with_ours(
        Step(
            index=index,
            event_class=event_class,
            text=text,
            time=time,
            reasoning=reasoning,
            tool_calls=calls,
            results=results,
            model=_text(raw, "model_name", native),
            usage=usage(metrics, "") if isinstance(metrics, dict) else None,
            kind=kind,
            copied=copied is True,
            extra=extra_of(raw, native),
        ),
        raw,
    )


def tool_call(raw: Any, default_id: str) -> ToolCall:
    """A call; one that is no object is kept as invalid text."""
    if not isinstance(raw, dict):
        _, text, validity = arguments_of([raw])
        return ToolCall(id=default_id, name="", raw_arguments=text, validity=validity)
    native = unplaced(raw, ("tool_call_id", "function_name", "arguments", "extra"))
    arguments, text, validity = arguments_of(raw.get("arguments"))
    call_id = _text(raw, "tool_call_id", native)
    return with_ours(
        ToolCall(
            id=default_id if call_id is None else call_id,
            name=_text(raw, "function_name", native) or "",
            arguments=arguments,
            raw_arguments=text,
            validity=validity,
            extra=extra_of(raw, native),
        ),
        raw,
    )


def _results(
    raw: Mapping[str, Any], calls: tuple[ToolCall, ...], native: dict[str, Any], resolve: Resolve
) -> tuple[ToolResult, ...]:
    observation = raw.get("observation")
    if observation is None:
        return ()
    listed = observation.get("results") if isinstance(observation, dict) else None
    if not isinstance(listed, list) or not listed or len(observation) > 1:
        native["observation"] = (
            {name: v for name, v in observation.items() if name != "results" or not isinstance(v, list) or not v}
            if isinstance(observation, dict)
            else observation
        )
    if not isinstance(listed, list):
        return ()
    alone = calls[0].id if len(calls) == len(listed) == 1 else None
    return tuple(result(entry, alone, resolve) for entry in listed)


def result(raw: Any, alone: str | None = None, resolve: Resolve = same) -> ToolResult:
    """A result. `alone`: the step's one call, which a single result without a call's id answers."""
    if not isinstance(raw, dict):
        raw = {"content": raw}
    native = unplaced(raw, ("source_call_id", "content", "subagent_trajectory_ref", "extra"))
    content = raw.get("content")
    text, parts = text_of(content)
    if parts is not None or (content is not None and not isinstance(content, str)):
        native["content"] = content
    call_id = _text(raw, "source_call_id", native)
    refs = raw.get("subagent_trajectory_ref")
    if refs is not None:
        native["subagent_trajectory_ref"] = refs
    return with_ours(
        ToolResult(
            call_id=alone if call_id is None else call_id,
            text=text,
            subagents=tuple(
                resolve(ref["trajectory_id"]) for ref in references(refs) if isinstance(ref.get("trajectory_id"), str)
            ),
            extra=extra_of(raw, native),
        ),
        raw,
    )


def references(refs: Any) -> list[dict[str, Any]]:
    """Sub-agent references, whether one or a list of them."""
    return [ref for ref in (refs if isinstance(refs, list) else [refs]) if isinstance(ref, dict)]


def usage(raw: Mapping[str, Any], prefix: str) -> Usage:
    """Metrics of a step (prefix "") or of the whole (prefix "total_")."""
    names = {
        "input_tokens": f"{prefix}prompt_tokens",
        "output_tokens": f"{prefix}completion_tokens",
        "cached_tokens": f"{prefix}cached_tokens",
        "cost_usd": f"{prefix}cost_usd",
    }
    known = (*names.values(), "extra") if not prefix else (*names.values(), "extra", "total_steps")
    native = unplaced(raw, known)
    counts = {field: _whole(raw, name, native) for field, name in names.items() if field != "cost_usd"}
    cost = raw.get(names["cost_usd"])
    money = float(cost) if isinstance(cost, int | float) and not isinstance(cost, bool) and abs(cost) < 2**53 else None
    _keep_unread(native, raw, names["cost_usd"], money)
    record = Usage(**counts, cost_usd=money, extra=extra_of(raw, native) if not prefix else {})
    return record if prefix else with_ours(record, raw)


def totals(raw: Any) -> Totals:
    """Totals of a trajectory; its `extra` holds ATIF's, with ``total_steps`` under `atif`."""
    if not isinstance(raw, dict):
        return Totals(extra={NATIVE: {"final_metrics": raw}}) if raw is not None else Totals()
    placed = ("total_prompt_tokens", "total_completion_tokens", "total_cached_tokens", "total_cost_usd", "extra")
    native = unplaced(raw, placed)
    for name in placed[:3]:
        _whole(raw, name, native)
    sums = usage(raw, "total_")
    _keep_unread(native, raw, "total_cost_usd", sums.cost_usd)
    return with_ours(Totals(usage=sums, extra=extra_of(raw, native)), raw)


def agent(raw: Any) -> Agent:
    """The agent; `model_name` is the trace's, not the agent's."""
    if not isinstance(raw, dict):
        return Agent(name="unknown", extra={NATIVE: {"agent": raw}} if raw is not None else {})
    native = unplaced(raw, ("name", "version", "model_name", "tool_definitions", "extra"))
    tools = raw.get("tool_definitions")
    listed = isinstance(tools, list) and all(isinstance(tool, dict) for tool in tools)
    if tools is not None and not listed:
        native["tool_definitions"] = tools
    return with_ours(
        Agent(
            name=_text(raw, "name", native) or "unknown",
            version=_text(raw, "version", native),
            tools=tuple(tools) if isinstance(tools, list) and listed else None,
            extra=extra_of(raw, native),
        ),
        raw,
    )


def with_ours(part: Part, raw: Mapping[str, Any]) -> Part:
    """The part with the fields that our writer put aside; what does not fit the trace model is left as it is."""
    set_aside = ours(raw)
    if not set_aside:
        return part
    barred = _NOT_OURS.get(type(part).__name__, ())
    fields = {name: value for name, value in set_aside.items() if name in part.__struct_fields__ and name not in barred}
    try:
        return msgspec.convert({**msgspec.to_builtins(part), **fields}, type(part))
    except (msgspec.ValidationError, RecursionError):
        return part


def ours(raw: Mapping[str, Any]) -> dict[str, Any]:
    """What our writer put aside in a part; empty when it put nothing aside."""
    extra = raw.get("extra")
    found = extra.get(OURS) if isinstance(extra, dict) else None
    return found if isinstance(found, dict) else {}


_STEP = (
    "step_id",
    "source",
    "message",
    "timestamp",
    "reasoning_content",
    "model_name",
    "tool_calls",
    "observation",
    "metrics",
    "is_copied_context",
    "extra",
)


def extra_of(raw: Mapping[str, Any], native: dict[str, Any]) -> dict[str, Any]:
    """`extra` of a part: ATIF's own without ours, and what else ATIF said, under `atif`."""
    given = raw.get("extra")
    if given is not None and not isinstance(given, dict):
        native["extra"] = given
        given = None
    own = {name: value for name, value in (given or {}).items() if name != OURS}
    if NATIVE in own:
        native["extra"] = own
        own = {}
    return own | ({NATIVE: native} if native else {})


def unplaced(raw: Mapping[str, Any], placed: tuple[str, ...]) -> dict[str, Any]:
    """Members that are set and have no place of their own."""
    return {name: value for name, value in raw.items() if name not in placed and value is not None}


def _list(raw: Mapping[str, Any], name: str, native: dict[str, Any]) -> list[Any]:
    value = raw.get(name)
    if isinstance(value, list) and value:
        return value
    if value is not None:
        native[name] = value
    return []


def _text(raw: Mapping[str, Any], name: str, native: dict[str, Any]) -> str | None:
    value = raw.get(name)
    if isinstance(value, str):
        return value
    if value is not None:
        native[name] = value
    return None


def _whole(raw: Mapping[str, Any], name: str, native: dict[str, Any]) -> int | None:
    value = raw.get(name)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53:
        return value
    if value is not None:
        native[name] = value
    return None


def _keep_unread(native: dict[str, Any], raw: Mapping[str, Any], name: str, read: Any) -> None:
    if read is None and raw.get(name) is not None:
        native[name] = raw[name]
