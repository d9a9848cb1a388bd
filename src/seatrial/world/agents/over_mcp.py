"""A program that uses tools over MCP as an agent: it is started with the world as one of its MCP servers."""

from __future__ import annotations

import contextlib
import json
import shlex
import shutil
import socket
import sys
import tempfile
import threading
from collections.abc import Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from seatrial.errors import AgentError, UsageError
from seatrial.records import AgentTurn, ToolResult, ToolSpec, UserMessage
from seatrial.world import mcp_pipe, mcp_server
from seatrial.world.agents.bridge import Bridge
from seatrial.world.agents.process import Process

SERVER = "seatrial"


class McpAgent:
    """Starts the program once for every message.

    ``{mcp_config}`` in its arguments is replaced by the path of a file in the usual form (``{"mcpServers":
    {"seatrial": {"command", "args"}}}``), which the environment's SEATRIAL_MCP_CONFIG names, too; ``{task}`` by the
    message, which otherwise comes over standard input. What it prints is its answer; a non-zero exit is an error of
    the agent. `seconds` bounds the time between two tool calls.

    Raises:
        UsageError: there is no program in `command`.
        MissingExtra: the extra [mcp] is not installed.
    """

    def __init__(self, command: str, *, name: str | None = None, version: str = "1", seconds: float = 600.0) -> None:
        try:
            self._words = shlex.split(command)
        except ValueError as error:
            raise UsageError(f"mcp: the command line cannot be read: {error}", hint="close every quote") from error
        if not self._words:
            raise UsageError("mcp: without a program", hint="write mcp:program args {mcp_config} {task}")
        mcp_server.server("probe", (), lambda tool, arguments: ToolResult())
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
        return {"harness": ["mcp", *self._words], "version": self.version}

    def begin(self, tools: Sequence[ToolSpec], seed: int) -> _McpSession:
        """A new session with its own tool server."""
        return _McpSession(self._words, tuple(tools), seed, self._seconds)


class _McpSession:
    def __init__(self, words: list[str], tools: tuple[ToolSpec, ...], seed: int, seconds: float) -> None:
        self._words = words
        self._seconds = seconds
        self._seed = seed
        self._folder = Path(tempfile.mkdtemp(prefix="seatrial-mcp-"))
        self._bridge = Bridge(self._work, seconds)
        self._process: Process | None = None
        path = str(self._folder / "tools.sock")
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(path)
        self._listener.listen()
        served = mcp_server.server(SERVER, tools, self._bridge.call)
        threading.Thread(target=self._listen, args=(served,), daemon=True, name="mcp").start()
        entry = {"command": sys.executable, "args": ["-I", mcp_pipe.__file__, path]}
        self._config = self._folder / "mcp.json"
        self._config.write_text(json.dumps({"mcpServers": {SERVER: entry}}))

    def send(self, incoming: UserMessage | tuple[ToolResult, ...]) -> AgentTurn:
        """The next turn: a tool call, or what the program printed."""
        return self._bridge.send(incoming)

    def close(self) -> None:
        """End the program and the tool server."""
        self._bridge.close()
        if self._process is not None:
            self._process.close(0.2)
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def kill(self) -> None:
        """End the program and the tool server at once, even while a turn is waited for."""
        if self._process is not None:
            self._process.kill()
        self.close()

    def _work(self, text: str) -> str:
        filled = [w.replace("{mcp_config}", str(self._config)).replace("{task}", text) for w in self._words]
        environment = {"SEATRIAL_MCP_CONFIG": str(self._config), "SEATRIAL_SEED": str(self._seed)}
        process = self._process = Process(filled, environment=environment)
        if not any("{task}" in w for w in self._words):
            process.write(text.encode())
        process.end_input()
        lines = []
        while (line := process.line(self._seconds)) is not None:
            lines.append(line.decode(errors="replace"))
        code = process.wait(5.0)
        if code != 0:
            said = process.said()
            process.close(0.2)
            raise AgentError(f"the program failed{said}")
        process.close(0.2)
        return "\n".join(lines).strip()

    def _listen(self, served: Any) -> None:
        while True:
            try:
                link, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=_serve, args=(served, link), daemon=True, name="mcp-client").start()


def _serve(served: Any, link: socket.socket) -> None:
    """One client, over a socket instead of the standard streams: the same lines."""
    import anyio
    from mcp.server.stdio import stdio_server

    async def main() -> None:
        reading = anyio.wrap_file(TextIOWrapper(link.makefile("rb"), encoding="utf-8"))
        writing = anyio.wrap_file(TextIOWrapper(link.makefile("wb"), encoding="utf-8"))
        async with stdio_server(reading, writing) as (inward, outward):
            await served.run(inward, outward, served.create_initialization_options())

    with link, contextlib.suppress(OSError, ValueError):
        anyio.run(main)
