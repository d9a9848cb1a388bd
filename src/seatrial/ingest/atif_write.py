"""Traces to ATIF 1.8 documents, with an account of what ATIF has no place for.

Each part is written, read back, and compared: the fields that differ go to ``extra["seatrial"]`` of the part, from
where the reader puts them back. So a trace survives the round trip whole, and any other ATIF tool reads a valid
document. Where a trace came from (`provenance`) is kept as ``extra["seatrial"]["provenance"]`` of the root; the
trace that is read from the new document has that document as its provenance.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from seatrial.errors import UsageError
from seatrial.ingest import atif_parts
from seatrial.ingest.atif import trace_of
from seatrial.ingest.atif_parts import NATIVE, OURS
from seatrial.ingest.drafts import text_or_none
from seatrial.ingest.messages import text_of
from seatrial.ingest.times import iso
from seatrial.ingest.user_text import spoken
from seatrial.records import Step, ToolCall, ToolResult, Trace, Usage

SCHEMA_VERSION = "ATIF-v1.8"

_SURROGATE = re.compile("[\ud800-\udfff]")
_SOURCES = {"human": "user", "simulated_user": "user", "interrupted": "user", "agent": "agent", "harness": "system"}
_IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_AUDIO = frozenset(f"audio/{kind}" for kind in ("wav", "mpeg", "mp4", "aac", "ogg", "flac", "webm", "aiff"))
_WHY = {
    "event_class": "ATIF knows the sources system, user and agent",
    "kind": "ATIF has no kinds of step",
    "outcome": "ATIF results have no outcome",
    "exit_code": "ATIF results have no exit code",
    "truncated": "ATIF results do not say whether they were cut",
    "validity": "ATIF calls do not say whether they were valid",
    "raw_arguments": "ATIF arguments are an object",
    "version": "ATIF needs a version",
    "wall": "ATIF has no wall time",
    "time": "ATIF results have no time, and steps none beyond the calendar or finer than a microsecond",
    "tool_calls": "ATIF allows calls on agent steps only",
    "model": "ATIF allows a model on agent steps only",
    "usage": "ATIF allows metrics on agent steps only",
    "reasoning": "ATIF allows reasoning on agent steps only",
}

Part = TypeVar("Part", bound=msgspec.Struct)


class Loss(msgspec.Struct, frozen=True, kw_only=True):
    """Something that ATIF has no place for.

    `where` is the part (``steps[3].results[0]``), `fields` what of it. `kept` True: it lies in
    ``extra["seatrial"]`` and comes back with our reader, other tools do not see it. False: it is gone.
    """

    where: str
    fields: tuple[str, ...]
    why: str
    kept: bool


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """A valid ATIF 1.8 document, and what it could not hold in ATIF's own fields."""

    document: dict[str, Any]
    losses: tuple[Loss, ...]


def write(trace: Trace, subagents: Sequence[Trace] = ()) -> Written:
    """The ATIF 1.8 document of a trace, with its sub-agents (those whose `parent` it is, and theirs) embedded.

    Raises:
        UsageError: a sub-agent's parent is not among the traces given, or two traces have one id.
    """
    ids = [trace.id, *(child.id for child in subagents)]
    if len(set(ids)) < len(ids):
        raise UsageError("two traces have the same id", hint="give each trace once")
    losses: list[Loss] = []
    placed: set[str] = set()
    document = _trajectory(trace, subagents, None, losses, "", placed)
    stray = sorted(set(ids) - placed)
    if stray:
        raise UsageError(f"not a sub-agent of {trace.id}: {', '.join(stray)}", hint="its parent must be given too")
    return Written(document=document, losses=tuple(losses))


def write_file(path: Path, trace: Trace, subagents: Sequence[Trace] = ()) -> tuple[Loss, ...]:
    """Write the document of a trace to a file; what it could not hold.

    Raises:
        UsageError: as `write` does.
        OSError: the file cannot be written.
    """
    written = write(trace, subagents)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(written.document), indent=2) + b"\n")
    return written.losses


def _trajectory(
    given: Trace,
    others: Sequence[Trace],
    parent: Trace | None,
    losses: list[Loss],
    where: str,
    placed: set[str],
) -> dict[str, Any]:
    placed.add(given.id)
    trace, spoilt = _jsonable(given)
    if spoilt:
        why = "JSON has no number that is not finite and no half of a surrogate pair"
        losses.append(Loss(where=where or "trace", fields=tuple(spoilt), why=why, kept=False))
    children = [child for child in others if child.parent == given.id and child.id not in placed]
    native = _native(trace.extra)
    body: dict[str, Any] = {"schema_version": SCHEMA_VERSION, "trajectory_id": trace.id}
    for name in ("session_id", "notes", "continued_trajectory_ref"):
        if isinstance(native.get(name), str):
            body[name] = native[name]
    prefix = f"{where}." if where else ""
    body["agent"] = _agent(trace, losses, f"{prefix}agent")
    body["steps"] = [_step(s, n, losses, f"{prefix}steps[{n}]") for n, s in enumerate(trace.steps)]
    sums = _totals(trace, losses, f"{prefix}final_metrics")
    if sums is not None:
        body["final_metrics"] = sums
    if children:
        body["subagent_trajectories"] = [
            _trajectory(child, others, trace, losses, f"{prefix}subagent_trajectories[{n}]", placed)
            for n, child in enumerate(children)
        ]
    _put_extra(body, trace.extra)
    alone = {name: value for name, value in body.items() if name != "steps"} | {"steps": []}
    back = trace_of(alone, trace.provenance, parent)
    ours = _differences(trace, back, skip=("steps", "agent", "totals", "provenance"))
    _lost(losses, where or "trace", {name: value for name, value in ours.items() if name not in ("id", "parent")})
    origin = trace.provenance.extra.get("original") or msgspec.to_builtins(trace.provenance)
    body.setdefault("extra", {})[OURS] = {**ours, "provenance": origin}
    return body


