"""Turns to the classifier's sums over hashed n-grams, in compiled code (needs Numba): the twin of `grams`."""

from __future__ import annotations

import numpy as np
from numba import njit

from seatrial.signals import grams

BUILT_WITH = ("grams 966529f39aa7",)
"""Digests of the files that the compiled code below was made from: Numba keeps it until this file changes."""

_HEAD, _TAIL, _BEFORE = grams.HEAD, grams.TAIL, grams.BEFORE
_LOW, _HIGH = grams.LETTERS[0], grams.LETTERS[-1]
_BASE, _MIX = np.uint64(grams.BASE), np.uint64(grams.MIX)
_SHIFT = np.uint64(64 - grams.BITS)
_HALF = np.uint64(29)
_WORD, _PAIR, _TRIPLE, _LEAD, _SAID, _LAST = (
    np.uint64(grams.SALTS[name]) for name in ("word", "pair", "triple", "lead", "before", "last")
)
_LEADING = grams.LEAD_WORDS
_LONGEST = grams.LONGEST
_MASK, _GAP = 27, 26


@njit(cache=True, nogil=True, inline="always")
def _add(hashed, salt, weights, sums):  # type: ignore[no-untyped-def]
    mixed = (hashed + salt) * _MIX
    mixed ^= mixed >> _HALF
    mixed *= _BASE
    bucket = mixed >> _SHIFT
    for j in range(weights.shape[1]):
        sums[j] += weights[bucket, j]


@njit(cache=True, nogil=True)
def _blank(code):  # type: ignore[no-untyped-def]
    return code == 32 or 9 <= code <= 13 or 28 <= code <= 31


@njit(cache=True, nogil=True)
def _view(text, low, high, out):  # type: ignore[no-untyped-def]
    """`grams.view` of text[low:high] between two spaces, in `out`; returns its length."""
    cut = high - low > _HEAD + _TAIL
    n, space, masked, seen = 1, False, False, False
    out[0] = 32
    size = _HEAD + 3 + _TAIL if cut else high - low
    for k in range(size + 1):
        if k == size:
            if seen or not masked:
                break
            code = np.uint32(_MASK)
        elif not cut or k < _HEAD:
            code = text[low + k]
        elif k < _HEAD + 3:
            code = np.uint32(_GAP) if k == _HEAD + 1 else np.uint32(32)
        else:
            code = text[high - _TAIL + k - _HEAD - 3]
        if code == _MASK and k < size:
            masked = True
            continue
        if masked and seen:
            if space and n > 1:
                out[n] = 32
                n += 1
            space = False
            out[n] = _MASK
            n += 1
        masked = False
        seen = True
        if _blank(code):
            space = True
            continue
        if space and n > 1:
            out[n] = 32
            n += 1
        space = False
        out[n] = code
        n += 1
    out[n] = 32
    return n + 1


@njit(cache=True, nogil=True)
def _words(text, size, kinds, out):  # type: ignore[no-untyped-def]
    """Hashes of the words and marks of text[:size], in order; returns how many."""
    n, i = 0, 0
    while i < size:
        kind = kinds[min(text[i], 255)]
        if kind == 2:
            out[n] = text[i]
            n += 1
        elif kind == 1:
            hashed, start = np.uint64(0), i
            while i < size and kinds[min(text[i], 255)] == 1:
                if i - start < _LONGEST:
                    hashed = hashed * _BASE + np.uint64(text[i])
                i += 1
            out[n] = hashed
            n += 1
            continue
        i += 1
    return n


@njit(cache=True, nogil=True)
def unmet(before, before_first, before_size, plain, out):  # type: ignore[no-untyped-def]
    """Characters among the agent's last words that `plain` does not know, in `out`; returns how many."""
    n = 0
    for i in range(before_first.size):
        high = before_first[i] + before_size[i]
        for k in range(max(before_first[i], high - _BEFORE), high):
            if before[k] > 127 and plain[before[k]] == 0:
                out[n] = before[k]
                n += 1
    return n


@njit(cache=True, nogil=True)
def sums(  # type: ignore[no-untyped-def]
    said, at, before, before_first, before_size, plain, kinds, weights, total, features, known,
):  # fmt: skip
    """`total` (n, n_kinds): whole-number weights of a turn's n-grams added up; `features` (n,): how many n-grams.

    `known`: whether the classifier can judge the turn (`language.latin`); others are passed over.
    """
    text = np.empty(_HEAD + _TAIL + 8, np.uint32)
    word = np.empty(_HEAD + _TAIL + 8, np.uint64)
    heard = np.empty(_BEFORE + 8, np.uint32)
    for i in range(at.size - 1):
        low, high = at[i], at[i + 1]
        far, ascii_only = 0, True
        for k in range(low, high):
            far += said[k] > 0x24F
            ascii_only = ascii_only and said[k] < 128
        known[i] = ascii_only or 2 * far < high - low
        if not known[i]:
            continue
        size = _view(said, low, high, text)
        count = 0
        own = total[i]
        for start in range(size):
            hashed = np.uint64(text[start])
            for n in range(2, _HIGH + 1):
                if start + n > size:
                    break
                hashed = hashed * _BASE + np.uint64(text[start + n - 1])
                if n >= _LOW:
                    _add(hashed, np.uint64(n), weights, own)
                    count += 1
        n = _words(text, size, kinds, word)
        for k in range(n):
            _add(word[k], _WORD, weights, own)
            if k + 1 < n:
                pair = word[k] * _MIX + word[k + 1]
                _add(pair, _PAIR, weights, own)
                count += 1
                if k + 2 < n:
                    _add(pair * _MIX + word[k + 2], _TRIPLE, weights, own)
                    count += 1
            if k < _LEADING:
                _add(word[k], _LEAD, weights, own)
                count += 1
        if n:
            _add(word[n - 1], _LAST, weights, own)
            count += 1
        count += n
        length = min(before_size[i], _BEFORE)
        first = before_first[i] + before_size[i] - length
        for k in range(length):
            code = before[first + k]
            if code >= 128:
                code = plain[code]
            elif 65 <= code <= 90:
                code += 32
            elif code == 26 or 1 <= code <= 3:
                code = 26
            heard[k] = code
        size = _view(heard, 0, length, text)
        n = _words(text, size, kinds, word)
        for k in range(n):
            _add(word[k], _SAID, weights, own)
        features[i] = count + n
