"""One sample of an Inspect log to a trace: messages, results, usage, score and status."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from seatrial.canon import content_hash
from seatrial.ingest.drafts import a_list, an_object, rest, text_or_none
from seatrial.ingest.identity import Ids
from seatrial.ingest.messages import Conversation, amount, total, usage_of, whole
from seatrial.ingest.times import moment
from seatrial.records import (
    Agent,
    Provenance,
    ReadLog,
    RecordedOutcome,
    ResultOutcome,
    Status,
    Step,
    TaskRef,
    Totals,
    Trace,
    Usage,
)

VALUES: Mapping[str, float] = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
"""Inspect's letter grades: correct, incorrect, partially correct, no answer."""

_TRUE = frozenset({"yes", "true"})
_FALSE = frozenset({"no", "false"})
_ATTACHMENT = re.compile(r"attachment://([0-9a-f]{32})")
_DEPTH = 60
_MOST_PLANNED = 1_000_000


class Run:
    """What a log says about all its samples."""

    def __init__(self, header: Mapping[str, Any]) -> None:
        spec = an_object(header.get("eval"))
        self.header = dict(header)
        self.spec = spec
        self.run_id = text_or_none(spec.get("run_id")) or text_or_none(spec.get("eval_id")) or content_hash(spec)[:16]
        self.task = text_or_none(spec.get("task")) or "inspect"
        self.model = text_or_none(spec.get("model"))
        self.dataset = an_object(spec.get("dataset"))
        self.epochs = max(whole(an_object(spec.get("config")).get("epochs")) or 1, 1)
        self.finished = header.get("status") in (None, "success")
        self.seen: set[tuple[str, int]] = set()
        results = an_object(header.get("results"))
        scores = a_list(results.get("scores")) or a_list(results.get("scorers")) or [results.get("scorer")]
        self.scorers = [name for s in scores if (name := text_or_none(an_object(s).get("name"))) is not None]
        solver = text_or_none(spec.get("solver"))
        packages = an_object(spec.get("packages"))
        self.agent = Agent(
            name=solver or "inspect",
            version=text_or_none(packages.get("inspect_ai")),
            extra=rest({"plan": header.get("plan"), "model_args": spec.get("model_args") or None}),
        )
        self.extra = rest(
            {
                "run": rest(spec, "packages"),
                "run_status": header.get("status"),
                "run_error": header.get("error"),
                "log_version": header.get("version"),
            }
        )


def trace_of(sample: dict[str, Any], run: Run, origin: Provenance, ids: Ids) -> Trace:
    """The trace of one sample."""
    sample = _resolved(sample)
    name, epoch = _name(sample.get("id")), whole(sample.get("epoch")) or 1
    run.seen.add((name, epoch))
    events = _events(sample)
    models = [e for e in events if e.get("event") == "model"]
    conversation = Conversation(user="simulated_user", outcome=_outcome_of)
    lost = []
    for message in _messages(sample, models):
        why = conversation.add(_as_chat(message))
        if why is not None:
            lost.append(message)
    steps, used = _with_events(conversation.steps, models, events, sample)
    uuid = text_or_none(sample.get("uuid"))
    summed = total(steps)
    if summed == Usage():
        summed = usage_of(an_object(sample.get("output")).get("usage")) or summed
    return Trace(
        id=ids(uuid or f"{run.run_id}~{name}~{epoch}"),
        agent=run.agent,
        model=run.model,
        task=TaskRef(id=name, suite=run.task),
        attempt=epoch,
        steps=steps,
        totals=Totals(
            usage=msgspec.structs.replace(summed, extra={}),
            wall=amount(sample.get("total_time")),
            extra=rest({"model_usage": sample.get("model_usage") or None, "working_time": sample.get("working_time")}),
        ),
        outcome=outcome_of(sample, run),
        provenance=origin,
        extra=run.extra
        | rest(
            {
                "sample": _rest_of(sample),
                "events": [_lean(e) if id(e) in used else e for e in events] or None,
                "messages": lost or None,
            }
        ),
    )


def _name(value: Any) -> str:
    return value if isinstance(value, str) else str(value)


def _resolved(sample: dict[str, Any]) -> dict[str, Any]:
    """The sample with its attachments put back where they were cut out."""
    attachments = an_object(sample.get("attachments"))
    if not attachments:
        return sample

    def back(value: Any, depth: int) -> Any:
        if depth > _DEPTH:
            return value
        if isinstance(value, str):
            found = _ATTACHMENT.fullmatch(value)
            if found is None:
                return value
            whole_text = attachments.get(found.group(1))
            return whole_text if isinstance(whole_text, str) else value
        if isinstance(value, list):
            return [back(v, depth + 1) for v in value]
        if isinstance(value, dict):
            return {k: back(v, depth + 1) for k, v in value.items()}
        return value

    return {k: v if k in ("attachments", "events", "transcript") else back(v, 0) for k, v in sample.items()}


