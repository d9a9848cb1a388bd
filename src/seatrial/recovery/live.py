"""One run of an agent in a world that can be stopped, marked, and come back to."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import msgspec

from seatrial.canon import content_hash
from seatrial.errors import AgentError, CheckFailed
from seatrial.records import AgentTurn, Exchange, Snapshot, ToolCall, ToolResult, UserMessage, WorldStart
from seatrial.records.protocols import AgentUnderTest, Conversation, World
from seatrial.recovery.operate import Operation, Query
from seatrial.recovery.perturb import Clean, Perturbation
from seatrial.world.episode import Closing

Incoming = UserMessage | tuple[ToolResult, ...]


@runtime_checkable
class Copied(Conversation, Protocol):
    """A conversation that can be copied as it stands, which saves asking the agent for its prefix again."""

    def copy(self) -> Copied:
        """Another conversation in the same place, independent of this one."""


@runtime_checkable
class Redrawn(Conversation, Protocol):
    """A conversation whose later draws can be given another seed."""

    def reseed(self, seed: int) -> None:
        """From now on draw from `seed`."""


def unfinished(world: World) -> bool:
    """For worlds whose tasks end when the agent stops: never over by themselves."""
    return False


@dataclass(frozen=True, kw_only=True)
class Case:
    """One task: what an agent is asked, in which world, and how it is judged.

    `score` of the final world is the outcome in [0, 1]; `over`: the world has ended the task. `query` gives the calls
    that look at the present. `max_actions` limits the environment actions, an operation's queries included;
    `max_context` is the agent's limit in characters, None where it is not known.
    """

    task: str
    world: World
    start: WorldStart
    opening: UserMessage
    agent: AgentUnderTest
    score: Callable[[World], float]
    query: Query
    over: Callable[[World], bool] = unfinished
    max_actions: int = 50
    max_context: int | None = None
    seed: int = 0


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """How a run ended. `queries` are the operation's calls, which `actions` does not count."""

    outcome: float
    actions: int
    queries: int
    why: Literal["over", "stopped", "limit", "agent_error"]


class Mark(msgspec.Struct, frozen=True):
    """What two branches must have in common: hashes of the world's state, of all that the agent was sent, what is
    about to be sent included, and of all that it answered."""

    state: str
    inputs: str
    turns: str


