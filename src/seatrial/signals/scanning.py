"""Turns as arrays to what they lead with, in compiled code: the inner loops of `columns` (needs Numba).

Every function is the twin of a plain one in `matching` or `language`, which tests hold it to, character for character.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Codes = NDArray[np.uint32]
Ints = NDArray[np.int64]

ALPHA, UPPER, SHOUT, SPACE = 1, 2, 4, 8
_MASK, _OTHER, _LINE = 27, 26, 10
_LEAD = 120


@njit(cache=True, nogil=True, inline="always")
def _space(code: int) -> bool:
    return code == 32 or 9 <= code <= 13 or 28 <= code <= 31


@njit(cache=True, nogil=True, inline="always")
def _word(code: int) -> bool:
    return 97 <= code <= 122 or 48 <= code <= 57 or code == 95 or code >= 128


@njit(cache=True, nogil=True, inline="always")
def _digit(code: int) -> bool:
    return 48 <= code <= 57


@njit(cache=True, nogil=True)
def _clock(text: Codes, at: int, low: int, high: int) -> bool:
    """Whether dd:dd:dd stands at `at`, with word boundaries, in text[low:high]."""
    if at + 8 > high:
        return False
    for k in range(8):
        if k == 2 or k == 5:
            if text[at + k] != 58:
                return False
        elif not _digit(text[at + k]):
            return False
    return True


@njit(cache=True, nogil=True)
def needs_mask(text: Codes, low: int, high: int) -> bool:
    """`matching._NEEDS_MASK` found anywhere."""
    for i in range(low, high):
        c = text[i]
        if c > 127:
            continue
        if c in (96, 34, 62, 64, 91, 60, 36, 124, 35, 10):
            return True
        if c == 104:
            if _starts_link(text, i, high):
                return True
        elif 48 <= c <= 57 and _clock(text, i, low, high):
            return True
    return False


@njit(cache=True, nogil=True)
def _starts_link(text: Codes, i: int, high: int) -> bool:
    """``https?:`` at i."""
    if i + 5 > high or text[i + 1] != 116 or text[i + 2] != 116 or text[i + 3] != 112:
        return False
    return text[i + 4] == 58 or (i + 6 <= high and text[i + 4] == 115 and text[i + 5] == 58)


@njit(cache=True, nogil=True)
def _line_end(text: Codes, i: int, high: int) -> int:
    while i < high and text[i] != 10:
        i += 1
    return i


@njit(cache=True, nogil=True)
def _prompt(text: Codes, i: int, high: int) -> bool:
    """A shell prompt and a command at i, behind the line's indent."""
    if i >= high:
        return False
    c = text[i]
    if (c == 36 or c == 37 or c == 35) and i + 2 < high and text[i + 1] == 32 and not _space(text[i + 2]):
        return True
    end = i
    sign = -1
    colon = -1
    while end < high and not _space(text[end]):
        c = text[end]
        if c == 64 and sign < 0 and end > i:
            sign = end
        elif sign >= 0 and end >= sign + 2 and (c == 58 or c == 126) and colon < 0:
            colon = end
        end += 1
    if colon < 0 or end - 1 <= colon or end + 1 >= high or text[end] != 32 or _space(text[end + 1]):
        return False
    c = text[end - 1]
    return bool(c == 36 or c == 37 or c == 35)


@njit(cache=True, nogil=True)
def _diff(text: Codes, i: int, high: int) -> bool:
    """A line of a diff that looks like code, at i behind the line's indent."""
    k = i
    while k < high and (text[k] == 43 or text[k] == 45):
        k += 1
    signs = k - i
    if 1 <= signs <= 3 and k < high and (text[k] == 32 or text[k] == 9):
        k += 1
    elif i + 1 < high and text[i] == 64 and text[i + 1] == 64:
        k = i + 2
    else:
        return False
    while k < high and text[k] != 10:
        if text[k] in (59, 123, 125, 40, 41, 61):
            return True
        k += 1
    return False


@njit(cache=True, nogil=True)
def _frame(text: Codes, i: int, high: int) -> int:
    """The opening bracket of a stack frame at i behind the line's indent, or -1."""
    if i + 3 >= high or text[i] != 97 or text[i + 1] != 116 or text[i + 2] != 32:
        return -1
    k = i + 3
    while k < high and (_word(text[k]) or text[k] in (46, 36, 60, 62)):
        k += 1
    if k == i + 3:
        return -1
    if k < high and _space(text[k]):
        k += 1
    return k if k < high and text[k] == 40 else -1


