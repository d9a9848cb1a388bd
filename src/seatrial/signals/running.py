"""Arrays of turns to the cues that stand in them, in compiled code: the inner loops of `columns` (needs Numba)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bits = NDArray[np.uint64]

_LEAD = 120
WORD, SIGN, FILLER, SPACE, DASH, BEGINS = (1 << k for k in range(8, 14))
"""Bits of a symbol's look, above its column of the near tables: what it means for where cues can begin."""


class Pack(NamedTuple):
    """Up to four automata run side by side. `next` holds places in itself: a state is where its row begins.

    `column` maps a symbol to its place in a row of `width`; `begin`, `accept` (from here on a state gives answers) and
    `dead` (no answer can follow; -1: no such state) by automaton; `found` and `at_end` (n_rows, 2) are answers.
    """

    next: NDArray[np.uint32]
    column: NDArray[np.uint16]
    width: int
    begin: Ints
    accept: Ints
    dead: Ints
    found: Bits
    at_end: Bits


class Near(NamedTuple):
    """What is started where a cue can begin: by the first letters in the rows of `tree` (n_rows, n_columns), whose
    numbers from n_rows on are leaves, then by single tables.

    `start` are the rows for a word, a sentence and a turn; `ends` (n_rows, 2) what a row answers if the text ends.
    Leaf j's tables `alive` and their states are those from leaf[j] to leaf[j + 1]; of leaf 0 there are none. Table g
    has width[g] classes, kind[g, column] of them, in `single` from first[g] on; its state 0 is dead, those below
    special[g] are found, it begins at begin[g], and final[top[g] + state] tells whether it answers if the text ends.
    `cue` by table; `loose` the tables that a found cue from `cues` on starts.
    """

    tree: NDArray[np.uint16]
    start: Ints
    ends: Bits
    leaf: Ints
    alive: NDArray[np.uint8]
    state: NDArray[np.uint16]
    single: NDArray[np.uint16]
    first: Ints
    width: Ints
    kind: NDArray[np.uint8]
    special: Ints
    begin: Ints
    top: Ints
    final: NDArray[np.bool_]
    cue: Ints
    loose: Ints
    cues: int


@njit(cache=True, nogil=True)
def run(symbols, low, high, pack, hits):  # type: ignore[no-untyped-def]
    """Adds a turn's answers to `hits`: two words for its lead, two for all of it."""
    go, column, width = pack.next, pack.column, pack.width
    a, b, c, d = np.uint32(pack.begin[0]), np.uint32(pack.begin[1]), np.uint32(pack.begin[2]), np.uint32(pack.begin[3])
    aa, ab, ac, ad = pack.accept[0], pack.accept[1], pack.accept[2], pack.accept[3]
    one, two = np.uint64(0), np.uint64(0)
    middle = min(high, low + _LEAD)
    i = low
    for part in range(2):
        stop = middle if part == 0 else high
        while i < stop:
            k = column[symbols[i]]
            a = go[a + k]
            b = go[b + k]
            c = go[c + k]
            d = go[d + k]
            i += 1
            if (a >= aa) | (b >= ab) | (c >= ac) | (d >= ad):
                for state, first in ((a, aa), (b, ab), (c, ac), (d, ad)):
                    if state >= first:
                        row = state // width
                        one |= pack.found[row, 0]
                        two |= pack.found[row, 1]
        first, second = one, two
        for state in (a, b, c, d):
            row = state // width
            first |= pack.at_end[row, 0]
            second |= pack.at_end[row, 1]
        hits[2 * part] |= first
        hits[2 * part + 1] |= second
        if part == 0 and middle == high:
            hits[2] |= first
            hits[3] |= second
            return


