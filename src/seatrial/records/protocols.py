"""The shapes that rooms and third parties implement (STYLE: one input, one output, and the reason inside)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from seatrial.records.dimension import DimensionResult, DimensionValue, Evidence
from seatrial.records.loss import FileReport, Skip
from seatrial.records.run import RecordedOutcome
from seatrial.records.signal import Signal
from seatrial.records.task import Task
from seatrial.records.trace import ToolCall, ToolResult, Trace
from seatrial.records.world import (
    AgentTurn,
    Approval,
    Gate,
    Snapshot,
    StateChange,
    ToolSpec,
    UserMessage,
    WorldStart,
)


class ReadLog(Protocol):
    """Where a reader writes down what it saw. Every byte ends up kept or skipped."""

    def kept(self, n_bytes: int, what: str = "record") -> None:
        """`n_bytes` of the source became part of a trace, or are known bookkeeping named by `what`."""

    def skip(self, line: int | None, why: str, n_bytes: int = 0) -> None:
        """`n_bytes` at `line` (1-based) could not be kept."""

    def note(self, line: int | None, why: str) -> None:
        """A finding that lost nothing."""

    def seen(self, record_id: str) -> bool:
        """True if this source record was already read, here or from another file; remembers it."""


@runtime_checkable
class Reader(Protocol):
    """One source format: one file of ingest."""

    @property
    def name(self) -> str:
        """Format name as ``--format`` takes it, e.g. ``claude-code``."""

    @property
    def version(self) -> str:
        """Bumped when the same bytes would give a different trace."""

    @property
    def verified(self) -> bool:
        """False when no real file was at hand and the reader follows the public specification alone."""

    def sniff(self, path: Path, head: bytes) -> float:
        """Confidence in [0, 1] that this file is of this format, from its first bytes."""

    def read(self, path: Path, log: ReadLog) -> Iterator[Trace]:
        """Stream the file's traces. Bad records go to `log`; only an unreadable file raises."""


@runtime_checkable
class Detector(Protocol):
    """Finds one family of signals in a trace."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    def detect(self, trace: Trace) -> Sequence[Signal]:
        """Signals of this trace, none dropped, in step order."""


@runtime_checkable
class Dimension(Protocol):
    """One of the seven dimensions (METHODS 5): one run to a value, the values of all runs to a result."""

    @property
    def name(self) -> str:
        """``D1`` to ``D7``; a third party's own begins with another letter."""

    @property
    def title(self) -> str:
        """What it measures, in two or three words."""

    @property
    def version(self) -> str:
        """Bumped when the same run would give another value (METHODS 0.6)."""

    def measure(self, run: Evidence) -> DimensionValue:
        """The value of one run, or None with the reason. Never raises for what a trace holds."""

    def combine(self, values: Sequence[DimensionValue], level: float) -> DimensionResult:
        """The values of all runs (of every status, one per run) to one result, clustered by task."""


@runtime_checkable
class World(Protocol):
    """Something to act in: declared start, typed tools, and a state that can be saved, restored and compared."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str:
        """Bumped when the same start and calls would give another result."""

    @property
    def tools(self) -> tuple[ToolSpec, ...]: ...

    @property
    def volatile(self) -> tuple[tuple[str, ...], ...]:
        """Paths (``*`` matches one part) that may differ between equal runs: clocks, generated names."""

    def reset(self, start: WorldStart) -> None:
        """Begin again from `start`; the same start and calls give the same results."""

    def gate(self, call: ToolCall) -> Gate | None:
        """The gate that this proposed call would trigger in the present state. Changes nothing."""

    def call(self, call: ToolCall) -> ToolResult:
        """Execute. A bad call is a result with outcome ``error``, never an exception."""

    def state(self) -> dict[str, Any]:
        """A copy of the present state as a plain JSON value, volatile fields included."""

    def state_hash(self) -> str:
        """Hash of the state without its volatile fields."""

    def snapshot(self) -> Snapshot:
        """All that later results depend on, the world's draws included."""

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to `snapshot`, taken from a world of this name and version."""

    def difference(self, before: dict[str, Any], after: dict[str, Any]) -> tuple[StateChange, ...]:
        """Leaves that differ, in path order, volatile fields left out."""


@runtime_checkable
class Benchmark(Protocol):
    """Somebody else's tasks, with their own environment and their own criterion of success, run as they are.

    What `agent` is belongs to the benchmark: an `AgentUnderTest`, or the name of a model.
    """

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str:
        """Bumped when the same tasks would be run or judged otherwise."""

    def tasks(self) -> Sequence[Task]:
        """The tasks, unchanged."""

    def reset(self, task: Task, seed: int) -> World | None:
        """A fresh environment in the start that an attempt with this seed has; None where the benchmark keeps its
        environment to itself: then nothing can be re-executed in it."""

    def attempts(self, task: Task, agent: object, *, k: int, seed: int) -> Iterator[Trace]:
        """`k` attempts at one task. A trace's ``extra["seed"]`` is the seed of `reset`, where there is one."""

    def success(self, task: Task, trace: Trace) -> RecordedOutcome:
        """What the benchmark's own criterion says of one attempt."""


class Conversation(Protocol):
    """One agent's side of one session."""

    def send(self, incoming: UserMessage | tuple[ToolResult, ...]) -> AgentTurn:
        """The agent's next turn, after words from the user or the results of the calls of its last turn."""


@runtime_checkable
class AgentUnderTest(Protocol):
    """An agent that can act in any world."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    def begin(self, tools: Sequence[ToolSpec], seed: int) -> Conversation:
        """A new session. `seed` is for agents that draw; a deterministic agent ignores it."""


class Approver(Protocol):
    """Decides on proposed calls that a gate stopped."""

    def decide(self, call: ToolCall, gate: Gate, state: dict[str, Any]) -> Approval: ...


class Counterpart(Protocol):
    """Whoever the agent works for: a person, a simulated user, a fixed task text."""

    def open(self, state: dict[str, Any]) -> UserMessage:
        """The first message."""

    def reply(self, said: str, state: dict[str, Any]) -> UserMessage | None:
        """The next message, given what the agent said last and the world as it now is; None: leaves."""


__all__ = [
    "AgentUnderTest",
    "Approver",
    "Benchmark",
    "Conversation",
    "Counterpart",
    "Detector",
    "Dimension",
    "FileReport",
    "ReadLog",
    "Reader",
    "Skip",
    "World",
]
