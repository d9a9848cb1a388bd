"""From the words after ``--agent`` to an agent under test (DESIGN 5)."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import httpx

from seatrial.chat import Patience, Sampling
from seatrial.errors import UsageError
from seatrial.records.price import Prices
from seatrial.records.protocols import AgentUnderTest
from seatrial.world.agents.command import CommandAgent
from seatrial.world.agents.function import FunctionAgent
from seatrial.world.agents.http import HttpAgent
from seatrial.world.agents.model import ChatAgent
from seatrial.world.starts import load

FORMS = "python:module:function, cmd:program args, http(s)://address, chat:MODEL@URL, mcp:program args"


def parse_agent(
    spec: str,
    *,
    seconds: float = 600.0,
    sampling: Sampling = Sampling(),
    prices: Prices | None = None,
) -> AgentUnderTest:
    """The agent that `spec` names; `seconds` bounds each of its turns.

    | spec | agent |
    |---|---|
    | ``python:module:name`` | a function of (text, tools), or an object with `begin` |
    | ``cmd:program args`` | a program that speaks JSON lines |
    | ``http://…``, ``https://…`` | a server that speaks the same objects |
    | ``chat:MODEL@URL`` | a model behind an OpenAI-compatible address |
    | ``mcp:program args`` | a program that uses the world's tools over MCP |

    Raises:
        UsageError: it is none of these.
        InputError: the function cannot be loaded.
        MissingExtra: ``mcp:`` without the extra [mcp].
    """
    kind, _, rest = spec.partition(":")
    if kind in ("http", "https") and rest.startswith("//"):
        return HttpAgent(_address(spec, spec), seconds=seconds)
    if kind == "python" and rest:
        return _python(rest, seconds)
    if kind == "cmd" and rest.strip():
        return CommandAgent(rest, seconds=seconds)
    if kind == "chat" and "@" in rest:
        model, _, url = rest.rpartition("@")
        if model and url:
            return ChatAgent(
                model,
                _address(url, spec),
                sampling=sampling,
                prices=prices,
                patience=Patience(read=seconds, connect=min(10.0, seconds)),
            )
    if kind == "mcp" and rest.strip():
        from seatrial.world.agents.over_mcp import McpAgent

        return McpAgent(rest, seconds=seconds)
    raise UsageError(f"--agent {spec!r} is no agent", hint=f"one of {FORMS}")


def _address(url: str, spec: str) -> str:
    """The address, if it is one that can be asked: a mistake is told before anything runs.

    Raises:
        UsageError: it is none.
    """
    try:
        parts = httpx.URL(url)
        fits = parts.scheme in ("http", "https") and bool(parts.host) and not any(c.isspace() for c in url)
        port = urlsplit(url).port
    except (httpx.InvalidURL, ValueError, TypeError):
        fits, port = False, None
    if not fits or port == 0:
        raise UsageError(f"--agent {spec!r}: {url!r} is no http(s) address", hint="http://HOST:PORT/path")
    return url


def _python(name: str, seconds: float) -> AgentUnderTest:
    found: Any = load(name, callable_only=False)
    if isinstance(found, AgentUnderTest) and not isinstance(found, type):
        agent: AgentUnderTest = found
        return agent
    if callable(found):
        return FunctionAgent(name, found, seconds=seconds)
    raise UsageError(f"python:{name} is {type(found).__name__}", hint="name a function of (text, tools), or an agent")
