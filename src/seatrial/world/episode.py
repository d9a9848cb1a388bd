"""One agent, one world and one counterpart, to the end: a transcript of steps."""

from __future__ import annotations

import time
from typing import Any, Literal, Protocol

import msgspec

from seatrial.records import (
    AgentTurn,
    Approval,
    EventClass,
    Gate,
    Step,
    ToolCall,
    ToolResult,
    UserMessage,
)
from seatrial.records.protocols import Approver, Conversation, Counterpart, World

Stop = Literal["user_left", "turn_limit", "call_limit", "time_limit"]


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """When to stop. Turns are agent turns, with or without calls; `seconds` by the episode's clock."""

    turns: int = 200
    calls: int = 500
    seconds: float | None = None


class Clock(Protocol):
    """Seconds since the epoch; `advance` lets simulated time pass."""

    def now(self) -> float: ...

    def advance(self, seconds: float) -> None: ...


class WallClock:
    """Real time; advancing it does nothing."""

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    def advance(self, seconds: float) -> None:
        """Real time passes by itself."""


class SimulatedClock:
    """Time that passes only when told, so that equal runs have equal times."""

    def __init__(self, start: float) -> None:
        self._now = start

    def now(self) -> float:
        """Seconds since the epoch."""
        return round(self._now, 3)

    def advance(self, seconds: float) -> None:
        """Let `seconds` pass."""
        self._now += seconds


class Approve:
    """Approves everything."""

    def decide(self, call: ToolCall, gate: Gate, state: dict[str, Any]) -> Approval:
        """Approve."""
        return Approval(decision="approve", by="policy")


class Deny:
    """Denies everything; what an episode without an approver does, too."""

    def decide(self, call: ToolCall, gate: Gate, state: dict[str, Any]) -> Approval:
        """Deny."""
        return Approval(decision="deny", by="policy", reason="no approver")


REJECTED = "The user doesn't want to proceed with this tool use. The tool use was rejected."


class Heard(msgspec.Struct, frozen=True, kw_only=True):
    """What a user's step meant, by step index: ground truth that no log holds."""

    step: int
    meaning: dict[str, Any]


class Transcript(msgspec.Struct, frozen=True, kw_only=True):
    """What happened. `heard` has one entry per user step; `final` is the state at the end; `approvals` maps
    a call's id to what the approver decided."""

    steps: tuple[Step, ...]
    heard: tuple[Heard, ...]
    start: dict[str, Any]
    final: dict[str, Any]
    final_hash: str
    stopped: Stop
    approvals: dict[str, Approval] = {}


class _Recorder:
    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.steps: list[Step] = []
        self.heard: list[Heard] = []
        self.approvals: dict[str, Approval] = {}
        self.calls = 0
        self.turns = 0

    def user(self, message: UserMessage, who: EventClass) -> None:
        self.clock.advance(message.delay)
        self.heard.append(Heard(step=len(self.steps), meaning=message.meaning))
        step = Step(index=len(self.steps), event_class=who, text=message.text, time=self.clock.now())
        self.steps.append(step)

    def agent(self, turn: AgentTurn, results: tuple[ToolResult, ...], when: float) -> None:
        self.steps.append(
            Step(
                index=len(self.steps),
                event_class="agent",
                text=turn.text,
                time=when,
                reasoning=turn.reasoning,
                tool_calls=turn.calls,
                results=results,
                model=turn.model,
                usage=turn.usage,
            )
        )


def run_episode(
    world: World,
    conversation: Conversation,
    counterpart: Counterpart,
    *,
    limits: Limits = Limits(),
    approver: Approver | None = None,
    clock: Clock | None = None,
    who: EventClass = "human",
) -> Transcript:
    """Let the counterpart talk to the agent, and the agent act in the world, until one of them is done.

    The world must have been reset. `who` is the event class of the counterpart's steps. Without an approver,
    calls that trigger a gate are denied.
    """
    log = _Recorder(clock or WallClock())
    begun = log.clock.now()
    start = world.state()
    message: UserMessage | None = counterpart.open(start)
    stopped: Stop | None = None
    while message is not None:
        log.user(message, who)
        said, stopped = _work(world, conversation, message, log, limits, approver or Deny(), begun)
        if stopped is not None:
            break
        message = counterpart.reply(said, world.state())
    return Transcript(
        steps=tuple(log.steps),
        heard=tuple(log.heard),
        start=start,
        final=world.state(),
        final_hash=world.state_hash(),
        stopped=stopped or "user_left",
        approvals=log.approvals,
    )


def _work(
    world: World,
    conversation: Conversation,
    message: UserMessage,
    log: _Recorder,
    limits: Limits,
    approver: Approver,
    begun: float,
) -> tuple[str, Stop | None]:
    """The agent's turns until one has no calls; returns its words and why the episode must stop, if it must."""
    incoming: UserMessage | tuple[ToolResult, ...] = message
    while True:
        if log.turns >= limits.turns:
            return "", "turn_limit"
        if limits.seconds is not None and log.clock.now() - begun > limits.seconds:
            return "", "time_limit"
        turn = conversation.send(incoming)
        log.turns += 1
        log.clock.advance(turn.seconds or 0.0)
        when = log.clock.now()
        if log.calls + len(turn.calls) > limits.calls:
            log.agent(turn, (), when)
            return turn.text, "call_limit"
        log.calls += len(turn.calls)
        results = tuple(_execute(world, call, log, approver) for call in turn.calls)
        log.agent(turn, results, when)
        if not turn.calls:
            return turn.text, None
        incoming = results


def _execute(world: World, call: ToolCall, log: _Recorder, approver: Approver) -> ToolResult:
    gate = world.gate(call)
    if gate is not None:
        approval = approver.decide(call, gate, world.state())
        log.approvals[call.id] = approval
        if approval.decision == "amend" and approval.arguments is not None:
            call = msgspec.structs.replace(call, arguments=approval.arguments)
        elif approval.decision != "approve":
            text = REJECTED + (f" The user said: {approval.reason}" if approval.reason else "")
            return ToolResult(call_id=call.id, outcome="rejected", text=text, time=log.clock.now())
    result = world.call(call)
    log.clock.advance(float(result.extra.get("seconds", 0.0)))
    return msgspec.structs.replace(result, time=log.clock.now())
