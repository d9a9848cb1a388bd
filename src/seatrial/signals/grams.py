"""Texts to hashed letter and word n-grams, a whole batch at a time: the features of the shipped classifier.

Everything is whole-number arithmetic on code points, so that every machine gives the same features.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from seatrial.signals.matching import MASK

Ids = NDArray[np.int64]

BITS = 15
"""Features are hashed to 2**BITS buckets."""

HEAD, TAIL = 400, 120
"""Characters of a turn that are read: its beginning, and its end where it is longer."""

BEFORE = 160
"""Characters of the agent's last words that are read."""

LETTERS = (2, 3, 4, 5)
BASE = np.uint64(0x9E3779B97F4A7C15)
MIX = np.uint64(0xBF58476D1CE4E5B9)
_END = "\n"
LEAD_WORDS = 3
LONGEST = 63
"""Letters of a word that count."""
SALTS = {"word": 101, "pair": 211, "triple": 307, "lead": 401, "before": 503, "last": 601}


def view(said: str) -> str:
    """What is read of a masked turn: one line, each masked run as one sign, head and tail of a long one."""
    if len(said) > HEAD + TAIL:
        said = said[:HEAD] + " \x1a " + said[-TAIL:]
    if MASK in said:
        parts = [p for p in said.split(MASK) if p]
        said = MASK.join(parts) if parts else MASK
    return " ".join(said.split())


def _bucket(hashes: NDArray[np.uint64], salt: int) -> Ids:
    mixed = (hashes + np.uint64(salt)) * MIX
    mixed ^= mixed >> np.uint64(29)
    mixed *= BASE
    return (mixed >> np.uint64(64 - BITS)).astype(np.int64)


def _codes(texts: Sequence[str]) -> tuple[NDArray[np.uint64], Ids]:
    """Code points of the lines ``" text "``, each closed by a line feed, and the row of each."""
    joined = _END.join(f" {t.replace(_END, ' ')} " for t in texts) + _END
    code = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.uint64)
    ends = code == ord(_END)
    return code, np.cumsum(ends) - ends


def _letters(code: NDArray[np.uint64], row: Ids) -> list[tuple[Ids, Ids]]:
    out = []
    total = code.copy()
    for n in range(2, LETTERS[-1] + 1):
        total = total[:-1] * BASE + code[n - 1 :]
        if n in LETTERS:
            inside = row[: total.size] == row[n - 1 :]
            inside &= code[n - 1 :] != ord(_END)
            out.append((row[: total.size][inside], _bucket(total[inside], n)))
    return out


def _words(code: NDArray[np.uint64], row: Ids) -> tuple[NDArray[np.uint64], Ids]:
    """Hash and row of every word: letters, digits, apostrophes and any sign outside ASCII; marks are words too."""
    small = np.minimum(code, 255).astype(np.int64)
    kind = KIND[small]
    word = kind == 1
    before = np.concatenate([[False], word[:-1]])
    start = np.flatnonzero(word & ~before)
    stop = np.flatnonzero(~word & before)
    length = np.minimum(stop - start, LONGEST)
    hashes = np.zeros(start.size, np.uint64)
    for k in range(int(length.max(initial=0))):
        more = np.flatnonzero(length > k)
        hashes[more] = hashes[more] * BASE + code[start[more] + k]
    marks = np.flatnonzero(kind == 2)
    at = np.concatenate([start, marks])
    order = np.argsort(at, kind="stable")
    return np.concatenate([hashes, code[marks]])[order], row[at[order]]


def _kinds() -> Ids:
    out = np.zeros(256, np.int64)
    for i in range(256):
        char = chr(i)
        out[i] = 1 if char.isalnum() or char in "'_" or i >= 128 else 2 if char in "?!.,:;\x01\x02\x03\x1b" else 0
    return out


KIND = _kinds()


def turns(texts: Sequence[str], befores: Sequence[str]) -> tuple[Ids, Ids]:
    """Rows and buckets of every feature of a batch, shapes (n_features,). Texts as `view` gives them."""
    code, row = _codes(texts)
    parts = _letters(code, row)
    word, home = _words(code, row)
    parts.append((home, _bucket(word, SALTS["word"])))
    for n, name in ((2, "pair"), (3, "triple")):
        if word.size >= n:
            chain = word[: word.size - n + 1].copy()
            for k in range(1, n):
                chain = chain * MIX + word[k : word.size - n + 1 + k]
            same = home[: chain.size] == home[n - 1 :]
            parts.append((home[: chain.size][same], _bucket(chain[same], SALTS[name])))
    if word.size:
        first = np.searchsorted(home, home, side="left")
        last = np.searchsorted(home, home, side="right")
        place = np.arange(word.size)
        lead = place - first < LEAD_WORDS
        parts.append((home[lead], _bucket(word[lead], SALTS["lead"])))
        close = place == last - 1
        parts.append((home[close], _bucket(word[close], SALTS["last"])))
    said, owner = _words(*_codes(befores))
    parts.append((owner, _bucket(said, SALTS["before"])))
    return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])
