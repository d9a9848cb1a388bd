"""Arrays of turns to cues, contexts and log-odds, in compiled code: the outer loops of `columns` (needs Numba)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from seatrial.signals.scanning import ALPHA, SHOUT, UPPER, mask, needs_mask

Codes = NDArray[np.uint32]
Ints = NDArray[np.int64]
Bits = NDArray[np.uint64]
Floats = NDArray[np.float64]

_LEAD = 120
_MASK = 27
_TAIL, _END, _LAST = 700, 300, 240
(ASKS, REPORTS, SHIP, INTERRUPTED, REFUSED, NO, QUESTION, SHORT, LONG, SHOUTING, PASTED, EXCLAIMS) = range(12)


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


@njit(cache=True, nogil=True)
def _run(symbols, low, high, pack, hits):  # type: ignore[no-untyped-def]
    """Adds a turn's answers to `hits`: two words for its lead, two for all of it."""
    go, column, width = pack.next, pack.column, pack.width
    a, b, c, d = np.uint32(pack.begin[0]), np.uint32(pack.begin[1]), np.uint32(pack.begin[2]), np.uint32(pack.begin[3])
    aa, ab, ac, ad = pack.accept[0], pack.accept[1], pack.accept[2], pack.accept[3]
    da, db, dc, dd = pack.dead[0], pack.dead[1], pack.dead[2], pack.dead[3]
    ends = da >= 0 and db >= 0 and dc >= 0 and dd >= 0
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
            if ends and (a == da) & (b == db) & (c == dc) & (d == dd):
                hits[2 * part] |= one
                hits[2 * part + 1] |= two
                if part == 0:
                    hits[2] |= one
                    hits[3] |= two
                return
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


_SPREAD = np.uint64(0x03F79D71B4CB0A89)
_PLACE = np.zeros(64, np.int64)
_PLACE[[(0x03F79D71B4CB0A89 << k & (1 << 64) - 1) >> 58 for k in range(64)]] = np.arange(64)
"""The place of a word's only bit, by multiplication (Leiserson, Prokop & Randall 1998)."""


class Hunt(NamedTuple):
    """Many automata that mostly wait. `next`, `column` and `width` as in `Pack`, for all of them.

    Automaton g waits in the states wait[g, 0] (after a letter) and wait[g, 1] (after a sign that is none), and gives
    answers in states from accept[g] on. `coarse` maps a symbol to one of 32 kinds; alive[kinds of the next three
    symbols] has a bit for every automaton that these three may wake.
    """

    next: NDArray[np.uint32]
    column: NDArray[np.uint16]
    width: int
    wait: Ints
    accept: Ints
    found: Bits
    at_end: Bits
    coarse: NDArray[np.uint8]
    alive: Bits


@njit(cache=True, nogil=True)
def _hunt(symbols, size, hunt, busy, hits):  # type: ignore[no-untyped-def]
    """The same answers as `_run`, by running each automaton only from where it may wake to where it waits again.

    It may wake at the beginning and behind a sign that is no letter. `busy` is room for a position an automaton.
    """
    go, column, width = hunt.next, hunt.column, hunt.width
    middle = min(size, _LEAD)
    one, two = np.uint64(0), np.uint64(0)
    busy[:] = 0
    kind0, kind1 = np.uint32(31), np.uint32(31)
    if size > 0:
        kind0 = np.uint32(hunt.coarse[symbols[0]])
    if size > 1:
        kind1 = np.uint32(hunt.coarse[symbols[1]])
    wakes = True
    for p in range(size):
        kind2 = np.uint32(hunt.coarse[symbols[p + 2]]) if p + 2 < size else np.uint32(31)
        if wakes:
            left = hunt.alive[(kind0 << np.uint32(10)) | (kind1 << np.uint32(5)) | kind2]
            while left:
                lowest = left & (~left + np.uint64(1))
                left ^= lowest
                g = _PLACE[(lowest * _SPREAD) >> np.uint64(58)]
                if busy[g] <= p:
                    rest, after = np.uint32(hunt.wait[g, 0]), np.uint32(hunt.wait[g, 1])
                    accept = hunt.accept[g]
                    state = after
                    i = p
                    while i < size:
                        state = go[state + column[symbols[i]]]
                        i += 1
                        if (state == rest) | (state == after):
                            break
                        if state >= accept:
                            row = state // width
                            one |= hunt.found[row, 0]
                            two |= hunt.found[row, 1]
                            if i <= middle:
                                hits[0] |= hunt.found[row, 0]
                                hits[1] |= hunt.found[row, 1]
                        if i == middle:
                            row = state // width
                            hits[0] |= hunt.at_end[row, 0]
                            hits[1] |= hunt.at_end[row, 1]
                    if i == size:
                        row = state // width
                        one |= hunt.at_end[row, 0]
                        two |= hunt.at_end[row, 1]
                    busy[g] = i
        code = symbols[p]
        wakes = code < 128 and not (97 <= code <= 122 or 48 <= code <= 57 or code == 95)
        kind0, kind1 = kind1, kind2
    hits[2] |= one
    hits[3] |= two


