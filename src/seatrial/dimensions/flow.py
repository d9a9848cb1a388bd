"""Data flow: a read is relevant when something that it alone returned is used later (METHODS 5, D2)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from seatrial.dimensions.actions import Action
from seatrial.dimensions.observation import parsed

LEAST = 4
"""Characters of a value that says something by itself; ids may be shorter."""

_DISTINCT = re.compile(r"[^\s\"'`<>()\[\]{},;|=]{4,}")
_MARKED = re.compile(r"[\d@/_\\.:-]|(?<=[a-z])[A-Z]")
_ID = re.compile(r"(?:^|_)(?:id|key|number|ref)$|^ids$|[a-z]Id$", re.IGNORECASE)
_WORD = re.compile(r"\w+(?:[.'-]\w+)*")
_PHRASE = 4
_ENDS = " \t.,:;!?*-\u2022#>"


class Use(NamedTuple):
    """A value that a read returned, and the position of the action that used it (None: the final answer)."""

    value: str
    by: int | None


def used_reads(
    actions: Sequence[Action], relevant: Collection[int], candidates: Collection[int], asked: str, answer: str
) -> dict[int, Use]:
    """The reads among `candidates` (positions) that are relevant, each with a use, to a fixed point.

    A use is a value absent from `asked` and from every earlier result that occurs in the arguments of a later
    relevant action, or in `answer`. A read that feeds a relevant read is relevant, too.
    """
    fresh = _fresh_values(actions, candidates, asked)
    found: dict[int, Use] = {}
    answered = fold(answer)
    while True:
        grown = False
        users = [(a.position, _said(a)) for a in actions if a.position in relevant or a.position in found]
        for position, values in fresh.items():
            if position in found:
                continue
            use = _use(values, ((p, text) for p, text in users if p > position), answered)
            if use is not None:
                found[position] = use
                grown = True
        if not grown:
            return found


def _use(values: Iterable[str], users: Iterable[tuple[int, str]], answer: str) -> Use | None:
    listed = list(users)
    for value in values:
        for position, text in listed:
            if occurs(value, text):
                return Use(value, position)
        if occurs(value, answer):
            return Use(value, None)
    return None


def _fresh_values(actions: Sequence[Action], candidates: Collection[int], asked: str) -> dict[int, tuple[str, ...]]:
    """By position, what each candidate returned that nobody had said or returned before."""
    known = [fold(asked)]
    out: dict[int, tuple[str, ...]] = {}
    for action in actions:
        if action.executed and action.position in candidates:
            new = [v for v in values_of(action.text) if not any(occurs(v, k) for k in known)]
            out[action.position] = tuple(sorted(new, key=lambda v: (-len(v), v)))
        if action.text:
            known.append(fold(action.text))
    return out


def values_of(text: str) -> set[str]:
    """The values in a result, folded: leaves where it is JSON (whole or by line), else its lines; in either, marked
    words (with a digit, an @, a path's signs or an inner capital) and phrases of four words."""
    found: set[str] = set()
    whole = parsed(text)
    if whole is not None:
        _leaves(whole, "", found)
        return found
    for line in text.split("\n"):
        value = parsed(line)
        if value is not None:
            _leaves(value, "", found)
        else:
            _prose(line, found)
    return found


def _leaves(value: Any, name: str, found: set[str]) -> None:
    if isinstance(value, Mapping):
        for key, item in value.items():
            _leaves(item, str(key), found)
    elif isinstance(value, list):
        for item in value:
            _leaves(item, name, found)
    elif isinstance(value, bool) or value is None:
        return
    elif isinstance(value, str):
        if _ID.search(name) and value.strip():
            found.add(fold(value))
        for line in value.split("\n"):
            _prose(line, found)
    else:
        plain = f"{value}"
        if len(plain) >= LEAST or _ID.search(name):
            found.add(plain)


def _prose(line: str, found: set[str]) -> None:
    folded = fold(line).strip(_ENDS)
    if len(folded) >= LEAST:
        found.add(folded)
    for match in _DISTINCT.findall(line):
        word = match.strip(_ENDS)
        if len(word) >= LEAST and _MARKED.search(word):
            found.add(fold(word))
    words = _WORD.findall(folded)
    for i in range(len(words) - _PHRASE + 1):
        found.add(" ".join(words[i : i + _PHRASE]))


def occurs(value: str, text: str) -> bool:
    """Whether the folded `value` stands in the folded `text`, not as a part of a longer word."""
    at = text.find(value)
    while at >= 0:
        before, after = text[at - 1 : at], text[at + len(value) : at + len(value) + 1]
        if not (_joins(before, value[0]) or _joins(after, value[-1])):
            return True
        at = text.find(value, at + 1)
    return False


def _joins(beside: str, edge: str) -> bool:
    return bool(beside) and (beside.isalnum() or beside == "_") and (edge.isalnum() or edge == "_")


def fold(text: str) -> str:
    """Case and runs of space do not matter."""
    return " ".join(text.casefold().split())


def _said(action: Action) -> str:
    return fold("\n".join(_texts(action.call.arguments)))


def _texts(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        return [t for item in value.values() for t in _texts(item)]
    if isinstance(value, list | tuple):
        return [t for item in value for t in _texts(item)]
    return [] if value is None or isinstance(value, bool) else [str(value)]
