"""SWE-agent trajectory files (``.traj``) to traces: one JSON object per attempt.

``trajectory`` holds what was run and observed, ``history`` the messages of the model: instructions, demonstrations
and, in later versions, the tool calls. An exit status such as ``submitted`` says how the attempt ended, not
whether it solved the task: it stays in `Trace.extra` and is no outcome.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from seatrial.ingest.drafts import Draft, Thread, a_list, an_object, rest, text_or_none, totals
from seatrial.ingest.jsontext import BadJSON, as_text, first_keys, kind, loads
from seatrial.ingest.messages import amount, text_of, tool_call, whole
from seatrial.ingest.values import Value, values
from seatrial.records import Agent, ReadLog, TaskRef, ToolCall, ToolResult, Trace, Usage

_SHAPE = "a SWE-agent trajectory: an object with history, and usually trajectory and info"
_ACTION = ("action", "observation", "response", "thought", "state", "execution_time", "messages", "query")


class SWEAgent:
    """Reads one attempt per file."""

    name = "swe-agent"
    version = "1"
    verified = True

    def sniff(self, path: Path, head: bytes) -> float:
        """Sure of a ``.traj`` file whose object has the keys of one."""
        found = first_keys(head)
        if path.suffix.lower() == ".traj" and found & {"trajectory", "history", "environment", "info"}:
            return 0.96
        return 0.9 if found >= {"trajectory", "history"} else 0.0

    def read(self, path: Path, log: ReadLog) -> Iterator[Trace]:
        """The attempt's trace.

        Raises:
            FormatError: not JSON.
        """
        for value in values(path, log, _SHAPE, whole=True):
            raw = value.value
            if not isinstance(raw, dict) or not (
                isinstance(raw.get("history"), list) or isinstance(raw.get("trajectory"), list)
            ):
                log.skip(value.line, f"expected {_SHAPE}, found {kind(raw)}", value.size)
                continue
            trace = self._trace(path, value, raw, log)
            log.kept(value.size, "attempt")
            yield trace

    def _trace(self, path: Path, value: Value, raw: dict[str, Any], log: ReadLog) -> Trace:
        attempt = _Attempt(log)
        attempt.follow(a_list(raw.get("history")), a_list(raw.get("trajectory")))
        steps = attempt.thread.steps()
        info = an_object(raw.get("info"))
        config = _config(raw.get("replay_config"))
        named = an_object(config.get("problem_statement")).get("id")
        model = an_object(an_object(config.get("agent")).get("model")).get("name")
        extra = rest(raw, "history", "trajectory")
        return Trace(
            id=f"{path.stem}~{value.hash[:12]}",
            agent=Agent(name="swe-agent", version=text_or_none(info.get("swe_agent_version"))),
            model=text_or_none(model) or text_or_none(info.get("model")),
            task=TaskRef(id=text_or_none(named) or path.stem),
            steps=steps,
            totals=totals(steps, _spent(info, len(steps))),
            provenance=value.provenance(self, path),
            extra=extra,
        )


class _Attempt:
    def __init__(self, log: ReadLog) -> None:
        self.thread = Thread()
        self._log = log

    def follow(self, history: list[Any], trajectory: list[Any]) -> None:
        """Messages in order, each agent's message united with the action of the trajectory that it led to."""
        actions = [action for action in trajectory if isinstance(action, dict)]
        if len(actions) < len(trajectory):
            self._log.note(None, f"{len(trajectory) - len(actions)} entries of the trajectory are no objects")
        at = 0
        left = sum(isinstance(m, dict) and m.get("role") == "assistant" and not m.get("is_demo") for m in history)
        answering = False
        for message in history:
            if not isinstance(message, dict):
                self._log.note(None, f"a message of the history is {kind(message)}")
                continue
            role = message.get("role")
            if message.get("is_demo"):
                self._harness(message, "demonstration")
            elif role == "assistant":
                found = _action_of(message, actions, at, left)
                left -= 1
                for action in actions[at : at if found is None else found]:
                    self._agent({}, action)
                at = at if found is None else found + 1
                self._agent(message, {} if found is None else actions[found])
                answering = found is not None
            elif role in ("user", "tool") and (answering or role == "tool"):
                self._observed(message, answered=answering)
                answering = False
            elif role in ("user", "tool") and self._unanswered():
                self._observed(message, answered=False)
            else:
                asked = role == "user" and all(draft.event_class != "agent" for draft in self.thread.drafts)
                self._harness(message, "system_prompt" if role == "system" else "task_prompt" if asked else None)
        for action in actions[at:]:
            self._agent({}, action)

    def _agent(self, message: dict[str, Any], action: dict[str, Any]) -> None:
        text, parts = text_of(message.get("content", action.get("response")))
        draft = self.thread.add(Draft("agent", text))
        draft.extra = rest(message, "role", "content", "tool_calls", "action", "message_type")
        draft.extra |= rest(action, *_ACTION) | rest({"state": action.get("state")})
        for name in ("thought", "execution_time"):
            if (value := action.get(name, message.get(name))) is not None and value != text:
                draft.extra[name] = value
        if parts is not None:
            draft.extra["content"] = parts
        command = action.get("action", message.get("action"))
        calls = [call for call in a_list(message.get("tool_calls")) if isinstance(call, dict)]
        for n, call in enumerate(calls):
            self.thread.call(draft, tool_call(call, f"call-{len(self.thread.drafts) - 1}-{n}"))
        if isinstance(command, str) and command.strip():
            if calls:
                draft.extra["action"] = command
            else:
                made = ToolCall(id=f"call-{len(self.thread.drafts) - 1}-0", name="bash", arguments={"command": command})
                self.thread.call(draft, made)
        observed = action.get("observation")
        if observed is not None:
            self._result(draft, as_text(observed), {})

    def _observed(self, message: dict[str, Any], *, answered: bool) -> None:
        """The observation as the model saw it; where the trajectory has it, only what the message adds."""
        draft = self.thread.last_agent()
        text, parts = text_of(message.get("content"))
        extra = rest(message, "role", "content", "message_type", "tool_call_ids")
        if parts is not None:
            extra["content"] = parts
        if draft is None:
            self.thread.add(Draft("harness", text, kind="observation", extra=extra))
        elif not answered or not draft.results:
            self._result(draft, text, extra)
        elif text != draft.results[-1].text:
            draft.extra["shown"] = text

    def _result(self, draft: Draft, text: str, extra: dict[str, Any]) -> None:
        answered = {result.call_id for result in draft.results}
        open_calls = [call.id for call in draft.calls if call.id not in answered]
        draft.results.append(ToolResult(call_id=open_calls[0] if open_calls else None, text=text, extra=extra))

    def _unanswered(self) -> bool:
        draft = self.thread.drafts[-1] if self.thread.drafts else None
        return draft is not None and draft.event_class == "agent" and len(draft.results) < len(draft.calls)

    def _harness(self, message: dict[str, Any], kind: str | None) -> None:
        text, parts = text_of(message.get("content"))
        extra = rest(message, "role", "content")
        if parts is not None:
            extra["content"] = parts
        self.thread.add(Draft("harness", text, kind=kind, extra=extra))


