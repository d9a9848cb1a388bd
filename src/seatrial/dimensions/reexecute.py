"""The logged calls of one run, carried out again in a fresh world from the recorded start."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from seatrial import canon
from seatrial.dimensions.actions import Action, actions_of, start_of
from seatrial.dimensions.observation import Mask
from seatrial.errors import SeatrialError
from seatrial.records import ToolResult, Trace
from seatrial.records.protocols import World
from seatrial.world import mask

_SHOWN = 240


class StepAgain(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One logged call, carried out again. `state` None: no state hash was logged with it. `logged` and `again` are
    the first characters of both observations, where they differ."""

    step: int
    call_id: str
    tool: str
    observation: bool
    state: bool | None = None
    logged: str = ""
    again: str = ""

    @property
    def same(self) -> bool:
        """Observation and, where it was logged, state are the same."""
        return self.observation and self.state is not False


class Reexecution(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All logged calls of one run, carried out again.

    `steps` has one entry per call that reached the world. `refusal` says why nothing could be carried out (then
    `steps` is empty); `broke` how the world broke on the way: calls after that count as not the same. `final` tells
    whether the state at the end is the recorded one (None: none was recorded).
    """

    steps: tuple[StepAgain, ...] = ()
    refusal: str | None = None
    broke: str | None = None
    final: bool | None = None

    @property
    def hashed(self) -> bool:
        """Whether the log holds a state hash with any call."""
        return any(s.state is not None for s in self.steps)

    @property
    def first(self) -> StepAgain | None:
        """The first call that came out otherwise."""
        return next((s for s in self.steps if not s.same), None)


def reexecute(trace: Trace, world: World, patterns: Sequence[str] = ()) -> Reexecution:
    """Carry out the trace's calls in `world`, which is fresh, and compare step by step (METHODS 5, D5).

    After a divergence the *logged* calls go on, so that one early divergence does not hide what comes later. Calls
    that never reached the world (requests for approval, calls that a person rejected) are left out; refused ones are
    not, as the refusal is an observation like any other. The world is brought into the recorded start where it is not
    in it already.
    """
    acted = [a for a in actions_of(trace) if a.reached and a.result is not None]
    refusal = begin(trace, world)
    if refusal is not None:
        return Reexecution(refusal=refusal)
    steps: list[StepAgain] = []
    broke: str | None = None
    screen = Mask(world.volatile, patterns)
    for action in acted:
        if broke is None:
            try:
                steps.append(_again(action, world, screen))
                continue
            except Exception as error:  # whatever a world raises: it broke its protocol, and that is the finding
                broke = f"the world broke at step {action.step}: {_said(error)}"
        steps.append(_lost(action))
    return Reexecution(steps=tuple(steps), broke=broke, final=_ended(trace, world) if broke is None else False)


def begin(trace: Trace, world: World) -> str | None:
    """Bring the world into the trace's recorded start; why that cannot be done, else None."""
    held = trace.extra.get("world")
    if isinstance(held, dict) and (held.get("name"), held.get("version")) != (world.name, world.version):
        return (
            f"the run was recorded in {held.get('name')} {held.get('version')}, "
            f"and this world is {world.name} {world.version}"
        )
    start = start_of(trace)
    if start is None:
        return "the log holds no start state"
    wanted = _hash(start.state, world)
    try:
        if _hash(world.state(), world) != wanted:
            world.reset(start)
        if _hash(world.state(), world) != wanted:
            return "the world cannot be brought into the recorded start"
    except SeatrialError as error:
        return f"the world cannot be brought into the recorded start: {error.message}"
    except Exception as error:
        return f"the world broke in its start: {_said(error)}"
    return None


def _again(action: Action, world: World, screen: Mask) -> StepAgain:
    logged = action.result
    assert logged is not None
    result = world.call(action.call)
    recorded = logged.extra.get("state_hash")
    same = screen.same(logged, result)
    return StepAgain(
        step=action.step,
        call_id=action.call.id,
        tool=action.call.name,
        observation=same,
        state=None if recorded is None else world.state_hash() == recorded,
        logged="" if same else _shown(logged),
        again="" if same else _shown(result),
    )


def _lost(action: Action) -> StepAgain:
    return StepAgain(
        step=action.step, call_id=action.call.id, tool=action.call.name, observation=False, again="the world had broken"
    )


def _ended(trace: Trace, world: World) -> bool | None:
    final = trace.extra.get("final_hash")
    if isinstance(final, str):
        return world.state_hash() == final
    state = trace.extra.get("final")
    return _hash(world.state(), world) == _hash(state, world) if isinstance(state, dict) else None


def _hash(state: dict[str, Any], world: World) -> str:
    return canon.content_hash(mask(state, world.volatile))


def _shown(result: ToolResult) -> str:
    text = result.text if len(result.text) <= _SHOWN else result.text[: _SHOWN - 3] + "..."
    return text if result.outcome == "ok" else f"[{result.outcome}] {text}"


def _said(error: Exception) -> str:
    return error.message if isinstance(error, SeatrialError) else f"{type(error).__name__}: {error}"
