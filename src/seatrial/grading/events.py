"""A trace, or a list of events, to the calls that checks look at: each call once, its fate decided in one place."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, Literal

import msgspec

from seatrial.canon import canonical
from seatrial.errors import InputError
from seatrial.records import ToolCall, ToolResult, ToolSpec, Trace

Refusal = Literal["schema", "unknown_tool", "policy", "user"]
"""Why a call was never executed: its arguments, a tool that does not exist, a rule, or a person."""

TRANSIENT = re.compile(
    r"could not resolve|connection (?:refused|reset|timed out)|temporar(?:y|ily)|time[d-]?[ -]?out|unavailable"
    r"|\b(?:429|502|503|504)\b|rate limit|too many requests|try again|overloaded|bad gateway",
    re.IGNORECASE,
)
"""Words of a tool's own output that name a fault which may pass by itself."""

SCHEMA_WORDS = re.compile(
    r"InputValidationError|validation error|invalid arguments?\b|(?:missing|unexpected)\b.{0,60}\bargument"
    r"|required property|is not of type|does not match the schema|missing required parameter",
    re.IGNORECASE,
)
UNKNOWN_WORDS = re.compile(
    r"no such tool|unknown tool|tool ['\"`]?[\w.:-]{1,64}['\"`]? (?:was )?not found|tool ['\"`]?[\w.:-]{1,64}['\"`]? "
    r"does not exist|is not a (?:known|valid) tool",
    re.IGNORECASE,
)
_HEAD = 2_000
_KINDS = ("executed", "refused", "answer")
_EVENT = '{"event": "executed" | "refused", "tool", "args", "ok"}'
_WORKED = {"ok": True, "error": False, "rejected": False, "interrupted": None, "unknown": None}
_SLEEP = re.compile(r"\s*sleep\s+[\d.]")


