"""Agent replay: the recorded model responses and observations again; does the agent decide the same? (METHODS 5, D5)"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from seatrial.canon import canonical
from seatrial.records import Step, ToolCall, ToolResult, Trace, UserMessage
from seatrial.records.protocols import Conversation


class Decisions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`same` of `n` agent turns decided the same: the same calls with the same arguments, or none. `first` is the
    step of the first other decision, `said` what it was; `refusal` why nothing could be compared (`n` is 0)."""

    n: int = 0
    same: int = 0
    first: int | None = None
    said: str = ""
    refusal: str | None = None


def decide_again(trace: Trace, conversation: Conversation) -> Decisions:
    """Send the session what the log says that it heard, and compare its calls with those logged.

    After another decision the *logged* observations go on. An agent that fails ends the comparison: the turns that
    are left count as not the same.
    """
    turns = [s for s in trace.steps if s.event_class == "agent" and not s.copied]
    heard = _heard(trace)
    if not turns or heard is None:
        return Decisions(refusal="the log does not say what the agent heard before each of its turns")
    same, first, said = 0, None, ""
    broken: str | None = None
    for turn, incoming in zip(turns, heard, strict=True):
        calls: Sequence[ToolCall] | None = None
        if broken is None:
            try:
                calls = conversation.send(incoming).calls
            except Exception as error:  # whatever an agent raises is the finding
                broken = f"the agent failed: {error}"
        if calls is not None and _key(calls) == _key(turn.tool_calls):
            same += 1
        elif first is None:
            first, said = turn.index, broken or _words(calls or ())
    return Decisions(n=len(turns), same=same, first=first, said=said)


def _heard(trace: Trace) -> list[UserMessage | tuple[ToolResult, ...]] | None:
    """Before each agent turn, what came in; None where the log leaves that open."""
    out: list[UserMessage | tuple[ToolResult, ...]] = []
    waiting: UserMessage | tuple[ToolResult, ...] | None = None
    for step in trace.steps:
        if step.copied:
            continue
        if step.event_class in ("human", "simulated_user"):
            waiting = UserMessage(text=step.text)
        elif step.event_class == "agent":
            if waiting is None:
                return None
            out.append(waiting)
            waiting = _results(step)
    return out


def _results(step: Step) -> tuple[ToolResult, ...] | None:
    return step.results if step.tool_calls and len(step.results) == len(step.tool_calls) else None


def _key(calls: Sequence[ToolCall]) -> bytes:
    return canonical([[c.name, c.arguments] for c in calls])


def _words(calls: Sequence[Any]) -> str:
    return ", ".join(f"{c.name}({canonical(c.arguments).decode()[:120]})" for c in calls) or "no call"
