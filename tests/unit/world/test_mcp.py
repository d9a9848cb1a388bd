"""A world's tools over MCP, with the real client."""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from seatrial.examples.ticketdesk import DOMAIN
from seatrial.world import Approve, FixedText, GateRule, run_episode
from seatrial.world.agents import parse_agent

pytestmark = pytest.mark.skipif(find_spec("mcp") is None, reason="the extra [mcp] is not installed")


def test_a_real_client_over_stdio(tmp_path: Path) -> None:
    import anyio
    import mcp

    log = tmp_path / "calls.jsonl"
    arguments = ["-m", "seatrial.world.mcp_server", "seatrial.examples.ticketdesk:DOMAIN.world"]
    server = mcp.StdioServerParameters(command=sys.executable, args=[*arguments, "--seed", "3", "--log", str(log)])

    async def use() -> tuple[list[str], list[tuple[bool, str]], dict[str, bool | None]]:
        async with mcp.stdio_client(server) as streams, mcp.ClientSession(*streams) as session:
            await session.initialize()
            listed = (await session.list_tools()).tools
            said = []
            for name, given in (
                ("read_ticket", {"id": "T-101"}),
                ("close_ticket", {"id": "T-101", "resolution": "x"}),
                ("read_ticket", {"id": 7}),
                ("fly", {}),
            ):
                result = await session.call_tool(name, given)
                said.append((result.is_error, result.content[0].text))
            hints = {t.name: t.annotations.destructive_hint for t in listed}
            assert listed[1].input_schema == DOMAIN.build().tools[1].parameters
            return [t.name for t in listed], said, hints

    names, said, hints = anyio.run(use)
    assert names == [t.name for t in DOMAIN.build().tools]
    assert hints["refund"] is True
    assert hints["add_note"] is False
    assert [wrong for wrong, _ in said] == [False, False, True, True]
    assert "InputValidationError" in said[2][1]
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    world = DOMAIN.world(3)
    for line in lines:
        from seatrial.records import ToolCall

        call = ToolCall(id=line["call"]["id"], name=line["call"]["name"], arguments=line["call"].get("arguments", {}))
        assert world.call(call).text == line["result"]["text"]
        assert world.state_hash() == line["state_hash"]


AGENT = """
import anyio, json, os, sys
import mcp
async def main(task):
    entry = json.load(open(os.environ["SEATRIAL_MCP_CONFIG"]))["mcpServers"]["seatrial"]
    server = mcp.StdioServerParameters(command=entry["command"], args=entry["args"])
    async with mcp.stdio_client(server) as streams, mcp.ClientSession(*streams) as session:
        await session.initialize()
        tools = (await session.list_tools()).tools
        result = await session.call_tool("refund", {"id": "T-104", "amount": 240})
        print(len(tools), task, "->", result.is_error, result.content[0].text)
if "fail" in sys.argv:
    sys.exit("no idea")
anyio.run(main, sys.stdin.read())
"""


def test_an_agent_that_is_an_mcp_client(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(AGENT)
    gates = (GateRule(name="money", tool="refund", severity="high"),)
    world = DOMAIN.world(1)
    agent = parse_agent(f"mcp:{sys.executable} {tmp_path / 'agent.py'}", seconds=60)
    transcript = run_episode(
        world, agent.begin(world.tools, 1), FixedText("Refund it."), gates=gates, approver=Approve()
    )
    assert transcript.stopped == "user_left", transcript.failure
    assert transcript.steps[-1].text == "8 Refund it. -> False refunded 240 on T-104"
    assert len(transcript.final["refunds"]) == 1
    assert [(e.tool, e.decision, e.respected) for e in transcript.gates] == [("refund", "approve", True)]


def test_an_mcp_client_that_fails(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(AGENT)
    world = DOMAIN.world(1)
    agent = parse_agent(f"mcp:{sys.executable} {tmp_path / 'agent.py'} fail {{task}}", seconds=60)
    transcript = run_episode(world, agent.begin(world.tools, 1), FixedText("Refund it."))
    assert transcript.stopped == "agent_error"
    assert "no idea" in str(transcript.failure)
