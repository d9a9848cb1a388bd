"""Traces to attempts: what the gate needs of runs that were recorded elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from seatrial.canon import content_hash
from seatrial.records import Attempt, Trace


class Recorded(NamedTuple):
    """Attempts in order of the traces, and how many traces are none, by reason."""

    attempts: list[Attempt]
    left_out: dict[str, int]


def attempts_of(traces: Iterable[Trace]) -> Recorded:
    """One attempt per trace of a task; sub-agents and traces without a task are left out and counted.

    A trace without a trial number, or with one that its task already has, gets the next free one. A trace without an
    outcome is `unscored`.
    """
    attempts: list[Attempt] = []
    left_out: dict[str, int] = {}
    taken: dict[str, set[int]] = {}
    for trace in traces:
        if trace.parent is not None:
            left_out["a sub-agent's trace"] = left_out.get("a sub-agent's trace", 0) + 1
            continue
        if trace.task.id is None:
            left_out["a trace without a task"] = left_out.get("a trace without a task", 0) + 1
            continue
        for name, outcome in _metrics(trace).items():
            trial = _trial(trace, taken.setdefault(f"{name}\0{trace.task.id}", set()))
            attempts.append(_attempt(trace, trial, name, outcome))
    return Recorded(attempts, left_out)


def fingerprint(trace: Trace) -> dict[str, str]:
    """Parts of the agent, and of what it ran against, that a trace shows (METHODS 6.1): names, or content hashes."""
    parts: dict[str, Any] = {
        "model": trace.model,
        "agent": trace.agent.name,
        "harness": trace.agent.version,
        "tools": content_hash(trace.agent.tools)[:16] if trace.agent.tools else None,
        "settings": content_hash(trace.agent.extra)[:16] if trace.agent.extra else None,
        "simulator": trace.extra.get("simulator"),
        "environment": content_hash(trace.extra["environment"])[:16] if trace.extra.get("environment") else None,
    }
    return {name: str(value) for name, value in parts.items() if value}


def _metrics(trace: Trace) -> dict[str, dict[str, Any]]:
    """Outcomes by metric; the name is empty where the source names none."""
    outcome = trace.outcome
    if outcome is None:
        return {"": {"status": "unscored", "score": None}}
    several = outcome.extra.get("metrics")
    if isinstance(several, dict) and several:
        return {str(n): {"status": o.get("status", "unscored"), "score": o.get("score")} for n, o in several.items()}
    return {"": {"status": outcome.status, "score": outcome.score}}


def _trial(trace: Trace, taken: set[int]) -> int:
    trial = trace.attempt if trace.attempt is not None and trace.attempt not in taken else 0
    while trial in taken:
        trial += 1
    taken.add(trial)
    return trial


def _attempt(trace: Trace, trial: int, metric: str, outcome: dict[str, Any]) -> Attempt:
    usage = trace.totals.usage
    counted = [n for n in (usage.input_tokens, usage.output_tokens) if n is not None]
    task = trace.extra.get("task")
    return Attempt(
        task=str(trace.task.id),
        trial=trial,
        status=outcome["status"],
        score=outcome["score"],
        model=trace.model,
        agent=trace.agent.name,
        task_hash=content_hash(task)[:16] if isinstance(task, dict) else None,
        suite=trace.task.suite,
        trace=trace.id,
        cost_usd=usage.cost_usd,
        latency_s=trace.totals.wall,
        tokens=sum(counted) if counted else trace.totals.extra.get("tokens"),
        fingerprint=fingerprint(trace),
        extra={"metric": metric} if metric else {},
    )
