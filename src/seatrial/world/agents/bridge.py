"""Turns an agent that calls tools into one that is asked for its next turn: a thread and two queues between."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any

from seatrial.errors import AgentError, AgentTimeout
from seatrial.records import AgentTurn, ToolCall, ToolResult, UserMessage

Incoming = UserMessage | tuple[ToolResult, ...]


class SessionOver(BaseException):
    """Raised inside the agent's thread when nobody listens any more."""


class Bridge:
    """One session. The agent's side calls `call`, which blocks; the harness' side calls `send`.

    `work` gets each message and returns the answer; it runs in its own thread. `seconds` bounds each turn.
    """

    def __init__(self, work: Callable[[str], str], seconds: float, model: str | None = None) -> None:
        self._work = work
        self._seconds = seconds
        self._model = model
        self._turns: queue.Queue[AgentTurn | BaseException] = queue.Queue()
        self._results: queue.Queue[ToolResult | None] = queue.Queue()
        self._lock = threading.Lock()
        self._n = 0
        self._over = False

    def call(self, tool: str, arguments: dict[str, Any]) -> ToolResult:
        """Ask for a tool from inside the agent; one at a time."""
        with self._lock:
            if self._over:
                raise SessionOver
            self._n += 1
            call = ToolCall(id=f"call-{self._n}", name=tool, arguments=arguments)
            self._turns.put(AgentTurn(calls=(call,), model=self._model))
            result = self._results.get()
            if result is None:
                raise SessionOver
            return result

    def send(self, incoming: Incoming) -> AgentTurn:
        """The next turn.

        Raises:
            AgentError: the agent's code failed.
            AgentTimeout: it gave no turn in time.
        """
        if isinstance(incoming, UserMessage):
            threading.Thread(target=self._run, args=(incoming.text,), daemon=True, name="agent").start()
        else:
            for result in incoming:
                self._results.put(result)
        try:
            turn = self._turns.get(timeout=self._seconds)
        except queue.Empty:
            raise AgentTimeout(f"the agent gave no turn within {self._seconds:g} s") from None
        if isinstance(turn, AgentError):
            raise turn
        if isinstance(turn, BaseException):
            raise AgentError(f"the agent failed: {type(turn).__name__}: {turn}") from turn
        return turn

    def close(self) -> None:
        """Release an agent that still waits for a result."""
        self._over = True
        self._results.put(None)

    def _run(self, text: str) -> None:
        try:
            self._turns.put(AgentTurn(text=self._work(text), model=self._model))
        except SessionOver:
            return
        except BaseException as error:  # whatever an agent raises is its failure, not ours
            self._turns.put(error)
