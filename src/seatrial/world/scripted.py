"""Agents that follow a script: a generator that yields turns and is sent what comes back."""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Sequence

from seatrial.errors import UsageError
from seatrial.records import AgentTurn, ToolResult, ToolSpec, UserMessage

Incoming = UserMessage | tuple[ToolResult, ...]
Script = Generator[AgentTurn, Incoming, None]


class ScriptedAgent:
    """Implements `records.AgentUnderTest` with a function from (first message, tools, draws) to a script.

    The script's only randomness is the ``random.Random`` handed to it, so that one seed and one sequence of
    incoming messages give one behaviour; a branch replays its prefix instead of copying the generator.
    """

    def __init__(
        self, name: str, version: str, script: Callable[[UserMessage, Sequence[ToolSpec], random.Random], Script]
    ) -> None:
        self.name = name
        self.version = version
        self._script = script

    def begin(self, tools: Sequence[ToolSpec], seed: int) -> _ScriptedConversation:
        """A new session with its own draws."""
        return _ScriptedConversation(self, tools, seed)


class _ScriptedConversation:
    def __init__(self, agent: ScriptedAgent, tools: Sequence[ToolSpec], seed: int) -> None:
        self._agent = agent
        self._tools = tools
        self._draws = random.Random(f"agent:{seed}")
        self._script: Script | None = None

    def send(self, incoming: Incoming) -> AgentTurn:
        """The script's next turn.

        Raises:
            UsageError: the session does not begin with a message, or the script has already ended.
        """
        if self._script is None:
            if not isinstance(incoming, UserMessage):
                raise UsageError("a session begins with a message, not with tool results")
            self._script = self._agent._script(incoming, self._tools, self._draws)
            return next(self._script)
        try:
            return self._script.send(incoming)
        except StopIteration:
            raise UsageError(f"{self._agent.name}: the script has ended and cannot answer") from None

    def reseed(self, seed: int) -> None:
        """From now on draw from `seed`: branches of one run have their own luck after the point where they part."""
        self._draws.seed(f"agent:{seed}")
