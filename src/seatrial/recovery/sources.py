"""A spec to the cases that are branched: ``alfworld:FOLDER``, or ``python:module:function`` for anybody's own world."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from seatrial.errors import InputError, UsageError
from seatrial.records.protocols import AgentUnderTest
from seatrial.recovery.live import Case
from seatrial.world.agents import parse_agent
from seatrial.world.household import AGENTS, HouseholdAgent
from seatrial.world.starts import load


@runtime_checkable
class Source(Protocol):
    """Where cases come from. A worker process makes its own from the spec."""

    def tasks(self) -> Sequence[str]:
        """Names of the tasks, in a fixed order."""

    def case(self, task: str, agent: AgentUnderTest, *, max_actions: int, seed: int) -> Case:
        """One task for one agent."""


class Alfworld:
    """The games below a folder.

    Raises:
        InputError: there is none.
    """

    def __init__(self, folder: Path) -> None:
        from seatrial.recovery.alfworld import games, task_of

        self._games = {task_of(game): game for game in games(folder)}

    def tasks(self) -> tuple[str, ...]:
        """Task names, sorted."""
        return tuple(self._games)

    def case(self, task: str, agent: AgentUnderTest, *, max_actions: int, seed: int) -> Case:
        """One game, loaded.

        Raises:
            MissingExtra: the extra [alfworld] is not installed.
            InputError: there is no such game.
        """
        from seatrial.recovery.alfworld import case

        game = self._games.get(task)
        if game is None:
            raise InputError(f"no game {task!r}")
        return case(game, agent, max_actions=max_actions, seed=seed)


def source(spec: str) -> Source:
    """The source that a spec names.

    Raises:
        UsageError: it is of no known kind.
        InputError: the folder holds no games, or the function is not found or gives no source.
    """
    kind, _, rest = spec.partition(":")
    if kind == "alfworld" and rest:
        return Alfworld(Path(rest))
    if kind == "python" and rest:
        made = load(rest)()
        if not isinstance(made, Source):
            raise InputError(f"{rest} gave {type(made).__name__}", hint="return an object with tasks() and case(...)")
        return made
    raise UsageError(f"no world {spec!r}", hint="write alfworld:FOLDER or python:module:function")


def agent(spec: str) -> AgentUnderTest:
    """An agent by the name of a built-in one for ALFWorld, or by any agent spec; ``react:MODEL@URL`` is a chat model
    prompted to reason and act in commands.

    Raises:
        UsageError: it is neither.
    """
    if spec in AGENTS:
        return AGENTS[spec]
    if spec.startswith("react:"):
        from seatrial.world.agents.react import react_agent

        return react_agent(spec.removeprefix("react:"))
    try:
        return parse_agent(spec)
    except UsageError as error:
        known = ", ".join(AGENTS)
        raise UsageError(error.message, hint=f"use {known}, react:MODEL@URL, or: {error.hint}") from error


__all__ = ["Alfworld", "HouseholdAgent", "Source", "agent", "source"]