class Call(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One proposed call and what became of it.

    `step` is the index of the trace step (of the event, in an event list), `turn` counts agent turns from 1 (None in
    an event list without turns). `executed` False: refused, for the reason `refused`. `ok` None: the log does not
    say. `effect` is the tool's declared one. `key` is the canonical text of tool and arguments.
    """

    step: int
    tool: str
    arguments: dict[str, Any]
    key: bytes
    executed: bool
    ok: bool | None
    turn: int | None = None
    refused: Refusal | None = None
    field: str | None = None
    transient: bool = False
    effect: Literal["read", "write"] | None = None
    text: str = ""

    @property
    def failed(self) -> bool:
        """Executed or refused, and the log says that it did not work."""
        return self.ok is False


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """What the checks of the trajectory see: calls in order, the number of agent turns (None: not recorded), and
    whether the effects of tools are known."""

    calls: tuple[Call, ...]
    turns: int | None
    effects: bool
    turned: int = 0
    """Calls of an event list that carry a turn: where only some do, `turns` is None."""

    unread: tuple[int, ...] = ()
    """Places (1-based) of the events whose kind is not known."""

    waits: frozenset[int] = frozenset()
    """Positions of calls before which the agent waited by a call (a tool ``wait`` or ``sleep``, a shell's sleep)."""

    @property
    def executed(self) -> tuple[Call, ...]:
        """Calls that ran, whether or not they succeeded."""
        return tuple(c for c in self.calls if c.executed)

    @property
    def successes(self) -> tuple[Call, ...]:
        """Calls that ran and did not fail."""
        return tuple(c for c in self.calls if c.executed and c.ok is not False)


def timeline(source: Trace | Sequence[Mapping[str, Any]], tools: Sequence[ToolSpec] = ()) -> Timeline:
    """The calls of a trace (copied steps left out) or of an event list.

    An event list holds ``{"event": "executed" | "refused", "tool", "args", "ok"}``, optionally ``reason`` (of a
    refusal: schema, the default, or policy), ``field``, ``turn``, ``effect``, ``transient``, and
    ``{"event": "answer", "text"}``. Events of other kinds are left out and listed in `unread`. `tools` declares
    effects.

    Raises:
        InputError: this is no trace and no list; an event is not an object, or lacks what its kind needs (names its
            place, 1-based); no event is of a known kind; arguments that cannot be written as JSON.
    """
    effects = {t.name: t.effect for t in tools}
    if isinstance(source, Trace):
        return _from_trace(source, effects)
    given: object = source
    if not isinstance(given, Sequence) or isinstance(given, str | bytes | bytearray):
        raise InputError(
            f"expected a trace or a list of events, found {type(given).__name__}", hint=f"an event is {_EVENT}"
        )
    return _from_events(source, effects)


def _from_trace(trace: Trace, effects: Mapping[str, Literal["read", "write"] | None]) -> Timeline:
    calls: list[Call] = []
    waits: set[int] = set()
    turns = 0
    for step in trace.steps:
        if step.copied or step.event_class != "agent":
            continue
        turns += 1
        results: dict[str | None, ToolResult] = {r.call_id: r for r in step.results}
        for position, call in enumerate(step.tool_calls):
            result = results.get(call.id)
            if result is None and len(step.tool_calls) == len(step.results):
                candidate = step.results[position]
                result = candidate if candidate.call_id is None else None
            if _is_wait(call):
                waits.add(len(calls) + 1)
            calls.append(_call(call, result, step.index, turns, effects.get(call.name)))
    if calls and not any(s.results for s in trace.steps):
        # A log without any result says what was called and not what came of it: nothing was seen to be refused.
        calls = [msgspec.structs.replace(c, executed=c.refused is None) for c in calls]
    return Timeline(calls=tuple(calls), turns=turns, effects=bool(effects), waits=frozenset(waits))


def _call(
    call: ToolCall, result: ToolResult | None, step: int, turn: int, effect: Literal["read", "write"] | None
) -> Call:
    refused: Refusal | None = None
    field: str | None = None
    ok: bool | None = None
    text = ""
    transient = False
    executed = result is not None
    if call.validity == "invalid":
        refused = "schema"
    elif call.validity == "unknown_tool":
        refused = "unknown_tool"
    if result is not None:
        text = result.text[:_HEAD]
        given = result.extra.get("refused")
        field = _text(result.extra.get("field"))
        if given in ("schema", "unknown_tool", "policy"):
            refused = given
        elif result.outcome in ("rejected", "interrupted"):
            refused = refused or ("user" if result.outcome == "rejected" else None)
        elif refused is None and result.outcome == "error":
            refused = _refused_by_words(text)
        ok = _WORKED[result.outcome]
        if result.outcome == "unknown" and result.exit_code is not None:
            ok = result.exit_code == 0
        if ok is False and refused is None:
            cause = result.extra.get("cause")
            transient = cause == "environment" if cause is not None else TRANSIENT.search(text) is not None
    if refused is not None:
        executed = False
        ok = False
    return Call(
        step=step,
        tool=call.name,
        arguments=call.arguments,
        key=_key(call.name, call.raw_arguments if call.raw_arguments is not None else call.arguments, f"step {step}"),
        executed=executed,
        ok=ok,
        turn=turn,
        refused=refused,
        field=field,
        transient=transient,
        effect=effect,
        text=text,
    )


def _refused_by_words(text: str) -> Refusal | None:
    """What a log without structure says about an error: a harness' words for a call that never ran."""
    head = text[:400]
    if UNKNOWN_WORDS.search(head):
        return "unknown_tool"
    return "schema" if SCHEMA_WORDS.search(head) else None


def _is_wait(call: ToolCall) -> bool:
    if call.name in ("sleep", "wait"):
        return True
    command = call.arguments.get("command") or call.arguments.get("cmd")
    return isinstance(command, str) and _SLEEP.match(command) is not None


def _from_events(
    events: Sequence[Mapping[str, Any]], effects: Mapping[str, Literal["read", "write"] | None]
) -> Timeline:
    calls: list[Call] = []
    unread: list[int] = []
    turned = 0
    seen_turns: set[int] = set()
    known = bool(effects)
    for at, event in enumerate(events):
        if not isinstance(event, Mapping):
            raise InputError(f"event {at + 1}: expected an object, found {type(event).__name__}")
        kind = event.get("event")
        if not isinstance(kind, str) or kind not in _KINDS:
            unread.append(at + 1)
            continue
        if kind == "answer":
            continue
        tool = event.get("tool")
        if not isinstance(tool, str):
            raise InputError(f"event {at + 1} ({kind}) names no tool", hint=f"expected {_EVENT}")
        args = event.get("args", {})
        if args is None:
            args = {}
        turn = event.get("turn")
        turn = turn if isinstance(turn, int) and not isinstance(turn, bool) else None
        if turn is not None:
            turned += 1
            seen_turns.add(turn)
        effect = event.get("effect", effects.get(tool))
        known = known or event.get("effect") is not None
        refused = _reason(event, at) if kind == "refused" else None
        ok = _flag(event, "ok", True, at)
        calls.append(
            Call(
                step=at,
                tool=tool,
                arguments=args if isinstance(args, dict) else {"": args},
                key=_key(tool, args, f"event {at + 1}"),
                executed=kind == "executed",
                ok=False if kind == "refused" else ok,
                turn=turn,
                refused=refused,
                field=_text(event.get("field")),
                transient=_flag(event, "transient", False, at) is True,
                effect=effect if effect in ("read", "write") else None,
                text=words(event, at)[:_HEAD],
            )
        )
    if events and len(unread) == len(events):
        found = events[0].get("event")
        what = "has no 'event'" if found is None else f"is of the kind {reprlib.repr(found)}"
        raise InputError(
            f"none of the {len(events)} events is of a known kind; event 1 {what}",
            hint=f"kinds: {', '.join(_KINDS)}; expected {_EVENT}",
        )
    return Timeline(
        calls=tuple(calls),
        turns=len(seen_turns) if calls and turned == len(calls) else None,
        effects=known,
        turned=turned,
        unread=tuple(unread),
    )


def _flag(event: Mapping[str, Any], name: str, usual: bool, at: int) -> bool | None:
    value = event.get(name, usual)
    if value is None or isinstance(value, bool):
        return value
    raise InputError(f"event {at + 1}: {name!r} is {reprlib.repr(value)}", hint="true, false, or null: not known")


def words(event: Mapping[str, Any], at: int) -> str:
    """The text of an event; empty where it has none.

    Raises:
        InputError: it is not text.
    """
    value = event.get("text")
    if value is None or isinstance(value, str):
        return value or ""
    raise InputError(f"event {at + 1}: 'text' is {type(value).__name__}, not text")


def _reason(event: Mapping[str, Any], at: int) -> Refusal:
    reason = event.get("reason") or "schema"
    if reason == "schema":
        return "schema"
    if reason == "policy":
        return "policy"
    if reason == "unknown_tool":
        return "unknown_tool"
    if reason == "user":
        return "user"
    raise InputError(f"event {at + 1}: reason {reprlib.repr(reason)}", hint="schema, policy, unknown_tool or user")


def _key(tool: str, args: Any, where: str) -> bytes:
    try:
        return canonical([tool, _plain(args)])
    except RecursionError:
        raise InputError(f"{where}: the arguments are nested too deeply") from None
    except UnicodeEncodeError:
        raise InputError(
            f"{where}: tool or arguments hold half of a surrogate pair", hint="such text is no Unicode and no JSON"
        ) from None
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{where}: the arguments are not plain JSON: {error}") from error


def _plain(value: Any) -> Any:
    """Equal numbers as one: 1.0 is 1, and true is not. What JSON has no number for is kept apart from null."""
    if type(value) is str:
        return value  # most arguments are text, and asking whether one is a mapping costs more than all else here
    if isinstance(value, dict | Mapping):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, float):
        if not isfinite(value):
            return f"\0{value}"
        if value.is_integer():
            value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**64:
        return f"\0{value:x}"
    return value


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
