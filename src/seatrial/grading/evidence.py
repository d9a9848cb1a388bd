"""What one attempt left for checks to look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import msgspec

from seatrial.grading.events import Timeline, timeline, words
from seatrial.records import GateEvent, Layer, Signal, StateChange, Task, ToolSpec, Trace, Verdict

ATTEMPT = "seatrial-attempt"
"""The format of traces that our own runner makes."""


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt, ready to be judged.

    `answer` is the agent's last words (None: it said nothing); `final` and `start` are the world's states and
    `changes` what differs between them (None: not recorded). `stopped` is why the episode ended (None: unknown).
    `gates` are calls that needed an approval, and requests for one (None: not recorded). `signals` are those of a
    trace from production (None: nobody looked for any), `replies` the turns of the user after the agent's first;
    `cost_usd` and `seconds` are of the whole attempt (None: not known).
    """

    timeline: Timeline
    answer: str | None = None
    start: dict[str, Any] | None = None
    final: dict[str, Any] | None = None
    changes: tuple[StateChange, ...] | None = None
    stopped: str | None = None
    gates: tuple[GateEvent, ...] | None = None
    signals: tuple[Signal, ...] | None = None
    replies: int = 0
    cost_usd: float | None = None
    seconds: float | None = None


@runtime_checkable
class TaskCheck(Protocol):
    """One check: from a task and one attempt at it to a verdict. Other packages bring theirs by the entry-point
    group ``seatrial.checks``."""

    @property
    def name(self) -> str:
        """The metric that it reports."""

    @property
    def version(self) -> str:
        """Bumped when the same attempt would be judged otherwise (METHODS 0.6)."""

    @property
    def layer(self) -> Layer:
        """What it looks at: the end or the way there."""

    def check(self, task: Task, evidence: Evidence) -> Verdict:
        """The verdict; not applicable is `passed` None with the reason."""


def of_trace(
    trace: Trace,
    *,
    tools: Sequence[ToolSpec] = (),
    start: dict[str, Any] | None = None,
    final: dict[str, Any] | None = None,
    changes: tuple[StateChange, ...] | None = None,
    stopped: str | None = None,
    signals: Sequence[Signal] | None = None,
) -> Evidence:
    """The evidence of a trace, with whatever states were recorded beside it and the signals that were found in it.

    What is not given is taken from the trace of an attempt, which keeps tools, start, final state and changes in its
    `extra` (`world.trace_of`).
    """
    held = trace.extra if trace.provenance.format == ATTEMPT else {}
    world = held.get("world")
    if not tools and isinstance(world, dict):
        tools = msgspec.convert(world.get("tools", []), tuple[ToolSpec, ...])
    if changes is None and held.get("changes") is not None:
        changes = msgspec.convert(held["changes"], tuple[StateChange, ...])
    return Evidence(
        timeline=timeline(trace, tools),
        answer=final_answer(trace),
        start=start if start is not None else held.get("start"),
        final=final if final is not None else held.get("final"),
        changes=changes,
        stopped=stopped if stopped is not None else held.get("stopped"),
        gates=msgspec.convert(held["gates"], tuple[GateEvent, ...]) if held.get("gates") is not None else None,
        signals=None if signals is None else tuple(signals),
        replies=_replies(trace),
        cost_usd=trace.totals.usage.cost_usd,
        seconds=trace.totals.wall,
    )


def _replies(trace: Trace) -> int:
    """The turns of a user after the agent's first turn."""
    first = next((s.index for s in trace.steps if s.event_class == "agent" and not s.copied), None)
    if first is None:
        return 0
    users = ("human", "simulated_user")
    return sum(s.event_class in users and not s.copied and s.index > first for s in trace.steps)


def of_events(events: Sequence[Mapping[str, Any]], tools: Sequence[ToolSpec] = ()) -> Evidence:
    """The evidence of an event list, which knows no states. An event ``{"event": "answer", "text"}`` is the answer."""
    line = timeline(events, tools)
    said = [words(e, at) for at, e in enumerate(events) if e.get("event") == "answer"]
    return Evidence(timeline=line, answer=said[-1] if said else None)


def final_answer(trace: Trace) -> str | None:
    """The text of the last agent step that says something and calls nothing; else of the last that says something."""
    spoken = [s for s in trace.steps if s.event_class == "agent" and not s.copied and s.text.strip()]
    closing = [s for s in spoken if not s.tool_calls]
    chosen = closing or spoken
    return chosen[-1].text if chosen else None
