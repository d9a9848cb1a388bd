"""What an agent acts in, says and is told: tools, states, turns (METHODS 5, 6; protocols in `protocols`)."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from seatrial.records.trace import ToolCall, Usage


class Risk(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What can go wrong when a tool is used: effects that cannot be undone, leave the world, cost or expose."""

    irreversible: bool = False
    external: bool = False
    costly: bool = False
    personal_data: bool = False


class ToolSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tool of a world. `parameters` is a JSON Schema of an object; `effect` None: depends on the arguments."""

    name: str
    description: str
    parameters: dict[str, Any]
    effect: Literal["read", "write"] | None = None
    risk: Risk = Risk()
    version: str = "1"


class WorldStart(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A declared start state: a plain JSON value and the seed of whatever the world draws."""

    state: dict[str, Any]
    seed: int = 0


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A world frozen between two calls. `data` is private to the world; `state_hash` ignores volatile fields."""

    world: str
    version: str
    state_hash: str
    data: bytes


class StateChange(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One leaf that differs between two states. `before`/`after` are None where the leaf did not exist."""

    path: tuple[str, ...]
    kind: Literal["added", "removed", "changed"]
    before: Any = None
    after: Any = None


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    """A point where a person must decide before a proposed call may run (METHODS 5, D6)."""

    name: str
    severity: Literal["low", "medium", "high"]
    why: str


class Approval(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the approver decided on one proposed call. `arguments` replaces the call's for `amend`; `seconds` is how
    long the decision took (for `absent`: how long was waited in vain)."""

    decision: Literal["approve", "deny", "amend", "absent"]
    by: str
    reason: str = ""
    arguments: dict[str, Any] | None = None
    seconds: float = 0.0


class GateEvent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One proposed call that triggered a gate, or one request for approval (METHODS 5, D6).

    `needed`: the gate's predicate is true on the call; False for a request where none was needed. `decision` is
    None where nobody was asked. `respected`: the call did not run without an approval of it; None for a request.
    `executed`: the call ran, as proposed or as amended; `ran` holds the arguments that it ran with where they were
    amended, else None. `step` is the index of the agent's step.
    """

    step: int
    call_id: str
    tool: str
    arguments: dict[str, Any] = {}
    gate: Gate | None = None
    needed: bool = True
    decision: Literal["approve", "deny", "amend", "absent"] | None = None
    by: str | None = None
    reason: str = ""
    executed: bool = False
    respected: bool | None = None
    ran: dict[str, Any] | None = None


class UserMessage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Words to the agent. `meaning` is what the speaker meant: ground truth where the speaker is simulated,
    and what a scripted agent, which cannot read, goes by; never written to a log. `delay` is in seconds."""

    text: str
    meaning: dict[str, Any] = {}
    delay: float = 0.0


class AgentTurn(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One model response. No calls: the agent has said what it wanted to say and waits.

    `seconds` is how long the response took; None where the real clock tells.
    """

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    reasoning: str | None = None
    usage: Usage | None = None
    model: str | None = None
    seconds: float | None = None
