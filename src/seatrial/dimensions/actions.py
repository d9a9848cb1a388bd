"""A trace to its actions: every proposed call once, with what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from seatrial.canon import canonical
from seatrial.records import ToolCall, ToolResult, ToolSpec, Trace, WorldStart

REQUEST = "request_approval"
"""The tool by which an agent asks for an approval: it acts on the person, not on the world."""

_NEVER_RAN = ("schema", "unknown_tool", "policy", "cassette")


class Action(msgspec.Struct, frozen=True, kw_only=True):
    """One proposed call.

    `reached`: it came to the world, which may have refused it; a request for approval and a call that a person
    rejected never do. `executed`: it ran, and `index` counts these from 0 (None: it did not run). `call` holds the
    arguments that it ran with, which an approval may have amended. `position` counts all proposed calls from 0.
    `gated`: a gate asked for an approval of it, or of the call that it asks for.
    """

    position: int
    step: int
    call: ToolCall
    result: ToolResult | None
    reached: bool
    executed: bool
    index: int | None = None
    effect: Literal["read", "write"] | None = None
    gated: bool = False

    @property
    def request(self) -> bool:
        """Whether it asks a person instead of acting."""
        return self.call.name == REQUEST

    @property
    def failed(self) -> bool:
        """The log says that it did not work."""
        return self.result is not None and (
            self.result.outcome in ("error", "rejected") or (self.result.exit_code or 0) != 0
        )

    @property
    def text(self) -> str:
        """What came back."""
        return "" if self.result is None else self.result.text

    @property
    def key(self) -> bytes:
        """Tool and arguments, canonical."""
        return canonical([self.call.name, self.call.arguments])


def actions_of(trace: Trace) -> tuple[Action, ...]:
    """Every call that the agent proposed, copied steps left out, in order."""
    effects = {t.name: t.effect for t in tools_of(trace)}
    amended = _amended(trace)
    gated = {str(g.get("call_id")) for g in gates_of(trace) if g.get("needed", True)}
    found: list[Action] = []
    index = 0
    for step in trace.steps:
        if step.copied or step.event_class != "agent":
            continue
        results: dict[str | None, ToolResult] = {r.call_id: r for r in step.results}
        for place, call in enumerate(step.tool_calls):
            result = results.get(call.id)
            if result is None and len(step.tool_calls) == len(step.results):
                other = step.results[place]
                result = other if other.call_id is None else None
            ran = _ran(call, result)
            reached = call.name != REQUEST and not (result is not None and result.outcome == "rejected")
            if call.id in amended:
                call = msgspec.structs.replace(call, arguments=amended[call.id])
            found.append(
                Action(
                    position=len(found), step=step.index, call=call, result=result, reached=reached, executed=ran,
                    index=index if ran else None, effect=effects.get(call.name), gated=call.id in gated,
                )
            )  # fmt: skip
            index += ran
    return tuple(found)


def _ran(call: ToolCall, result: ToolResult | None) -> bool:
    """A call ran unless the log says that it was refused, rejected or interrupted, or shows no result of it."""
    if result is None or call.validity in ("invalid", "unknown_tool"):
        return False
    return result.outcome not in ("rejected", "interrupted") and result.extra.get("refused") not in _NEVER_RAN


def tools_of(trace: Trace) -> tuple[ToolSpec, ...]:
    """The world's tools, as the trace holds them; none where it does not."""
    world = trace.extra.get("world")
    raw = world.get("tools", []) if isinstance(world, dict) else []
    out = []
    for one in raw if isinstance(raw, list) else []:
        try:
            out.append(msgspec.convert(one, ToolSpec))
        except msgspec.ValidationError:
            continue
    return tuple(out)


def gates_of(trace: Trace) -> tuple[Mapping[str, Any], ...]:
    """The triggered gates and requests of the trace, as plain objects."""
    raw = trace.extra.get("gates")
    return tuple(g for g in raw if isinstance(g, dict)) if isinstance(raw, list | tuple) else ()


def _amended(trace: Trace) -> dict[str, dict[str, Any]]:
    """By call id, the arguments that a person put in place of those proposed."""
    found = {}
    for gate in gates_of(trace):
        given = gate.get("ran")
        if isinstance(given, dict) and gate.get("executed"):
            found[str(gate.get("call_id"))] = given
    return found


def answer_of(trace: Trace) -> str:
    """The agent's last words without a call; empty where it said nothing."""
    spoken = [s for s in trace.steps if s.event_class == "agent" and not s.copied and s.text.strip()]
    closing = [s for s in spoken if not s.tool_calls]
    return (closing or spoken)[-1].text if spoken else ""


def asked_of(trace: Trace, before: int | None = None) -> str:
    """What the one who asks said, up to step `before` (None: to the end)."""
    said = [
        s.text
        for s in trace.steps
        if s.event_class in ("human", "simulated_user") and not s.copied and (before is None or s.index < before)
    ]
    return "\n".join(said)


def start_of(trace: Trace) -> WorldStart | None:
    """The start state that the trace recorded; None where it recorded none."""
    state = trace.extra.get("start")
    if not isinstance(state, dict):
        return None
    seed = trace.extra.get("start_seed", trace.extra.get("seed", 0))
    return WorldStart(state=state, seed=seed if isinstance(seed, int) else 0)
