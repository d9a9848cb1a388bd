"""What is pending for the agent to what it gets instead: recovery operations (METHODS 4.1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, cast, runtime_checkable

import msgspec

from seatrial.errors import UsageError
from seatrial.records import ToolCall, ToolResult
from seatrial.records.protocols import World

Query = Callable[[World], Sequence[ToolCall]]
"""The calls that look at the present of a world and change nothing that the task is about."""

HIDDEN = "[content withheld]"
REPLAN = "Before you go on, think again about the task and make a new plan from what you know."


class Applied(msgspec.Struct, frozen=True):
    """`results` are what the agent gets next; `queries` counts the calls that the operation made in the world."""

    results: tuple[ToolResult, ...]
    queries: int = 0


@runtime_checkable
class Operation(Protocol):
    """One way to recover. It may query the world; the agent learns of it through the text that it gets."""

    @property
    def name(self) -> str:
        """The operation in the pairs table."""

    def apply(self, world: World, pending: tuple[ToolResult, ...], query: Query) -> Applied:
        """What the agent gets instead of `pending`, the results that it waits for."""


class Nothing(msgspec.Struct, frozen=True):
    """Carry on."""

    name: str = "none"

    def apply(self, world: World, pending: tuple[ToolResult, ...], query: Query) -> Applied:
        """`pending`, untouched."""
        return Applied(pending)


class Refresh(msgspec.Struct, frozen=True):
    """One more look, its result appended. `content` False: the same query, its content withheld."""

    name: str = "refresh"
    content: bool = True

    def apply(self, world: World, pending: tuple[ToolResult, ...], query: Query) -> Applied:
        """The query's commands and answers follow the last result's text."""
        results = [(call, world.call(call)) for call in query(world)]
        said = [f"> {_words(call)}\n{result.text if self.content else HIDDEN}" for call, result in results]
        return Applied(appended(pending, "\n".join(said)), len(results))


class Replan(msgspec.Struct, frozen=True):
    """No query; a request to plan anew."""

    name: str = "replan"
    text: str = REPLAN

    def apply(self, world: World, pending: tuple[ToolResult, ...], query: Query) -> Applied:
        """The request follows the last result's text."""
        return Applied(appended(pending, self.text))


class Operated:
    """A user-defined operation: `function` gives the text to append, after whatever calls it makes in the world."""

    def __init__(self, name: str, function: Callable[[World, tuple[ToolResult, ...]], str]) -> None:
        self.name = name
        self._function = function

    def apply(self, world: World, pending: tuple[ToolResult, ...], query: Query) -> Applied:
        """The function's text follows the last result's."""
        counted = _Counting(world)
        text = self._function(cast(World, counted), pending)
        return Applied(appended(pending, text) if text else pending, counted.calls)


ABLATED = Refresh(name="ablated-refresh", content=False)
OPERATIONS: tuple[Operation, ...] = (Nothing(), Refresh(), ABLATED, Replan())


def operation(name: str) -> Operation:
    """The built-in operation of this name.

    Raises:
        UsageError: there is none.
    """
    for known in OPERATIONS:
        if known.name == name:
            return known
    raise UsageError(f"no operation {name!r}", hint=f"use {', '.join(o.name for o in OPERATIONS)}")


def appended(pending: tuple[ToolResult, ...], text: str) -> tuple[ToolResult, ...]:
    """The same results with `text` after the last one's, so that any agent can take it: no call is left open and no
    message comes out of turn."""
    last = pending[-1]
    return (*pending[:-1], msgspec.structs.replace(last, text=f"{last.text}\n{text}".strip("\n")))


def _words(call: ToolCall) -> str:
    values = [str(v) for v in call.arguments.values()]
    return values[0] if len(values) == 1 else f"{call.name}({', '.join(values)})"


class _Counting:
    """A world that counts the calls made through it."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.calls = 0

    def call(self, call: ToolCall) -> ToolResult:
        self.calls += 1
        return self._world.call(call)

    def __getattr__(self, name: str) -> object:
        return getattr(self._world, name)
