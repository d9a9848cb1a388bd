"""Two lists to their best pairing, in order or in any order, so that a score never depends on listing order."""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment

from seatrial.errors import UsageError
from seatrial.stats.inputs import Floats


class Alignment(msgspec.Struct, frozen=True, kw_only=True):
    """`steps` pairs an index of the first list with one of the second; None: the other item stands alone.

    In order of the first list, unpaired items of both at their place. `score` is the sum over pairs minus gaps.
    """

    steps: tuple[tuple[int | None, int | None], ...]
    score: float

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """The items that found a partner."""
        return tuple((i, j) for i, j in self.steps if i is not None and j is not None)


def _similarity(similarity: ArrayLike) -> Floats:
    matrix = np.asarray(similarity, dtype=np.float64)
    if matrix.ndim != 2 or not np.isfinite(matrix).all():
        raise UsageError(f"similarity: expected a finite (n, m) matrix, got shape {matrix.shape}")
    return matrix


def align(similarity: ArrayLike, gap: float = 0.0) -> Alignment:
    """Best pairing that keeps both orders: maximises the sum of similarities minus `gap` per unpaired item.

    `similarity` (n, m), how well item i of the first list matches item j of the second; pairs need a similarity
    above 0. Equality as 1 and ``gap=0`` gives the longest common subsequence (METHODS 6.2, 6.6). Among equally good
    alignments the one that pairs the latest items is returned, always the same (Needleman & Wunsch 1970).

    Raises:
        UsageError: the matrix is malformed or the gap is negative.
    """
    matrix = _similarity(similarity)
    if not gap >= 0 or not np.isfinite(gap):
        raise UsageError(f"gap must be a number of at least 0, got {gap}")
    n, m = matrix.shape
    came = np.zeros((n + 1, m + 1), dtype=np.int8)  # 0 pair, 1 first alone, 2 second alone
    came[0, :], came[:, 0] = 2, 1
    # Scores are kept as D[i, j] + gap * j, where leaving an item of the second list alone is a running maximum.
    columns = gap * np.arange(m + 1)
    row = np.zeros(m + 1)
    for i in range(1, n + 1):
        s = matrix[i - 1]
        pair = np.where(s > 0, row[:-1] + s + gap, -np.inf)
        alone = row - gap
        best = np.concatenate([alone[:1], np.maximum(pair, alone[1:])])
        new = np.maximum.accumulate(best)
        came[i, 1:] = np.where(pair >= new[1:], 0, np.where(alone[1:] >= new[1:], 1, 2))
        row = new
    steps: list[tuple[int | None, int | None]] = []
    i, j = n, m
    while i or j:
        move = came[i, j]
        if move == 0:
            i, j = i - 1, j - 1
            steps.append((i, j))
        elif move == 1:
            i -= 1
            steps.append((i, None))
        else:
            j -= 1
            steps.append((None, j))
    return Alignment(steps=tuple(reversed(steps)), score=float(row[m] - columns[m]))


def match_unordered(similarity: ArrayLike) -> Alignment:
    """Best one-to-one pairing in any order: maximises the sum of similarities over pairs above 0 (METHODS 6.2).

    `similarity` (n, m). `steps` lists the first list in order, then the unpaired rest of the second.

    Raises:
        UsageError: the matrix is malformed.
    """
    matrix = np.maximum(_similarity(similarity), 0.0)
    rows, columns = linear_sum_assignment(matrix, maximize=True)
    partner = {int(i): int(j) for i, j in zip(rows, columns, strict=True) if matrix[i, j] > 0}
    taken = set(partner.values())
    steps: list[tuple[int | None, int | None]] = [(i, partner.get(i)) for i in range(matrix.shape[0])]
    steps += [(None, j) for j in range(matrix.shape[1]) if j not in taken]
    return Alignment(steps=tuple(steps), score=float(sum(matrix[i, j] for i, j in partner.items())))
