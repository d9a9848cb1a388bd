"""Model calls and tool runs, in the order in which they happened, to the steps of one conversation.

A model call repeats the conversation so far: what is known already is recognised and not added again. Words before
the first answer that the spans hold are context of an earlier conversation (`Step.copied`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import islice
from typing import Any, Literal

import msgspec

from seatrial.ingest.drafts import Draft
from seatrial.ingest.span_chat import Said
from seatrial.ingest.user_text import spoken
from seatrial.records import ResultOutcome, Step, ToolCall, ToolResult, Usage

PAUSE = 1.0
"""Seconds between an agent's answer and the next model call of one invocation from which on new words in the user's
name count as typed by a person; a program goes on sooner."""


_LOOKED_AT = 100
"""Unanswered calls of a tool among which a run without an id looks for its arguments."""


class ModelCall(msgspec.Struct, kw_only=True):
    """One model call: messages in and out, times in seconds, and what goes into the step."""

    ids: list[str]
    start: float | None = None
    end: float | None = None
    given: list[Said] = []
    said: list[Said] = []
    model: str | None = None
    usage: Usage | None = None
    error: str | None = None
    extra: dict[str, Any] = {}


class ToolRun(msgspec.Struct, kw_only=True):
    """One run of a tool. `call_id` None: the span does not say which call it answers. `end` is in seconds."""

    span_id: str
    name: str
    call_id: str | None = None
    arguments: dict[str, Any] = {}
    raw_arguments: str | None = None
    text: str = ""
    outcome: ResultOutcome = "unknown"
    end: float | None = None
    subagents: tuple[str, ...] = ()
    extra: dict[str, Any] = {}


class Dialogue:
    """Collects the steps of one trace. `person` False: a sub-agent, whose user is the agent that started it."""

    def __init__(self, *, person: bool) -> None:
        self.drafts: list[Draft] = []
        self._person = person
        self._known: dict[tuple[Any, ...], list[int]] = defaultdict(list)
        self._calls: dict[str, tuple[int, int]] = {}
        self._results: dict[str, tuple[int, int]] = {}
        self._latest: dict[str, str] = {}
        self._texts: set[str] = set()
        self._waiting: dict[str, dict[str, None]] = defaultdict(dict)
        self._pending: list[int] = []
        self._ended: float | None = None
        self._unit_calls = 0
        self._asked: list[str] = []

    def begin(self, asked: Iterable[str]) -> None:
        """A new invocation: `asked` are the words that came in from outside, as its root span has them."""
        self._unit_calls = 0
        self._asked = [_squeezed(text) for text in asked if text.strip()]

    def call(self, call: ModelCall, opened: float | None) -> None:
        """Take in a model call; `opened` is when the invocation began, for the words that came before any answer."""
        fresh: list[int] = []
        at = -1
        for said in call.given:
            at = self._take(said, at, call, opened, fresh)
        self._answered(call)
        self._unit_calls += 1

    def _take(self, said: Said, at: int, call: ModelCall, opened: float | None, fresh: list[int]) -> int:
        """One message of what a call was given; the position of the step that it is."""
        if said.who == "tool":
            self._told(said)
            return at
        found = self._find(said, at)
        if found is not None:
            return max(at, found)
        if said.who == "agent":
            if self._pending and not said.item:
                waiting = self._pending.pop(0)
                self._fill(waiting, [said])
                return waiting
            position = self._add(Draft("agent", said.text, copied=True), said)
            for earlier in fresh:
                self.drafts[earlier].copied = True
            fresh.append(position)
            return position
        time = opened if self._unit_calls == 0 else call.start
        if said.who == "system":
            self._add(Draft("harness", said.text, time=time, kind="system_prompt"), said)
            return at
        draft = self._user(said, time, call)
        position = self._add(draft, said)
        fresh.append(position)
        return position

    def _user(self, said: Said, time: float | None, call: ModelCall) -> Draft:
        who = spoken(said.text)
        extra = dict(said.extra)
        if who.injected:
            extra["injected"] = list(who.injected)
        if who.event_class != "human":
            return Draft(who.event_class, who.text, time=time, kind=who.kind, extra=extra)
        if not self._person:
            return Draft("harness", said.text, time=time, kind="task_prompt", extra=extra)
        if not self._typed(said, call):
            return Draft("harness", said.text, time=time, kind="prompt", extra=extra)
        return Draft("human", who.text, time=time, extra=extra)

    def _typed(self, said: Said, call: ModelCall) -> bool:
        """Whether words in the user's name came from outside rather than from the program that runs the agent."""
        mine = _squeezed(said.text)
        if any(_same(a, mine) for a in self._asked):
            return True
        if self._unit_calls == 0:
            given = [_squeezed(other.text) for other in call.given if other.who == "user"]
            return not any(_same(a, b) for a in self._asked for b in given)
        last = self.drafts[-1] if self.drafts else None
        if last is None or last.event_class != "agent" or last.calls:
            return False
        return call.start is None or self._ended is None or call.start - self._ended >= PAUSE

    def _find(self, said: Said, at: int) -> int | None:
        """Where this message is already: after `at`, or anywhere for a system prompt."""
        if said.who == "system":
            there = self._known.get(("system", said.text), [])
            return there[0] if there else None
        for mark in _marks(said):
            for position in self._known.get(mark, ()):
                if position > at:
                    return position
        if said.who == "agent":
            later = (n for n in range(at + 1, len(self.drafts)) if self.drafts[n].event_class == "agent")
            nearest = next(later, None)
            if nearest is not None and self._same_agent(self.drafts[nearest], said):
                return nearest
        return None

    @staticmethod
    def _same_agent(draft: Draft, said: Said) -> bool:
        """Whether a message is a step that its framework wrote down in another way."""
        if draft.copied:
            return False
        names = sorted(call.name for call in draft.calls)
        if names or said.calls:
            return names == sorted(call.name for call in said.calls)
        return bool(draft.text) and _same(_squeezed(draft.text), _squeezed(said.text))

    def _add(self, draft: Draft, said: Said | None = None) -> int:
        position = len(self.drafts)
        self.drafts.append(draft)
        if said is not None:
            if said.who == "agent":
                draft.reasoning.extend([said.reasoning] if said.reasoning else [])
                for call in said.calls:
                    self._make(position, call)
            draft.extra.update({k: v for k, v in said.extra.items() if k not in draft.extra})
            for mark in _marks(said):
                self._known[mark].append(position)
        return position

    def _make(self, position: int, call: ToolCall) -> None:
        draft = self.drafts[position]
        if not call.id or (call.id in self._calls and self._calls[call.id][0] != position):
            call = msgspec.structs.replace(call, id=self._fresh_id(call, position, len(draft.calls)))
        self._calls[call.id] = (position, len(draft.calls))
        self._latest[call.name] = call.id
        if call.id not in self._results:
            self._waiting[call.name][call.id] = None
        draft.calls.append(call)

    @staticmethod
    def _fresh_id(call: ToolCall, position: int, n: int) -> str:
        return f"{call.id}~{position}-{n}" if call.id else f"call-{position}-{n}"

    def _answered(self, call: ModelCall) -> None:
        """The step of a model call's answer."""
        adopted = self._adopted(call)
        if adopted is None:
            position = self._add(Draft("agent", time=call.end if call.end is not None else call.start))
        else:
            position = adopted
        draft = self.drafts[position]
        draft.model, draft.usage = call.model, call.usage
        draft.source_ids.extend(call.ids)
        draft.extra.update(call.extra)
        said = [one for one in call.said if one.who == "agent"]
        if said:
            self._fill(position, said)
        elif call.error is None:
            self._pending.append(position)
        if call.error is not None:
            draft.extra["error"] = call.error
            if not said:
                draft.kind = "api_error"
        self._ended = draft.time

    def _adopted(self, call: ModelCall) -> int | None:
        """A step that stands for this answer already: its tools ran, by the order of the spans, before it."""
        for said in call.said:
            for one in said.calls:
                there = self._calls.get(one.id) if one.id else None
                if there is not None and self.drafts[there[0]].kind == "tool_run":
                    self.drafts[there[0]].kind = None
                    return there[0]
        return None

    def _fill(self, position: int, said: list[Said]) -> None:
        draft = self.drafts[position]
        for one in said:
            draft.say(one.text)
            draft.reasoning.extend([one.reasoning] if one.reasoning else [])
            for call in one.calls:
                if not any(call.id and call.id == there.id for there in draft.calls):
                    self._make(position, call)
            draft.extra.update({k: v for k, v in one.extra.items() if k not in draft.extra})
            for mark in _marks(one):
                self._known[mark].append(position)
        if len(said) > 1:
            whole = Said(who="agent", text=draft.text, calls=list(draft.calls))
            for mark in _marks(whole):
                self._known[mark].append(position)

    def run(self, run: ToolRun) -> None:
        """Take in the run of a tool: the result of the call that it answers."""
        call_id = self._which(run.call_id, run.name, run)
        if call_id is None:
            position = self._last_agent()
            if position is None:
                position = self._add(Draft("agent", time=run.end, kind="tool_run"))
            wanted = ToolCall(
                id=run.call_id or run.span_id,
                name=run.name,
                arguments=run.arguments,
                raw_arguments=run.raw_arguments,
                validity="invalid" if run.raw_arguments is not None else "unknown",
            )
            self._make(position, wanted)
            call_id = self.drafts[position].calls[-1].id
        self._give(
            call_id,
            ToolResult(
                call_id=call_id,
                outcome=run.outcome,
                text=run.text,
                time=run.end,
                subagents=run.subagents,
                extra=run.extra,
            ),
        )

    def knows(self, call_id: str | None) -> bool:
        """Whether a call of this id was made."""
        return call_id is not None and call_id in self._calls

    def _told(self, said: Said) -> None:
        """A tool's result as a model call was given it."""
        call_id = self._which(said.call_id, said.name, None)
        outcome: Literal["ok", "error", "unknown"] = (
            "unknown" if said.failed is None else "error" if said.failed else "ok"
        )
        if call_id is not None:
            self._give(call_id, ToolResult(call_id=call_id, outcome=outcome, text=said.text, extra=said.extra))
            return
        known = _squeezed(said.text)
        if known in self._texts:
            return
        self._texts.add(known)
        position = self._last_agent()
        if position is None:
            position = self._add(Draft("harness", kind="tool_result"))
        extra = said.extra | ({"call_id": said.call_id} if said.call_id else {})
        self.drafts[position].results.append(ToolResult(outcome=outcome, text=said.text, extra=extra))

    def _give(self, call_id: str, result: ToolResult) -> None:
        position, n = self._calls[call_id]
        there = self._results.get(call_id)
        draft = self.drafts[position]
        if there is None:
            self._results[call_id] = (position, len(draft.results))
            self._texts.add(_squeezed(result.text))
            self._waiting[draft.calls[n].name].pop(call_id, None)
            draft.results.append(result)
            return
        old = self.drafts[there[0]].results[there[1]]
        self.drafts[there[0]].results[there[1]] = msgspec.structs.replace(
            old,
            text=old.text or result.text,
            outcome=result.outcome if old.outcome == "unknown" else old.outcome,
            time=old.time if old.time is not None else result.time,
            subagents=old.subagents or result.subagents,
            extra=result.extra | old.extra,
        )

    def _which(self, call_id: str | None, name: str | None, run: ToolRun | None) -> str | None:
        """The call that a result answers: by id, else the first unanswered one of that tool (and those arguments)."""
        if call_id is not None and call_id in self._calls:
            return call_id
        if name is None:
            open_ones = [c.id for d in self.drafts[-3:] for c in d.calls if c.id not in self._results]
            return open_ones[0] if call_id is None and run is None and len(open_ones) == 1 else None
        waiting = self._waiting.get(name, {})
        if run is not None:
            for one in islice(waiting, _LOOKED_AT):
                position, n = self._calls[one]
                if self.drafts[position].calls[n].arguments == run.arguments:
                    return one
        elif not waiting and call_id is None:
            return self._latest.get(name)
        return next(iter(waiting), None)

    def _last_agent(self) -> int | None:
        for position in range(len(self.drafts) - 1, -1, -1):
            if self.drafts[position].event_class == "agent" and not self.drafts[position].copied:
                return position
        return None

    def open_with(self, said: list[Said], time: float | None, at: int) -> None:
        """Put in what a root was asked, at step `at`, where no model call shows it."""
        for one in reversed(said):
            if one.who == "user" and one.text.strip():
                draft = self._user(one, time, ModelCall(ids=[], given=[one]))
                self.drafts.insert(at, draft)

    def trail(self, asked: list[Said], time: float | None, since: int) -> None:
        """Put in what the root shows to have been said after the last words that a model call was given."""
        theirs = [d for d in self.drafts[since:] if d.event_class == "human" or d.kind in ("prompt", "task_prompt")]
        heard = [_squeezed(d.text) for d in theirs]
        last = max(
            (n for n, one in enumerate(asked) if any(_same(_squeezed(one.text), h) for h in heard)), default=None
        )
        if last is None:
            return
        for one in asked[last + 1 :]:
            if one.text.strip():
                self._add(self._user(one, time, ModelCall(ids=[], given=[one])), one)

    def silent(self, since: int) -> bool:
        """Whether an invocation, from step `since` on, ends without words of the agent."""
        last = next((d for d in reversed(self.drafts[since:]) if d.event_class == "agent"), None)
        return last is None or not (last.text or last.calls or last.kind)

    def close_with(self, text: str, time: float | None) -> None:
        """Give the last answer the words that only a root has."""
        position = self._last_agent()
        if position is None or self.drafts[position].text or self.drafts[position].calls:
            self._add(Draft("agent", text, time=time))
        else:
            self._fill(position, [Said(who="agent", text=text)])

    def steps(self) -> tuple[Step, ...]:
        """The steps, numbered."""
        return tuple(draft.step(index) for index, draft in enumerate(self.drafts))


def _marks(said: Said) -> list[tuple[Any, ...]]:
    """What a message is recognised by: a call's id; else the words, with the calls' names."""
    if said.who == "agent":
        marks: list[tuple[Any, ...]] = [("call", call.id) for call in said.calls if call.id]
        if marks:
            return marks
        return [("agent", _squeezed(said.text), tuple(sorted(call.name for call in said.calls)))]
    return [(said.who, said.text)]


def _squeezed(text: str) -> str:
    return " ".join(text.split())


def _same(a: str, b: str) -> bool:
    """Whether one of two texts is the other, or contains it as all but a frame."""
    return a == b or (bool(a) and bool(b) and (a in b or b in a))