def _events(sample: dict[str, Any]) -> list[dict[str, Any]]:
    events = sample.get("events")
    if not isinstance(events, list):
        events = an_object(sample.get("transcript")).get("events")
    return [event for event in a_list(events) if isinstance(event, dict)]


def _messages(sample: dict[str, Any], models: list[dict[str, Any]]) -> list[Any]:
    """The conversation; of a sample that broke off without one, what its last model call shows."""
    given = a_list(sample.get("messages"))
    if given or not models:
        return given
    last = models[-1]
    pool = a_list(sample.get("message_pool"))
    before = a_list(last.get("input"))
    for span in a_list(last.get("input_refs")):
        if isinstance(span, list) and len(span) == 2 and all(isinstance(n, int) for n in span):
            before = [*before, *pool[span[0] : span[1]]]
    choices = a_list(an_object(last.get("output")).get("choices"))
    return [*before, *(an_object(choice).get("message") for choice in choices[:1])]


def _as_chat(message: Any) -> Any:
    """An Inspect message in the shape of a chat message: thoughts apart, calls with a function object."""
    if not isinstance(message, dict):
        return message
    out = dict(message)
    content = message.get("content")
    if isinstance(content, list):
        thoughts = [p.get("reasoning") for p in content if isinstance(p, dict) and p.get("type") == "reasoning"]
        kept = [t for t in thoughts if isinstance(t, str) and t]
        if kept:
            out["reasoning"] = "\n\n".join(kept)
            out["content"] = [p for p in content if not (isinstance(p, dict) and p.get("type") == "reasoning")]
    if isinstance(message.get("tool_calls"), list):
        out["tool_calls"] = [_as_call(call) for call in message["tool_calls"]]
    if message.get("role") == "tool":
        error = an_object(message.get("error"))
        if not message.get("content") and isinstance(error.get("message"), str):
            out["content"] = error["message"]
    return out


def _as_call(call: Any) -> Any:
    if not isinstance(call, dict) or not isinstance(call.get("function"), str):
        return call
    body = {"name": call["function"], "arguments": call.get("arguments")}
    if call.get("parse_error"):
        body["arguments"] = call["parse_error"]  # no object: such a call is marked invalid
    return {**rest(call, "function", "arguments"), "function": body}


def _outcome_of(message: Mapping[str, Any], text: str) -> ResultOutcome:
    error = message.get("error")
    if not error:
        return "ok"
    return "rejected" if an_object(error).get("type") == "approval" else "error"


def _with_events(
    steps: tuple[Step, ...], models: list[dict[str, Any]], events: list[dict[str, Any]], sample: dict[str, Any]
) -> tuple[tuple[Step, ...], set[int]]:
    """The steps with times and tokens of the model calls that made them; and which events those are.

    A call is found by its message's id, else by its words, in order. Other model calls, such as a grader's, add
    nothing to the steps.
    """
    by_id: dict[str, dict[str, Any]] = {}
    for model_event in models:
        key = _answer(model_event).get("id")
        if isinstance(key, str):
            by_id.setdefault(key, model_event)
    waiting = list(models)
    tools = {e["id"]: e for e in events if e.get("event") == "tool" and isinstance(e.get("id"), str)}
    used: set[int] = set()
    out = []
    for step in steps:
        if step.event_class != "agent":
            out.append(step)
            continue
        message_id = step.extra.get("id")
        event = by_id.get(message_id) if isinstance(message_id, str) else None
        if event is None:
            event = next((e for e in waiting if id(e) not in used and _says(e, step.text)), None)
        results = tuple(_timed(result, tools) for result in step.results)
        if event is None:
            out.append(msgspec.structs.replace(step, results=results))
            continue
        used.add(id(event))
        output = an_object(event.get("output"))
        out.append(
            msgspec.structs.replace(
                step,
                results=results,
                time=moment(event.get("completed")) or moment(event.get("timestamp")) or step.time,
                usage=_usage(output.get("usage")) or step.usage,
                model=step.model or text_or_none(output.get("model")) or text_or_none(event.get("model")),
            )
        )
    return tuple(out), used


def _answer(event: dict[str, Any]) -> dict[str, Any]:
    choices = a_list(an_object(event.get("output")).get("choices"))
    return an_object(an_object(choices[0] if choices else None).get("message"))