def _agent(trace: Trace, losses: list[Loss], where: str) -> dict[str, Any]:
    agent = trace.agent
    body: dict[str, Any] = {"name": agent.name, "version": agent.version or "unknown"}
    if trace.model is not None:
        body["model_name"] = trace.model
    if agent.tools is not None:
        body["tool_definitions"] = list(agent.tools)
    _put_extra(body, agent.extra)
    return _put_ours(body, agent, atif_parts.agent(body), losses, where)


def _totals(trace: Trace, losses: list[Loss], where: str) -> dict[str, Any] | None:
    sums = trace.totals
    body = _metrics(sums.usage, "total_")
    steps = _native(sums.extra).get("total_steps")
    if _is_count(steps):
        body["total_steps"] = steps
    _put_extra(body, sums.extra)
    body = _put_ours(body, sums, atif_parts.totals(body), losses, where)
    return body or None


def _step(step: Step, index: int, losses: list[Loss], where: str) -> dict[str, Any]:
    native = _native(step.extra)
    source = _SOURCES[step.event_class]
    if native.get("source") in ("system", "user") and source != "agent":
        source = native["source"]
    body: dict[str, Any] = {"step_id": index + 1, "source": source, "message": _content(native, "message", step.text)}
    stamp = iso(step.time) if step.time is not None else None
    if stamp is not None:
        body["timestamp"] = stamp
    if step.copied or native.get("is_copied_context") is False:
        body["is_copied_context"] = step.copied
    if source == "agent":
        _agent_fields(body, step, native, losses, where)
    elif _is_count(native.get("llm_call_count")):
        body["llm_call_count"] = native["llm_call_count"]
    if step.results or isinstance(native.get("observation"), dict):
        calls = {call.id for call in step.tool_calls} if source == "agent" else set()
        alone = step.tool_calls[0].id if source == "agent" and len(step.tool_calls) == len(step.results) == 1 else None
        body["observation"] = {
            "results": [_result(r, calls, alone, losses, f"{where}.results[{n}]") for n, r in enumerate(step.results)]
        }
    _put_extra(body, step.extra)
    return _put_ours(body, step, atif_parts.step(body, index), losses, where)


def _agent_fields(body: dict[str, Any], step: Step, native: Mapping[str, Any], losses: list[Loss], where: str) -> None:
    if step.model is not None:
        body["model_name"] = step.model
    if step.reasoning is not None:
        body["reasoning_content"] = step.reasoning
    effort = native.get("reasoning_effort")
    if isinstance(effort, str | int | float) and not isinstance(effort, bool):
        body["reasoning_effort"] = effort
    if step.tool_calls:
        body["tool_calls"] = [_call(c, losses, f"{where}.tool_calls[{n}]") for n, c in enumerate(step.tool_calls)]
    elif native.get("tool_calls") == []:
        body["tool_calls"] = []
    if step.usage is not None:
        metrics = _metrics(step.usage, "") | _token_lists(_native(step.usage.extra))
        _put_extra(metrics, step.usage.extra)
        body["metrics"] = _put_ours(metrics, step.usage, atif_parts.usage(metrics, ""), losses, f"{where}.metrics")
    count = native.get("llm_call_count")
    if _is_count(count) and not (count == 0 and (step.usage is not None or step.reasoning is not None)):
        body["llm_call_count"] = count


def _call(call: ToolCall, losses: list[Loss], where: str) -> dict[str, Any]:
    body: dict[str, Any] = {
        "tool_call_id": call.id,
        "function_name": call.name,
        "arguments": call.arguments,
    }
    _put_extra(body, call.extra)
    return _put_ours(body, call, atif_parts.tool_call(body, call.id), losses, where)


def _result(
    result: ToolResult,
    calls: set[str],
    alone: str | None,
    losses: list[Loss],
    where: str,
) -> dict[str, Any]:
    native = _native(result.extra)
    body: dict[str, Any] = {}
    if result.call_id is not None and result.call_id in calls:
        body["source_call_id"] = result.call_id
    refs = [ref for ref in atif_parts.references(native.get("subagent_trajectory_ref")) if _is_reference(ref)]
    told = {ref["trajectory_id"] for ref in refs if "trajectory_id" in ref}
    refs += [{"trajectory_id": t} for t in result.subagents if t not in told]
    content = _content(native, "content", result.text)
    if content != "" or not refs:
        body["content"] = content
    if refs:
        body["subagent_trajectory_ref"] = refs
    _put_extra(body, result.extra)
    return _put_ours(body, result, atif_parts.result(body, alone), losses, where)


