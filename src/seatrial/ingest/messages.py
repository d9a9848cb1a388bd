"""Chat messages in OpenAI's shape to steps: who spoke, the calls, and each result with the step that called.

Shared by the readers of formats that keep such messages. A `tool` message is no step of its own: its content is
the result of the call that it names. Fields that a step lacks stay in `extra` under their own names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from seatrial.ingest.jsontext import BadJSON, as_text, kind, loads
from seatrial.ingest.times import moment
from seatrial.ingest.user_text import spoken
from seatrial.records import EventClass, ResultOutcome, Step, ToolCall, ToolResult, Usage, Validity

Outcome = Callable[[Mapping[str, Any], str], ResultOutcome]
"""What the log says about a tool message, from the message and its text."""

_AGENT = frozenset({"assistant", "model", "agent", "ai"})
_SYSTEM = frozenset({"system", "developer"})
_TOOL = frozenset({"tool", "function"})
_USER = frozenset({"user", "human"})
_TOKENS = frozenset({"prompt_tokens", "completion_tokens", "input_tokens", "output_tokens", "total_tokens"})
_LARGEST = 2**53
"""Counts and amounts beyond this are no counts and amounts: they stay in `extra` alone."""
ROLES = _AGENT | _SYSTEM | _TOOL | _USER


class Conversation:
    """Collects messages in order; `steps` gives what they came to.

    `user` is the class of a user turn: `human`, or `simulated_user` in benchmarks. `outcome` reads a tool
    message; None: the log says nothing (`unknown`). `control` strips a simulator's control words from a user
    turn and returns the rest and the words.
    """

    def __init__(
        self,
        *,
        user: Literal["human", "simulated_user"] = "human",
        outcome: Outcome | None = None,
        control: Callable[[str], tuple[str, tuple[str, ...]]] | None = None,
    ) -> None:
        self._user: EventClass = user
        self._outcome = outcome
        self._control = control
        self._drafts: list[_Draft] = []

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps so far, each with its calls and their results."""
        return tuple(draft.step(index) for index, draft in enumerate(self._drafts))

    def add(self, message: Any) -> str | None:
        """Take one message in; the reason when it cannot be one (it is then left out)."""
        if not isinstance(message, dict):
            return f"expected a message object, found {kind(message)}"
        role = role_of(message)
        if role in _AGENT:
            self._agent(message)
        elif role in _TOOL:
            self._tool(message)
        elif role in _USER:
            self._person(message)
        elif role in _SYSTEM:
            text, parts = text_of(message.get("content"))
            kept = _rest(message, "role", "content")
            self._drafts.append(_Draft("harness", text, message, parts, kept, kind="system_prompt"))
        else:
            return f"expected a role among {', '.join(sorted(ROLES))}, found {as_text(message.get('role'))[:40]}"
        return None

    def _agent(self, message: dict[str, Any]) -> None:
        text, parts = text_of(message.get("content"))
        refusal = message.get("refusal")
        kept = _rest(message, "role", "content", "tool_calls", "function_call", "usage")
        if not text and isinstance(refusal, str):
            text = refusal
        draft = _Draft("agent", text, message, parts, kept)
        for name in ("reasoning_content", "reasoning"):
            if draft.reasoning is None and isinstance(message.get(name), str):
                draft.reasoning = kept.pop(name) or None
        draft.usage = usage_of(message.get("usage"), message.get("cost"))
        if draft.usage is not None and draft.usage.cost_usd is not None:
            kept.pop("cost", None)
        if isinstance(message.get("model"), str):
            draft.model = kept.pop("model") or None
        raw = message.get("tool_calls")
        calls = raw if isinstance(raw, list) else []
        if raw is not None and not isinstance(raw, list):
            draft.extra["tool_calls"] = raw
        position = len(self._drafts)
        blocks = [part for part in parts or () if isinstance(part, dict) and part.get("type") == "tool_use"]
        for n, call in enumerate([*calls, *blocks]):
            draft.calls.append(tool_call(call, f"call-{position}-{n}"))
        legacy = message.get("function_call")
        if isinstance(legacy, dict):
            draft.calls.append(tool_call({"function": legacy}, f"call-{position}-{len(draft.calls)}"))
        elif legacy is not None:
            draft.extra["function_call"] = legacy
        self._drafts.append(draft)

    def _tool(self, message: dict[str, Any], outcome: ResultOutcome | None = None) -> None:
        text, parts = text_of(message.get("content"))
        call_id = message.get("tool_call_id", message.get("id"))
        kept = _rest(message, "role", "content", "tool_call_id", "id", "timestamp")
        if parts is not None:
            kept["content"] = parts
        home, found = self._home(call_id, message.get("name"))
        if found is None and call_id is not None:
            kept["tool_call_id"] = call_id
        if outcome is None:
            outcome = self._outcome(message, text) if self._outcome else "unknown"
        result = ToolResult(
            call_id=found,
            outcome=outcome,
            text=text,
            time=moment(message.get("timestamp")),
            extra=kept,
        )
        if home is None:
            home = _Draft("harness", "", message, None, {}, kind="tool_result")
            self._drafts.append(home)
        home.results.append(result)

    def _person(self, message: dict[str, Any]) -> None:
        content = message.get("content")
        if isinstance(content, list):
            content = self._block_results(content)
            if not content and message["content"]:
                return
        text, parts = text_of(content)
        kept = _rest(message, "role", "content", "tool_calls")
        if message.get("tool_calls"):
            kept["user_tool_calls"] = message["tool_calls"]
        words: tuple[str, ...] = ()
        if self._control is not None:
            text, words = self._control(text)
        if words:
            kept["control"] = list(words)
        said = spoken(text, self._user)
        if said.injected:
            kept["injected"] = list(said.injected)
        who, what = said.event_class, said.kind
        if words and not text:
            who, what = "harness", "control"
        self._drafts.append(_Draft(who, said.text, message, parts, kept, kind=what))

    def _block_results(self, content: list[Any]) -> list[Any]:
        """Hand the `tool_result` blocks of a user turn to the calls that they answer; the rest is the turn."""
        rest = []
        for part in content:
            if isinstance(part, dict) and part.get("type") == "tool_result":
                flag = part.get("is_error")
                self._tool(
                    {**_rest(part, "type", "tool_use_id"), "tool_call_id": part.get("tool_use_id")},
                    None if flag is None else "error" if flag else "ok",
                )
            else:
                rest.append(part)
        return rest

    def _home(self, call_id: Any, name: Any) -> tuple[_Draft | None, str | None]:
        """The step that made the call of this id (or, without an id, of this name), and the call's id."""
        last: _Draft | None = None
        for draft in reversed(self._drafts):
            if draft.event_class != "agent":
                continue
            last = last or draft
            answered = {result.call_id for result in draft.results}
            for call in draft.calls:
                if isinstance(call_id, str) and call.id == call_id:
                    return draft, call.id
                if call_id is None and call.name == name and call.id not in answered:
                    return draft, call.id
        return last, None


