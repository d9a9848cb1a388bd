"""Cells of a results table to values: each function gives the value (None for an empty cell) and what was wrong."""

from __future__ import annotations

import math
from typing import Any

from seatrial.records import STATUSES, Status

_TRUE = frozenset({"true", "t", "yes", "y", "1", "1.0", "pass", "passed"})
_FALSE = frozenset({"false", "f", "no", "n", "0", "0.0", "fail", "failed"})
_STATUS = {name: name for name in STATUSES} | {"pass": "passed", "fail": "failed"}
_EMPTY = frozenset({"", "na", "n/a", "nan", "null", "none"})
_LARGEST = 2**53


def empty(cell: Any) -> bool:
    """Whether a cell holds nothing: null, blank, or a word that tables write for nothing."""
    return cell is None or (isinstance(cell, str) and cell.strip().lower() in _EMPTY) or cell != cell


def words(cell: Any) -> str | None:
    """Text; a whole number is written without a fraction, so that task 3 is ``3`` in every format."""
    if cell is None or cell != cell:
        return None
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    if isinstance(cell, dict | list):
        return None
    text = str(cell).strip()
    return text or None


def boolean(cell: Any) -> tuple[bool | None, str]:
    """True or false."""
    if empty(cell):
        return None, ""
    word = str(cell).strip().lower()
    if word in _TRUE or word in _FALSE:
        return word in _TRUE, ""
    return None, f"expected true or false, found {_shown(cell)}"


def number(cell: Any) -> tuple[float | None, str]:
    """A finite number."""
    if empty(cell):
        return None, ""
    if isinstance(cell, bool):
        return float(cell), ""
    try:
        value = float(cell)
    except (TypeError, ValueError, OverflowError):
        return None, f"expected a number, found {_shown(cell)}"
    if not math.isfinite(value):
        return None, f"expected a finite number, found {_shown(cell)}"
    return value, ""


def natural(cell: Any) -> tuple[int | None, str]:
    """A whole number from 0 up."""
    value, why = number(cell)
    if value is None:
        return None, why.replace("a number", "a whole number from 0 up")
    if isinstance(cell, bool) or value < 0 or value > _LARGEST or not value.is_integer():
        return None, f"expected a whole number from 0 up, found {_shown(cell)}"
    return int(value), ""


def outcome_status(cell: Any) -> tuple[Status | None, str]:
    """A status of METHODS 0.1."""
    if empty(cell):
        return None, ""
    word = str(cell).strip().lower()
    for name in STATUSES:
        if _STATUS.get(word) == name:
            return name, ""
    return None, f"expected one of {', '.join(STATUSES)}, found {_shown(cell)}"


def _shown(cell: Any) -> str:
    text = str(cell)
    return repr(text if len(text) <= 40 else f"{text[:37]}...")
