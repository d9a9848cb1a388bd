"""A program as an agent: it reads and writes JSON lines (docs/reference/agent-protocol)."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

import msgspec

from seatrial.errors import AgentError, UsageError
from seatrial.records import AgentTurn, ToolResult, ToolSpec, UserMessage
from seatrial.world.agents.process import Process
from seatrial.world.agents.protocol import Session


class CommandAgent:
    """Starts the program once for every session. `seconds` bounds each turn; `version` is the user's word for it.

    Raises:
        UsageError: there is no program in `command`.
    """

    def __init__(self, command: str, *, name: str | None = None, version: str = "1", seconds: float = 600.0) -> None:
        try:
            self._words = shlex.split(command)
        except ValueError as error:
            raise UsageError(f"cmd: the command line cannot be read: {error}", hint="close every quote") from error
        if not self._words:
            raise UsageError("cmd: without a program", hint="write cmd:program args")
        self.name = name or self._words[0].rpartition("/")[2]
        self.version = version
        self._seconds = seconds

    @property
    def command(self) -> tuple[str, ...]:
        """The command line: what its files hold belongs to the agent, too."""
        return tuple(self._words)

    @property
    def parts(self) -> dict[str, Any]:
        """What the fingerprint covers: the command line and the version."""
        return {"harness": self._words, "version": self.version}

    def begin(self, tools: Sequence[ToolSpec], seed: int) -> _Lines:
        """A new process."""
        return _Lines(Process(self._words), Session(tools, seed), self._seconds)


class _Lines:
    def __init__(self, process: Process, session: Session, seconds: float) -> None:
        self._process = process
        self._session = session
        self._seconds = seconds

    def send(self, incoming: UserMessage | tuple[ToolResult, ...]) -> AgentTurn:
        """The program's next turn.

        Raises:
            AgentError: it ended, or sent something else.
            AgentTimeout: it sent nothing in time.
        """
        lines = [msgspec.json.encode(o) for o in self._session.outgoing(incoming)]
        self._process.write(b"\n".join(lines) + b"\n")
        line = self._process.line(self._seconds)
        while line is not None and not line.strip():
            line = self._process.line(self._seconds)
        if line is None:
            raise AgentError(f"the program ended without an answer{self._process.said()}")
        return self._session.turn(line)

    def close(self) -> None:
        """End the process and its children."""
        self._process.close()

    def kill(self) -> None:
        """End the process and its children at once, even while a turn is waited for."""
        self._process.kill()
        self._process.close()
