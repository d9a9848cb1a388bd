"""Turns to their plain forms and contexts, in compiled code (needs Numba): the twin of `language.contexts`."""

from __future__ import annotations

import numpy as np
from numba import njit

from seatrial.signals.scanning import ALPHA, SHOUT, UPPER, mask, needs_mask

BUILT_WITH = ("scanning 276d5df7a582",)
"""Digests of the files that the compiled code below was made from: Numba keeps it until this file changes."""

_MASK = 27
_TAIL, _END, _LAST = 700, 300, 240
(ASKS, REPORTS, SHIP, INTERRUPTED, REFUSED, NO, QUESTION, SHORT, LONG, SHOUTING, PASTED, EXCLAIMS) = range(12)
BLANK, EXCLAIM, MARK, COLON, STAND_IN = 1, 2, 4, 8, 16
"""What a plain sign is: a blank, an exclamation mark, one that quotation or code can begin with, a colon, `MASK`."""
_FAR, _OUTSIDE = 1, 2


@njit(cache=True, nogil=True)
def plain_forms(raw, first, at, plain, marks, flags, normal, said, facts):  # type: ignore[no-untyped-def]
    """Every turn's normal and masked forms, and what they show (bits of `contexts`): raw text i begins at first[i] and
    becomes [at[i], at[i + 1]). Returns how many signs `plain` does not know yet; they are listed in `said`.

    `facts` (n, 2): context bits; whether letters outside ASCII or emoji stand in the turn and whether it is masked.
    """
    unknown = 0
    for i in range(at.size - 1):
        low, size = at[i], at[i + 1] - at[i]
        offset = first[i]
        seen, outside, capitals, words = np.uint8(0), False, np.int64(0), np.int64(0)
        blank = np.uint8(1)
        for k in range(size):
            code = raw[offset + k]
            sign = np.uint32(plain[code])
            if code > 127:
                outside = True
                if sign == 0:
                    said[unknown] = code
                    unknown += 1
            capitals += np.int64(code - np.uint32(65) < np.uint32(26))
            normal[low + k] = sign
            mark = marks[min(sign, np.uint32(128))]
            seen |= mark
            words += np.int64(blank & (mark ^ np.uint8(1)) & np.uint8(1))
            blank = mark & np.uint8(1)
        if unknown:
            continue
        high = low + size
        far = False
        if outside:
            for k in range(low, high):
                far = far or normal[k] > 127 or 1 <= normal[k] <= 3
        masked = seen & MARK != 0 or (seen & COLON != 0 and needs_mask(normal, low, high))
        if masked:
            mask(normal, said, low, high)
        else:
            for k in range(low, high):
                said[k] = normal[k]
        out = 0
        if masked or outside or seen & STAND_IN or size > 2000:
            own = _own(said, low, high)
            out |= (own & 1) << QUESTION | (own >> 1 & 1) << SHORT | (own >> 2 & 1) << LONG
            out |= (own >> 3 & 1) << PASTED | (own >> 4 & 1) << EXCLAIMS
        else:
            last = high - 1
            while last >= low and marks[said[last]] & BLANK:
                last -= 1
            out |= (last >= low and said[last] == 63) << QUESTION | (words <= 4) << SHORT | (words > 60) << LONG
            out |= (seen & EXCLAIM != 0) << EXCLAIMS
        if (outside or capitals >= 5) and _shouts(raw, flags, offset, offset + size):
            out |= 1 << SHOUTING
        facts[i, 0] = out
        facts[i, 1] = far * _FAR | masked * _OUTSIDE
    return unknown


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
def _blank(code):  # type: ignore[no-untyped-def]
    """What ``str.strip`` takes off."""
    if code < 128:
        return code == 32 or 9 <= code <= 13 or 28 <= code <= 31
    return code in (0x85, 0xA0, 0x1680, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000) or 0x2000 <= code <= 0x200A


