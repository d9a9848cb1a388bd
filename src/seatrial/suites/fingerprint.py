"""An agent to its fingerprint: which parts of it make two runs runs of different agents (METHODS 6.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from seatrial.canon import content_hash
from seatrial.records import AgentUnderTest, Step, ToolSpec
from seatrial.suites.hashing import source_of
from seatrial.suites.sources import code_hash, command_hash

PARTS = ("model", "prompt", "tools", "harness", "sampling")


def about(agent: AgentUnderTest) -> dict[str, str]:
    """Hashes of what is known before the agent runs: its harness, and what its attribute ``parts``, a mapping from
    part to a plain value, says of itself, which wins. The harness also covers the code that the agent is written in,
    and the content of the files that a command line names. Reads source files: ask once per run."""
    own = getattr(agent, "parts", None)
    parts: dict[str, Any] = {"harness": [agent.name, agent.version, source_of(getattr(agent, "_script", agent))]}
    if isinstance(own, Mapping):
        parts.update({str(k): v for k, v in own.items() if v is not None})
    code = _code(agent)
    if code is not None:
        parts["harness"] = [parts["harness"], code]
    return {name: _hash(value) for name, value in parts.items()}


def _code(agent: AgentUnderTest) -> str | None:
    """Hash of the agent's own code; None where it is ours and not the user's, or cannot be seen."""
    command = getattr(agent, "command", None)
    if isinstance(command, tuple):
        return command_hash(command)
    if type(agent).__module__.startswith("seatrial.world.agents."):
        own = getattr(agent, "function", None)
        return None if own is None else code_hash([own])
    return code_hash([getattr(agent, "_script", agent)])


def fingerprint(known: Mapping[str, str], tools: Sequence[ToolSpec], steps: Sequence[Step] = ()) -> dict[str, str]:
    """Hash of each known part: what `about` said, tool schemas and descriptions, and the model as served, which is
    read from the steps. A part that is not known is absent."""
    parts = {**known, "tools": _hash([msgspec.to_builtins(t) for t in tools])}
    served = sorted({s.model for s in steps if s.model})
    if served:
        parts["model"] = _hash(served)
    return dict(sorted(parts.items()))


def _hash(value: Any) -> str:
    return content_hash(msgspec.to_builtins(value))[:16]
