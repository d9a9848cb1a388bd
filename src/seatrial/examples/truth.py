"""What really happened in a worked session: true signals, true episodes and true causes of failed calls.

Nothing here looks at words: kinds come from what the user meant, causes from the world, purposes from the agent.
"""

from __future__ import annotations

from typing import cast

import msgspec

from seatrial.examples.fleet import Worked
from seatrial.records import (
    Agent,
    CallFact,
    Episode,
    ErrorCause,
    Provenance,
    Signal,
    SignalKind,
    Trace,
)

VERSION = "1"
VERDICTS: tuple[SignalKind, ...] = (
    "confirmation",
    "praise",
    "complaint",
    "correction",
    "accept_implicit",
    "retry_request",
)
"""Kinds of signals that a user can mean."""


class Truth(msgspec.Struct, frozen=True, kw_only=True):
    """Ground truth of one session, in the records that a reader and the detectors would make of its log.

    `success` is the share of its jobs that came out as asked.
    """

    trace: Trace
    signals: tuple[Signal, ...]
    episodes: tuple[Episode, ...]
    calls: tuple[CallFact, ...]
    success: float


def of(worked: Worked) -> Truth:
    """The ground truth of a worked session."""
    name = worked.plan.id
    trace = Trace(
        id=name,
        agent=Agent(name="seatrial-demo", version=VERSION),
        provenance=Provenance(format="memory", reader="examples", reader_version=VERSION),
        model=worked.agent,
        user=worked.plan.persona.name,
        steps=worked.transcript.steps,
    )
    success = sum(worked.right) / len(worked.right) if worked.right else 0.0
    return Truth(
        trace=trace, signals=_signals(worked), episodes=_episodes(worked), calls=_calls(worked), success=success
    )


def meant(worked: Worked) -> tuple[tuple[int, frozenset[str]], ...]:
    """(step, kinds) of every user turn after the first: the kinds in `VERDICTS` that it means, perhaps none."""
    return tuple(
        (heard.step, frozenset(heard.meaning["kinds"]) & frozenset(VERDICTS)) for heard in worked.transcript.heard[1:]
    )


def _signals(worked: Worked) -> tuple[Signal, ...]:
    found = []
    for step, kinds in meant(worked):
        for kind in VERDICTS:
            if kind in kinds:
                found.append(
                    Signal(
                        kind=kind,
                        session=worked.plan.id,
                        step=step,
                        detector="planted",
                        version=VERSION,
                        confidence=1.0,
                        model=worked.agent,
                        judges_step=step - 1,
                    )
                )
    return tuple(found)


def _episodes(worked: Worked) -> tuple[Episode, ...]:
    starts = [h.step for h in worked.transcript.heard if "request" in h.meaning["kinds"]]
    ends = [*starts[1:], len(worked.transcript.steps)]
    return tuple(
        Episode(session=worked.plan.id, index=i, start=start, end=end, task_type=worked.plan.jobs[i].type)
        for i, (start, end) in enumerate(zip(starts, ends, strict=True))
    )


def _calls(worked: Worked) -> tuple[CallFact, ...]:
    facts = []
    for step in worked.transcript.steps:
        for i, (call, result) in enumerate(zip(step.tool_calls, step.results, strict=True)):
            cause = "rejected" if result.outcome == "rejected" else result.extra.get("cause")
            facts.append(
                CallFact(
                    session=worked.plan.id,
                    step=step.index,
                    call=i,
                    tool=call.name,
                    outcome=result.outcome,
                    intent=str(call.extra.get("purpose", call.id)),
                    call_id=call.id,
                    model=worked.agent,
                    cause=cast(ErrorCause | None, cause),
                    exit_code=result.exit_code,
                    hallucinated=result.extra.get("refused") == "unknown_tool",
                )
            )
    return tuple(facts)
