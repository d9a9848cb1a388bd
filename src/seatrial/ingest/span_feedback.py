"""Scores and annotations of Langfuse, LangSmith and Phoenix: people's to ``extra["feedback"]``, others to ``scores``.

What a person said about an answer is a signal (`explicit_feedback`, METHODS 1.2); what a program or a model computed
is not. A score that is good when low (toxicity, hallucination) is no rating and is kept with the scores.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from seatrial.ingest.drafts import a_list, an_object, rest, text_or_none
from seatrial.ingest.jsontext import BadJSON, loads
from seatrial.records import ReadLog, Trace

_PERSONS = re.compile(r"feedback|thumb|rating|user|satisf|csat|like|helpful|vote|star", re.IGNORECASE)
_LOW_IS_GOOD = re.compile(r"toxic|hallucinat|bias|harm|error|latency|cost|risk|violat|jailbreak|refus", re.IGNORECASE)
_BESIDE = tuple(f"{name}{suffix}" for name in ("scores", "annotations", "feedback") for suffix in (".jsonl", ".json"))
_LARGEST_BESIDE = 256 * 2**20


class Remark(msgspec.Struct, frozen=True, kw_only=True):
    """One score or annotation and what it is about; `person`: a person gave it, and more is better."""

    item: dict[str, Any]
    person: bool
    trace_id: str | None = None
    span_id: str | None = None
    session_id: str | None = None


def remark_of(raw: Any) -> Remark | None:
    """A score (Langfuse), feedback (LangSmith) or annotation (Phoenix); None for anything else."""
    body = an_object(raw)
    if "annotator_kind" in body and ("result" in body or "score" in body or "label" in body):
        return _phoenix(body)
    if "key" in body and ("score" in body or "value" in body) and ("run_id" in body or "feedback_source" in body):
        return _langsmith(body)
    if "name" in body and ("value" in body or "stringValue" in body) and _either(body, "traceId", "sessionId"):
        return _langfuse(body)
    return None


def _langfuse(body: dict[str, Any]) -> Remark:
    kind, source = body.get("dataType", body.get("data_type")), text_or_none(body.get("source")) or ""
    value = body.get("value")
    words = body.get("stringValue", body.get("string_value"))
    if kind == "BOOLEAN" and value in (0, 1):
        value = bool(value)
    elif kind == "CATEGORICAL" or value is None:
        value = words if words is not None else value
    config = an_object(body.get("config"))
    scale = rest({"min": config.get("minValue"), "max": config.get("maxValue")})
    name = str(body.get("name"))
    return Remark(
        item={"value": value, "name": name, **scale, **_without(body, "value", "name", "score", "rating")},
        person=(source.upper() == "ANNOTATION" and not _LOW_IS_GOOD.search(name)) or _by_name(source, "API", name),
        trace_id=_either(body, "traceId"),
        span_id=_either(body, "observationId"),
        session_id=_either(body, "sessionId"),
    )


def _langsmith(body: dict[str, Any]) -> Remark:
    name = str(body.get("key"))
    value = body["score"] if body.get("score") is not None else body.get("value")
    source = text_or_none(an_object(body.get("feedback_source")).get("type")) or ""
    person = (source == "app" and not _LOW_IS_GOOD.search(name)) or _by_name(source or "api", "api", name)
    return Remark(
        item={"value": value, "name": name, **_without(body, "value", "score", "key")},
        person=person,
        trace_id=text_or_none(body.get("trace_id")),
        span_id=text_or_none(body.get("run_id")),
    )


def _phoenix(body: dict[str, Any]) -> Remark:
    result = an_object(body.get("result")) or body
    name = str(body.get("name"))
    value = result["score"] if result.get("score") is not None else result.get("label")
    person = str(body.get("annotator_kind")).upper() == "HUMAN" and not _LOW_IS_GOOD.search(name)
    return Remark(
        item={"value": value, "name": name, **_without(body, "name", "score", "value")},
        person=person,
        trace_id=text_or_none(body.get("trace_id")),
        span_id=text_or_none(body.get("span_id")),
        session_id=text_or_none(body.get("session_id")),
    )


def _by_name(source: str, wanted: str, name: str) -> bool:
    return source == wanted and bool(_PERSONS.search(name)) and not _LOW_IS_GOOD.search(name)


def _either(body: dict[str, Any], *camels: str) -> str | None:
    for camel in camels:
        found = body.get(camel, body.get(re.sub(r"([A-Z])", lambda m: "_" + m.group(1).lower(), camel)))
        if isinstance(found, str) and found:
            return found
    return None


def _without(body: dict[str, Any], *known: str) -> dict[str, Any]:
    return {k: v for k, v in rest(body, *known, "min", "max", "scale").items() if v != ""}


def beside(path: Path, log: ReadLog) -> list[Remark]:
    """Scores and annotations that an export keeps in a file of their own beside `path`."""
    found: list[Remark] = []
    for name in _BESIDE:
        other = path.with_name(name)
        if other == path or not other.is_file() or other.stat().st_size > _LARGEST_BESIDE:
            continue
        data = other.read_bytes()
        try:
            value, _ = loads(data)
            entries = entries_of(value)
        except BadJSON:
            entries = []
            for line in data.split(b"\n"):
                try:
                    entries.extend(entries_of(loads(line)[0]) if line.strip() else [])
                except BadJSON:
                    continue
        remarks = [remark for entry in entries if (remark := remark_of(entry)) is not None]
        if remarks:
            log.note(None, f"{len(remarks)} scores and annotations were looked up in {name}")
        found.extend(remarks)
    return found


def entries_of(value: Any) -> list[Any]:
    """The entries of an export's page: a list, or a list under ``data``, ``scores`` or ``annotations``."""
    if isinstance(value, dict):
        return next((value[n] for n in ("data", "scores", "annotations") if isinstance(value.get(n), list)), [value])
    return a_list(value)


def attach(traces: Iterable[Trace], remarks: Iterable[Remark]) -> tuple[list[Trace], int]:
    """The traces with what was said about them, and how many remarks are about none of them.

    A remark about a span goes to the step that was made of it; one about an invocation or a session to the trace.
    """
    out = list(traces)
    steps: dict[str, tuple[int, int]] = {}
    whole: dict[str, int] = {}
    for n, trace in enumerate(out):
        whole.setdefault(trace.id, n)
        for trace_id in a_list(trace.extra.get("trace_ids")):
            whole.setdefault(trace_id, n)
        for span in a_list(trace.extra.get("spans")):
            whole.setdefault(an_object(span).get("id", ""), n)
        for step in trace.steps:
            for source in step.source_ids:
                steps.setdefault(source, (n, step.index))
    lost = 0
    for remark in remarks:
        key = "feedback" if remark.person else "scores"
        place = steps.get(remark.span_id or "")
        if place is not None:
            out[place[0]] = _on_step(out[place[0]], place[1], key, remark.item)
            continue
        homes = [whole[i] for i in (remark.span_id, remark.trace_id, remark.session_id) if i is not None and i in whole]
        if not homes:
            lost += 1
            continue
        there = out[homes[0]]
        extra = {**there.extra, key: [*a_list(there.extra.get(key)), remark.item]}
        out[homes[0]] = msgspec.structs.replace(there, extra=extra)
    return out, lost


def _on_step(trace: Trace, index: int, key: str, item: dict[str, Any]) -> Trace:
    step = trace.steps[index]
    extra = {**step.extra, key: [*a_list(step.extra.get(key)), item]}
    steps = list(trace.steps)
    steps[index] = msgspec.structs.replace(step, extra=extra)
    return msgspec.structs.replace(trace, steps=tuple(steps))
