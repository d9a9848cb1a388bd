"""One agent, one world and one counterpart, to the end: a transcript of steps."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Literal, Protocol, runtime_checkable

import msgspec

from seatrial.errors import AgentError, AgentTimeout, InfrastructureError
from seatrial.records import AgentTurn, Approval, EventClass, GateEvent, Step, ToolResult, UserMessage
from seatrial.records.protocols import Approver, Conversation, Counterpart, World
from seatrial.world.approvers import Deny
from seatrial.world.gates import GateRule
from seatrial.world.keeper import Keeper

Stop = Literal[
    "user_left", "turn_limit", "call_limit", "time_limit", "cost_limit", "agent_error", "agent_timeout", "infra_error"
]


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """When to stop. Turns are agent turns, with or without calls; `seconds` by the episode's clock; `cost_usd` of
    the model, as far as its price is known (an unknown price never reaches the limit)."""

    turns: int = 200
    calls: int = 500
    seconds: float | None = None
    cost_usd: float | None = None


class Clock(Protocol):
    """Seconds since the epoch; `advance` lets simulated time pass, `wait` what a simulated person takes."""

    def now(self) -> float: ...

    def advance(self, seconds: float) -> None: ...

    def wait(self, seconds: float) -> None: ...


class WallClock:
    """Real time, which advancing does not change, and on top of it the waits for a person who is not real."""

    def __init__(self) -> None:
        self._waited = 0.0

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time() + self._waited

    def advance(self, seconds: float) -> None:
        """Real time passes by itself."""

    def wait(self, seconds: float) -> None:
        """Nobody waits in earnest: the record is later by so much."""
        self._waited += seconds


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

    def wait(self, seconds: float) -> None:
        """The same as any other time."""
        self.advance(seconds)


class Heard(msgspec.Struct, frozen=True, kw_only=True):
    """What a user's step meant, by step index: ground truth that no log holds."""

    step: int
    meaning: dict[str, Any]


class Transcript(msgspec.Struct, frozen=True, kw_only=True):
    """What happened. `heard` has one entry per user step; `final` is the state at the end; `approvals` maps
    a call's id to what the approver decided; `gates` has every triggered gate and every request for approval.
    `failure` says what broke where `stopped` is ``agent_error``, ``agent_timeout`` or ``infra_error``. `seconds` is
    how long it took by the episode's clock; `cost_usd` the sum of the known costs, None where none was known."""

    steps: tuple[Step, ...]
    heard: tuple[Heard, ...]
    start: dict[str, Any]
    final: dict[str, Any]
    final_hash: str
    stopped: Stop
    approvals: dict[str, Approval] = {}
    gates: tuple[GateEvent, ...] = ()
    failure: str | None = None
    seconds: float | None = None
    cost_usd: float | None = None


@runtime_checkable
class Closing(Protocol):
    """A conversation that holds something: a process, a connection."""

    def close(self) -> None:
        """Let go of it; the session is over."""


class _Recorder:
    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.begun = clock.now()
        self.steps: list[Step] = []
        self.heard: list[Heard] = []
        self.calls = 0
        self.turns = 0
        self.cost: float | None = None

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

    def over(self, limits: Limits) -> Stop | None:
        if self.turns >= limits.turns:
            return "turn_limit"
        if limits.seconds is not None and self.clock.now() - self.begun > limits.seconds:
            return "time_limit"
        if limits.cost_usd is not None and self.cost is not None and self.cost > limits.cost_usd:
            return "cost_limit"
        return None


def run_episode(
    world: World,
    conversation: Conversation,
    counterpart: Counterpart,
    *,
    limits: Limits = Limits(),
    approver: Approver | None = None,
    gates: Sequence[GateRule] = (),
    clock: Clock | None = None,
    who: EventClass = "human",
    hashes: bool = False,
) -> Transcript:
    """Let the counterpart talk to the agent, and the agent act in the world, until one of them is done.

    The world must have been reset, and the conversation begun with `world.offered(world.tools, gates)`. `who` is
    the event class of the counterpart's steps. Without an approver, calls that trigger an enforced gate are denied.
    `hashes` writes the world's state hash after each call into the result's ``extra["state_hash"]`` (METHODS 5, D5).

    An agent that crashes, breaks its protocol or does not answer in time, and infrastructure that fails, end the
    episode: `stopped` and `failure` of the transcript say so, and what happened until then is kept.
    """
    log = _Recorder(clock or WallClock())
    keeper = Keeper(world, approver or Deny(), tuple(gates), log.clock, hashes)
    start = world.state()
    stopped: Stop | None = None
    failure: str | None = None
    try:
        message: UserMessage | None = counterpart.open(start)
        while message is not None:
            log.user(message, who)
            said, stopped = _work(conversation, message, log, limits, keeper)
            if stopped is not None:
                break
            message = counterpart.reply(said, world.state())
    except AgentTimeout as error:
        stopped, failure = "agent_timeout", str(error)
    except AgentError as error:
        stopped, failure = "agent_error", str(error)
    except InfrastructureError as error:
        stopped, failure = "infra_error", str(error)
    finally:
        if isinstance(conversation, Closing):
            conversation.close()
    return Transcript(
        steps=tuple(log.steps),
        heard=tuple(log.heard),
        start=start,
        final=world.state(),
        final_hash=world.state_hash(),
        stopped=stopped or "user_left",
        approvals=keeper.approvals,
        gates=tuple(keeper.events),
        failure=failure,
        seconds=round(log.clock.now() - log.begun, 6),
        cost_usd=log.cost,
    )


def _work(
    conversation: Conversation, message: UserMessage, log: _Recorder, limits: Limits, keeper: Keeper
) -> tuple[str, Stop | None]:
    """The agent's turns until one has no calls; returns its words and why the episode must stop, if it must."""
    incoming: UserMessage | tuple[ToolResult, ...] = message
    while True:
        stop = log.over(limits)
        if stop is not None:
            return "", stop
        turn = conversation.send(incoming)
        log.turns += 1
        log.clock.advance(turn.seconds or 0.0)
        if turn.usage is not None and turn.usage.cost_usd is not None:
            log.cost = (log.cost or 0.0) + turn.usage.cost_usd
        when = log.clock.now()
        if log.calls + len(turn.calls) > limits.calls:
            log.agent(turn, (), when)
            return turn.text, "call_limit"
        log.calls += len(turn.calls)
        results: list[ToolResult] = []
        try:
            results.extend(keeper.execute(call, len(log.steps)) for call in turn.calls)
        finally:
            log.agent(turn, tuple(results), when)
        if not turn.calls:
            return turn.text, None
        incoming = tuple(results)
