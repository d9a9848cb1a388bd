"""Cue patterns to position automata over letters (Glushkov 1961): the first half of what `automata` ships.

Reads only the syntax that the lexicon allows: literals, escapes, classes, groups, ``|``, ``^``, ``$`` and the
quantifiers. A text stands between endless signs `BEGIN` and `END`, which ``^`` and ``$`` consume: to a search that only
asks whether something matches, that is the same as an assertion.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from seatrial.signals.lexicon import Cue, Lexicon

BEGIN, END, REST = -1, -2, -3
"""Symbols that are no character: before and behind the text, and any letter outside ASCII that no pattern names."""

_WORD = frozenset(b"0123456789abcdefghijklmnopqrstuvwxyz_")
_SPACE = frozenset(b" \t\n\r\f\v")
_ASCII = frozenset(range(128))
_QUANTIFIER = re.compile(r"(?:([?*+])|\{(\d*)(,?)(\d*)\})\??")
_NAMED = {"n": 10, "t": 9, "r": 13, "f": 12, "v": 11}


class Letters(NamedTuple):
    """A set of symbols. `rest`: every letter outside ASCII, listed or not."""

    some: frozenset[int]
    rest: bool = False

    def holds(self, symbol: int) -> bool:
        """Whether a symbol is in the set."""
        return symbol in self.some or (self.rest and (symbol == REST or symbol >= 128))


WORD = Letters(_WORD, rest=True)
EVERY = Letters(_ASCII | {BEGIN, END}, rest=True)


class Node(NamedTuple):
    """A piece of a pattern: ``letters``, or ``any of``, ``row of`` and ``repeat`` (`low` to `high` times, None: no
    end) of `parts`."""

    kind: str
    parts: tuple[Node, ...] = ()
    letters: Letters | None = None
    low: int = 1
    high: int | None = 1


def parse(pattern: str) -> Node:
    """A pattern as a tree.

    Raises:
        re.error: syntax that the lexicon does not allow.
    """
    node, end = _any_of(pattern, 0)
    if end != len(pattern):
        raise re.error("unbalanced parenthesis", pattern, end)
    return node


def _any_of(pattern: str, at: int) -> tuple[Node, int]:
    branches = []
    while True:
        parts = []
        while at < len(pattern) and pattern[at] not in "|)":
            node, at = _atom(pattern, at)
            while found := _QUANTIFIER.match(pattern, at):
                node, at = Node("repeat", (node,), None, *_bounds(found)), found.end()
            parts.append(node)
        branches.append(Node("row of", tuple(parts)))
        if at >= len(pattern) or pattern[at] == ")":
            return (branches[0] if len(branches) == 1 else Node("any of", tuple(branches))), at
        at += 1


def _bounds(found: re.Match[str]) -> tuple[int, int | None]:
    if found[1]:
        return {"?": (0, 1), "*": (0, None), "+": (1, None)}[found[1]]
    low = int(found[2] or 0)
    return low, (int(found[4]) if found[4] else None) if found[3] else low


def _atom(pattern: str, at: int) -> tuple[Node, int]:
    char = pattern[at]
    if char == "(":
        node, end = _any_of(pattern, at + (3 if pattern.startswith("(?:", at) else 1))
        if end >= len(pattern):
            raise re.error("missing )", pattern, at)
        return node, end + 1
    if char == "[":
        letters, at = _class(pattern, at + 1)
    elif char == "\\":
        letters, at = _escape(pattern, at + 1)
    else:
        at += 1
        letters = {
            "^": Letters(frozenset({BEGIN})), "$": Letters(frozenset({END})), ".": Letters(_ASCII - {10}, rest=True),
        }.get(char, Letters(frozenset({ord(char)})))  # fmt: skip
    return Node("letters", letters=letters), at


def _escape(pattern: str, at: int) -> tuple[Letters, int]:
    name = pattern[at]
    if name in "wsd":
        found = {"w": Letters(_WORD, rest=True), "s": Letters(_SPACE), "d": Letters(frozenset(b"0123456789"))}[name]
        return found, at + 1
    if name == "x":
        return Letters(frozenset({int(pattern[at + 1 : at + 3], 16)})), at + 3
    if name.isalnum() and name not in _NAMED:
        raise re.error(f"\\{name} is not portable", pattern, at)
    return Letters(frozenset({_NAMED.get(name, ord(name))})), at + 1


def _class(pattern: str, at: int) -> tuple[Letters, int]:
    negated = pattern[at] == "^"
    at += negated
    some: set[int] = set()
    rest = False
    last: int | None = None
    while pattern[at] != "]":
        if pattern[at] == "\\":
            letters, at = _escape(pattern, at + 1)
            some |= letters.some
            rest |= letters.rest
            last = None
        elif pattern[at] == "-" and last is not None and pattern[at + 1] != "]":
            some.update(range(last, ord(pattern[at + 1]) + 1))
            last = None
            at += 2
        else:
            last = ord(pattern[at])
            some.add(last)
            at += 1
    if negated and any(code >= 128 for code in some):
        raise re.error("a negated class may name no letter outside ASCII", pattern, at)
    return (Letters(_ASCII - some, not rest) if negated else Letters(frozenset(some), rest)), at + 1


class Positions:
    """A position automaton for a search: `letters` and `follow` (bits) of every position, `last` of every pattern.

    Position 0 stays everywhere, so that a match may begin anywhere.
    """

    def __init__(self, nodes: list[Node]) -> None:
        self.letters = [EVERY]
        self.follow = [1]
        self.last: list[int] = []
        for node in nodes:
            empty, first, last = self._add(node)
            if empty:
                raise ValueError("a pattern that matches nothing at all finds everything")
            self.follow[0] |= first
            self.last.append(last)

    def _add(self, node: Node) -> tuple[bool, int, int]:
        """(may be empty, first positions, last positions) of a piece, added to the automaton."""
        if node.letters is not None:
            self.letters.append(node.letters)
            self.follow.append(0)
            bit = 1 << (len(self.letters) - 1)
            return False, bit, bit
        if node.kind == "any of":
            branches = [self._add(part) for part in node.parts]
            first = last = 0
            for _, begins, ends in branches:
                first, last = first | begins, last | ends
            return any(empty for empty, _, _ in branches), first, last
        if node.kind == "row of":
            return self._row([(part, False) for part in node.parts])
        part, low, high = node.parts[0], node.low, node.high
        if high is not None:
            return self._row([(part, i >= low) for i in range(high)])
        return self._row([(part, low == 0)] * max(low, 1), loop=True)

    def _row(self, parts: list[tuple[Node, bool]], *, loop: bool = False) -> tuple[bool, int, int]:
        empty, first, last = True, 0, 0
        for i, (part, optional) in enumerate(parts):
            hollow, begins, ends = self._add(part)
            if loop and i == len(parts) - 1:
                self._link(ends, begins)
            self._link(last, begins)
            skippable = hollow or optional
            first |= begins if empty else 0
            last = ends | (last if skippable else 0)
            empty = empty and skippable
        return empty, first, last

    def _link(self, froms: int, to: int) -> None:
        for at in bits(froms):
            self.follow[at] |= to


def bits(mask: int) -> Iterator[int]:
    """Positions of the set bits, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def outside_ascii(node: Node, also: tuple[int, ...] = ()) -> bool:
    """Whether every match of a piece holds a letter outside ASCII, or one of `also`."""
    if node.letters is not None:
        return not node.letters.rest and all(code >= 128 or code in also for code in node.letters.some)
    if node.kind == "any of":
        return all(outside_ascii(part, also) for part in node.parts)
    if node.kind == "row of":
        return any(outside_ascii(part, also) for part in node.parts)
    return node.low > 0 and outside_ascii(node.parts[0], also)


