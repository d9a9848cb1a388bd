"""One stored session as it is shown: windows of its steps, with evidence marked, and the rest of long texts."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

import msgspec

from seatrial.errors import InputError
from seatrial.records import Step, ToolResult, Trace
from seatrial.server.index import signals_of
from seatrial.server.rendering import CUT, Highlight, pretty
from seatrial.server.words import KINDS, Fate, fate
from seatrial.store import Store

CHUNK = 50
"""Steps that are fetched at once."""

PIECE = 65_536
"""Characters of a long text that are fetched at once."""

_HELD_BYTES = 192 * 1024 * 1024
_AROUND = 160
_BLOBS = 1000
_BUCKETS = 160


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """One signal with its fate and reason in words; `ident` is the anchor of its evidence, or of its step."""

    ident: str
    step: int
    kind: str
    name: str
    fate: Fate
    reason: str
    quote: str
    confidence: float
    detector: str
    field: str | None
    start: int | None
    end: int | None
    call_id: str | None
    why: str
    judges_step: int | None


class Text(msgspec.Struct, frozen=True, kw_only=True):
    """A text to show: its beginning with marks in it; `more` characters that are not shown, and evidence in them."""

    field: str
    head: str
    marks: list[Highlight]
    more: int
    total: int
    beyond: list[tuple[str, list[Highlight]]]


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call with its result. `open`: it holds evidence, so it is not folded."""

    name: str
    brief: str
    arguments: Text
    validity: str
    outcome: str
    exit_code: int | None
    truncated: bool
    result: Text | None
    subagents: tuple[str, ...]
    signals: list[Shown]
    open: bool


class View(msgspec.Struct, frozen=True, kw_only=True):
    """A step to show."""

    step: Step
    text: Text
    reasoning: Text | None
    calls: list[Call]
    loose: list[Call]
    signals: list[Shown]