def _says(event: dict[str, Any], text: str) -> bool:
    content = _answer(event).get("content")
    if isinstance(content, list):
        content = "\n".join(p["text"] for p in content if isinstance(p, dict) and isinstance(p.get("text"), str))
    return content == text


def _timed(result: Any, tools: dict[str, dict[str, Any]]) -> Any:
    event = tools.get(result.call_id or "")
    if event is None or result.time is not None:
        return result
    return msgspec.structs.replace(result, time=moment(event.get("completed")) or moment(event.get("timestamp")))


def _usage(raw: Any) -> Usage | None:
    """Tokens of a model call; Inspect counts cached input beside the rest of the input."""
    body = an_object(raw)
    if not body:
        return None
    fresh = whole(body.get("input_tokens"))
    read, written = whole(body.get("input_tokens_cache_read")), whole(body.get("input_tokens_cache_write"))
    answer = whole(body.get("output_tokens"))
    beside = (whole(body.get("total_tokens")) or 0) >= (fresh or 0) + (answer or 0) + (read or 0)
    apart = (read or 0) + (written or 0) if beside else 0
    return Usage(
        input_tokens=None if fresh is None else fresh + apart,
        output_tokens=answer,
        cached_tokens=read,
        cost_usd=amount(body.get("total_cost")),
        extra=rest(body, "input_tokens", "output_tokens", "total_tokens", "input_tokens_cache_read", "total_cost"),
    )


def _lean(event: dict[str, Any]) -> dict[str, Any]:
    """A model call without the conversation that it repeats."""
    return rest(event, "input", "input_refs", "tools", "call")


def _rest_of(sample: dict[str, Any]) -> dict[str, Any] | None:
    known = ("id", "epoch", "messages", "events", "transcript", "scores", "score", "uuid", "model_usage", "total_time")
    return {k: v for k, v in rest(sample, *known, "working_time", "attachments").items() if v not in ([], {})} or None


def value_of(score: Any) -> float | None:
    """A score's value as a number: letters as Inspect counts them; None for what is no single number."""
    value = score.get("value") if isinstance(score, dict) else score
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, int | float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, str):
        word = value.strip()
        if word in VALUES:
            return VALUES[word]
        if word.lower() in _TRUE | _FALSE:
            return float(word.lower() in _TRUE)
        try:
            found = float(word)
        except ValueError:
            return None
        return found if math.isfinite(found) else None
    return None


def outcome_of(sample: Mapping[str, Any], run: Run) -> RecordedOutcome:
    """The status and first score of a sample (METHODS 0.1)."""
    scores = an_object(sample.get("scores"))
    if not scores and sample.get("score") is not None:
        scores = {run.scorers[0] if run.scorers else "score": sample["score"]}
    names = [name for name in run.scorers if name in scores] or list(scores)
    chosen = names[0] if names else None
    score = value_of(scores[chosen]) if chosen is not None else None
    limit = an_object(sample.get("limit"))
    status: Status
    if sample.get("error"):
        status, score = "error_infra", None
    elif score is not None and score >= 1.0:
        status = "passed"
    elif limit.get("type") == "operator" and score is None:
        status = "skipped"
    elif limit and limit.get("type") != "operator":
        status = "timeout"
    else:
        status = "unscored" if score is None else "failed"
    return RecordedOutcome(
        status=status,
        score=score,
        bounded=score is None or 0.0 <= score <= 1.0,
        by=chosen or "inspect",
        extra=rest({"scores": scores or None, "limit": limit or None, "error": sample.get("error")}),
    )


def absent(run: Run, origin: Provenance, ids: Ids, log: ReadLog) -> Iterator[Trace]:
    """Planned attempts that the log lacks, each a trace without steps.

    None where the log does not name its samples, holds none, or holds others than it planned.
    """
    planned = a_list(run.dataset.get("sample_ids"))
    wanted = [(_name(sample), epoch) for epoch in range(1, run.epochs + 1) for sample in planned]
    if not run.seen or len(wanted) > _MOST_PLANNED or not run.seen <= set(wanted):
        return
    lacking = [key for key in wanted if key not in run.seen]
    if lacking:
        log.note(None, f"{len(lacking)} of {len(wanted)} planned attempts are missing from the log")
    for name, epoch in lacking:
        yield Trace(
            id=ids(f"{run.run_id}~{name}~{epoch}"),
            agent=run.agent,
            model=run.model,
            task=TaskRef(id=name, suite=run.task),
            attempt=epoch,
            outcome=RecordedOutcome(status="missing", by="inspect"),
            provenance=origin,
            extra=run.extra,
        )