class _Draft:
    """A step in the making."""

    def __init__(
        self,
        event_class: EventClass,
        text: str,
        message: Mapping[str, Any],
        parts: list[Any] | None,
        extra: dict[str, Any],
        *,
        kind: str | None = None,
    ) -> None:
        self.event_class = event_class
        self.text = text
        self.kind = kind
        self.time = moment(message.get("timestamp"))
        self.extra = extra
        if self.time is not None:
            extra.pop("timestamp", None)
        if parts is not None:
            self.extra["content"] = parts
        self.calls: list[ToolCall] = []
        self.results: list[ToolResult] = []
        self.reasoning: str | None = None
        self.usage: Usage | None = None
        self.model: str | None = None

    def step(self, index: int) -> Step:
        return Step(
            index=index,
            event_class=self.event_class,
            text=self.text,
            time=self.time,
            reasoning=self.reasoning,
            tool_calls=tuple(self.calls),
            results=tuple(self.results),
            model=self.model,
            usage=self.usage,
            kind=self.kind,
            extra=self.extra,
        )


def role_of(message: Any) -> str | None:
    """The role of a message, one of `ROLES`; None when it is no message."""
    role = message.get("role") if isinstance(message, dict) else None
    return role if isinstance(role, str) and role in ROLES else None


def text_of(content: Any) -> tuple[str, list[Any] | None]:
    """The text of a message's content, and its parts when it comes in parts (text parts joined by newlines)."""
    if content is None:
        return "", None
    if isinstance(content, str):
        return content, None
    if not isinstance(content, list):
        return as_text(content), None
    texts = []
    for part in content:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict):
            text = part.get("text", part.get("refusal"))
            if isinstance(text, str):
                texts.append(text)
    return "\n".join(texts), content