@njit(cache=True, nogil=True)
def _answers(symbols, low, high, pack, which, first_only):  # type: ignore[no-untyped-def]
    """The answers of one automaton of a pack on text[low:high]; with `first_only` the first ends the search."""
    state = np.uint32(pack.begin[which])
    accept = pack.accept[which]
    out = np.uint64(0)
    for i in range(low, high):
        state = pack.next[state + pack.column[symbols[i]]]
        if state >= accept:
            out |= pack.found[state // pack.width, 0]
            if first_only:
                return out
    return out | pack.at_end[state // pack.width, 0]


@njit(cache=True, nogil=True)
def _blank(code):  # type: ignore[no-untyped-def]
    """What ``str.strip`` takes off."""
    if code < 128:
        return code == 32 or 9 <= code <= 13 or 28 <= code <= 31
    return code in (0x85, 0xA0, 0x1680, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000) or 0x2000 <= code <= 0x200A


@njit(cache=True, nogil=True)
def _agent(before, symbols, low, high, pack):  # type: ignore[no-untyped-def]
    """Bits of what the agent's words say: 1 asks, 2 reports, 4 offers to ship, 8 was refused."""
    low = max(low, high - _TAIL)
    while high > low and _blank(before[high - 1]):
        high -= 1
    if high == low:
        return 0
    out = 0
    end = max(low, high - _END)
    for k in range(high - 1, max(end, high - 7) - 1, -1):
        code = before[k]
        if code == 63 or code == 0xFF1F or 0xD800 <= code <= 0xDFFF:
            out |= 1
            break
        if code == 10 or code == 95 or 48 <= code <= 57 or 65 <= code <= 90 or 97 <= code <= 122 or code == 0x212A:
            break
    line = end
    for k in range(high - 1, end - 1, -1):
        if before[k] == 10:
            line = k + 1
            break
    line = max(line, high - _LAST)
    if out & 1 == 0 and _answers(symbols, line, high, pack, 0, True):
        out |= 1
    if _answers(symbols, low, high, pack, 1, True):
        out |= 2
    found = _answers(symbols, end, high, pack, 2, False)
    if found & np.uint64(1):
        out |= 4
    if found & np.uint64(2):
        out |= 8
    return out


@njit(cache=True, nogil=True)
def _says_no(said, low, high):  # type: ignore[no-untyped-def]
    """Whether a masked turn begins with a plain no."""
    size = high - low
    if size < 3 or said[low] != 110:
        return False
    two, three = said[low + 1], said[low + 2]
    if two == 111:
        if three == 32 or three == 44 or three == 46 or three == 10:
            return True
        if size >= 4:
            four = said[low + 3]
            return (three == 112 and four == 101) or (three == 110 and four == 44)
        return False
    if two == 0xE3:
        return three == 111
    return size >= 4 and two == 101 and three == 105 and said[low + 3] == 110


@njit(cache=True, nogil=True)
def _own(said, low, high):  # type: ignore[no-untyped-def]
    """Bits of a masked turn's own words: 1 a question, 2 at most 4 words, 4 more than 60, 8 pasted, 16 exclaims."""
    masked, exclaims, far, words, count = 0, 0, 0, 0, 0
    last = np.uint32(32)
    blank = True
    for i in range(low, high):
        code = said[i]
        if code == _MASK:
            masked += 1
            continue
        now = code == 32 or (code - 9 <= 4 and code >= 9) or (code - 28 <= 3 and code >= 28)
        exclaims |= code == 33
        far |= code >= 128
        if not now:
            words += blank and count < 2000
            last = code
        count += count > 0 or not now
        blank = now
    out = (last == 63) | exclaims << 4
    if far:
        words, count, blank = 0, 0, True
        for i in range(low, high):
            code = said[i]
            if code == _MASK:
                continue
            now = code == 32 or 9 <= code <= 13 or 28 <= code <= 31
            if count == 0 and now:
                continue
            if count == 2000:
                break
            count += 1
            word = code >= 128 or code == 95 or 48 <= code <= 57 or 97 <= code <= 122
            words += word and blank
            blank = not word
    if words <= 4:
        out |= 2
    elif words > 60:
        out |= 4
    if high - low > 60 and masked > 0.4 * (high - low):
        out |= 8
    return out


@njit(cache=True, nogil=True)
def _shouts(raw, flags, low, high):  # type: ignore[no-untyped-def]
    """Whether a turn's letters are mostly capitals."""
    high = min(high, low + 400)
    loud, row, letters, capitals = False, 0, 0, 0
    for i in range(low, high):
        code = raw[i]
        if code < 128:
            if 65 <= code <= 90:
                row += 1
                letters += 1
                capitals += 1
                loud = loud or row >= 3
            else:
                row = 0
                letters += 97 <= code <= 122
        else:
            row = 0
            flag = flags[code]
            loud = loud or flag & SHOUT != 0
            letters += flag & ALPHA != 0
            capitals += flag & UPPER != 0
    return loud and letters >= 8 and capitals > 0.6 * letters


@njit(cache=True, nogil=True)
def read(  # type: ignore[no-untyped-def]
    raw, at, before, before_at, stopped, refused, plain, flags, symbol, agent_symbol, said_packs, hunt, far_pack,
    raw_pack, agent_pack, normal, said, hits, contexts, offered,
):  # fmt: skip
    """Every turn's normal and masked forms, cue hits (n, 4) and contexts (bits); `offered`: the agent offered to ship.

    `raw` and `before` are all turns' and agents' words end to end, turn i from at[i] to at[i + 1].
    """
    longest = 1
    for i in range(at.size - 1):
        longest = max(longest, at[i + 1] - at[i], before_at[i + 1] - before_at[i])
    own = np.empty(longest, np.uint16)
    busy = np.zeros(64, np.int64)
    for i in range(at.size - 1):
        low, high = at[i], at[i + 1]
        far = False
        for k in range(low, high):
            code = raw[k]
            if code < 128:
                if 65 <= code <= 90:
                    code += 32
                elif code == 26 or 1 <= code <= 3:
                    code = 26
            else:
                code = plain[code]
                far = far or code >= 128 or code <= 3
            normal[k] = code
        masked = needs_mask(normal, low, high)
        if masked:
            mask(normal, said, low, high)
            for k in range(low, high):
                own[k - low] = symbol[normal[k]]
            _run(own, 0, high - low, raw_pack, hits[i])
            for k in range(low, high):
                own[k - low] = symbol[said[k]]
        else:
            for k in range(low, high):
                said[k] = normal[k]
                own[k - low] = symbol[normal[k]]
            _run(own, 0, high - low, raw_pack, hits[i])
        for pack in said_packs:
            _run(own, 0, high - low, pack, hits[i])
        _hunt(own, high - low, hunt, busy, hits[i])
        if far:
            _run(own, 0, high - low, far_pack, hits[i])
        out = 0
        first = max(before_at[i], before_at[i + 1] - _TAIL)
        size = before_at[i + 1] - first
        if size:
            for k in range(size):
                code = before[first + k]
                own[k] = (code + 32 if 65 <= code <= 90 else code) if code < 128 else agent_symbol[code]
            agent = _agent(before[first : first + size], own, 0, size, agent_pack)
            if agent & 1:
                out |= 1 << ASKS
                if _says_no(said, low, high):
                    out |= 1 << NO
            out |= (agent >> 1 & 1) << REPORTS
            offered[i] = agent & 4 != 0
            out |= (agent >> 3 & 1) << REFUSED
        if stopped[i]:
            out |= 1 << INTERRUPTED
        if refused[i]:
            out |= 1 << REFUSED
        facts = _own(said, low, high)
        out |= (facts & 1) << QUESTION | (facts >> 1 & 1) << SHORT | (facts >> 2 & 1) << LONG
        out |= (facts >> 3 & 1) << PASTED | (facts >> 4 & 1) << EXCLAIMS
        if _shouts(raw, flags, low, high):
            out |= 1 << SHOUTING
        contexts[i] = out


@njit(cache=True, nogil=True)
def add_up(  # type: ignore[no-untyped-def]
    hits, contexts, bias, start, kind, points, share, order, context_points, decisive, absent, total, spoken,
):  # fmt: skip
    """Log-odds by kind (n, kinds) in the order that `language.score` adds; `spoken`: a rule speaks for the kind.

    Cue c's points are points[start[c]:start[c + 1]] for the kinds beside them; `share` those of a later cue; `order`
    lists contexts as they are heard.
    """
    kinds = bias.size
    for i in range(hits.shape[0]):
        favoured = 0
        for k in range(kinds):
            total[i, k] = bias[k]
        for later in range(2):
            for word in range(2):
                lead = hits[i, word] & hits[i, 2 + word]
                left = hits[i, 2 + word] & ~lead if later else lead
                c = 64 * word
                while left:
                    if left & np.uint64(1):
                        for p in range(start[c], start[c + 1]):
                            total[i, kind[p]] += share[p] if later else points[p]
                            if points[p] > 0:
                                favoured |= 1 << kind[p]
                    left >>= np.uint64(1)
                    c += 1
        for c in order:
            if contexts[i] >> c & 1:
                for k in range(kinds):
                    weight = context_points[c, k]
                    if weight != 0:
                        total[i, k] += weight
                        if weight > decisive:
                            favoured |= 1 << k
        for k in range(kinds):
            spoken[i, k] = favoured >> k & 1
            if total[i, k] < absent:
                total[i, k] = absent
