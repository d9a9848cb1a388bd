"""Declarative assertions over a final state or answer: ``{"path", "op", "value"}``, never evaluated as code.

`path` is ``answer`` (the agent's last words) or a path into the state: dotted (``tickets.T-1.status``; an optional
first part ``state``) or, with a leading slash, a JSON pointer (``/tickets/T-1/status``), for keys that hold dots.
A number indexes a list; ``*`` stands for every child. ``""`` is the whole state. Where a path has ``*``, every value
found must fit, and there must be one; ``"quantifier": "any"`` or ``"none"`` asks otherwise.

| op | true when |
|---|---|
| `eq`, `ne` | equal to `value`, or not; numbers compare as numbers (1 and 1.0 are equal, true and 1 are not) |
| `lt`, `le`, `gt`, `ge` | a number (or text, against text) below, at most, above, at least `value` |
| `approx` | a number within `tolerance` (default 1e-6) of `value` |
| `in`, `not_in` | one of the list `value`, or none of it |
| `contains`, `not_contains` | text holds the text `value`, ignoring case; a list holds the element; an object the key |
| `contains_all`, `contains_any` | as `contains`, for every or some element of the list `value` |
| `matches`, `not_matches` | text holds a match of the regular expression `value` (RE2: linear time) |
| `exists`, `absent` | there is something, or nothing, at `path` |
| `length` | text, list or object of `value` elements |
| `type` | string, number, boolean, null, array or object |
| `unchanged`, `changed` | the state at or below `path` is as at the start (volatile fields aside), or not |
| `only_changed` | nothing outside `path`, or the paths of the list `value`, differs from the start |
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from seatrial.errors import InputError, UsageError
from seatrial.records import StateChange

OPS: tuple[str, ...] = (
    "eq", "ne", "lt", "le", "gt", "ge", "approx", "in", "not_in", "contains", "not_contains", "contains_all",
    "contains_any", "matches", "not_matches", "exists", "absent", "length", "type", "unchanged", "changed",
    "only_changed",
)  # fmt: skip
_STATE_ONLY = ("unchanged", "changed", "only_changed")
_WITHOUT_VALUE = ("exists", "absent", "unchanged", "changed", "only_changed")
_TYPES = ("string", "number", "boolean", "null", "array", "object")


class Assertion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One assertion. `value` is what the op compares with."""

    path: str
    op: str
    value: Any = None
    quantifier: Literal["all", "any", "none"] = "all"
    tolerance: float = 1e-6
    why: str = ""

    @property
    def about(self) -> Literal["answer", "state"]:
        """What it looks at."""
        return "answer" if self.path == "answer" else "state"


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """Whether one assertion holds, and in words what was found. `ok` None: what it looks at was not recorded."""

    assertion: Assertion
    ok: bool | None
    said: str


def parse(raw: Sequence[Mapping[str, Any]]) -> tuple[Assertion, ...]:
    """Assertions from plain objects.

    Raises:
        InputError: an unknown op or key, or a value that its op cannot use; names the assertion (1-based).
    """
    out = []
    for number, one in enumerate(raw, 1):
        try:
            made = msgspec.convert(one, Assertion)
        except msgspec.ValidationError as error:
            raise InputError(f"assertion {number}: {error}", hint="path, op, value, quantifier, tolerance") from error
        wrong = _wrong(made, "value" in one)
        if wrong:
            raise InputError(f"assertion {number} ({made.path} {made.op}): {wrong}")
        out.append(made)
    return tuple(out)


def _wrong(a: Assertion, given: bool) -> str | None:
    if a.op not in OPS:
        return f"there is no op {a.op!r}; one of {', '.join(OPS)}"
    if a.about == "answer" and a.op in _STATE_ONLY:
        return f"{a.op} is about the state"
    if a.op not in _WITHOUT_VALUE and not given:
        return "value is missing"
    if a.op in ("in", "not_in", "contains_all", "contains_any") and not isinstance(a.value, list):
        return "value is not a list"
    if a.op in ("matches", "not_matches"):
        return _bad_pattern(a.value)
    if a.op == "length" and (not isinstance(a.value, int) or isinstance(a.value, bool)):
        return "value is not a whole number"
    if a.op == "approx" and not _is_number(a.value):
        return "value is not a number"
    if a.op == "type" and a.value not in _TYPES:
        return f"value is not one of {', '.join(_TYPES)}"
    return None


