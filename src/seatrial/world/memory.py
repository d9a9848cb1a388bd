"""A world whose whole state is one plain JSON value in memory, changed by Python functions."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import jsonschema
import msgspec

from seatrial import canon
from seatrial.errors import InputError, UsageError
from seatrial.records import Gate, Snapshot, StateChange, ToolCall, ToolResult, ToolSpec, WorldStart
from seatrial.records.trace import ResultOutcome
from seatrial.world.difference import Path, differences, mask


class Output(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool function returns. `cause` is why it is an error (METHODS 1.3), known to the world alone."""

    text: str = ""
    outcome: ResultOutcome = "ok"
    exit_code: int | None = None
    cause: str | None = None
    seconds: float = 0.0


State = dict[str, Any]
Run = Callable[[State, dict[str, Any], random.Random], Output]


class Tool:
    """A tool and the function that carries it out by changing the state in place.

    `gate` looks at the state and the arguments of a proposed call and changes nothing.
    """

    def __init__(self, spec: ToolSpec, run: Run, gate: Callable[[State, dict[str, Any]], Gate | None] | None = None):
        self.spec = spec
        self.run = run
        self.gate = gate

    @cached_property
    def validator(self) -> jsonschema.Draft202012Validator:
        """The compiled schema of the arguments."""
        jsonschema.Draft202012Validator.check_schema(self.spec.parameters)
        return jsonschema.Draft202012Validator(self.spec.parameters)


class _Saved(msgspec.Struct, frozen=True):
    state: State
    seed: int
    calls: int


class MemoryWorld:
    """Implements `records.World` over a dictionary.

    The only draws are those of a tool's ``random.Random``, keyed by (start seed, number of the call), so a
    snapshot is the state and two integers, and two branches from one snapshot see the same luck.
    """

    def __init__(self, name: str, version: str, tools: Sequence[Tool], volatile: Sequence[Path] = ()) -> None:
        self.name = name
        self.version = version
        self.volatile = tuple(volatile)
        self._tools = {tool.spec.name: tool for tool in tools}
        if len(self._tools) != len(tools):
            raise UsageError(f"world {name}: two tools have the same name")
        self._state: State = {}
        self._seed = 0
        self._calls = 0

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """Specifications, in the order given."""
        return tuple(tool.spec for tool in self._tools.values())

    def reset(self, start: WorldStart) -> None:
        """Begin again from a copy of `start.state`."""
        self._state = _copy(start.state)
        self._seed = start.seed
        self._calls = 0

    def gate(self, call: ToolCall) -> Gate | None:
        """The gate that the proposed call would trigger; None for an unknown tool or invalid arguments."""
        tool = self._tools.get(call.name)
        if tool is None or tool.gate is None or not tool.validator.is_valid(call.arguments):
            return None
        return tool.gate(self._state, call.arguments)

    def call(self, call: ToolCall) -> ToolResult:
        """Execute one call. Unknown tools and schema violations are refused and change nothing.

        `extra` holds what the world knows and a log would not: `cause`, `seconds`, `refused` (`schema`) and
        the failing `field`.
        """
        self._calls += 1
        tool = self._tools.get(call.name)
        if tool is None:
            text = f"<tool_use_error>Error: No such tool available: {call.name}</tool_use_error>"
            return _refused(call, text, "unknown_tool", None)
        problem = None if call.validity == "invalid" else next(tool.validator.iter_errors(call.arguments), None)
        if problem is not None or call.validity == "invalid":
            field = "/".join(map(str, problem.absolute_path)) if problem else ""
            why = problem.message if problem else "the arguments are not a JSON object"
            text = f"<tool_use_error>InputValidationError: {call.name} failed: {why}</tool_use_error>"
            return _refused(call, text, "schema", field)
        draws = random.Random(f"{self._seed}:{self._calls}")
        out = tool.run(self._state, call.arguments, draws)
        extra: dict[str, Any] = {"seconds": out.seconds}
        if out.cause is not None:
            extra["cause"] = out.cause
        return ToolResult(call_id=call.id, outcome=out.outcome, exit_code=out.exit_code, text=out.text, extra=extra)

    def state(self) -> State:
        """A deep copy of the state."""
        return _copy(self._state)

    def state_hash(self) -> str:
        """sha256 of the canonical state without its volatile fields."""
        return canon.content_hash(mask(self._state, self.volatile))

    def snapshot(self) -> Snapshot:
        """State, seed and call count, packed."""
        data = msgspec.msgpack.encode(_Saved(self._state, self._seed, self._calls))
        return Snapshot(world=self.name, version=self.version, state_hash=self.state_hash(), data=data)

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to `snapshot`.

        Raises:
            InputError: the snapshot is of another world or version, or damaged.
        """
        if (snapshot.world, snapshot.version) != (self.name, self.version):
            raise InputError(
                f"snapshot of {snapshot.world} {snapshot.version} cannot be restored in {self.name} {self.version}",
                hint="take the snapshot again in this world",
            )
        try:
            saved = msgspec.msgpack.decode(snapshot.data, type=_Saved)
        except msgspec.DecodeError as error:
            raise InputError(f"snapshot of {snapshot.world} is damaged: {error}", hint="take it again") from error
        self._state, self._seed, self._calls = saved.state, saved.seed, saved.calls

    def difference(self, before: State, after: State) -> tuple[StateChange, ...]:
        """Leaves that differ, volatile fields left out."""
        return differences(before, after, self.volatile)


def _copy(state: State) -> State:
    """A deep copy of a plain JSON value: packing and unpacking is several times faster than ``deepcopy``."""
    return msgspec.msgpack.decode(msgspec.msgpack.encode(state), type=State)


def _refused(call: ToolCall, text: str, refused: str, field: str | None) -> ToolResult:
    extra: dict[str, Any] = {"refused": refused, "cause": "model", "seconds": 0.0}
    if field is not None:
        extra["field"] = field
    return ToolResult(call_id=call.id, outcome="error", text=text, extra=extra)
