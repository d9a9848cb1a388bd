"""A task's intent specification: allowed effects, required effects, prohibitions (METHODS 5, D2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from seatrial.errors import InputError
from seatrial.records import StateChange, Task, ToolCall
from seatrial.world.gates import OPS, GateRule, When

Path = tuple[str, ...]


class Effect(msgspec.Struct, frozen=True, kw_only=True):
    """Calls of one tool whose arguments fit, changing at most the state below `paths` (None: anywhere)."""

    rule: GateRule
    paths: tuple[Path, ...] | None

    @property
    def tool(self) -> str:
        """The tool's name."""
        return self.rule.tool or ""

    def fits(self, call: ToolCall, changes: Sequence[StateChange] | None = None) -> bool:
        """Whether the call is such an effect; `changes` are what it changed (None: not known)."""
        if not self.rule.fits(call):
            return False
        return changes is None or self.paths is None or all(under(c.path, self.paths) for c in changes)


class Intent(msgspec.Struct, frozen=True, kw_only=True):
    """What a task wants done. `required` are assertions on the final state, judged by whoever knows how."""

    allowed: tuple[Effect, ...]
    required: tuple[dict[str, Any], ...]
    prohibited: tuple[Effect, ...]

    def words(self) -> str:
        """What the specification names: values that arguments must have, and places in the state that may change."""
        out: list[str] = []
        for effect in self.allowed:
            out += [str(w.value) for w in effect.rule.when if isinstance(w.value, str | int | float)]
            out += [part for path in effect.paths or () for part in path if part != "*"]
        return "\n".join(out)

    def other_values(self, call: ToolCall) -> bool:
        """Whether the intent allows this tool only with arguments that the call does not have: the right tool with a
        wrong value, or on another object, is an effect outside the intent."""
        mine = [e for e in self.allowed if e.tool == call.name]
        return bool(mine) and not any(e.rule.fits(call) for e in mine)

    def paths(self, reads: frozenset[str]) -> tuple[Path, ...] | None:
        """Where the state may change, by any allowed effect; None where one of them may change anything, or where the
        specification names no allowed effect at all. A tool of `reads` changes nothing, so an allowed call of it
        allows no path."""
        if not self.allowed:
            return None
        out: list[Path] = []
        for effect in self.allowed:
            if effect.paths is not None:
                out += effect.paths
            elif effect.tool not in reads:
                return None
        return tuple(out)


class _Raw(msgspec.Struct, forbid_unknown_fields=True):
    tool: str
    arguments: list[When] = []
    paths: list[str] = []


class _Whole(msgspec.Struct, forbid_unknown_fields=True):
    allowed: list[_Raw] = []
    required: list[dict[str, Any]] = []
    prohibited: list[_Raw] = []
    text: str = ""


def intent_of(task: Task | None) -> Intent | None:
    """The task's intent; None where it has none, or has free text alone.

    Raises:
        InputError: the specification cannot be read; names the task.
    """
    if task is None or not task.intent:
        return None
    try:
        whole = msgspec.convert(task.intent, _Whole)
    except msgspec.ValidationError as error:
        hint = "allowed and prohibited: [{tool, arguments: [{path, op, value}], paths}], required: assertions"
        raise InputError(f"task {task.id}: its intent cannot be read: {error}", hint=hint) from error
    if not (whole.allowed or whole.required or whole.prohibited):
        return None
    return Intent(
        allowed=tuple(_effect(e, task.id) for e in whole.allowed),
        required=tuple(whole.required),
        prohibited=tuple(_effect(e, task.id) for e in whole.prohibited),
    )


def _effect(raw: _Raw, task: str) -> Effect:
    for when in raw.arguments:
        if when.op not in OPS:
            hint = f"one of {', '.join(OPS)}"
            raise InputError(f"task {task}: its intent has an unknown op {when.op!r}", hint=hint)
    rule = GateRule(name=raw.tool, tool=raw.tool, when=tuple(raw.arguments))
    return Effect(rule=rule, paths=tuple(parts(p) for p in raw.paths) or None)


def parts(path: str) -> Path:
    """A dotted path (an optional first part ``state`` left out) or JSON pointer, as parts."""
    if path.startswith("/"):
        return tuple(p.replace("~1", "/").replace("~0", "~") for p in path[1:].split("/"))
    pieces = tuple(path.split(".")) if path else ()
    return pieces[1:] if pieces[:1] == ("state",) else pieces


def under(path: Path, places: Sequence[Path]) -> bool:
    """Whether `path` lies at or below one of `places`, in which ``*`` stands for any part."""
    return any(
        len(path) >= len(place) and all(w in ("*", p) for p, w in zip(path, place, strict=False)) for place in places
    )