class Bucket(msgspec.Struct, frozen=True, kw_only=True):
    """Some neighbouring steps in the overview: the first one, and what there is in them."""

    step: int
    human: bool
    errors: int
    kept: int
    dropped: int


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """A decoded session with its signals."""

    trace: Trace
    signals: list[Shown]
    places: dict[int, int]

    def window(self, first: int, last: int) -> list[View]:
        """Steps by position, [first, last)."""
        by_step: dict[int, list[Shown]] = {}
        for signal in self.signals:
            by_step.setdefault(signal.step, []).append(signal)
        return [_view(step, by_step.get(step.index, [])) for step in self.trace.steps[first:last]]

    def position(self, index: int) -> int:
        """The position of a step by its index; the nearest before it where there is no such step."""
        if index in self.places:
            return self.places[index]
        return max((at for i, at in self.places.items() if i <= index), default=0)

    def overview(self) -> list[Bucket]:
        """The session at a glance, at most `_BUCKETS` wide."""
        steps = self.trace.steps
        width = max(1, -(-len(steps) // _BUCKETS))
        out = []
        for at in range(0, len(steps), width):
            some = steps[at : at + width]
            inside = {s.index for s in some}
            mine = [s for s in self.signals if s.step in inside]
            out.append(
                Bucket(
                    step=some[0].index,
                    human=any(s.event_class in ("human", "simulated_user") for s in some),
                    errors=sum(r.outcome == "error" for s in some for r in s.results),
                    kept=sum(s.fate == "kept" for s in mine),
                    dropped=sum(s.fate != "kept" for s in mine),
                )
            )
        return out


class Sessions:
    """Decoded sessions, the last few of them kept. Safe between threads."""

    def __init__(self, store: Store, held_bytes: int = _HELD_BYTES) -> None:
        self._store = store
        self._most = held_bytes
        self._guard = threading.Lock()
        self._blobs: dict[tuple[str, int | None], str | None] = {}
        self._kept: OrderedDict[tuple[str, int | None], tuple[int, Session]] = OrderedDict()

    def get(self, session: str) -> Session:
        """A session, whole.

        Raises:
            InputError: there is none.
            StoreError: its blob is damaged.
        """
        at = self._store.versions.head().tables
        blob = self._blob(session, at.get("sessions"))
        key = (blob or session, at.get("signals"))
        with self._guard:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key][1]
        trace = self._store.trace_of(blob) if blob is not None else self._store.trace(session)
        rows = signals_of(self._store, session)
        made = Session(
            trace=trace,
            signals=[_shown(row, n) for n, row in enumerate(rows)],
            places={step.index: at for at, step in enumerate(trace.steps)},
        )
        size = sum(len(s.text) + sum(len(r.text) for r in s.results) + 200 for s in trace.steps)
        with self._guard:
            self._kept[key] = (size, made)
            while len(self._kept) > 1 and sum(n for n, _ in self._kept.values()) > self._most:
                self._kept.popitem(last=False)
        return made

    def _blob(self, session: str, at: int | None) -> str | None:
        """The hash of a session's trace, looked up once for each version of the table."""
        with self._guard:
            if (session, at) in self._blobs:
                return self._blobs[session, at]
        blob = self._store.blobs_of([session]).get(session)
        with self._guard:
            if len(self._blobs) >= _BLOBS:
                self._blobs.clear()
            self._blobs[session, at] = blob
        return blob


def field_text(step: Step, field: str) -> str:
    """One text of a step by its name: ``text``, ``reasoning``, ``calls.0``, ``results.0``.

    Raises:
        InputError: the step has no such text.
    """
    kind, _, rest = field.partition(".")
    number = rest.removesuffix(".text")
    at = int(number) if number.isascii() and number.isdigit() and len(number) < 7 else -1
    if field == "text":
        return step.text
    if field == "reasoning" and step.reasoning is not None:
        return step.reasoning
    if kind == "calls" and 0 <= at < len(step.tool_calls):
        return _arguments(step.tool_calls[at])
    if kind == "results" and 0 <= at < len(step.results):
        return step.results[at].text
    raise InputError(f"step {step.index} has no text {field[:40]!r}")


def _arguments(call: Any) -> str:
    return call.raw_arguments if call.raw_arguments is not None else pretty(call.arguments)


def _shown(row: dict[str, Any], number: int) -> Shown:
    became, reason = fate(row["dropped_by"])
    return Shown(
        ident=f"e{number}",
        step=row["step"],
        kind=row["kind"],
        name=KINDS.get(row["kind"], row["kind"]),
        fate=became,
        reason=reason,
        quote=row["quote"] or "",
        confidence=row["confidence"],
        detector=f"{row['detector']} {row['version']}",
        field=row["span_field"],
        start=row["span_start"],
        end=row["span_end"],
        call_id=row["call_id"],
        why=row["why"] or "",
        judges_step=row["judges_step"],
    )


def _view(step: Step, signals: list[Shown]) -> View:
    results = {r.call_id: (i, r) for i, r in enumerate(step.results) if r.call_id is not None}
    calls, used = [], set()
    for i, call in enumerate(step.tool_calls):
        found = results.get(call.id)
        if found is None and len(step.tool_calls) == len(step.results) and step.results[i].call_id is None:
            found = (i, step.results[i])
        if found is not None:
            used.add(found[0])
        calls.append(_call(call, i, found, signals))
    loose = [_call(None, i, (i, r), signals) for i, r in enumerate(step.results) if i not in used]
    text = _text("text", step.text, [s for s in signals if s.field == "text"])
    reasoning = None if not step.reasoning else _text("reasoning", step.reasoning, [])
    return View(step=step, text=text, reasoning=reasoning, calls=calls, loose=loose, signals=signals)


def _call(call: Any, number: int, found: tuple[int, ToolResult] | None, signals: list[Shown]) -> Call:
    field = None if found is None else f"results.{found[0]}.text"
    name = "(result without a call)" if call is None else call.name
    mine = [s for s in signals if s.field == field and field is not None]
    if call is not None:
        mine += [s for s in signals if s.call_id == call.id and s not in mine]
    result = (
        None if found is None else _text(f"results.{found[0]}", found[1].text, [s for s in mine if s.field == field])
    )
    arguments = "" if call is None else _arguments(call)
    return Call(
        name=name,
        brief="" if call is None else _brief(call),
        arguments=_text(f"calls.{number}", arguments, []),
        validity="" if call is None else call.validity,
        outcome="no result" if found is None else found[1].outcome,
        exit_code=None if found is None else found[1].exit_code,
        truncated=found is not None and found[1].truncated,
        result=result,
        subagents=() if found is None else found[1].subagents,
        signals=mine,
        open=any(s.field == field for s in mine),
    )


def _brief(call: Any) -> str:
    """A call's arguments on one line: the value that says most, or all of them."""
    given = call.arguments
    for key in ("command", "cmd", "query", "file_path", "path", "pattern", "url", "prompt"):
        if isinstance(given.get(key), str):
            return str(given[key][:200])
    text = call.raw_arguments if call.raw_arguments is not None else ", ".join(f"{k}={v}" for k, v in given.items())
    return str(text[:200])


def _text(field: str, text: str, signals: list[Shown]) -> Text:
    marks = [
        Highlight(
            start=s.start, end=s.end, kind=s.kind, fate=s.fate, ident=s.ident, title=f"{s.name}: {s.fate}, {s.reason}"
        )
        for s in signals
        if s.start is not None and s.end is not None
    ]
    head = text[:CUT]
    beyond = []
    for mark in marks:
        if mark.end > CUT:
            left = max(mark.start - _AROUND, 0)
            piece = text[left : mark.end + _AROUND][:2000]
            moved = msgspec.structs.replace(mark, start=mark.start - left, end=min(mark.end - left, len(piece)))
            beyond.append((piece, [moved]))
    inside = [m for m in marks if m.end <= CUT]
    return Text(field=field, head=head, marks=inside, more=len(text) - len(head), total=len(text), beyond=beyond)
