"""Cues and contexts to log-odds, verdicts and the places of their evidence, in compiled code (needs Numba): the twin
of `language.score` and `language._evidence`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from seatrial.signals.programs import CLOSE, JUMP, LETTER, MATCH, OPEN, SPLIT, START

BUILT_WITH = ("programs 2e95ab1efd26",)
"""Digests of the files that the compiled code below was made from: Numba keeps it until this file changes."""

_STEPS = 50_000
_UNSURE, _NOWHERE = -2, -1


@njit(cache=True, nogil=True)
def _from(
    step: int, start: int, text: Any, low: int, high: int, ops: Any, x: Any, y: Any, sets: Any, stack: Any, place: Any
) -> int:
    """1: a cue whose program is at `step` matches from `start`, group in `place`; 0: not; `_UNSURE`: too many ways.

    `stack` rows are (step, position, opened, closed).
    """
    top = 0
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = step, start, 0, 0
    tried = 0
    while top >= 0:
        step, i, opened, closed = stack[top, 0], stack[top, 1], stack[top, 2], stack[top, 3]
        top -= 1
        while True:
            tried += 1
            if tried > _STEPS:
                return _UNSURE
            op = ops[step]
            if op == LETTER:
                if i >= high or not sets[x[step], text[i]]:
                    break
                i += 1
                step += 1
            elif op == SPLIT:
                top += 1
                if top >= stack.shape[0]:
                    return _UNSURE
                stack[top, 0], stack[top, 1], stack[top, 2], stack[top, 3] = y[step], i, opened, closed
                step = x[step]
            elif op == JUMP:
                step = x[step]
            elif op == OPEN:
                opened = i
                step += 1
            elif op == CLOSE:
                closed = i
                step += 1
            elif op == MATCH:
                place[0], place[1] = opened, closed
                return 1
            else:
                if (op == START and i != low) or (op != START and i != high):
                    break
                step += 1
    return 0


@njit(cache=True, nogil=True)
def _find(
    step: int, first: Any, second: Any, text: Any, low: int, high: int, ops: Any, x: Any, y: Any, sets: Any,
    stack: Any, place: Any,
) -> int:  # fmt: skip
    """Where a cue whose program is at `step` stands first: 1 and its group in `place`, `_NOWHERE` or `_UNSURE`."""
    for start in range(low, high + 1):
        if start > low:
            if start < high and not first[text[start]]:
                continue
            if start + 1 < high and not second[text[start + 1]]:
                continue
        found = _from(step, start, text, low, high, ops, x, y, sets, stack, place)
        if found != 0:
            return found
    return _NOWHERE


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


@njit(cache=True, nogil=True)
def confidences(log_odds: Any, floor: float, turn: Any, kind: Any, confidence: Any) -> int:
    """Turns and kinds at `floor` or above, by turn, then kind; returns how many."""
    n = 0
    for i in range(log_odds.shape[0]):
        for k in range(log_odds.shape[1]):
            if not math.isnan(log_odds[i, k]):
                value = 1.0 / (1.0 + math.exp(-log_odds[i, k]))
                if value >= floor:
                    turn[n], kind[n], confidence[n] = i, k, np.rint(value * 10_000) / 10_000
                    n += 1
    return n


@njit(cache=True, nogil=True)
def point(
    turn: Any, kind: Any, hits: Any, events: Any, event_at: Any, astray: Any, points: Any, share: Any, raw_cue: Any,
    normal: Any, said: Any, at: Any, symbol: Any, program: Any, place: Any, cue_of: Any,
) -> None:  # fmt: skip
    """The strongest cue of each verdict (-1: no cue speaks for it) and its place in the turn, (n, 2).

    `points` and `share` (n_cues, n_kinds) are a cue's points in the lead and later; `astray` (n, 2) the cues of a turn
    whose events do not tell where they begin.
    """
    begin, within, ops, x, y, sets, first, second = program
    stack = np.empty((4096, 4), np.int64)
    longest = 1
    for i in range(at.size - 1):
        longest = max(longest, at[i + 1] - at[i])
    text = np.empty(longest, np.uint16)
    group = np.zeros(2, np.int64)
    for v in range(turn.size):
        i, k = turn[v], kind[v]
        best, which = 0.0, -1
        for word in range(2):
            left, c = hits[i, 2 + word], 64 * word
            lead = hits[i, word]
            while left:
                if left & np.uint64(1):
                    value = points[c, k] if lead & np.uint64(1) else share[c, k]
                    if value > best:
                        best, which = value, c
                left >>= np.uint64(1)
                lead >>= np.uint64(1)
                c += 1
        cue_of[v] = which
        if which < 0:
            continue
        size = at[i + 1] - at[i]
        source = normal if raw_cue[which] else said
        for p in range(size):
            text[p] = symbol[source[at[i] + p]]
        start = -1
        if astray[i, which >> 6] >> np.uint64(which & 63) & np.uint64(1) == 0:
            for e in range(event_at[i], event_at[i + 1]):
                if events[e, 0] == which and (start < 0 or events[e, 1] < start):
                    start = events[e, 1]
        found = 0
        if start >= 0:
            found = _from(within[which], start, text, 0, size, ops, x, y, sets, stack, group)
        if found == 0:
            found = _find(begin[which], first[which], second[which], text, 0, size, ops, x, y, sets, stack, group)
        if found == 1:
            place[v, 0], place[v, 1] = group[0], group[1]
        else:
            place[v, 0], place[v, 1] = found, found
