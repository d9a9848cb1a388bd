"""A chat model that is prompted to reason and act in turn (ReAct), for worlds that take one command at a time.

The prompt asks for a thought and an action in plain words, so that any chat model can be used, with or without tool
calling. (Yao et al., "ReAct: Synergizing Reasoning and Acting in Language Models", ICLR 2023; the prompt is ours.)
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from seatrial.chat import ChatClient, ChatError, Message, Patience, Sampling
from seatrial.errors import AgentError, AgentTimeout, UsageError
from seatrial.records import AgentTurn, ToolCall, ToolResult, ToolSpec, UserMessage

PROMPT = """You act in a text world, one command at a time. Answer with exactly two lines:
Thought: what you know, what you still need, and what to do next
Action: one command

Commands: go to PLACE, open PLACE, close PLACE, take THING from PLACE, move THING to PLACE, use THING, heat THING with \
PLACE, cool THING with PLACE, clean THING with PLACE, examine PLACE, inventory, look.
Things and places have numbers: write "mug 1", not "mug". You must stand at a place to open it or to take from it. \
After each action you are told what happened. "Nothing happens." means that the command was not possible.
When the task is done, write Action: stop"""

_ACTION = re.compile(r"^\W*action\W*?:\W*(.+?)\W*$", re.IGNORECASE | re.MULTILINE)
_THOUGHT = re.compile(r"^\W*thought\W*:\s*(.+?)\s*$", re.IGNORECASE | re.MULTILINE)
SAMPLING = Sampling(temperature=0.0, max_tokens=160, stop=("\nObservation",))


class ReActAgent:
    """Implements `records.AgentUnderTest` over any OpenAI-compatible endpoint.

    The world must have one tool that takes one string. An answer without an action is sent to the world as it is,
    which will say that nothing happens; after `patience` such answers in a row the agent stops.
    """

    def __init__(
        self,
        model: str,
        url: str,
        *,
        prompt: str = PROMPT,
        sampling: Sampling = SAMPLING,
        patience: int = 3,
        waiting: Patience = Patience(),
        key: str | None = None,
        version: str = "1",
    ) -> None:
        self.name = f"react:{model}"
        self.version = version
        self._prompt = prompt
        self._sampling = sampling
        self._patience = patience

        def client() -> ChatClient:
            return ChatClient(model, url, key=key, sampling=sampling, patience=waiting)

        self._client = client
        client().close()

    @property
    def parts(self) -> dict[str, Any]:
        """What the fingerprint covers."""
        sampling = msgspec.to_builtins(self._sampling)
        return {"model": self.name, "prompt": self._prompt, "sampling": sampling, "harness": ["react", self.version]}

    def begin(self, tools: Sequence[ToolSpec], seed: int) -> ReAct:
        """A new session.

        Raises:
            UsageError: the world's only tool does not take one string.
        """
        fields = list(tools[0].parameters.get("properties", {})) if len(tools) == 1 else []
        if len(fields) != 1:
            raise UsageError("this agent needs a world with one tool that takes one string", hint="use chat:MODEL@URL")
        seed = seed if self._sampling.seed is None else self._sampling.seed
        return ReAct(self._client(), seed, (tools[0].name, fields[0]), self._patience, self._prompt)


class ReAct:
    """One session: the words so far. A copy shares nothing with it that changes."""

    def __init__(self, client: ChatClient, seed: int, tool: tuple[str, str], patience: int, prompt: str) -> None:
        self._client = client
        self._seed = seed
        self._tool = tool
        self._patience = patience
        self._messages: list[Message] = [{"role": "system", "content": prompt}]
        self._count = 0
        self._wordless = 0

    def send(self, incoming: UserMessage | tuple[ToolResult, ...]) -> AgentTurn:
        """The model's next thought and action.

        Raises:
            AgentTimeout: no response in time.
            AgentError: the conversation is too long for the model, or its response cannot be read.
            ChatError: the server cannot be reached, limits the rate, or refuses the request.
        """
        if isinstance(incoming, UserMessage):
            said = incoming.text
        else:
            said = "Observation: " + "\n".join(r.text for r in incoming)
        self._messages.append({"role": "user", "content": said})
        try:
            reply = self._client.complete(self._messages, extra={"seed": self._seed})
        except ChatError as error:
            if error.kind == "timeout":
                raise AgentTimeout(error.message) from error
            if error.kind in ("too_long", "malformed"):
                raise AgentError(error.message, hint=error.hint) from error
            raise
        self._messages.append({"role": "assistant", "content": reply.text})
        found, thought = _ACTION.search(reply.text), _THOUGHT.search(reply.text)
        reasoning = thought.group(1) if thought else None
        self._wordless = 0 if found else self._wordless + 1
        command = found.group(1).strip().lower() if found else reply.text.strip()[:200]
        if command in ("stop", "done", "") or self._wordless >= self._patience:
            return AgentTurn(text=reply.text, reasoning=reasoning, usage=reply.usage, model=reply.model)
        self._count += 1
        call = ToolCall(id=f"act-{self._count}", name=self._tool[0], arguments={self._tool[1]: command})
        return AgentTurn(calls=(call,), reasoning=reasoning, usage=reply.usage, model=reply.model)

    def copy(self) -> ReAct:
        """The same words so far, to go on by itself. The connection is shared: it holds nothing of a conversation."""
        other = ReAct(self._client, self._seed, self._tool, self._patience, "")
        other._messages, other._count, other._wordless = list(self._messages), self._count, self._wordless
        return other

    def reseed(self, seed: int) -> None:
        """Ask with another sampling seed from now on."""
        self._seed = seed

    def close(self) -> None:
        """Close the connection, for its copies too."""
        self._client.close()


def react_agent(spec: str) -> ReActAgent:
    """The agent of ``MODEL@URL``.

    Raises:
        UsageError: it is not of that form.
    """
    model, _, url = spec.rpartition("@")
    if not model or not url:
        raise UsageError(f"react:{spec} names no model and address", hint="write react:MODEL@http://host:8080/v1")
    return ReActAgent(model, url)
