"""One conversation under construction: the session itself, or one of its sub-agents."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

import msgspec

from seatrial.ingest.claude_code import speech, turns
from seatrial.ingest.claude_code.source import Block, Message, ToolUseResult
from seatrial.ingest.claude_code.turns import Turn
from seatrial.records import EventClass, Step, ToolResult, Totals, Usage

_SLASH = re.compile(r"/[\w:.-]+(?:\s|$)")


class Conversation:
    """Turns in file order, with the calls and messages that later records refer to.

    In a sub-agent's conversation nobody is human: its prompt comes from the agent that started it.
    """

    def __init__(self, *, subagent: bool) -> None:
        self.subagent = subagent
        self.turns: list[Turn] = []
        self.calls: dict[str, Turn] = {}
        self.calls_of: dict[str, list[str]] = {}
        self._messages: dict[str, Turn] = {}
        self._queued: list[tuple[str, Turn]] = []

    def agent(
        self,
        message: Message,
        time: float | None,
        *,
        uuid: str | None,
        rid: str | None,
        counted: bool,
        api_error: bool = False,
    ) -> None:
        """A record of an agent's message: united with the others of its `message.id`."""
        turn = self._messages.get(message.id) if message.id else None
        if turn is None:
            if api_error or turns.is_synthetic(message.model):
                turn = Turn("harness", "api_error" if api_error else "synthetic", time)
            else:
                turn = Turn("agent", None, time)
                turn.model = message.model
            self.turns.append(turn)
            if message.id:
                self._messages[message.id] = turn
        calls = turn.unite(message.content)
        if calls:
            for call in calls:
                self.calls[call] = turn
            if uuid is not None:
                self.calls_of[uuid] = calls
        if message.usage is not None:
            turn.usage = message.usage
        if message.stop_reason is not None:
            turn.extra["stop_reason"] = message.stop_reason
        _credit(turn, rid, counted)

    def user(
        self,
        content: str | list[Block] | None,
        detail: ToolUseResult,
        time: float | None,
        *,
        rid: str | None,
        counted: bool,
        kind: str | None = None,
    ) -> None:
        """A record in the user's place. `kind` is set when its fields already say that the harness wrote it."""
        if isinstance(content, str):
            self._speech(content, None, time, rid, counted, kind)
            return
        before: Turn | None = None
        n_before = len(self.turns)
        for block in content or ():
            if block.type == "tool_result":
                self._result(block, detail, time, rid, counted)
            elif block.text is not None:
                before = self._speech(block.text, before, time, rid, counted, kind)
            else:
                if before is None or before.event_class != "human":
                    before = self._add(self._human(), kind, time, rid, counted)
                before.other(block)
        if not content and len(self.turns) == n_before:
            self._add("harness", kind or "empty", time, rid, counted)

    def harness(self, kind: str, text: str, time: float | None, *, rid: str | None, counted: bool) -> Turn:
        """Something that the harness did or said."""
        turn = self._add("harness", kind, time, rid, counted)
        turn.texts.append(text)
        return turn

    def enqueue(self, text: str, time: float | None) -> None:
        """A human typed this while the agent worked.

        If it is delivered as a record of its own, that record replaces it; otherwise these are the only
        traces of a human's words and become a turn where they were typed.
        """
        for said in speech.said(text):
            if said.event_class != "human" or said.text.startswith('{"task_id"'):
                continue
            slash = _SLASH.match(said.text) is not None
            turn = self._add("harness" if slash else "human", "command" if slash else "queued", time, None, True)
            turn.texts.append(said.text)
            turn.extra.update(said.extra)
            self._queued.append((said.text, turn))

    def unqueue(self, text: str) -> None:
        """A queued text was taken back or delivered."""
        text = text.strip()
        for i, (queued, turn) in enumerate(self._queued):
            if queued == text:
                del self._queued[i]
                self.turns.remove(turn)
                return

    def steps(self) -> tuple[Step, ...]:
        """The finished steps."""
        return tuple(turn.step(i) for i, turn in enumerate(self.turns))

    def _human(self) -> EventClass:
        return "harness" if self.subagent else "human"

    def _add(
        self, event_class: EventClass, kind: str | None, time: float | None, rid: str | None, counted: bool
    ) -> Turn:
        turn = Turn(event_class, kind, time)
        _credit(turn, rid, counted)
        self.turns.append(turn)
        return turn

    def _speech(
        self,
        text: str,
        before: Turn | None,
        time: float | None,
        rid: str | None,
        counted: bool,
        kind: str | None,
    ) -> Turn | None:
        if kind is not None:
            return self.harness(kind, text, time, rid=rid, counted=counted)
        for said in speech.said(text):
            event_class, name = said.event_class, said.kind
            if event_class == "human":
                if self.subagent:
                    event_class, name = "harness", "subagent_prompt"
                if self._queued:
                    self.unqueue(said.text)
            if before is None or before.event_class != "human" or event_class != "human":
                before = self._add(event_class, name, time, rid, counted)
            before.texts.append(said.text)
            for key, value in said.extra.items():
                before.extra[key] = [*before.extra[key], *value] if key == "stripped" and key in before.extra else value
        return before

    def _result(self, block: Block, detail: ToolUseResult, time: float | None, rid: str | None, counted: bool) -> None:
        result = turns.result(block, detail, time)
        call_id = block.tool_use_id
        turn = self.calls.get(call_id) if call_id is not None else None
        if turn is None or call_id is None:
            turn = self._add("harness", "orphan_result", time, rid, counted)
        else:
            if rid is not None:
                turn.ids.append(rid)
            self._judge(turn, call_id, result)
        turn.results.append(result)
        if result.outcome == "rejected" and (reason := speech.rejection(result.text)):
            said = self._add(self._human(), "rejection", time, rid, counted)
            said.texts.append(reason)

    def _judge(self, turn: Turn, call_id: str, result: ToolResult) -> None:
        """What the result says about the call: it ran, so it was valid; or the harness refused it."""
        ran = result.outcome == "ok" or result.exit_code is not None
        validity = turns.fault(result.text) or ("valid" if ran else None)
        if validity is not None:
            turn.calls[call_id] = msgspec.structs.replace(turn.calls[call_id], validity=validity)