class Run:
    """A run under one condition: the observation of action number `at` is altered (0: none)."""

    def __init__(self, case: Case, condition: Perturbation | None = None, at: int = 0) -> None:
        self.case = case
        self.condition = condition or Clean()
        self.at = at
        case.world.reset(case.start)
        self.conversation = case.agent.begin(case.world.tools, case.seed)
        self.pending: Incoming = case.opening
        self.sent: list[Incoming] = []
        self.history: list[Exchange] = []
        self.true: list[str] = [case.opening.text]
        self.actions = 0
        self.queries = 0
        self.why: Literal["over", "stopped", "limit", "agent_error"] | None = None

    @property
    def ended(self) -> bool:
        """Nothing more happens."""
        return self.why is not None

    def advance(self, actions: float) -> None:
        """Go on until that many environment actions are done, at least, or the run has ended. Turns are whole."""
        while self.why is None and self.actions < actions:
            self._turn()

    def finish(self) -> Ending:
        """Go on to the end."""
        self.advance(math.inf)
        assert self.why is not None
        outcome = float(self.case.score(self.case.world))
        return Ending(outcome=outcome, actions=self.actions, queries=self.queries, why=self.why)

    def operate(self, operation: Operation) -> None:
        """Apply a recovery operation to what the agent is about to get."""
        if self.ended or not isinstance(self.pending, tuple):
            return
        applied = operation.apply(self.case.world, self.pending, self.case.query)
        self.pending = applied.results
        self.queries += applied.queries
        self._check_over()

    def reseed(self, seed: int) -> None:
        """Give the agent's later draws a seed, where it has draws."""
        if isinstance(self.conversation, Redrawn):
            self.conversation.reseed(seed)

    def close(self) -> None:
        """Let go of what the conversation holds: a process, a connection. Copies of it may share that."""
        if isinstance(self.conversation, Closing):
            self.conversation.close()

    def mark(self) -> Mark:
        """Where this run stands."""
        return Mark(
            state=self.case.world.state_hash(),
            inputs=content_hash([*self.sent, self.pending]),
            turns=content_hash([e.turn for e in self.history]),
        )

    def prefix(self, actions: int) -> str:
        """Hash of the exchanges within the first `actions` actions."""
        kept, done = [], 0
        for e in self.history:
            done += len(e.turn.calls)
            if done > actions:
                break
            kept.append(e)
        return content_hash(kept)

    def checkpoint(self) -> Checkpoint:
        """This place, to come back to."""
        copied = self.conversation.copy() if isinstance(self.conversation, Copied) else None
        return Checkpoint(
            run=self, snapshot=self.case.world.snapshot(), mark=self.mark(), conversation=copied,
            sent=tuple(self.sent), pending=self.pending, history=tuple(self.history), true=tuple(self.true),
            actions=self.actions, queries=self.queries,
        )  # fmt: skip

    def _turn(self) -> None:
        self.sent.append(self.pending)
        try:
            turn = self.conversation.send(self.pending)
        except AgentError:
            self.why = "agent_error"
            return
        if not turn.calls:
            self.history.append(Exchange(turn=turn))
            self.why = "stopped"
            return
        shown = []
        for call in turn.calls:
            shown.append(self._act(call))
            self._check_over()
            if self.why is not None:
                break
        self.pending = tuple(shown)
        self.history.append(Exchange(turn=turn, results=self.pending))

    def _act(self, call: ToolCall) -> ToolResult:
        result = self.case.world.call(call)
        self.actions += 1
        shown = _public(result)
        if self.actions == self.at:
            shown = _public(self.condition.show(shown, self.true))
        self.true.append(result.text)
        return shown

    def _check_over(self) -> None:
        if self.case.over(self.case.world):
            self.why = "over"
        elif self.actions + self.queries >= self.case.max_actions:
            self.why = "limit"


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """A place in a run: after the results of its last turn, before the agent has seen them."""

    run: Run
    snapshot: Snapshot
    mark: Mark
    conversation: Copied | None
    sent: tuple[Incoming, ...]
    pending: Incoming
    history: tuple[Exchange, ...]
    true: tuple[str, ...]
    actions: int
    queries: int

    def restored(self) -> Run:
        """A run in this place, by the world's snapshot and a copy of the conversation (or its inputs, sent again)."""
        source = self.run
        source.case.world.restore(self.snapshot)
        run = Run.__new__(Run)
        run.case, run.condition, run.at = source.case, source.condition, source.at
        run.conversation = self._conversation()
        run.pending, run.sent, run.history = self.pending, list(self.sent), list(self.history)
        run.true, run.actions, run.queries, run.why = list(self.true), self.actions, self.queries, None
        return run

    def replayed(self) -> Run:
        """A run in this place, by running its prefix anew."""
        run = Run(self.run.case, self.run.condition, self.run.at)
        run.advance(self.actions)
        return run

    def _conversation(self) -> Conversation:
        if self.conversation is not None:
            return self.conversation.copy()
        case = self.run.case
        conversation = case.agent.begin(case.world.tools, case.seed)
        self._resend(conversation)
        return conversation

    def _resend(self, conversation: Conversation) -> None:
        for incoming, exchange in zip(self.sent, self.history, strict=False):
            turn: AgentTurn = conversation.send(incoming)
            if _said(turn) != _said(exchange.turn):
                raise CheckFailed(
                    f"{self.run.case.task}: the agent, sent the same again, answered something else",
                    hint="use an agent that repeats itself for a seed, or one whose conversation has copy()",
                )


def _said(turn: AgentTurn) -> tuple[str, tuple[ToolCall, ...]]:
    return turn.text, turn.calls


def _public(result: ToolResult) -> ToolResult:
    """What an agent is shown: no knowledge that is the world's alone."""
    return msgspec.structs.replace(result, extra={})
