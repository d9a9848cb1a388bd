"""mini-swe-agent trajectories (``.traj.json``) to traces: the messages of one attempt, and how it ended.

Actions are code blocks in the agent's text, or tool calls in later versions; the user's turns are the harness's
templates. How an attempt ended (``exit_status``) does not say whether it solved the task: it stays in
`Trace.extra` and is no outcome.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from seatrial.ingest.drafts import Draft, Thread, a_list, an_object, rest, text_or_none, totals, with_cost
from seatrial.ingest.jsontext import as_text, first_keys, kind
from seatrial.ingest.messages import amount, role_of, text_of, tool_call, usage_of
from seatrial.ingest.times import moment
from seatrial.ingest.values import Value, values
from seatrial.records import Agent, ReadLog, ResultOutcome, TaskRef, ToolCall, ToolResult, Trace

_SHAPE = "a mini-swe-agent trajectory: an object with info and messages, or an array of messages"
_BLOCK = re.compile(r"```(?:mswea_bash_command|bash)[ \t]*\n(.*?)\n?```", re.DOTALL)
_CODE = re.compile(r"\s*<returncode>(-?\d{1,10})</returncode>")
_CUT = ("<output_head>", "elided_chars", "characters elided")
_MARKS = (b'"mini_version"', b'"mini-swe-agent', b"mswea_bash_command", b"COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT")


class MiniSWEAgent:
    """Reads one attempt per file."""

    name = "mini-swe-agent"
    version = "1"
    verified = True

    def sniff(self, path: Path, head: bytes) -> float:
        """Sure when messages come with mini-swe-agent's own marks."""
        if not any(mark in head for mark in _MARKS):
            return 0.0
        found = first_keys(head)
        return 0.95 if found & {"messages", "trajectory_format", "info"} or "role" in found else 0.0

    def read(self, path: Path, log: ReadLog) -> Iterator[Trace]:
        """The attempt's trace.

        Raises:
            FormatError: not JSON.
        """
        for value in values(path, log, _SHAPE, whole=True):
            raw = {"messages": value.value} if isinstance(value.value, list) else value.value
            messages = raw.get("messages") if isinstance(raw, dict) else None
            if not isinstance(messages, list) or all(_role(message) is None for message in messages):
                log.skip(value.line, f"expected {_SHAPE}, found {kind(value.value)}", value.size)
                continue
            trace = self._trace(path, value, raw, messages, log)
            log.kept(value.size, "attempt")
            yield trace

    def _trace(self, path: Path, value: Value, raw: dict[str, Any], messages: list[Any], log: ReadLog) -> Trace:
        attempt = _Attempt()
        for message in messages:
            if isinstance(message, dict) and _role(message) is not None:
                attempt.take(message)
            else:
                log.note(None, "a message of no known role is kept in extra only")
                attempt.unread.append(message)
        steps = attempt.thread.steps()
        info = an_object(raw.get("info"))
        cost = amount(an_object(info.get("model_stats")).get("instance_cost"))
        summed = totals(steps)
        model = text_or_none(an_object(an_object(info.get("config")).get("model")).get("model_name"))
        extra = rest(raw, "messages")
        if attempt.unread:
            extra["messages"] = attempt.unread
        instance = raw.get("instance_id")
        return Trace(
            id=f"{path.name.removesuffix('.json').removesuffix('.traj')}~{value.hash[:12]}",
            agent=Agent(name="mini-swe-agent", version=text_or_none(info.get("mini_version"))),
            model=model or next((step.model for step in steps if step.model is not None), None),
            task=TaskRef(id=text_or_none(instance)),
            steps=steps,
            totals=totals(steps, with_cost(summed.usage, cost)),
            provenance=value.provenance(self, path),
            extra=extra,
        )


