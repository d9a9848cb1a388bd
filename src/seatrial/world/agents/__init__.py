"""A spec to an agent under test: functions, programs, servers, chat models and MCP clients."""

from seatrial.world.agents.command import CommandAgent
from seatrial.world.agents.function import FunctionAgent, Tools
from seatrial.world.agents.http import HttpAgent
from seatrial.world.agents.model import ChatAgent
from seatrial.world.agents.spec import parse_agent

__all__ = ["ChatAgent", "CommandAgent", "FunctionAgent", "HttpAgent", "Tools", "parse_agent"]
