"""A stored run to its agent once more, where no model need be asked: scripted agents, and chat agents on their log."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from seatrial.canon import content_hash
from seatrial.records import Conversation, Task, ToolSpec, Trace
from seatrial.suites import Suite
from seatrial.world import ScriptedAgent, offered, rules

_CHAT = ("seatrial-chat", "1")


def agent_again(suite: Suite, task: Task, trace: Trace | None) -> Callable[[], Conversation] | None:
    """Begins the run's agent again with its recorded responses (METHODS 5, D5); None where it would reach a model, or
    where it is not the agent that ran."""
    if trace is None:
        return None
    own = suite.agents.get(trace.agent.name)
    held = trace.extra.get("world")
    raw = held.get("tools", []) if isinstance(held, dict) else []
    try:
        tools = offered(msgspec.convert(raw, tuple[ToolSpec, ...]), rules(task.gates))
    except msgspec.ValidationError:
        return None
    if isinstance(own, ScriptedAgent) and own.version == trace.agent.version:
        agent, seed = own, trace.extra.get("seed", 0)
        return lambda: agent.begin(tools, seed)
    if _by_chat(trace):
        from seatrial.world.agents.playback import playback

        return lambda: playback(trace, tools)
    return None


def _by_chat(trace: Trace) -> bool:
    """Whether our own chat harness drove the model: the fingerprint says so."""
    marks = trace.extra.get("fingerprint")
    mine = content_hash([*_CHAT, trace.agent.version])[:16]
    return isinstance(marks, dict) and marks.get("harness") == mine