@njit(cache=True, nogil=True)
def _at_line(text: Codes, i: int, low: int, high: int) -> int:
    """Where a masked line that begins at i ends, or -1."""
    k = i
    while k < high and (text[k] == 32 or text[k] == 9):
        k += 1
    if k < high and text[k] == 62:
        return _line_end(text, k, high)
    if _prompt(text, k, high) or _diff(text, k, high):
        return _line_end(text, k, high)
    bracket = _frame(text, k, high)
    if bracket >= 0:
        return _line_end(text, bracket, high)
    pipes = 0
    k = i
    while k < high and text[k] != 10:
        c = text[k]
        if c == 124:
            pipes += 1
        elif (
            48 <= c <= 57
            and _clock(text, k, low, high)
            and (k == low or not _word(text[k - 1]))
            and (k + 8 == high or not _word(text[k + 8]))
        ):
            return _line_end(text, k, high)
        k += 1
    return k if pipes >= 3 else -1


@njit(cache=True, nogil=True)
def _element(text: Codes, i: int, high: int) -> int:
    """Where an element that opens at i ends, or -1: the longest name that is closed, at its first close."""
    k = i + 1
    if k >= high or not _word(text[k]):
        return -1
    while k < high and (_word(text[k]) or text[k] == 45):
        k += 1
    size = k - i - 1
    while k < high and text[k] != 62 and text[k] != 10:
        k += 1
    if k >= high or text[k] != 62:
        return -1
    k += 1
    best, end = 0, -1
    while k + 4 <= high:
        if text[k] == 60 and text[k + 1] == 47:
            same = 0
            while same < size and k + 2 + same < high and text[k + 2 + same] == text[i + 1 + same]:
                same += 1
            if same > best and k + 2 + same < high and text[k + 2 + same] == 62:
                best, end = same, k + 3 + same
                if best == size:
                    break
        k += 1
    return end


@njit(cache=True, nogil=True)
def _within(text: Codes, i: int, high: int, close: int, low: int, most: int) -> int:
    """Where a run of `low` to `most` signs behind i, on one line, is closed by `close`; -1."""
    k = i + 1
    while k < high and text[k] != close and text[k] != 10 and k - i - 1 <= most:
        k += 1
    size = k - i - 1
    return k + 1 if k < high and text[k] == close and low <= size <= most else -1


@njit(cache=True, nogil=True)
def _inside(text: Codes, i: int, high: int) -> int:
    """Where a masked piece that begins at i inside a line ends, or -1."""
    c = text[i]
    if c == 34:
        return _within(text, i, high, 34, 2, 400)
    if c == 60:
        return _element(text, i, high)
    if c == 104:
        if not _starts_link(text, i, high):
            return -1
        k = i + (5 if text[i + 4] == 58 else 6)
        if k + 2 >= high or text[k] != 47 or text[k + 1] != 47 or _space(text[k + 2]):
            return -1
        while k < high and not _space(text[k]):
            k += 1
        return k
    if c == 91:
        end = _within(text, i, high, 93, 1, 80)
        if end < 0 or end >= high or text[end] != 40:
            return end
        k = end + 1
        while k < high and text[k] != 41 and text[k] != 10:
            k += 1
        return k + 1 if k < high and text[k] == 41 else end
    k = i + 1
    while k < high and (_word(text[k]) or text[k] == 46 or text[k] == 47 or text[k] == 45):
        k += 1
    if k < high and text[k] == 58 and _prefix(text, i, k):
        more = k + 1
        while more < high and (_word(text[more]) or text[more] == 46 or text[more] == 47 or text[more] == 45):
            more += 1
        if more > k + 1:
            return more
    return k if k > i + 1 else -1


@njit(cache=True, nogil=True)
def _prefix(text: Codes, i: int, k: int) -> bool:
    """Whether text[i+1:k] is ``file`` or ``sym``."""
    if k - i == 5:
        return bool(text[i + 1] == 102 and text[i + 2] == 105 and text[i + 3] == 108 and text[i + 4] == 101)
    return bool(k - i == 4 and text[i + 1] == 115 and text[i + 2] == 121 and text[i + 3] == 109)


@njit(cache=True, nogil=True)
def mask(text: Codes, said: Codes, low: int, high: int) -> None:
    """`matching.mask` of text[low:high], written into `said`."""
    i = low
    while i < high:
        end = -1
        c = text[i]
        if c == 96:
            if i + 2 < high and text[i + 1] == 96 and text[i + 2] == 96:
                end = i + 3
                while end < high and not (
                    text[end] == 96 and end + 2 < high and text[end + 1] == 96 and text[end + 2] == 96
                ):
                    end += 1
                end = min(end + 3, high)
            else:
                end = _within(text, i, high, 96, 1, 300)
        if end < 0 and (i == low or text[i - 1] == 10):
            end = _at_line(text, i, low, high)
        if end < 0 and (c == 34 or c == 60 or c == 104 or c == 91 or c == 64 or c == 35):
            end = _inside(text, i, high)
        if end > i:
            for k in range(i, end):
                said[k] = _MASK
            i = end
        else:
            said[i] = c
            i += 1
