"""An agent to its fingerprint: which parts of it make two runs runs of different agents (METHODS 6.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from seatrial.canon import content_hash
from seatrial.records import AgentUnderTest, Step, ToolSpec
from seatrial.suites.hashing import source_of

PARTS = ("model", "prompt", "tools", "harness", "sampling")


def fingerprint(agent: AgentUnderTest, tools: Sequence[ToolSpec], steps: Sequence[Step] = ()) -> dict[str, str]:
    """Hash of each known part: model as served, prompt, tool schemas and descriptions, harness, sampling.

    An agent may say more of itself: its attribute ``fingerprint``, a mapping from part to a plain value, is hashed
    and wins. The model as served is read from the steps. A part that is not known is absent.
    """
    said: Mapping[str, Any] = _own(agent)
    parts: dict[str, Any] = {
        "tools": [msgspec.to_builtins(t) for t in tools],
        "harness": [agent.name, agent.version, source_of(getattr(agent, "_script", agent))],
    }
    served = sorted({s.model for s in steps if s.model})
    if served:
        parts["model"] = served
    parts.update({str(k): v for k, v in said.items() if v is not None})
    return {name: content_hash(msgspec.to_builtins(value))[:16] for name, value in sorted(parts.items())}


def _own(agent: AgentUnderTest) -> Mapping[str, Any]:
    own = getattr(agent, "fingerprint", None)
    if callable(own):
        own = own()
    return own if isinstance(own, Mapping) else {}