@njit(cache=True, nogil=True)
def _answers(text, low, high, agent, go, width, begin, accept, found, at_end, first_only):  # type: ignore[no-untyped-def]
    """The answers of one automaton of a pack on the agent's words; with `first_only` the first ends the search."""
    state = np.uint32(begin)
    out = np.uint64(0)
    for i in range(low, high):
        state = go[state + agent[text[i]]]
        if state >= accept:
            out |= found[state // width, 0]
            if first_only:
                return out
    return out | at_end[state // width, 0]


@njit(cache=True, nogil=True)
def _names_user(text, low, high):  # type: ignore[no-untyped-def]
    """Whether the word "user" stands in text[low:high], without which no refusal is told."""
    found = 0
    for k in range(low, high - 3):
        found += (
            (text[k] | 32 == 117) & (text[k + 1] | 32 == 115) & (text[k + 2] | 32 == 101) & (text[k + 3] | 32 == 114)
        )
    return found > 0


@njit(cache=True, nogil=True)
def _says(text, low, high, agent, go, width, begin, accept, found, at_end, may_agree):  # type: ignore[no-untyped-def]
    """Bits of what the agent's words say: 1 asks, 2 reports, 4 offers to ship (asked only if the human may agree),
    8 was refused."""
    while high > low and _blank(text[high - 1]):
        high -= 1
    if high == low:
        return 0
    out = 0
    end = max(low, high - _END)
    for k in range(high - 1, max(end, high - 7) - 1, -1):
        code = text[k]
        if code == 63 or code == 0xFF1F or 0xD800 <= code <= 0xDFFF:
            out |= 1
            break
        if code == 10 or code == 95 or 48 <= code <= 57 or 65 <= code <= 90 or 97 <= code <= 122 or code == 0x212A:
            break
    if out & 1 == 0:
        line = end
        for k in range(high - 1, end - 1, -1):
            if text[k] == 10:
                line = k + 1
                break
        line = max(line, high - _LAST)
        if _answers(text, line, high, agent, go, width, begin[0], accept[0], found, at_end, True):
            out |= 1
    if _answers(text, low, high, agent, go, width, begin[1], accept[1], found, at_end, True):
        out |= 2
    if may_agree or _names_user(text, end, high):
        last = _answers(text, end, high, agent, go, width, begin[2], accept[2], found, at_end, False)
        if last & np.uint64(1):
            out |= 4
        if last & np.uint64(2):
            out |= 8
    return out


@njit(cache=True, nogil=True)
def _may_agree(said, low, high):  # type: ignore[no-untyped-def]
    """Whether a turn may be one that `language.AGREES` matches, by its first sign."""
    while low < high and _blank(said[low]):
        low += 1
    if low == high:
        return False
    c = said[low]
    return c > 127 or c == 121 or c == 115 or c == 111 or c == 112 or c == 103 or c == 100 or c == 106 or c < 32


@njit(cache=True, nogil=True)
def contexts(  # type: ignore[no-untyped-def]
    before, before_at, before_size, stopped, refused, agent, pack, normal, said, at, facts, out, offered,
):  # fmt: skip
    """Every turn's contexts (bits); `offered`: the agent offered to ship, if the human may agree to that."""
    go, _, width, begin, accept, _, found, at_end = pack
    for i in range(at.size - 1):
        held = facts[i, 0]
        low, size = before_at[i], before_size[i]
        if size:
            may = _may_agree(normal, at[i], at[i + 1])
            says = _says(before, low, low + size, agent, go, width, begin, accept, found, at_end, may)
            if says & 1:
                held |= 1 << ASKS
                if _says_no(said, at[i], at[i + 1]):
                    held |= 1 << NO
            held |= (says >> 1 & 1) << REPORTS
            offered[i] = says & 4 != 0
            held |= (says >> 3 & 1) << REFUSED
        if stopped[i]:
            held |= 1 << INTERRUPTED
        if refused[i]:
            held |= 1 << REFUSED
        out[i] = held
