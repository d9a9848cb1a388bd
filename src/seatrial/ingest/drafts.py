"""Events of an agent's log to steps: a result finds the step whose call it answers, wherever it comes.

Shared by the readers whose source is a list of events rather than a list of chat messages.
"""

from __future__ import annotations

from typing import Any

import msgspec

from seatrial.ingest.messages import total
from seatrial.records import EventClass, Step, ToolCall, ToolResult, Totals, Usage


class Draft:
    """A step in the making. `copied` says that it is context of an earlier trace."""

    def __init__(
        self,
        event_class: EventClass,
        text: str = "",
        *,
        time: float | None = None,
        kind: str | None = None,
        model: str | None = None,
        extra: dict[str, Any] | None = None,
        copied: bool = False,
    ) -> None:
        self.event_class = event_class
        self.text = text
        self.time = time
        self.kind = kind
        self.model = model
        self.copied = copied
        self.extra: dict[str, Any] = {} if extra is None else extra
        self.reasoning: list[str] = []
        self.calls: list[ToolCall] = []
        self.results: list[ToolResult] = []
        self.usage: Usage | None = None
        self.source_ids: list[str] = []

    def say(self, text: str) -> None:
        """Add a passage of text; passages are kept apart by an empty line."""
        if text:
            self.text = f"{self.text}\n\n{text}" if self.text else text

    def spend(self, usage: Usage) -> None:
        """Add tokens and money to what the step has used so far."""
        self.usage = usage if self.usage is None else added(self.usage, usage)

    def step(self, index: int) -> Step:
        """The step as it now is."""
        return Step(
            index=index,
            event_class=self.event_class,
            text=self.text,
            time=self.time,
            reasoning="\n\n".join(self.reasoning) or None,
            tool_calls=tuple(self.calls),
            results=tuple(self.results),
            model=self.model,
            usage=self.usage,
            kind=self.kind,
            copied=self.copied,
            source_ids=tuple(self.source_ids),
            extra=self.extra,
        )


class Thread:
    """The steps of one trace, in order, and where each call was made."""

    def __init__(self) -> None:
        self.drafts: list[Draft] = []
        self._made: dict[str, Draft] = {}
        self._call: dict[str, int] = {}
        self._last_agent: Draft | None = None

    def add(self, draft: Draft) -> Draft:
        """Put a draft at the end."""
        self.drafts.append(draft)
        if draft.event_class == "agent":
            self._last_agent = draft
        return draft

    def call(self, draft: Draft, call: ToolCall) -> None:
        """Put a call into a draft; results that name its id will find it."""
        self._made[call.id] = draft
        self._call[call.id] = len(draft.calls)
        draft.calls.append(call)

    def made(self, call_id: str) -> ToolCall | None:
        """The latest call of that id; None when there is none."""
        draft = self._made.get(call_id)
        return None if draft is None else draft.calls[self._call[call_id]]

    def answer(self, result: ToolResult) -> None:
        """Put a result into the step whose call it names; one that names none is an observation of its own."""
        home = self._made.get(result.call_id) if result.call_id is not None else None
        if home is None:
            if result.call_id is not None:
                result = _orphan(result)
            home = self._last_agent
        if home is None:
            home = self.add(Draft("harness", time=result.time, kind="tool_result"))
        home.results.append(result)

    def last_agent(self) -> Draft | None:
        """The latest agent step."""
        return self._last_agent

    def steps(self) -> tuple[Step, ...]:
        """The steps, numbered."""
        return tuple(draft.step(index) for index, draft in enumerate(self.drafts))


def _orphan(result: ToolResult) -> ToolResult:
    return msgspec.structs.replace(result, call_id=None, extra=result.extra | {"call_id": result.call_id})


def added(a: Usage, b: Usage) -> Usage:
    """The sum of two usages; what neither records stays None. Counts in `extra` are added, the rest is b's."""
    extra = a.extra | b.extra
    for name in a.extra.keys() & b.extra.keys():
        left, right = a.extra[name], b.extra[name]
        if type(left) is int and type(right) is int:
            extra[name] = left + right
    return Usage(
        input_tokens=_plus(a.input_tokens, b.input_tokens),
        output_tokens=_plus(a.output_tokens, b.output_tokens),
        cached_tokens=_plus(a.cached_tokens, b.cached_tokens),
        cost_usd=None if a.cost_usd is None and b.cost_usd is None else (a.cost_usd or 0.0) + (b.cost_usd or 0.0),
        extra=extra,
    )


def _plus(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else a + b


def totals(steps: tuple[Step, ...], usage: Usage | None = None) -> Totals:
    """Sums over the trace's own steps, and the seconds from its first to its last known time.

    `usage` is what the source itself recorded as its total, where it did; it wins over the sum.
    """
    own = [step for step in steps if not step.copied]
    times = [t for step in own for t in (step.time, *(result.time for result in step.results)) if t is not None]
    wall = round(max(times) - min(times), 6) if len(times) > 1 else None
    return Totals(usage=usage if usage is not None else total(steps), wall=wall)


def with_cost(usage: Usage, cost: float | None) -> Usage:
    """A usage with the money that the source recorded for the whole; None: as it is."""
    return usage if cost is None else msgspec.structs.replace(usage, cost_usd=cost)


def rest(source: dict[str, Any], *known: str) -> dict[str, Any]:
    """The members of a source object that have no place of their own, nulls left out."""
    return {name: value for name, value in source.items() if name not in known and value is not None}


def text_or_none(value: Any) -> str | None:
    """A text that is there and not empty."""
    return value if isinstance(value, str) and value else None


def an_object(value: Any) -> dict[str, Any]:
    """The value when it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def a_list(value: Any) -> list[Any]:
    """The value when it is an array, else an empty one."""
    return value if isinstance(value, list) else []
