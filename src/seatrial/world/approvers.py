"""Who decides on calls that a gate stopped: policies that approve, deny, delay, amend or do not answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from seatrial.records import Approval, Gate, ToolCall
from seatrial.records.protocols import Approver


class Approve:
    """Approves everything."""

    def decide(self, call: ToolCall, gate: Gate, state: dict[str, Any]) -> Approval:
        """Approve."""
        return Approval(decision="approve", by="policy")


class Deny:
    """Denies everything; what an episode without an approver does, too."""

    def __init__(self, reason: str = "no approver") -> None:
        self._reason = reason

    def decide(self, call: ToolCall, gate: Gate, state: dict[str, Any]) -> Approval:
        """Deny."""
        return Approval(decision="deny", by="policy", reason=self._reason)


class Delay:
    """Decides as `then` does, `seconds` later."""

    def __init__(self, seconds: float, then: Approver) -> None:
        self._seconds = seconds
        self._then = then

    def decide(self, call: ToolCall, gate: Gate, state: dict[str, Any]) -> Approval:
        """The other's decision, late."""
        decided = self._then.decide(call, gate, state)
        return msgspec.structs.replace(decided, seconds=decided.seconds + self._seconds)


class Amend:
    """Approves with some arguments replaced by `changes`; other arguments stay."""

    def __init__(self, changes: Mapping[str, Any], reason: str = "") -> None:
        self._changes = dict(changes)
        self._reason = reason

    def decide(self, call: ToolCall, gate: Gate, state: dict[str, Any]) -> Approval:
        """Amend."""
        arguments = {**call.arguments, **self._changes}
        return Approval(decision="amend", by="policy", reason=self._reason, arguments=arguments)


class Absent:
    """Nobody answers within `seconds`: the call does not run."""

    def __init__(self, seconds: float = 600.0) -> None:
        self._seconds = seconds

    def decide(self, call: ToolCall, gate: Gate, state: dict[str, Any]) -> Approval:
        """No answer."""
        return Approval(decision="absent", by="policy", reason="nobody answered", seconds=self._seconds)


class ByGate:
    """Another approver for each gate, by the gate's name; `otherwise` decides on gates that are not named."""

    def __init__(self, by: Mapping[str, Approver], otherwise: Approver) -> None:
        self._by = dict(by)
        self._otherwise = otherwise

    def decide(self, call: ToolCall, gate: Gate, state: dict[str, Any]) -> Approval:
        """What the gate's approver decides."""
        return self._by.get(gate.name, self._otherwise).decide(call, gate, state)
