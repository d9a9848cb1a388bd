"""A transcript becomes a trace: what the reading rooms, checks and dimensions look at."""

from __future__ import annotations

from typing import Any

import msgspec

from seatrial import canon
from seatrial._version import __version__
from seatrial.records import Agent, Provenance, TaskRef, Totals, Trace, Usage, WorldStart
from seatrial.records.protocols import World
from seatrial.world.episode import Transcript

FORMAT = "seatrial-attempt"


def trace_of(
    transcript: Transcript,
    *,
    id: str,
    agent: Agent,
    world: World | None = None,
    start: WorldStart | None = None,
    task: TaskRef = TaskRef(),
    attempt: int | None = None,
    model: str | None = None,
    extra: dict[str, Any] | None = None,
) -> Trace:
    """The trace of one episode; arguments of calls verbatim.

    `trace.extra` holds what an attempt knows beside its steps: ``start`` and ``final`` (states), ``start_seed``,
    ``final_hash``, ``changes`` (start to final, volatile fields left out), ``stopped``, ``failure``, ``gates`` (as
    `records.GateEvent`), and ``world`` (name, version, volatile, tools). `model` None: the last one that a step
    names. `extra` is added, and wins.
    """
    held: dict[str, Any] = {
        "start": transcript.start,
        "final": transcript.final,
        "final_hash": transcript.final_hash,
        "stopped": transcript.stopped,
        "failure": transcript.failure,
        "gates": _plain(transcript.gates),
    }
    if start is not None:
        held["start_seed"] = start.seed
    if world is not None:
        held["changes"] = _plain(world.difference(transcript.start, transcript.final))
        held["world"] = {
            "name": world.name,
            "version": world.version,
            "volatile": [list(path) for path in world.volatile],
            "tools": _plain(world.tools),
        }
        if agent.tools is None:
            agent = msgspec.structs.replace(agent, tools=tuple(held["world"]["tools"]))
    named = [step.model for step in transcript.steps if step.model is not None]
    return Trace(
        id=id,
        agent=agent,
        provenance=Provenance(
            format=FORMAT,
            reader="seatrial.world",
            reader_version=__version__,
            content_hash=canon.content_hash(transcript.steps),
        ),
        model=model or (named[-1] if named else None),
        task=task,
        attempt=attempt,
        steps=transcript.steps,
        totals=Totals(usage=_usage(transcript), wall=transcript.seconds),
        extra={**held, **(extra or {})},
    )


def _plain(records: Any) -> Any:
    """As plain JSON values: what a stored trace gives back."""
    return msgspec.json.decode(msgspec.json.encode(records))


def _usage(transcript: Transcript) -> Usage:
    """Sums; a field is None unless every response that has usage recorded it."""
    seen = [step.usage for step in transcript.steps if step.usage is not None]

    def total(values: list[int | None]) -> int | None:
        known = [v for v in values if v is not None]
        return sum(known) if known and len(known) == len(values) else None

    return Usage(
        input_tokens=total([u.input_tokens for u in seen]),
        output_tokens=total([u.output_tokens for u in seen]),
        cached_tokens=total([u.cached_tokens for u in seen]),
        cost_usd=transcript.cost_usd if seen and all(u.cost_usd is not None for u in seen) else None,
    )