def _bad_pattern(value: Any) -> str | None:
    import re2

    if not isinstance(value, str):
        return "value is not a regular expression"
    quiet = re2.Options()
    quiet.log_errors = False
    try:
        re2.compile(value, quiet)
    except re2.error as error:
        said = error.args[0] if error.args else "it cannot be read"
        text = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
        return f"value is not a regular expression of RE2: {text}"
    except UnicodeEncodeError:
        return "value is not a regular expression: it holds half of a character"
    return None


def judge(
    assertion: Assertion,
    *,
    answer: str | None,
    state: Mapping[str, Any] | None,
    start: Mapping[str, Any] | None = None,
    changes: Sequence[StateChange] | None = None,
) -> Outcome:
    """Whether one assertion holds for an attempt's end."""
    if assertion.about == "answer":
        return _over([answer] if answer is not None else [], assertion)
    if state is None:
        return Outcome(assertion=assertion, ok=None, said="the world's final state was not recorded")
    if assertion.op in _STATE_ONLY:
        return _about_changes(assertion, state, start, changes)
    return _over(find(state, parts(assertion.path)), assertion)


def parts(path: str) -> tuple[str, ...]:
    """A path's parts, the optional first part ``state`` left out."""
    if path.startswith("/"):
        return tuple(p.replace("~1", "/").replace("~0", "~") for p in path[1:].split("/")) if path != "/" else ("",)
    pieces = tuple(path.split(".")) if path else ()
    return pieces[1:] if pieces[:1] == ("state",) else pieces


def find(value: Any, path: tuple[str, ...]) -> list[Any]:
    """Every value at `path`."""
    found = [value]
    for part in path:
        step: list[Any] = []
        for item in found:
            if part == "*":
                step += list(item.values()) if isinstance(item, dict) else item if isinstance(item, list) else []
            elif isinstance(item, dict) and part in item:
                step.append(item[part])
            elif isinstance(item, list) and re.fullmatch(r"-?\d{1,9}", part) and -len(item) <= int(part) < len(item):
                step.append(item[int(part)])
        found = step
    return found


def _over(found: list[Any], a: Assertion) -> Outcome:
    if a.op in ("exists", "absent"):
        ok = bool(found) == (a.op == "exists")
        return Outcome(assertion=a, ok=ok, said=f"{_place(a)} {'is there' if found else 'is not there'}")
    if not found:
        none_wanted = a.quantifier == "none"
        said = "the agent gave no answer" if a.about == "answer" else f"{_place(a)} is not there"
        return Outcome(assertion=a, ok=none_wanted, said=said)
    fits = [holds(a, value) for value in found]
    ok = {"all": all(fits), "any": any(fits), "none": not any(fits)}[a.quantifier]
    shown = _short(found[0] if len(found) == 1 else found)
    verb = "holds" if ok else "does not hold"
    which = "" if len(found) == 1 and a.quantifier == "all" else f" for {a.quantifier} of {len(found)}"
    return Outcome(assertion=a, ok=ok, said=f"{_place(a)} {a.op} {_short(a.value)} {verb}{which}: it is {shown}")


def holds(a: Assertion, value: Any) -> bool:
    """Whether one value fits. A value of another type than the op takes does not."""
    op, wanted = a.op, a.value
    if op in ("eq", "ne"):
        return same(value, wanted) == (op == "eq")
    if op in ("lt", "le", "gt", "ge"):
        return _compare(op, value, wanted)
    if op == "approx":
        return _is_number(value) and bool(abs(value - wanted) <= a.tolerance)
    if op in ("in", "not_in"):
        return any(same(value, w) for w in wanted) == (op == "in")
    if op in ("contains", "not_contains"):
        return _contains(value, wanted) == (op == "contains")
    if op == "contains_all":
        return all(_contains(value, w) for w in wanted)
    if op == "contains_any":
        return any(_contains(value, w) for w in wanted)
    if op in ("matches", "not_matches"):
        return _matches(wanted, value) == (op == "matches")
    if op == "length":
        return isinstance(value, str | list | dict) and bool(len(value) == wanted)
    if op == "type":
        return bool(_type(value) == wanted)
    raise UsageError(f"there is no op {op!r}")


