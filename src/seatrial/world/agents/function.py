"""A Python function as an agent: text and tools in, an answer out."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from seatrial.errors import AgentError
from seatrial.records import ToolResult, ToolSpec
from seatrial.world.agents.bridge import Bridge


class Tools:
    """What the function is given. `memory` is kept between messages of one session."""

    def __init__(self, specs: Sequence[ToolSpec], seed: int) -> None:
        self.specs = tuple(specs)
        self.seed = seed
        self.memory: dict[str, Any] = {}
        self._bridge: Bridge | None = None

    def call(self, name: str, arguments: dict[str, Any] | None = None) -> ToolResult:
        """Call a tool and wait for its result; a refused call is a result, too."""
        assert self._bridge is not None
        return self._bridge.call(name, arguments or {})


class FunctionAgent:
    """``function(text: str, tools: Tools) -> str``, called once for every message."""

    def __init__(self, name: str, function: Callable[[str, Tools], str], *, seconds: float = 600.0) -> None:
        self.name = name
        self.version = str(getattr(function, "version", "1"))
        self._function = function
        self._seconds = seconds

    @property
    def function(self) -> Callable[[str, Tools], str]:
        """What is called: the file that it is written in belongs to the agent, too."""
        return self._function

    @property
    def parts(self) -> dict[str, Any]:
        """What the fingerprint covers: the function's source, as far as it can be read."""
        try:
            source = inspect.getsource(self._function)
        except (OSError, TypeError):
            source = repr(self.name)
        return {"harness": source, "version": self.version}

    def begin(self, tools: Sequence[ToolSpec], seed: int) -> Bridge:
        """A new session."""
        given = Tools(tools, seed)

        def work(text: str) -> str:
            said = self._function(text, given)
            if not isinstance(said, str):
                raise AgentError(f"{self.name} returned {type(said).__name__}, not text")
            return said

        bridge = Bridge(work, self._seconds)
        given._bridge = bridge
        return bridge
