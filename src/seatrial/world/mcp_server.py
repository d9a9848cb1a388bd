"""A world's tools served over MCP, so that any agent that speaks it can be tested.

``python -m seatrial.world.mcp_server module:function [--seed N] [--log FILE]`` serves, over standard input and
output, the world that ``function(seed)`` returns; each call and its result is a JSON line in the log.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seatrial._version import __version__
from seatrial.canon import canonical
from seatrial.errors import MissingExtra, SeatrialError, UsageError
from seatrial.records import ToolCall, ToolResult, ToolSpec
from seatrial.records.protocols import World
from seatrial.world.starts import load

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

CallFn = Callable[[str, dict[str, Any]], ToolResult]


def server(name: str, tools: Sequence[ToolSpec], call: CallFn) -> Server[Any]:
    """A low-level MCP server of these tools. `call` runs in a worker thread, one call at a time.

    A result with another outcome than ``ok`` is an MCP tool error with the same text. A tool's risk profile becomes
    its annotations (read-only, destructive, open world).

    Raises:
        MissingExtra: the extra [mcp] is not installed.
    """
    try:
        import anyio
        from mcp import types
        from mcp.server.lowlevel import Server
    except ImportError as error:
        raise MissingExtra("mcp", "serving tools over MCP") from error

    offered = [
        types.Tool(
            name=t.name,
            description=t.description,
            input_schema=t.parameters,
            annotations=types.ToolAnnotations(
                read_only_hint=t.effect == "read",
                destructive_hint=t.risk.irreversible,
                open_world_hint=t.risk.external,
            ),
        )
        for t in tools
    ]
    # A world is not made for two threads.
    one_at_a_time = anyio.Lock()

    async def listed(context: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=offered)

    async def called(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        async with one_at_a_time:
            result = await anyio.to_thread.run_sync(
                call, params.name, dict(params.arguments or {}), abandon_on_cancel=True
            )
        content: list[Any] = [types.TextContent(type="text", text=result.text)]
        return types.CallToolResult(content=content, is_error=result.outcome != "ok")

    return Server(name, version=__version__, on_list_tools=listed, on_call_tool=called)


def caller(world: World, log: Path | None = None) -> CallFn:
    """Calls straight into `world`, each appended to `log` as a JSON line. A gated call is refused: there is nobody
    to ask (tests with gates go through `run_episode`)."""
    count = 0

    def call(tool: str, arguments: dict[str, Any]) -> ToolResult:
        nonlocal count
        count += 1
        proposed = ToolCall(id=f"call-{count}", name=tool, arguments=arguments)
        gate = world.gate(proposed)
        if gate is not None:
            text = f"This needs approval ({gate.name}: {gate.why}), and nobody is there to give it."
            result = ToolResult(call_id=proposed.id, outcome="rejected", text=text)
        else:
            result = world.call(proposed)
        if log is not None:
            entry = {"call": proposed, "result": result, "state_hash": world.state_hash()}
            with log.open("ab") as file:
                file.write(canonical(entry) + b"\n")
        return result

    return call


def serve_stdio(served: Server[Any]) -> None:
    """Serve over this process' standard input and output until the client goes."""
    import anyio
    from mcp.server.stdio import stdio_server

    async def main() -> None:
        async with stdio_server() as (reading, writing):
            await served.run(reading, writing, served.create_initialization_options())

    anyio.run(main)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m seatrial.world.mcp_server", description=main.__doc__)
    parser.add_argument("world", help="module:function, from a seed to a world that has been reset")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--log", type=Path, default=None)
    given = parser.parse_args(arguments)
    try:
        world = load(given.world)(given.seed)
        if not isinstance(world, World):
            raise UsageError(f"{given.world} returned {type(world).__name__}", hint="return a world")
        serve_stdio(server(world.name, world.tools, caller(world, given.log)))
    except SeatrialError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
