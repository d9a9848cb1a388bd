"""Many small automata to one table for the first letters behind a word's beginning: run by `scripts/build_automata`.

All automata that start at one place are followed together as long as that stays small: the table's rows are what they
know in common, its leaves the few that are still alive, each with its own state. What follows is read by these alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from seatrial.signals.determinise import Table
from seatrial.signals.patterns import REST

State = tuple[tuple[int, int], ...]
"""Automata that are alive, each with its state."""


class Tree(NamedTuple):
    """`next` (n_rows, n_columns): a row, or n_rows + j for leaf j; leaf 0: none is alive. `column` is the column of
    every symbol, `starts` the rows to begin at, `at_end` (n_rows, n_tables) which automata answer if the text ends
    there. Leaf j's automata are alive[leaf[j]:leaf[j + 1]], (automaton, state)."""

    next: NDArray[np.uint16]
    column: NDArray[np.uint8]
    starts: NDArray[np.int64]
    at_end: NDArray[np.bool_]
    leaf: NDArray[np.int64]
    alive: NDArray[np.uint16]


def columns(tables: Sequence[Table], symbols: Sequence[int]) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """One alphabet for all: the column of every symbol (n_symbols,), and each table's class of every column
    (n_tables, n_columns)."""
    own = []
    for one in tables:
        known = dict(zip(one.symbols, one.classes, strict=True))
        own.append([known.get(symbol, known[REST]) for symbol in symbols])
    kinds: dict[tuple[int, ...], int] = {}
    column = [kinds.setdefault(key, len(kinds)) for key in zip(*own, strict=True)]
    return np.array(column, np.uint8), np.array(list(kinds), np.uint8).T.copy()


def dead(one: Table) -> int:
    """The state from which nothing is found.

    Raises:
        ValueError: none, or more than one.
    """
    silent = np.array([not f and not e for f, e in zip(one.found, one.at_end, strict=True)])
    (state,) = np.flatnonzero((one.next == np.arange(one.next.shape[0])[:, None]).all(axis=1) & silent)
    return int(state)


def grow(tables: Sequence[Table], symbols: Sequence[int], starts: Sequence[Sequence[int]], deep: int) -> Tree:
    """The tree of `tables`, `deep` letters at most; starts[i] are the automata that begin at the i-th start."""
    column, classes = columns(tables, symbols)
    following = [one.next[:, kinds] for one, kinds in zip(tables, classes, strict=True)]
    lost = [dead(one) for one in tables]
    rows: dict[State, int] = {}
    leaves: dict[State, int] = {(): 0}
    queue: deque[tuple[State, int]] = deque()

    def place(state: State, depth: int) -> int:
        """Its row, or -1 - its leaf."""
        if state in rows:
            return rows[state]
        answers = any(tables[g].found[s] for g, s in state)
        if depth and (answers or depth >= deep or len(state) < 2 or state in leaves):
            return -1 - leaves.setdefault(state, len(leaves))
        rows[state] = len(rows)
        queue.append((state, depth))
        return rows[state]

    begin = [place(tuple((g, 0) for g in group), 0) for group in starts]
    table = []
    while queue:
        state, depth = queue.popleft()
        steps = [following[g][s] for g, s in state]
        alive = [(g, row.tolist(), lost[g]) for (g, _), row in zip(state, steps, strict=True)]
        table.append(
            [
                place(tuple((g, row[c]) for g, row, gone in alive if row[c] != gone), depth + 1)
                for c in range(classes.shape[1])
            ]
        )
    found = np.array(table, np.int64)
    found = np.where(found < 0, len(rows) - 1 - found, found)
    if found.max() >= 1 << 16:
        raise ValueError("a tree of more rows and leaves than 16 bits count")
    ends = np.zeros((len(rows), len(tables)), np.bool_)
    for state, i in rows.items():
        for g, s in state:
            ends[i, g] = bool(tables[g].at_end[s])
    sizes = [0, *(len(state) for state in leaves)]
    pairs = [pair for state in leaves for pair in state]
    return Tree(
        found.astype(np.uint16), column, np.array(begin, np.int64), ends, np.cumsum(sizes), np.array(pairs, np.uint16)
    )