@njit(cache=True, nogil=True)
def _look(said, low, size, looks, column, starts):  # type: ignore[no-untyped-def]
    """The column of every symbol of a turn, and where cues can begin: 2 * place, + 1 at a sentence's beginning; the
    first is the turn's beginning."""
    n = np.int64(1)
    before, fresh, blank = np.uint32(1), np.uint32(1), np.uint32(0)
    starts[0] = 0
    for k in range(size):
        bits = np.uint32(looks[said[low + k]])
        column[k] = np.uint8(bits)
        filler = (bits >> np.uint32(10)) & np.uint32(1)
        starts[n] = (k << 1) | np.int64(fresh & (filler ^ np.uint32(1)))
        n += np.int64((bits >> np.uint32(13)) & (before ^ np.uint32(1)))
        before = (bits >> np.uint32(8)) & np.uint32(1)
        fresh = ((bits >> np.uint32(9)) & np.uint32(1)) | ((bits >> np.uint32(12)) & blank) | (filler & fresh)
        blank = (bits >> np.uint32(11)) & np.uint32(1)
    return n


@njit(cache=True, nogil=True)
def _fresh(said, low, size, looks, starts):  # type: ignore[no-untyped-def]
    """All beginnings of sentences, as `_look` lists them; returns how many."""
    n, fresh, blank = 0, True, False
    for k in range(size):
        bits = looks[said[low + k]]
        filler = bits & FILLER != 0
        if fresh and not filler:
            starts[n] = 2 * k
            n += 1
        fresh = bits & SIGN != 0 or (bits & DASH != 0 and blank) or (filler and fresh)
        blank = bits & SPACE != 0
    return n


@njit(cache=True, nogil=True)
def near_cues(said, at, looks, near, hits, events, event_at):  # type: ignore[no-untyped-def]
    """Every turn's cues that are looked for from where they can begin: `hits` (n, 4), and where they do.

    Turn i's events are events[event_at[i]:event_at[i + 1]]: a cue that stands in the turn and the first place where
    its table answers from.
    """
    longest = 1
    for i in range(at.size - 1):
        longest = max(longest, at[i + 1] - at[i])
    column, starts = np.empty(longest, np.uint8), np.empty(longest + 1, np.int64)
    found, last = np.zeros(4, np.uint64), np.zeros(1, np.int64)
    (
        tree, start, ends, leaf, alive, state, single, first, width, kind, special, begin, top, final, cue, loose, cues,
    ) = near  # fmt: skip
    rows, columns = tree.shape
    tree, kind = tree.reshape(-1), kind.reshape(-1)
    n = 0
    for i in range(at.size - 1):
        low, size = at[i], at[i + 1] - at[i]
        event_at[i] = n
        if size:
            found[:] = 0
            count = _look(said, low, size, looks, column, starts)
            last[0] = n
            _match(
                column, starts, count, size, tree, rows, columns, start, ends, leaf, alive, state, single, first, width,
                kind, special, top, final, cue, -1, 0, found, events, last,
            )  # fmt: skip
            for j in range(loose.size):
                wake, bit = (cues + j) >> 6, np.uint64(1) << np.uint64((cues + j) & 63)
                if found[2 + wake] & bit:
                    found[wake] &= ~bit
                    found[2 + wake] &= ~bit
                    count = _fresh(said, low, size, looks, starts)
                    _match(
                        column, starts, count, size, tree, rows, columns, start, ends, leaf, alive, state, single,
                        first, width, kind, special, top, final, cue, loose[j], begin[loose[j]], found, events, last,
                    )  # fmt: skip
            n = last[0]
            for word in range(4):
                hits[i, word] = found[word]
    event_at[at.size - 1] = n


