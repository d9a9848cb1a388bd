"""A world whose whole state is one plain JSON value in memory, changed by Python functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from seatrial import canon
from seatrial.errors import InputError
from seatrial.records import Gate, Snapshot, StateChange, ToolCall, ToolResult, ToolSpec, WorldStart
from seatrial.world.difference import Path, differences, mask
from seatrial.world.toolbox import Output, Tool, Toolbox, check_origin

State = dict[str, Any]

__all__ = ["MemoryWorld", "Output", "State", "Tool"]


class _Saved(msgspec.Struct, frozen=True):
    state: State
    seed: int
    calls: int


class MemoryWorld:
    """Implements `records.World` over a dictionary.

    The only draws are those of a tool's ``random.Random``, keyed by (start seed, number of the call), so a
    snapshot is the state and two integers, and two branches from one snapshot see the same luck.
    """

    def __init__(self, name: str, version: str, tools: Sequence[Tool[State]], volatile: Sequence[Path] = ()) -> None:
        self.name = name
        self.version = version
        self.volatile = tuple(volatile)
        self._box = Toolbox(name, tools)
        self._state: State = {}
        self._seed = 0
        self._calls = 0

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """Specifications, in the order given."""
        return self._box.specs

    def reset(self, start: WorldStart) -> None:
        """Begin again from a copy of `start.state`."""
        self._state = _copy(start.state)
        self._seed = start.seed
        self._calls = 0

    def gate(self, call: ToolCall) -> Gate | None:
        """The gate that the proposed call would trigger; None for an unknown tool or invalid arguments."""
        return self._box.gate(self._state, call)

    def call(self, call: ToolCall) -> ToolResult:
        """Execute one call (see `toolbox.Toolbox.call`)."""
        self._calls += 1
        return self._box.call(self._state, call, self._seed, self._calls)

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
        check_origin(snapshot, self.name, self.version)
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
