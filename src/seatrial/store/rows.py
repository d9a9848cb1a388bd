"""A trace as rows of the sessions and steps tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import polars as pl

from seatrial.canon import canonical
from seatrial.records.fitting import fitting
from seatrial.records.tables import SESSIONS, STEPS, Table
from seatrial.records.trace import Assignment, Step, Trace


def session_row(trace: Trace, blob: str) -> dict[str, Any]:
    """The session's row. Copied steps are kept in the trace and never counted here.

    `arm` is the model of the first agent turn (METHODS 3.1), None when no agent turn names one. Numbers that
    the table cannot hold are null (`rows_of` tells which).
    """
    return fitting(SESSIONS, _session(trace, blob))[0]


def rows_of(trace: Trace, blob: str) -> tuple[dict[str, Any], list[dict[str, Any]], tuple[str, ...]]:
    """`session_row`, `step_rows`, and the numbers that they cannot hold, in words: those stay in the trace alone."""
    row, wrong = fitting(SESSIONS, _session(trace, blob))
    steps = []
    for step in _steps(trace):
        fitted, what = fitting(STEPS, step)
        steps.append(fitted)
        wrong = wrong | {f"{name} of step {step['index']}": said for name, said in what.items()}
    return row, steps, tuple(f"{name} is {said}" for name, said in wrong.items())


def _session(trace: Trace, blob: str) -> dict[str, Any]:
    own = [s for s in trace.steps if not s.copied]
    models = _models(trace, own)
    times = [s.time for s in own if s.time is not None]
    results = [r for s in own for r in s.results]
    usage, source, outcome = trace.totals.usage, trace.provenance, trace.outcome
    size = None if source.byte_end is None else source.byte_end - source.byte_start
    return {
        "session": trace.id,
        "blob": blob,
        "agent": trace.agent.name,
        "agent_version": trace.agent.version,
        "arm": models[0] if models else None,
        "models": models,
        "mixed": len(models) > 1,
        "task": trace.task.id,
        "task_type": trace.task.type,
        "difficulty": trace.task.difficulty,
        "suite": trace.task.suite,
        "attempt": trace.attempt,
        "user": trace.user,
        "parent": trace.parent,
        "start": min(times, default=None),
        "end": max(times, default=None),
        "steps": len(own),
        "human_turns": sum(s.event_class in ("human", "simulated_user") for s in own),
        "agent_turns": sum(s.event_class == "agent" for s in own),
        "tool_calls": sum(len(s.tool_calls) for s in own),
        "tool_errors": sum(r.outcome == "error" for r in results),
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cost_usd": usage.cost_usd,
        "wall_s": trace.totals.wall,
        "outcome_status": None if outcome is None else outcome.status,
        "outcome_score": None if outcome is None else outcome.score,
        "outcome_by": None if outcome is None else outcome.by,
        **_assignment(trace.assignment),
        "format": source.format,
        "file": source.file,
        "source_hash": source.content_hash,
        "source_bytes": size,
        "reader": source.reader,
        "reader_version": source.reader_version,
        "trace_ids": _trace_ids(trace),
    }


def step_rows(trace: Trace) -> list[dict[str, Any]]:
    """One row per step, copied ones included and marked. Numbers that the table cannot hold are null."""
    return [fitting(STEPS, row)[0] for row in _steps(trace)]


def _steps(trace: Trace) -> list[dict[str, Any]]:
    return [
        {
            "session": trace.id,
            "index": s.index,
            "event_class": s.event_class,
            "kind": s.kind,
            "time": s.time,
            "model": s.model,
            "chars": len(s.text),
            "tool_calls": len(s.tool_calls),
            "errors": sum(r.outcome == "error" for r in s.results),
            "copied": s.copied,
            "source_ids": list(s.source_ids),
        }
        for s in trace.steps
    ]


def frame(table: Table, rows: Iterable[dict[str, Any]]) -> pl.DataFrame:
    """Rows as a frame of the table's schema; fields that a row lacks are null."""
    listed = list(rows)
    return pl.DataFrame({c: [row.get(c) for row in listed] for c in table.names}, schema=table.schema())


def frames(sessions: Iterable[dict[str, Any]], steps: Iterable[dict[str, Any]]) -> dict[str, pl.DataFrame]:
    """What `Store.commit` takes for new sessions."""
    return {SESSIONS.name: frame(SESSIONS, sessions), STEPS.name: frame(STEPS, steps)}


def _trace_ids(trace: Trace) -> list[str] | None:
    found = trace.extra.get("trace_ids")
    return [i for i in found if isinstance(i, str)] if isinstance(found, list) else None


def _models(trace: Trace, own: list[Step]) -> list[str]:
    turns = [s for s in own if s.event_class == "agent"]
    if not trace.steps and trace.model is not None:
        return [trace.model]
    return list(dict.fromkeys(m for m in (s.model or trace.model for s in turns) if m is not None))


def _assignment(drawn: Assignment | None) -> dict[str, Any]:
    if drawn is None:
        return {}
    return {
        "assigned_arm": drawn.arm,
        "probability": drawn.probability,
        "probabilities_json": canonical(drawn.probabilities).decode(),
        "assigned_stratum": drawn.stratum,
        "epoch": drawn.epoch,
        "unit": drawn.unit,
    }