class _Attempt:
    def __init__(self) -> None:
        self.thread = Thread()
        self.unread: list[Any] = []
        self._asked = False

    def take(self, message: dict[str, Any]) -> None:
        role = _role(message)
        text, parts = text_of(message.get("content"))
        more = an_object(message.get("extra"))
        time = moment(more.get("timestamp", message.get("timestamp")))
        if role == "agent":
            self._agent(message, text, more, time)
            return
        extra = rest(message, "role", "content", "timestamp", "tool_call_id")
        if parts is not None and any(set(part) != {"type", "text"} for part in parts if isinstance(part, dict)):
            extra["content"] = parts
        waiting = self._waiting(message)
        if role == "system":
            self.thread.add(Draft("harness", text, time=time, kind="system_prompt", extra=extra))
        elif role == "exit":
            self.thread.add(Draft("harness", text, time=time, kind="exit", extra=extra))
        elif role == "tool" or waiting is not None:
            self._result(text, extra, waiting, more, time)
        else:
            what = "format_error" if self._asked else "task_prompt"
            self._asked = True
            self.thread.add(Draft("harness", text, time=time, kind=what, extra=extra))

    def _agent(self, message: dict[str, Any], text: str, more: dict[str, Any], time: float | None) -> None:
        response = an_object(more.get("response"))
        answered = moment(response.get("created"))
        draft = self.thread.add(Draft("agent", text, time=time if time is not None else answered))
        draft.extra = rest(message, "role", "content", "tool_calls", "extra", "timestamp", "reasoning_content")
        draft.extra |= rest({"extra": rest(more, "response")} if rest(more, "response") else {})
        draft.extra |= {"response": rest(response, "usage", "choices", "model")} if response else {}
        draft.model = text_or_none(response.get("model"))
        draft.usage = usage_of(response.get("usage"), more.get("cost"))
        if thought := text_or_none(message.get("reasoning_content")):
            draft.reasoning.append(thought)
        position = len(self.thread.drafts) - 1
        calls = [call for call in a_list(message.get("tool_calls")) if isinstance(call, dict)]
        for n, call in enumerate(calls):
            self.thread.call(draft, tool_call(call, f"call-{position}-{n}"))
        if not calls:
            for n, command in enumerate(_commands(text, more)):
                made = ToolCall(id=f"call-{position}-{n}", name="bash", arguments={"command": command})
                self.thread.call(draft, made)

    def _waiting(self, message: dict[str, Any]) -> str | None:
        """The call that this message answers: the one it names, else the first of the last step without a result."""
        named = message.get("tool_call_id")
        if isinstance(named, str) and self.thread.made(named) is not None:
            return named
        last = self.thread.drafts[-1] if self.thread.drafts else None
        if last is None or last.event_class != "agent":
            return None
        answered = {result.call_id for result in last.results}
        return next((call.id for call in last.calls if call.id not in answered), None)

    def _result(
        self, text: str, extra: dict[str, Any], call_id: str | None, more: dict[str, Any], time: float | None
    ) -> None:
        found = _CODE.match(text)
        code = int(found.group(1)) if found else more.get("returncode")
        exit_code = code if isinstance(code, int) and not isinstance(code, bool) and abs(code) < 2**31 else None
        outcome: ResultOutcome = "unknown" if exit_code is None else "ok" if exit_code == 0 else "error"
        cut = any(mark in text for mark in _CUT)
        self.thread.answer(
            ToolResult(
                call_id=call_id,
                outcome=outcome,
                exit_code=exit_code,
                text=text,
                truncated=cut,
                time=time,
                extra=extra,
            )
        )


def _role(message: Any) -> str | None:
    if not isinstance(message, dict):
        return None
    if message.get("role") == "exit":
        return "exit"
    role = role_of(message)
    if role in ("assistant", "model", "agent", "ai"):
        return "agent"
    return {"developer": "system", "function": "tool", "human": "user"}.get(role, role) if role else None


def _commands(text: str, more: dict[str, Any]) -> list[str]:
    """The commands of a response: recorded ones, else its one code block. Any other number was refused."""
    recorded = more.get("actions")
    if isinstance(recorded, list):
        found = [action.get("command", action) if isinstance(action, dict) else action for action in recorded]
        return [as_text(command) for command in found]
    blocks = _BLOCK.findall(text)
    return blocks if len(blocks) == 1 else []


READER = MiniSWEAgent()
