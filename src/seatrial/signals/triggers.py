"""A pattern to the literals of which every match contains one: a cheap first look that spares the full match.

Reads only the syntax that the lexicon allows: literals, escapes, classes, groups, ``|`` and the quantifiers.
"""

from __future__ import annotations

import re
from typing import NamedTuple

EDGE = "\x00"
"""Stands before a literal that begins the pattern, where a word must begin."""

_QUANTIFIER = re.compile(r"[?*+]\??|\{(\d*)(?:,(\d*))?\}\??")


class _Part(NamedTuple):
    """What one piece of a pattern needs: `literals` (None: nothing certain); `char` if it is one plain character."""

    literals: frozenset[str] | None
    char: str | None = None


def literals(pattern: str) -> frozenset[str] | None:
    """Literals of which every match of `pattern` contains at least one; None if that is not certain.

    A literal that starts with `EDGE` stands at the pattern's beginning.
    """
    found, end = _alternation(pattern, 0, edge=True)
    if end != len(pattern):
        raise re.error("unbalanced parenthesis", pattern, end)
    return found


def _alternation(pattern: str, at: int, *, edge: bool) -> tuple[frozenset[str] | None, int]:
    branches = []
    while True:
        needed, at = _sequence(pattern, at, edge=edge)
        branches.append(needed)
        if at >= len(pattern) or pattern[at] != "|":
            break
        at += 1
    if any(branch is None for branch in branches):
        return None, at
    return frozenset().union(*(branch for branch in branches if branch is not None)), at


def _sequence(pattern: str, at: int, *, edge: bool) -> tuple[frozenset[str] | None, int]:
    run = EDGE if edge else ""
    best: frozenset[str] | None = None
    first = edge
    while at < len(pattern) and pattern[at] not in "|)":
        part, at = _atom(pattern, at, edge=first)
        least, after = _quantifier(pattern, at)
        plain = part.char if least else None
        if plain is not None:
            run += plain
        if plain is None or after != at:
            best = _better(best, _of_run(run))
            run = ""
            if least:
                best = _better(best, part.literals)
        at = after
        first = False
    return _better(best, _of_run(run)), at


def _of_run(run: str) -> frozenset[str] | None:
    word = run.strip(EDGE + " ")
    rare = word and (word < "\x20" or not word.isascii())
    return frozenset({run}) if len(word) >= 2 or rare else None


def _better(a: frozenset[str] | None, b: frozenset[str] | None) -> frozenset[str] | None:
    if a is None or b is None:
        return a if b is None else b
    return max(a, b, key=lambda s: (min(map(len, s)), -len(s)))


def _atom(pattern: str, at: int, *, edge: bool) -> tuple[_Part, int]:
    char = pattern[at]
    if char == "(":
        at += 3 if pattern.startswith("(?:", at) else 1
        needed, at = _alternation(pattern, at, edge=edge)
        return _Part(needed), at + 1
    if char == "[":
        at += 1
        while pattern[at] != "]":
            at += 2 if pattern[at] == "\\" else 1
        return _Part(None), at + 1
    if char == "\\":
        name = pattern[at + 1]
        if name == "x":
            return _Part(None, chr(int(pattern[at + 2 : at + 4], 16))), at + 4
        return _Part(None, None if name in "wsd" else name), at + 2
    return _Part(None, None if char in ".^$" else char), at + 1


def _quantifier(pattern: str, at: int) -> tuple[int, int]:
    match = _QUANTIFIER.match(pattern, at)
    if match is None:
        return 1, at
    token = match.group()
    least = int(match[1] or 0) if token[0] == "{" else int(token[0] == "+")
    return min(least, 1), match.end()
