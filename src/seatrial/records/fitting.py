"""Rows to rows that their table can hold: what traces claim may be any number, a column holds 64 bits."""

from __future__ import annotations

import math
from typing import Any

from seatrial.records.tables import Table

_INT64 = 2**63
_NUMERIC: dict[str, list[tuple[str, str, float | None]]] = {}


def fitting(table: Table, row: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """The row with every number that its column cannot hold as null, and those numbers in words by column.

    A count beyond 64 bits, NaN and the infinities do not fit any column, nor a value below the column's `least`.
    """
    out: dict[str, Any] = {}
    for name, kind, least in _numeric(table):
        value = row.get(name)
        if value is None:
            continue
        if kind == "int64":
            fits = isinstance(value, int) and -_INT64 <= value < _INT64
        else:
            fits = isinstance(value, int | float) and _finite(value)
        if not fits or (least is not None and value < least):
            out[name] = value
    if not out:
        return row, {}
    return row | dict.fromkeys(out), {name: _words(value) for name, value in out.items()}


def _numeric(table: Table) -> list[tuple[str, str, float | None]]:
    known = _NUMERIC.get(table.name)
    if known is None:
        known = [(c.name, c.type, c.least) for c in table.columns if c.type in ("int64", "float64")]
        _NUMERIC[table.name] = known
    return known


def _finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _words(value: Any) -> str:
    try:
        return f"{value:.6g}"
    except OverflowError:
        return f"an integer of {value.bit_length()} bits"
    except (TypeError, ValueError):
        return repr(value)[:40]