def _action_of(message: dict[str, Any], actions: list[dict[str, Any]], at: int, left: int) -> int | None:
    """Where in the trajectory the action of this message is; None: it has none there.

    Messages and actions go in step, except that a retried response is in the trajectory alone, and that a
    message may have been edited for a demonstration.
    """
    said, _ = text_of(message.get("content"))
    for here in range(at, min(at + 4, len(actions))):
        for name, value in (("response", said), ("action", message.get("action"))):
            recorded = actions[here].get(name)
            if isinstance(value, str) and isinstance(recorded, str) and value.strip() == recorded.strip():
                return here
    return at if at < len(actions) and left == len(actions) - at else None


def _config(raw: Any) -> dict[str, Any]:
    """The configuration to replay the attempt with: later versions keep it as JSON text."""
    if isinstance(raw, str):
        try:
            raw, _ = loads(raw.encode())
        except BadJSON:
            return {}
    return an_object(raw)


def _spent(info: dict[str, Any], n_steps: int) -> Usage | None:
    """Recorded totals. All zero over an attempt that took steps is a replay without a model: not recorded."""
    stats = an_object(info.get("model_stats"))
    sent, received = whole(stats.get("tokens_sent")), whole(stats.get("tokens_received"))
    cost = amount(stats.get("instance_cost"))
    if n_steps and not sent and not received and not cost:
        return None
    return Usage(input_tokens=sent, output_tokens=received, cost_usd=cost)


READER = SWEAgent()
