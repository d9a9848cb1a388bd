"""Faults put into a world from outside, the same ones every time for one seed."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import msgspec

from seatrial.errors import InputError
from seatrial.records import Gate, Snapshot, StateChange, ToolCall, ToolResult, ToolSpec, WorldStart
from seatrial.records.protocols import World
from seatrial.world.difference import Path


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """An environment fault: the text and exit code that the call gives instead of running."""

    name: str
    text: str
    exit_code: int


ENVIRONMENT: tuple[Fault, ...] = (
    Fault(name="network", text="curl: (6) Could not resolve host: registry.internal", exit_code=6),
    Fault(name="timeout", text="connect to desk.internal port 443: Connection timed out", exit_code=1),
    Fault(name="disk", text="write error: No space left on device", exit_code=1),
    Fault(name="permission", text="cannot open '/var/lock/desk.lock': Permission denied", exit_code=1),
    Fault(name="unavailable", text="error: upstream answered 503 Service Unavailable", exit_code=1),
    Fault(name="quota", text="error: rate limit exceeded, quota for this hour is used up", exit_code=1),
)
"""Faults of the kinds that METHODS 1.4 names: permission, network, disk, quota, service unavailable."""


class FaultPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Each call of the tools named fails with probability `rate`, by (seed, number of the call) alone."""

    rate: float
    seed: int
    tools: tuple[str, ...]
    faults: tuple[Fault, ...] = ENVIRONMENT

    def at(self, number: int, call: ToolCall) -> Fault | None:
        """The fault that strikes the call with this number, if any."""
        if call.name not in self.tools:
            return None
        draws = random.Random(f"fault:{self.seed}:{number}")
        return draws.choice(self.faults) if draws.random() < self.rate else None


_WITH = "faulty "


class _Counted(msgspec.Struct, frozen=True):
    calls: int
    inner: Snapshot


class FaultyWorld:
    """A world with faults: every other question goes to the world inside.

    A struck call does not reach the world, so a fault never changes the state. `render` turns a fault into
    the result text of the world's tools.
    """

    def __init__(self, inner: World, plan: FaultPlan, render: Callable[[Fault], str] = lambda f: f.text) -> None:
        self.inner = inner
        self.plan = plan
        self._render = render
        self._calls = 0

    @property
    def name(self) -> str:
        """The inner world's name."""
        return self.inner.name

    @property
    def version(self) -> str:
        """The inner world's version."""
        return self.inner.version

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """The inner world's tools."""
        return self.inner.tools

    @property
    def volatile(self) -> tuple[Path, ...]:
        """The inner world's volatile paths."""
        return self.inner.volatile

    def reset(self, start: WorldStart) -> None:
        """Begin again, the plan included."""
        self._calls = 0
        self.inner.reset(start)

    def gate(self, call: ToolCall) -> Gate | None:
        """The inner world's gate."""
        return self.inner.gate(call)

    def call(self, call: ToolCall) -> ToolResult:
        """The fault's result if the plan strikes this call, else the inner world's."""
        self._calls += 1
        fault = self.plan.at(self._calls, call)
        if fault is None:
            return self.inner.call(call)
        extra: dict[str, Any] = {"cause": "environment", "fault": fault.name, "seconds": 5.0}
        return ToolResult(
            call_id=call.id, outcome="error", exit_code=fault.exit_code, text=self._render(fault), extra=extra
        )

    def state(self) -> dict[str, Any]:
        """The inner world's state."""
        return self.inner.state()

    def state_hash(self) -> str:
        """The inner world's hash."""
        return self.inner.state_hash()

    def snapshot(self) -> Snapshot:
        """The inner snapshot and the number of calls so far."""
        inner = self.inner.snapshot()
        data = msgspec.msgpack.encode(_Counted(self._calls, inner))
        return Snapshot(world=_WITH + inner.world, version=inner.version, state_hash=inner.state_hash, data=data)

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to `snapshot`, faults to come included.

        Raises:
            InputError: the snapshot is not of a faulty world, or of another world inside.
        """
        if not snapshot.world.startswith(_WITH):
            raise InputError(f"snapshot of {snapshot.world} holds no count of faults", hint="take it from this world")
        counted = msgspec.msgpack.decode(snapshot.data, type=_Counted)
        self.inner.restore(counted.inner)
        self._calls = counted.calls

    def difference(self, before: dict[str, Any], after: dict[str, Any]) -> tuple[StateChange, ...]:
        """The inner world's difference."""
        return self.inner.difference(before, after)