@njit(cache=True, nogil=True)
def _match(  # type: ignore[no-untyped-def]
    column, starts, count, size, tree, rows, columns, start_of, ends_of, leaf_at, alive, states, single, first, width,
    kind, special, top, final, cues, only, begin, hits, events, last,
):  # fmt: skip
    """One turn for `near_cues`: all tables by the tree, or the loose table `only`. `last[0]` counts events."""
    middle = min(size, _LEAD)
    n = last[0]
    for j in range(count):
        start = starts[j] >> 1
        i = start
        stop = middle if start < middle else size
        first_alive, last_alive = 0, 1
        if only < 0:
            state = start_of[2] if j == 0 else start_of[starts[j] & 1]
            while True:
                while i < stop:
                    state = np.int64(tree[state * columns + column[i]])
                    i += 1
                    if state >= rows:
                        break
                if state >= rows:
                    break
                for word in range(2):
                    ends = ends_of[state, word]
                    if ends:
                        if stop == middle:
                            hits[word] |= ends
                        if stop == size:
                            ends &= ~hits[2 + word]
                            hits[2 + word] |= ends
                            cue = 64 * word
                            while ends:
                                if ends & np.uint64(1):
                                    events[n, 0], events[n, 1] = cue, start
                                    n += 1
                                ends >>= np.uint64(1)
                                cue += 1
                if stop == size:
                    break
                stop = size
            if state <= rows:
                continue
            leaf = state - rows
            first_alive, last_alive = leaf_at[leaf], leaf_at[leaf + 1]
        for a in range(first_alive, last_alive):
            g = np.int64(alive[a]) if only < 0 else np.int64(only)
            cue = cues[g]
            word, bit = cue >> 6, np.uint64(1) << np.uint64(cue & 63)
            if only < 0 and hits[2 + word] & bit != 0 and (i > middle or hits[word] & bit != 0):
                continue
            state = np.int64(states[a]) if only < 0 else begin
            offset, wide, classes, least, k = first[g], width[g], g * columns, special[g], i
            stop = middle if k <= middle else size
            lead = whole = False
            while state >= least:
                while k < stop:
                    state = np.int64(single[offset + state * wide + kind[classes + column[k]]])
                    k += 1
                    if state < least:
                        break
                if state < least:
                    break
                if final[top[g] + state]:
                    lead = lead or stop == middle
                    whole = whole or stop == size
                if stop == size:
                    break
                stop = size
            if 0 < state < least:
                lead = lead or k <= middle
                whole = True
            if lead:
                hits[word] |= bit
            if whole and (only >= 0 or hits[2 + word] & bit == 0):
                hits[2 + word] |= bit
                events[n, 0], events[n, 1] = cue, start
                n += 1
        if only >= 0 and n > last[0] and start >= middle:
            break
    last[0] = n


@njit(cache=True, nogil=True)
def _anything(text, low, high, column, go, width, begin, accept, at_end):  # type: ignore[no-untyped-def]
    """Whether the first automaton of a pack answers anywhere in text[low:high]; `column` by sign."""
    state = np.uint32(begin)
    for i in range(low, high):
        state = go[state + column[text[i]]]
        if state >= accept:
            return True
    row = state // width
    return (at_end[row, 0] | at_end[row, 1]) != 0


@njit(cache=True, nogil=True)
def far_cues(  # type: ignore[no-untyped-def]
    normal, said, at, facts, symbol, raw_column, raw, far, wide, hits, astray,
):  # fmt: skip
    """Adds the cues that are looked for everywhere to `hits`; `astray` (n, 2) names them and those of `wide`: where
    they begin is not known."""
    longest = 1
    for i in range(at.size - 1):
        longest = max(longest, at[i + 1] - at[i])
    own, found = np.empty(longest, np.uint16), np.zeros(4, np.uint64)
    go, _, width, begin, accept, _, _, at_end = raw
    for i in range(at.size - 1):
        low, high = at[i], at[i + 1]
        found[:] = 0
        if _anything(normal, low, high, raw_column, go, width, begin[0], accept[0], at_end):
            for k in range(low, high):
                own[k - low] = symbol[normal[k]]
            run(own, 0, high - low, raw, found)
        if facts[i, 1] & 1:
            for k in range(low, high):
                own[k - low] = symbol[said[k]]
            run(own, 0, high - low, far, found)
        for word in range(4):
            hits[i, word] |= found[word]
        astray[i, 0], astray[i, 1] = found[2] | wide[0], found[3] | wide[1]