def _metrics(usage: Usage, prefix: str) -> dict[str, Any]:
    values = {
        f"{prefix}prompt_tokens": usage.input_tokens,
        f"{prefix}completion_tokens": usage.output_tokens,
        f"{prefix}cached_tokens": usage.cached_tokens,
        f"{prefix}cost_usd": usage.cost_usd,
    }
    return {name: value for name, value in values.items() if value is not None}


def _token_lists(native: Mapping[str, Any]) -> dict[str, Any]:
    kinds = {"prompt_token_ids": list[int], "completion_token_ids": list[int], "logprobs": list[float]}
    found = {}
    for name, kind in kinds.items():
        try:
            msgspec.convert(native.get(name), kind)
        except msgspec.ValidationError:
            continue
        found[name] = native[name]
    return found


def _content(native: Mapping[str, Any], name: str, text: str) -> str | list[Any]:
    """The parts or the text that the source had, where they are valid and still mean this text; else the text."""
    given = native.get(name)
    if not isinstance(given, str) and not (isinstance(given, list) and all(_is_content(part) for part in given)):
        return text
    whole = text_of(given)[0]
    return given if text in (whole, spoken(whole).text) else text


def _is_content(part: Any) -> bool:
    if not isinstance(part, dict) or not set(part) <= {"type", "text", "source"}:
        return False
    if part.get("type") == "text":
        return isinstance(part.get("text"), str) and "source" not in part
    source = part.get("source")
    if "text" in part or not isinstance(source, dict) or not isinstance(source.get("path"), str):
        return False
    if part.get("type") == "image":
        return set(source) == {"media_type", "path"} and text_or_none(source["media_type"]) in _IMAGES
    length = source.get("duration_sec", 0)
    return (
        part.get("type") == "audio"
        and set(source) <= {"media_type", "path", "duration_sec"}
        and text_or_none(source.get("media_type")) in _AUDIO
        and isinstance(length, int | float)
        and not isinstance(length, bool)
        and length >= 0
    )


def _is_reference(ref: Mapping[str, Any]) -> bool:
    texts = ("trajectory_id", "trajectory_path", "session_id")
    return (
        set(ref) <= {*texts, "extra"}
        and all(isinstance(ref.get(name, ""), str) for name in texts)
        and isinstance(ref.get("extra", {}), dict)
        and ("trajectory_id" in ref or "trajectory_path" in ref)
    )


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _native(extra: Mapping[str, Any]) -> dict[str, Any]:
    native = extra.get(NATIVE)
    return native if isinstance(native, dict) else {}


def _put_extra(body: dict[str, Any], extra: Mapping[str, Any]) -> None:
    own = {name: value for name, value in extra.items() if name not in (NATIVE, OURS)}
    given = _native(extra).get("extra")
    if not own and isinstance(given, dict):
        own = {name: value for name, value in given.items() if name != OURS}
    if own:
        body["extra"] = own


def _put_ours(body: dict[str, Any], part: Part, back: Part, losses: list[Loss], where: str) -> dict[str, Any]:
    ours = _differences(part, back)
    if ours:
        _lost(losses, where, ours)
        body.setdefault("extra", {})[OURS] = ours
    return body


def _differences(part: Part, back: Part, skip: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        name: msgspec.to_builtins(getattr(part, name))
        for name in part.__struct_fields__
        if name not in skip and getattr(part, name) != getattr(back, name)
    }


def _lost(losses: list[Loss], where: str, ours: Mapping[str, Any]) -> None:
    if ours:
        reasons = dict.fromkeys(_WHY.get(name, "ATIF has no such field") for name in ours)
        losses.append(Loss(where=where, fields=tuple(ours), why="; ".join(reasons), kept=True))


def _jsonable(trace: Trace) -> tuple[Trace, list[str]]:
    """The trace with what JSON cannot hold replaced by null or a replacement character, and where that was."""
    spoilt: list[str] = []

    def clean(value: Any, where: str) -> Any:
        if isinstance(value, float) and not math.isfinite(value):
            spoilt.append(where)
            return None
        if isinstance(value, str) and _SURROGATE.search(value):
            spoilt.append(where)
            return _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", value)
        if isinstance(value, list | tuple):
            return [clean(v, f"{where}[{n}]") for n, v in enumerate(value)]
        if isinstance(value, dict):
            return {clean(k, where): clean(v, f"{where}.{k}" if where else str(k)) for k, v in value.items()}
        return value

    cleaned = clean(msgspec.to_builtins(trace), "")
    if not spoilt:
        return trace, []
    try:
        return msgspec.convert(cleaned, Trace), spoilt
    except msgspec.ValidationError as error:
        raise UsageError(f"the trace holds a number that is not finite where one is needed: {error}") from None
