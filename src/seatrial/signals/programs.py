"""Cues to small programs that a compiled loop follows to find where a cue stands: leftmost, preferring what the pattern
names first, as RE2 and `re` do (Thompson 1968, tried in order of preference)."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from seatrial.signals import patterns
from seatrial.signals.lexicon import Lexicon
from seatrial.signals.patterns import BEGIN, END, REST, Node

LETTER, SPLIT, JUMP, OPEN, CLOSE, START, STOP, MATCH = range(8)
_LAZY = re.compile(r"(?<!\\)[*+?}]\?")


class Programs(NamedTuple):
    """All cues' programs end to end; cue c's begins at begin[c], behind its place at within[c].

    `op`, `x`, `y` (n_steps,): a letter step reads its set x of `sets` (n_sets, n_symbols); a split tries x, then y. A
    match that does not begin at the text's beginning begins with a symbol of first[c], followed by one of second[c] or
    by nothing."""

    begin: NDArray[np.int64]
    within: NDArray[np.int64]
    op: NDArray[np.uint8]
    x: NDArray[np.int32]
    y: NDArray[np.int32]
    sets: NDArray[np.bool_]
    first: NDArray[np.bool_]
    second: NDArray[np.bool_]


class _Writer:
    def __init__(self, symbols: list[int]) -> None:
        self.symbols = symbols
        self.steps: list[list[int]] = []
        self.sets: dict[tuple[bool, ...], int] = {}
        self._members: dict[patterns.Letters, tuple[bool, ...]] = {}

    def members(self, letters: patterns.Letters) -> tuple[bool, ...]:
        found = self._members.get(letters)
        if found is None:
            found = self._members[letters] = tuple(letters.holds(symbol) for symbol in self.symbols)
        return found

    def put(self, op: int, x: int = 0, y: int = 0) -> int:
        self.steps.append([op, x, y])
        return len(self.steps) - 1

    def write(self, node: Node) -> None:
        if node.letters is not None:
            if node.letters.some <= {BEGIN, END} and not node.letters.rest:
                self.put(START if BEGIN in node.letters.some else STOP)
            else:
                self.put(LETTER, self.sets.setdefault(self.members(node.letters), len(self.sets)))
        elif node.kind == "row of":
            for part in node.parts:
                self.write(part)
        elif node.kind == "any of":
            jumps = []
            for i, part in enumerate(node.parts):
                split = self.put(SPLIT) if i < len(node.parts) - 1 else -1
                if split >= 0:
                    self.steps[split][1] = len(self.steps)
                self.write(part)
                if split >= 0:
                    jumps.append(self.put(JUMP))
                    self.steps[split][2] = len(self.steps)
            for jump in jumps:
                self.steps[jump][1] = len(self.steps)
        else:
            self._repeat(node)

    def _repeat(self, node: Node) -> None:
        part = node.parts[0]
        for _ in range(node.low):
            self.write(part)
        if node.high is None:
            split = self.put(SPLIT, len(self.steps) + 1)
            self.write(part)
            self.put(JUMP, split)
            self.steps[split][2] = len(self.steps)
            return
        splits = []
        for _ in range(node.high - node.low):
            splits.append(self.put(SPLIT, len(self.steps) + 1))
            self.write(part)
        for split in splits:
            self.steps[split][2] = len(self.steps)


def build(lexicon: Lexicon, named: list[int]) -> Programs:
    """The programs of every cue over the symbols 0 to 127, the letters `named`, and any other letter.

    Raises:
        re.error: a quantifier that prefers less, which these programs do not know.
    """
    writer = _Writer([*range(128), *named, REST])
    begin, within, first, second = [], [], [], []
    for cue in lexicon.cue:
        whole = lexicon.searched(cue)
        if _LAZY.search(whole):
            raise re.error(f"cue {cue.id!r}: no lazy quantifiers", whole)
        body = "(" + cue.alternation() + ")"
        place, skipped, after = patterns.around(lexicon, cue)
        begin.append(len(writer.steps))
        writer.write(patterns.parse(place))
        within.append(len(writer.steps))
        writer.write(patterns.parse(skipped))
        writer.put(OPEN)
        writer.write(patterns.parse(body))
        writer.put(CLOSE)
        writer.write(patterns.parse(after))
        writer.put(MATCH)
        machine = patterns.Positions([patterns.parse(whole)])
        starts = machine.follow[0] & ~1
        one, two, short = set(), set(), False
        for at in patterns.bits(starts):
            if BEGIN not in machine.letters[at].some:
                one.add(machine.letters[at])
                short |= bool(machine.last[0] >> at & 1)
                two |= {machine.letters[k] for k in patterns.bits(machine.follow[at])}
            elif machine.letters[at].rest or machine.letters[at].some != {BEGIN}:
                raise re.error(f"cue {cue.id!r}: ^ stands in a class", whole)
        first.append(np.array([writer.members(x) for x in one] or [(False,) * len(writer.symbols)]).any(axis=0))
        follows = np.array([writer.members(x) for x in two] or [(False,) * len(writer.symbols)]).any(axis=0)
        second.append(follows | short)
    steps = np.array(writer.steps, np.int32)
    return Programs(
        np.array(begin, np.int64), np.array(within, np.int64), steps[:, 0].astype(np.uint8), steps[:, 1].copy(),
        steps[:, 2].copy(), np.array(list(writer.sets), np.bool_), np.array(first), np.array(second),
    )  # fmt: skip
