"""A chat agent whose model is a log: the recorded responses again, and no model is reached."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seatrial.chat import Reply
from seatrial.errors import AgentError
from seatrial.records import Step, ToolSpec, Trace
from seatrial.records.protocols import Conversation
from seatrial.world.agents.model import PROMPT, _Chat


class _Recorded:
    """Answers each request with the next recorded response."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = iter(steps)
        self.model = next((s.model for s in steps if s.model), "")

    def complete(self, messages: Sequence[Any], tools: Sequence[ToolSpec] = ()) -> Reply:
        step = next(self._steps, None)
        if step is None:
            raise AgentError("the log holds no further response")
        return Reply(
            text=step.text, calls=step.tool_calls, reasoning=step.reasoning, usage=step.usage, model=step.model
        )

    def close(self) -> None:
        """Nothing is open."""


def playback(trace: Trace, tools: Sequence[ToolSpec], prompt: str = PROMPT) -> Conversation:
    """The chat agent's side of `trace` once more: the same responses of the model, decided on by the code of today."""
    spoken = [s for s in trace.steps if s.event_class == "agent" and not s.copied]
    client: Any = _Recorded(spoken)
    return _Chat(client, tuple(tools), prompt)
