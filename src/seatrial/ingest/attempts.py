"""Attempts that other programs recorded to traces without steps, so that they are ranked like anyone's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from seatrial.canon import content_hash
from seatrial.records import Agent, Attempt, Provenance, Reader, RecordedOutcome, TaskRef, Totals, Trace, Usage


def trace_of(
    attempt: Attempt,
    reader: Reader,
    path: Path,
    *,
    id: str,
    by: str,
    usage: Usage | None = None,
    agent: Agent | None = None,
    where: dict[str, Any] | None = None,
) -> Trace:
    """The trace of one attempt. `by` names what scored it; `where` says where in the file it stands."""
    score = attempt.score
    return Trace(
        id=id,
        agent=agent if agent is not None else Agent(name=attempt.agent or reader.name),
        model=attempt.model,
        task=TaskRef(id=attempt.task, suite=attempt.suite),
        attempt=attempt.trial,
        totals=Totals(
            usage=usage if usage is not None else Usage(cost_usd=attempt.cost_usd),
            wall=attempt.latency_s,
            extra={} if attempt.tokens is None else {"tokens": attempt.tokens},
        ),
        outcome=RecordedOutcome(
            status=attempt.status,
            score=score,
            bounded=score is None or 0.0 <= score <= 1.0,
            by=by,
            extra={} if attempt.reason is None else {"reason": attempt.reason},
        ),
        provenance=Provenance(
            format=reader.name,
            reader=reader.name,
            reader_version=reader.version,
            file=str(path),
            content_hash=content_hash(msgspec.to_builtins(attempt)),
            extra=where or {},
        ),
        extra=attempt.extra,
    )
