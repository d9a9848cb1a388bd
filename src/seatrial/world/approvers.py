"""Who decides on calls that a gate stopped: policies that approve, deny, delay, amend or do not answer."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from seatrial.errors import UsageError
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


FORMS = 'approve, deny, absent, delay:SECONDS, delay:SECONDS:deny, amend:{"argument": value}'


def approver_of(spec: str) -> Approver:
    """The approver that a word names.

    | spec | the person |
    |---|---|
    | ``approve``, ``deny`` | decides at once |
    | ``absent`` | never answers |
    | ``delay:30``, ``delay:30:deny`` | decides (approves, unless it says otherwise) 30 seconds later |
    | ``amend:{"amount": 50}`` | approves with these arguments instead of the call's own |

    Raises:
        UsageError: it is none of these.
    """
    kind, colon, rest = spec.partition(":")
    plain: dict[str, Callable[[], Approver]] = {"approve": Approve, "deny": Deny, "absent": Absent}
    if not colon and kind in plain:
        return plain[kind]()
    if kind == "delay" and rest:
        seconds, colon, then = rest.partition(":")
        wait = _seconds(seconds)
        if wait is not None and (not colon or then):
            return Delay(wait, approver_of(then or "approve"))
    if kind == "amend" and rest:
        try:
            changes = json.loads(rest)
        except (ValueError, RecursionError):
            changes = None
        if isinstance(changes, dict) and changes:
            return Amend(changes)
    raise UsageError(f"there is no approver {spec!r}", hint=f"one of {FORMS}")


def _seconds(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None
