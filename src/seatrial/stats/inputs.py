"""Array-likes to checked arrays: the one place where this room refuses what is not a number."""

from __future__ import annotations

from collections.abc import Mapping, Sized

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seatrial.errors import UsageError

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Labels = ArrayLike
"""Cluster, task or rater labels: any one-dimensional sequence of comparable values (integers or text)."""


def floats(values: ArrayLike, what: str) -> Floats:
    """`values` as a one-dimensional finite float array.

    Raises:
        UsageError: not numbers, not one-dimensional, or a value is missing or infinite.
    """
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{what}: expected numbers, got {error}", hint="leave missing values out first") from None
    if array.ndim != 1:
        raise UsageError(f"{what}: expected one dimension, got {array.ndim}")
    if not np.isfinite(array).all():
        bad = int((~np.isfinite(array)).sum())
        raise UsageError(
            f"{what}: {bad} of {array.size} values are NaN or infinite", hint="leave them out and count them"
        )
    return array


def counts(values: ArrayLike, what: str) -> Codes:
    """`values` as a one-dimensional array of non-negative integers.

    Raises:
        UsageError: a value is negative or not whole.
    """
    array = floats(values, what)
    if array.size and (array.min() < 0 or (array != np.floor(array)).any()):
        raise UsageError(f"{what}: expected whole numbers of at least 0")
    return array.astype(np.int64)


def same_length(arrays: Mapping[str, Sized]) -> None:
    """Raises: UsageError naming the lengths, when they differ."""
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise UsageError("arrays of different length: " + ", ".join(f"{k} {v}" for k, v in lengths.items()))


def codes(labels: Labels, what: str) -> tuple[Codes, int]:
    """Labels as codes 0..G-1 in sorted label order, and G.

    Raises:
        UsageError: not one-dimensional, or labels that cannot be sorted together (None among text).
    """
    array = np.asarray(labels)
    if array.ndim != 1:
        raise UsageError(f"{what}: expected one dimension, got {array.ndim}")
    try:
        unique, inverse = np.unique(array, return_inverse=True)
    except TypeError:
        raise UsageError(f"{what}: labels of mixed type cannot be grouped", hint="give every row a label") from None
    if array.dtype.kind == "f" and np.isnan(array).any():
        raise UsageError(f"{what}: a label is NaN", hint="give every row a label")
    return inverse.astype(np.int64), len(unique)


def check_level(level: float) -> float:
    """`level` itself. Raises: UsageError unless 0 < level < 1."""
    if not 0.0 < level < 1.0:
        raise UsageError(f"level must lie between 0 and 1, got {level}", hint="0.95 is the usual choice")
    return float(level)


def check_unit(values: Floats, what: str) -> None:
    """Raises: UsageError when a value lies outside [0, 1]."""
    if values.size and (values.min() < 0.0 or values.max() > 1.0):
        raise UsageError(
            f"{what}: values run from {values.min():g} to {values.max():g}, expected 0 to 1", hint="bounded=False"
        )
