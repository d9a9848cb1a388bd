"""Traces and their outcomes to an Inspect log (JSON, version 2), with an account of what that has no place for.

One sample per attempt: the attempt is the epoch, the outcome the score, the status an error or a limit where it is one.
The log is read again and compared: every field that does not come back is named.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from seatrial.canon import content_hash
from seatrial.errors import UsageError
from seatrial.ingest.identity import Ids
from seatrial.ingest.inspect_sample import Run, trace_of
from seatrial.ingest.losses import Loss, Written, same
from seatrial.ingest.times import iso
from seatrial.records import Provenance, RecordedOutcome, Step, Trace

_ROLES = {"human": "user", "simulated_user": "user", "interrupted": "user", "harness": "system", "agent": "assistant"}
_COMPARED = (
    *("id", "agent", "model", "task", "attempt", "assignment", "user", "consent", "parent", "parent_call", "continues"),
    "totals",
)
_STEP_COMPARED = tuple(name for name in Step.__struct_fields__ if name not in ("index", "extra"))
_EPOCH = "1970-01-01T00:00:00+00:00"


def write(traces: Sequence[Trace], *, task: str, scorer: str | None = None) -> Written:
    """The Inspect log of these attempts. `task` names the evaluation; `scorer` the score, None: what scored it.

    Raises:
        UsageError: no trace is given, or traces of several models: an Inspect log has one.
    """
    if not traces:
        raise UsageError("an Inspect log needs at least one attempt", hint="give it the traces of a run")
    models = {trace.model for trace in traces}
    if len(models) > 1:
        names = ", ".join(sorted(str(model) for model in models))
        raise UsageError(f"an Inspect log has one model; these traces have {names}", hint="write one log per model")
    name = scorer or next((t.outcome.by for t in traces if t.outcome is not None and t.outcome.by), None) or "score"
    epochs: dict[str, int] = {}
    samples = []
    for trace in traces:
        key = trace.task.id or trace.id
        epochs[key] = epochs.get(key, 0) + 1
        samples.append(_sample(trace, key, epochs[key], name))
    ids = list(dict.fromkeys(sample["id"] for sample in samples))
    times = [step.time for trace in traces for step in trace.steps if step.time is not None]
    scores = [s["scores"][name]["value"] for s in samples if "scores" in s]
    mean = sum(scores) / len(scores) if scores else None
    metrics = {} if mean is None else {"mean": {"name": "mean", "value": mean, "params": {}}}
    document = {
        "version": 2,
        "status": "success",
        "eval": {
            "run_id": content_hash([trace.id for trace in traces])[:22],
            "created": _iso(min(times)) if times else _EPOCH,
            "task": task,
            "task_id": content_hash(task)[:22],
            "task_version": 0,
            "dataset": {"name": task, "samples": len(ids), "sample_ids": ids, "shuffled": False},
            "model": next(iter(models)) or "none/none",
            "model_args": {},
            "task_args": {},
            "task_attribs": {},
            "config": {"epochs": max(epochs.values())},
            "packages": {},
        },
        "plan": {"name": "plan", "steps": [], "config": {}},
        "results": {
            "total_samples": len(samples),
            "completed_samples": sum("error" not in sample for sample in samples),
            "scores": [{"name": name, "scorer": name, "params": {}, "metrics": metrics}],
        },
        "stats": {
            "started_at": _iso(min(times)) if times else "",
            "completed_at": _iso(max(times)) if times else "",
            "model_usage": {},
        },
        "samples": samples,
    }
    return Written(document=document, losses=tuple(_losses(traces, document)))


def write_file(path: Path, traces: Sequence[Trace], *, task: str, scorer: str | None = None) -> tuple[Loss, ...]:
    """Write the Inspect log of these attempts to a file; what it could not hold.

    Raises:
        UsageError: as `write` does.
        OSError: the file cannot be written.
    """
    written = write(traces, task=task, scorer=scorer)
    path.write_bytes(msgspec.json.encode(written.document) + b"\n")
    return written.losses


def _sample(trace: Trace, name: str, epoch: int, scorer: str) -> dict[str, Any]:
    messages = [message for step in trace.steps for message in _messages(step)]
    asked = next((s.text for s in trace.steps if s.event_class in ("human", "simulated_user")), "")
    last = next((s for s in reversed(trace.steps) if s.event_class == "agent"), None)
    sample: dict[str, Any] = {
        "id": name,
        "epoch": epoch,
        "input": asked,
        "target": "",
        "messages": messages,
        "output": {
            "model": trace.model or "",
            "choices": [
                {"message": {"role": "assistant", "content": last.text if last else ""}, "stop_reason": "stop"}
            ],
        },
        "metadata": {},
        "store": {},
        "events": [_event(step, trace) for step in trace.steps if step.event_class == "agent"],
        "model_usage": {},
        "uuid": trace.id,
        "attachments": {},
    }
    if trace.totals.wall is not None:
        sample["total_time"] = trace.totals.wall
    _scored(sample, trace.outcome, scorer)
    return sample


def _scored(sample: dict[str, Any], outcome: RecordedOutcome | None, scorer: str) -> None:
    if outcome is None:
        return
    if outcome.score is not None and outcome.status != "error_infra":
        sample["scores"] = {scorer: {"value": outcome.score}}
    elif outcome.status in ("passed", "failed"):
        sample["scores"] = {scorer: {"value": float(outcome.status == "passed")}}
    if outcome.status in ("error_infra", "error_agent"):
        sample["error"] = {"message": outcome.status, "traceback": "", "traceback_ansi": ""}
    elif outcome.status == "timeout":
        sample["limit"] = {"type": "time", "limit": -1}
    elif outcome.status == "skipped":
        sample["limit"] = {"type": "operator", "limit": 1}


def _messages(step: Step) -> list[dict[str, Any]]:
    message: dict[str, Any] = {"role": _ROLES[step.event_class], "content": step.text, "id": f"m{step.index}"}
    if step.event_class != "agent":
        return [message]
    if step.reasoning:
        message["content"] = [{"type": "reasoning", "reasoning": step.reasoning}, {"type": "text", "text": step.text}]
    if step.tool_calls:
        message["tool_calls"] = [
            {"id": call.id, "function": call.name, "arguments": call.arguments, "type": "function"}
            | ({"parse_error": call.raw_arguments} if call.raw_arguments is not None else {})
            for call in step.tool_calls
        ]
    if step.model is not None:
        message["model"] = step.model
    tools = []
    names = {call.id: call.name for call in step.tool_calls}
    for result in step.results:
        tool: dict[str, Any] = {"role": "tool", "content": result.text, "function": names.get(result.call_id or "", "")}
        if result.call_id is not None:
            tool["tool_call_id"] = result.call_id
        if result.outcome in ("error", "rejected"):
            kind = "approval" if result.outcome == "rejected" else "unknown"
            tool["error"] = {"type": kind, "message": result.text}
        tools.append(tool)
    return [message, *tools]


def _event(step: Step, trace: Trace) -> dict[str, Any]:
    """The model call of a step: its time and tokens."""
    usage = step.usage
    output: dict[str, Any] = {
        "model": step.model or trace.model or "",
        "choices": [{"message": {"role": "assistant", "content": step.text, "id": f"m{step.index}"}}],
    }
    if usage is not None:
        counts = {
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "input_tokens_cache_read": usage.cached_tokens,
            "total_cost": usage.cost_usd,
        }
        output["usage"] = {k: v for k, v in counts.items() if v is not None}
        if usage.input_tokens is not None or usage.output_tokens is not None:
            output["usage"]["total_tokens"] = (usage.input_tokens or 0) + (usage.output_tokens or 0)
        if usage.cached_tokens and usage.input_tokens is not None:
            output["usage"]["input_tokens"] = usage.input_tokens - usage.cached_tokens
    event: dict[str, Any] = {"event": "model", "model": step.model or trace.model or "", "output": output, "input": []}
    if step.time is not None and (when := _iso(step.time)):
        event["timestamp"] = event["completed"] = when
    return event


def _iso(seconds: float) -> str:
    return iso(seconds) or ""


def _losses(traces: Sequence[Trace], document: dict[str, Any]) -> list[Loss]:
    plain = msgspec.json.decode(msgspec.json.encode(document))
    run, ids = Run(plain), Ids()
    origin = Provenance(format="inspect", reader="inspect", reader_version="1")
    out = []
    for trace, sample in zip(traces, plain["samples"], strict=True):
        again = trace_of(sample, run, origin, ids)
        named = (
            "id",
            "agent",
            "task",
            "attempt",
            "assignment",
            "user",
            "consent",
            "parent",
            "parent_call",
            "continues",
        )
        fields = [name for name in (*named, "model", "totals") if getattr(again, name) != getattr(trace, name)]
        if not _same_outcome(trace.outcome, again.outcome):
            fields.append("outcome")
        if trace.extra:
            fields.append("extra")
        if fields:
            out.append(Loss(where=trace.id, fields=tuple(fields), why="an Inspect sample has no place for it"))
        if len(trace.steps) != len(again.steps):
            why = f"{len(trace.steps)} steps are read back as {len(again.steps)}"
            out.append(Loss(where=trace.id, fields=("steps",), why=why))
            continue
        for step, other in zip(trace.steps, again.steps, strict=True):
            lost = [name for name in _STEP_COMPARED if not same(name, getattr(step, name), getattr(other, name))]
            if step.extra:
                lost.append("extra")
            if "results" not in lost and any(result.extra for result in step.results):
                lost.append("results.extra")
            if lost:
                why = "Inspect's messages and model events have no place for it"
                out.append(Loss(where=f"{trace.id} steps[{step.index}]", fields=tuple(lost), why=why))
    return out


def _same_outcome(a: RecordedOutcome | None, b: RecordedOutcome | None) -> bool:
    if a is None or b is None:
        return a is b
    return (a.status, a.score, a.by) == (b.status, b.score, b.by) and not a.extra