def branches(pattern: str) -> list[str]:
    """The alternatives of a pattern that stand outside all groups."""
    out, depth, start, at, inside = [], 0, 0, 0, False
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            at += 1
        elif inside:
            inside = char != "]"
        elif char == "[":
            inside = True
        elif char in "()":
            depth += 1 if char == "(" else -1
        elif char == "|" and depth == 0:
            out.append(pattern[start:at])
            start = at + 1
        at += 1
    return [*out, pattern[start:]]


SIGNS, FILLERS = ".!?\n;:", " \t\n\r\f\v*\x1a)-"
"""What ends a sentence, besides a dash behind a space, and what may stand between that and the next."""

_SENTENCE = r"(?:^|[.!?\n;:]|\s-)[\s*\x1a)-]*"


def around(lexicon: Lexicon, cue: Cue) -> tuple[str, str, str]:
    """What the lexicon puts around a cue's own pattern: its place, what is skipped there, and what follows.

    Raises:
        ValueError: a place that is not known here.
    """
    before, after = lexicon.searched(cue).split("(" + cue.alternation() + ")", 1)
    place = {"start": "^", "whole": "^", "sentence": _SENTENCE}.get(cue.where, before)
    if not before.startswith(place):
        raise ValueError(f"cue {cue.id!r} stands at a place that is not known")
    return place, before[len(place) :], after


def any_word(node: Node) -> bool:
    """Whether a piece can begin with any word at all, however long."""
    machine = Positions([Node("row of", (node, Node("letters", letters=EVERY)))])
    return any(machine.letters[at].rest and machine.follow[at] >> at & 1 for at in bits(machine.follow[0] & ~1))


def placed(lexicon: Lexicon, cue: Cue, body: list[str]) -> Node:
    """Alternatives of a cue with its place and boundaries, as a tree."""
    import msgspec

    return parse(lexicon.searched(msgspec.structs.replace(cue, patterns=tuple(body))))