def tool_call(raw: Any, default_id: str) -> ToolCall:
    """A call as the log has it: arguments parsed, or kept as text and marked invalid when they are no object."""
    if not isinstance(raw, dict):
        return ToolCall(id=default_id, name="", raw_arguments=as_text(raw), validity="invalid")
    function = raw.get("function")
    body = function if isinstance(function, dict) else raw
    given = body.get("arguments", body.get("input"))
    name = body.get("name")
    call_id = raw.get("id")
    extra = _rest(raw, "id", "function", "name", "arguments", "input", "type")
    if body is not raw:
        extra |= _rest(body, "name", "arguments")
    if raw.get("type") not in (None, "function", "tool_use"):
        extra["type"] = raw["type"]
    arguments, text, validity = arguments_of(given)
    return ToolCall(
        id=call_id if isinstance(call_id, str) and call_id else default_id,
        name=name if isinstance(name, str) else as_text(name) if name is not None else "",
        arguments=arguments,
        raw_arguments=text,
        validity=validity,
        extra=extra,
    )


def arguments_of(given: Any) -> tuple[dict[str, Any], str | None, Validity]:
    """Arguments as (object, raw text, validity): text is set and validity `invalid` when they are no object."""
    if isinstance(given, dict):
        return given, None, "unknown"
    if given is None or given == "":
        return {}, None, "unknown"
    if isinstance(given, str):
        try:
            value, _ = loads(given.encode())
        except BadJSON:
            return {}, given, "invalid"
        if isinstance(value, dict):
            return value, None, "unknown"
    return {}, as_text(given), "invalid"


def usage_of(usage: Any, cost: Any = None) -> Usage | None:
    """Tokens and money of a response; None when neither is recorded."""
    money = amount(cost)
    if not isinstance(usage, dict):
        return Usage(cost_usd=money) if money is not None else None
    details = usage.get("prompt_tokens_details", usage.get("input_tokens_details"))
    return Usage(
        input_tokens=whole(usage.get("prompt_tokens", usage.get("input_tokens"))),
        output_tokens=whole(usage.get("completion_tokens", usage.get("output_tokens"))),
        cached_tokens=whole(details.get("cached_tokens")) if isinstance(details, dict) else None,
        cost_usd=money,
        extra={name: value for name, value in usage.items() if value is not None and name not in _TOKENS},
    )


def total(steps: tuple[Step, ...]) -> Usage:
    """The sum over steps of what was recorded; a quantity that no step records stays None."""
    usages = [step.usage for step in steps if step.usage is not None and not step.copied]

    def summed(values: list[int | None]) -> int | None:
        known = [v for v in values if v is not None]
        return sum(known) if known else None

    costs = [u.cost_usd for u in usages if u.cost_usd is not None]
    return Usage(
        input_tokens=summed([u.input_tokens for u in usages]),
        output_tokens=summed([u.output_tokens for u in usages]),
        cached_tokens=summed([u.cached_tokens for u in usages]),
        cost_usd=sum(costs) if costs else None,
    )


def amount(value: Any) -> float | None:
    """A finite number as recorded; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) <= _LARGEST else None


def whole(value: Any) -> int | None:
    """A count or ordinal as recorded: an integer of 0 or more; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value <= _LARGEST else None


def _rest(source: Mapping[str, Any], *known: str) -> dict[str, Any]:
    return {name: value for name, value in source.items() if name not in known and value is not None}
