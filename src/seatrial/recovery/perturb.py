"""A result to what the agent is shown instead: the observation is altered, the task is not (METHODS 4.1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

import msgspec

from seatrial.errors import UsageError
from seatrial.records import ToolResult

MISSING = "Observation unavailable."
"""What is shown in place of a missing observation."""


@runtime_checkable
class Perturbation(Protocol):
    """One condition of observation."""

    @property
    def name(self) -> str:
        """The condition in the pairs table."""

    def show(self, result: ToolResult, earlier: Sequence[str]) -> ToolResult:
        """What the agent sees instead of `result`. `earlier` holds the texts of earlier observations, the opening
        first and the latest last."""


class Clean(msgspec.Struct, frozen=True):
    """Nothing is altered."""

    name: str = "clean"

    def show(self, result: ToolResult, earlier: Sequence[str]) -> ToolResult:
        """The result itself."""
        return result


class Stale(msgspec.Struct, frozen=True):
    """The observation `age` actions earlier, again; the opening where there is none so old."""

    age: int = 1

    @property
    def name(self) -> str:
        """``stale-1``, ``stale-2``, ..."""
        return f"stale-{self.age}"

    def show(self, result: ToolResult, earlier: Sequence[str]) -> ToolResult:
        """The older text; it carries no sign of being old, not even the outcome of its own action."""
        text = earlier[max(len(earlier) - self.age, 0)] if earlier else result.text
        return _replaced(result, text)


class Missing(msgspec.Struct, frozen=True):
    """A fixed text without content."""

    name: str = "missing"
    text: str = MISSING

    def show(self, result: ToolResult, earlier: Sequence[str]) -> ToolResult:
        """The fixed text."""
        return _replaced(result, self.text)


class Altered:
    """A user-defined condition: `function` turns the true text and the earlier ones into what is shown."""

    def __init__(self, name: str, function: Callable[[str, Sequence[str]], str]) -> None:
        self.name = name
        self._function = function

    def show(self, result: ToolResult, earlier: Sequence[str]) -> ToolResult:
        """What the function makes of it."""
        return _replaced(result, self._function(result.text, earlier))


CONDITIONS: tuple[Perturbation, ...] = (Clean(), Stale(1), Stale(2), Missing())


def condition(name: str) -> Perturbation:
    """The built-in condition of this name.

    Raises:
        UsageError: there is none.
    """
    for known in CONDITIONS:
        if known.name == name:
            return known
    if name.startswith("stale-") and name[6:].isdigit() and int(name[6:]) > 0:
        return Stale(int(name[6:]))
    raise UsageError(f"no condition {name!r}", hint=f"use {', '.join(c.name for c in CONDITIONS)} or stale-N")


def _replaced(result: ToolResult, text: str) -> ToolResult:
    return ToolResult(call_id=result.call_id, outcome="ok", text=text, time=result.time)