def same(a: Any, b: Any) -> bool:
    """Equality of JSON values: 1 equals 1.0, true does not equal 1."""
    if isinstance(a, bool) or isinstance(b, bool):
        return isinstance(a, bool) and isinstance(b, bool) and a == b
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    return bool(a == b)


def _compare(op: str, value: Any, wanted: Any) -> bool:
    numbers = _is_number(value) and _is_number(wanted)
    if not numbers and not (isinstance(value, str) and isinstance(wanted, str)):
        return False
    return bool({"lt": value < wanted, "le": value <= wanted, "gt": value > wanted, "ge": value >= wanted}[op])


def _contains(value: Any, wanted: Any) -> bool:
    if isinstance(value, str):
        return isinstance(wanted, str) and wanted.casefold() in value.casefold()
    if isinstance(value, list):
        return any(same(v, wanted) for v in value)
    return isinstance(value, dict) and isinstance(wanted, str) and wanted in value


def _matches(pattern: str, value: Any) -> bool:
    import re2

    return isinstance(value, str) and re2.search(pattern, value) is not None


def _type(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list | tuple) else "object" if isinstance(value, dict) else "other"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _about_changes(
    a: Assertion, state: Mapping[str, Any], start: Mapping[str, Any] | None, changes: Sequence[StateChange] | None
) -> Outcome:
    if changes is None:
        if start is None:
            return Outcome(assertion=a, ok=None, said="the world's start state was not recorded")
        changes = _leaves(start, state)
    paths = [c.path for c in changes]
    if a.op == "only_changed":
        allowed = [parts(p) for p in (a.value if isinstance(a.value, list) else [a.path])]
        outside = [p for p in paths if not any(_under(p, w) for w in allowed)]
        said = "nothing else changed" if not outside else f"also changed: {_some(outside)}"
        return Outcome(assertion=a, ok=not outside, said=said)
    wanted = parts(a.path)
    inside = [p for p in paths if _under(p, wanted) or _under(wanted, p)]
    said = f"{_place(a)} is as at the start" if not inside else f"changed: {_some(inside)}"
    return Outcome(assertion=a, ok=bool(inside) == (a.op == "changed"), said=said)


def _under(path: tuple[str, ...], above: tuple[str, ...]) -> bool:
    """Whether `path` lies at or below `above`, in which ``*`` stands for any part."""
    return len(path) >= len(above) and all(w in ("*", p) for p, w in zip(path, above, strict=False))


def _leaves(before: Any, after: Any, path: tuple[str, ...] = ()) -> list[StateChange]:
    """Leaves that differ, for states that came without a list of changes (no volatile fields are known)."""
    if isinstance(before, dict) and isinstance(after, dict):
        out: list[StateChange] = []
        for key in sorted(before.keys() | after.keys()):
            here = (*path, str(key))
            if key not in before:
                out.append(StateChange(path=here, kind="added", after=after[key]))
            elif key not in after:
                out.append(StateChange(path=here, kind="removed", before=before[key]))
            else:
                out += _leaves(before[key], after[key], here)
        return out
    return [] if same(before, after) else [StateChange(path=path, kind="changed", before=before, after=after)]


def _place(a: Assertion) -> str:
    return "the answer" if a.about == "answer" else a.path or "the state"


def _some(paths: Sequence[tuple[str, ...]]) -> str:
    shown = ", ".join(".".join(p) for p in paths[:5])
    return shown + (f" and {len(paths) - 5} more" if len(paths) > 5 else "")


def _short(value: Any) -> str:
    text = repr(value) if not isinstance(value, str) else f'"{value}"'
    return text if len(text) <= 120 else text[:117] + "..."