def _credit(turn: Turn, rid: str | None, counted: bool) -> None:
    if rid is not None:
        turn.ids.append(rid)
    if counted:
        turn.counted = True


def seconds(stamp: str | None) -> float | None:
    """An ISO time as seconds since the epoch, UTC, to the microsecond; None where there is none to be had."""
    if stamp is None:
        return None
    try:
        when = datetime.fromisoformat(stamp)
        moment = when.timestamp()
        return moment if when.tzinfo is not None else round(moment, 6)
    except (ValueError, OverflowError):
        return None


def totals(steps: tuple[Step, ...], extra: dict[str, Any]) -> Totals:
    """Sums over the agent's own steps. What the harness billed in its name is in `extra`, apart."""
    harness = _sum(step.usage for step in steps if step.usage and step.event_class == "harness" and not step.copied)
    own = _sum(step.usage for step in steps if step.usage and step.event_class == "agent" and not step.copied)
    if harness is not None:
        extra = {**extra, "harness_usage": harness}
    times = [step.time for step in steps if step.time is not None and not step.copied]
    wall = round(max(times) - min(times), 6) if times else None
    return Totals(usage=own or Usage(), wall=wall, extra=extra)


def _sum(usages: Any) -> Usage | None:
    values = list(usages)
    if not values:
        return None

    def add(name: str) -> int | None:
        known = [v for u in values if (v := getattr(u, name)) is not None]
        return sum(known) if known else None

    return Usage(
        input_tokens=add("input_tokens"),
        output_tokens=add("output_tokens"),
        cached_tokens=add("cached_tokens"),
    )
