"""The agent protocol: JSON objects between seatrial and an agent, over lines or HTTP (docs/reference)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from seatrial.errors import AgentError
from seatrial.records import AgentTurn, ToolCall, ToolResult, ToolSpec, Usage, UserMessage

PROTOCOL = 1


class _Call(msgspec.Struct):
    tool: str
    arguments: Any = {}
    id: str | None = None


class _Usage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    cost_usd: float | None = None


class _Call1(msgspec.Struct, tag_field="type", tag="call"):
    tool: str | None = None
    arguments: Any = {}
    id: str | None = None
    calls: list[_Call] = []
    text: str = ""
    reasoning: str | None = None
    model: str | None = None
    usage: _Usage | None = None


class _Answer(msgspec.Struct, tag_field="type", tag="answer"):
    text: str = ""
    reasoning: str | None = None
    model: str | None = None
    usage: _Usage | None = None


class Session:
    """One session's numbering: what to send, and what came back as a turn."""

    def __init__(self, tools: Sequence[ToolSpec], seed: int) -> None:
        self._tools = [{"name": t.name, "description": t.description, "parameters": t.parameters} for t in tools]
        self._seed = seed
        self._begun = False
        self._n = 0

    def outgoing(self, incoming: UserMessage | tuple[ToolResult, ...]) -> list[dict[str, Any]]:
        """The objects to send: one ``task``, one ``message``, or a ``result`` for each call."""
        if isinstance(incoming, UserMessage):
            if self._begun:
                return [{"type": "message", "text": incoming.text}]
            self._begun = True
            return [
                {
                    "type": "task",
                    "protocol": PROTOCOL,
                    "text": incoming.text,
                    "tools": self._tools,
                    "seed": self._seed,
                }
            ]
        out: list[dict[str, Any]] = []
        for r in incoming:
            sent: dict[str, Any] = {
                "type": "result",
                "id": r.call_id,
                "ok": r.outcome == "ok",
                "outcome": r.outcome,
                "text": r.text,
            }
            if r.exit_code is not None:
                sent["exit_code"] = r.exit_code
            out.append(sent)
        return out

    def turn(self, raw: bytes) -> AgentTurn:
        """The turn that the agent's object means.

        Raises:
            AgentError: it is no ``call`` and no ``answer``.
        """
        try:
            said = msgspec.json.decode(raw, type=_Call1 | _Answer)
        except msgspec.DecodeError as error:
            shown = raw[:120].decode(errors="replace")
            hint = 'write {"type": "call", ...} or {"type": "answer", ...}; print nothing else to stdout'
            raise AgentError(f"the agent sent {shown!r}: {error}", hint=hint) from error
        used = said.usage
        usage = Usage(**msgspec.structs.asdict(used)) if used is not None else None
        if isinstance(said, _Answer):
            return AgentTurn(text=said.text, reasoning=said.reasoning, model=said.model, usage=usage)
        wanted = list(said.calls)
        if said.tool is not None:
            wanted.insert(0, _Call(tool=said.tool, arguments=said.arguments, id=said.id))
        if not wanted:
            raise AgentError("the agent sent a call without a tool", hint='{"type": "call", "tool": ..., ...}')
        calls = tuple(self._call(c) for c in wanted)
        return AgentTurn(text=said.text, calls=calls, reasoning=said.reasoning, model=said.model, usage=usage)

    def _call(self, wanted: _Call) -> ToolCall:
        self._n += 1
        id = wanted.id or f"call-{self._n}"
        if isinstance(wanted.arguments, dict):
            return ToolCall(id=id, name=wanted.tool, arguments=wanted.arguments)
        raw = msgspec.json.encode(wanted.arguments).decode()
        return ToolCall(id=id, name=wanted.tool, raw_arguments=raw, validity="invalid")
