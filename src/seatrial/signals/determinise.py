"""Position automata to small deterministic tables, grouped so that none grows large: run by `scripts/build_automata`.

Nothing here runs when signals are extracted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from seatrial.signals.patterns import BEGIN, END, REST, Letters, Node, Positions, bits

Ints = NDArray[np.int64]
_DEEP = 4
"""How often a pattern may look at the text's beginning or end in a row."""


class Unit(NamedTuple):
    """Something to be found: `node` as placed in a text, and the number of the answer it belongs to."""

    answer: int
    node: Node


class Table(NamedTuple):
    """A deterministic automaton. `next` (n_states, n_classes); `symbols` and their `classes`; `found` and `at_end`
    are the answers (bits) given on entering a state, and if the text ends there. State 0 is the beginning."""

    next: Ints
    symbols: tuple[int, ...]
    classes: tuple[int, ...]
    found: list[int]
    at_end: list[int]


class TooLarge(Exception):
    """More states than allowed."""


def table(units: Sequence[Unit], most: int, *, anchored: bool = False) -> Table:
    """The smallest automaton that finds all units, anywhere or (`anchored`) from where it is started alone.

    Raises:
        TooLarge: more than `most` states on the way.
        ValueError: an anchored unit looks at the text's beginning.
    """
    machine = Positions([unit.node for unit in units])
    named = sorted({code for letters in machine.letters for code in letters.some if code >= 128})
    symbols = (*range(128), *named, REST)
    alike: dict[Letters, int] = {}
    for i, letters in enumerate(machine.letters):
        alike[letters] = alike.get(letters, 0) | 1 << i
    entered = {symbol: _entered(alike, symbol) for symbol in (*symbols, BEGIN, END)}
    kinds: dict[int, int] = {}
    classes = tuple(kinds.setdefault(entered[symbol], len(kinds)) for symbol in symbols)
    start, kept = 1, -2 if anchored else -1
    if anchored and any(BEGIN in letters.some for letters in machine.letters[1:]):
        raise ValueError("a text's beginning cannot be looked for from within")
    for _ in range(0 if anchored else _DEEP):
        start = _follow(machine, start) & entered[BEGIN]
    number = {start: 0}
    states = [start]
    rows: list[list[int]] = []
    columns = list(kinds)
    while len(rows) < len(states):
        after = _follow(machine, states[len(rows)]) & kept
        row = []
        for column in columns:
            to = after & column
            at = number.get(to)
            if at is None:
                at = number[to] = len(states)
                states.append(to)
            row.append(at)
        rows.append(row)
        if len(states) > most:
            raise TooLarge
    found = [_answers(machine, units, state) for state in states]
    at_end = []
    for state in states:
        answers, now = 0, state
        for _ in range(_DEEP):
            now = _follow(machine, now) & kept & entered[END]
            answers |= _answers(machine, units, now)
        at_end.append(answers)
    return _smallest(Table(np.array(rows, np.int64), symbols, classes, found, at_end))


def _entered(alike: dict[Letters, int], symbol: int) -> int:
    out = 0
    for letters, positions in alike.items():
        if letters.holds(symbol):
            out |= positions
    return out


def _follow(machine: Positions, state: int) -> int:
    out = 0
    for at in bits(state):
        out |= machine.follow[at]
    return out


def _answers(machine: Positions, units: Sequence[Unit], state: int) -> int:
    out = 0
    for unit, last in zip(units, machine.last, strict=True):
        if state & last:
            out |= 1 << unit.answer
    return out


def _smallest(found: Table) -> Table:
    """States that no text tells apart become one (Moore's refinement, on hashed rows that are then checked)."""
    number: dict[tuple[int, int], int] = {}
    part = np.array([number.setdefault(pair, len(number)) for pair in zip(found.found, found.at_end, strict=True)])
    draw = np.random.default_rng(0)
    salt = draw.integers(1, 2**63, found.next.shape[1] + 1, dtype=np.uint64)
    n = len(number)
    while True:
        key = part[found.next].astype(np.uint64) @ salt[1:] + part.astype(np.uint64) * salt[0]
        _, new = np.unique(key, return_inverse=True)
        if int(new.max()) + 1 == n:
            break
        n, part = int(new.max()) + 1, new
    _, first = np.unique(part, return_index=True)
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    part = place[part]
    kept = first[order]
    merged = part[found.next[kept]]
    if not (merged[part] == part[found.next]).all():
        raise AssertionError("two rows share a hash")
    return found._replace(next=merged, found=[found.found[i] for i in kept], at_end=[found.at_end[i] for i in kept])


def grouped(units: Sequence[Unit], most: int, tell: Callable[[str], None] = lambda _: None) -> list[list[Unit]]:
    """Units put together so that every group's automaton stays within `most` states.

    A unit of more than a tenth of `most` states begins a group. Any other joins the smallest group that it leaves
    smaller than half as large again as the two apart, of the six smallest; else it begins one.
    """
    alone = []
    for unit in units:
        try:
            alone.append((table([unit], 20 * most).next.shape[0], unit))
        except TooLarge:
            alone.append((20 * most, unit))
    alone.sort(key=lambda pair: -pair[0])
    groups: list[tuple[int, list[Unit]]] = []
    for size, unit in alone:
        groups.sort(key=lambda group: group[0])
        for i, (held, members) in enumerate(groups[:6] if size <= most // 10 else ()):
            bound = min(most, int(1.5 * (held + size)) + 50)
            try:
                both = table([*members, unit], 3 * bound)
            except TooLarge:
                continue
            if both.next.shape[0] <= bound:
                groups[i] = (both.next.shape[0], [*members, unit])
                break
        else:
            groups.append((size, [unit]))
            tell(f"group {len(groups)}: {size} states")
    return [members for _, members in groups]
