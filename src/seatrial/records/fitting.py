"""Rows to rows that their table can hold: what traces claim may be any number, a column holds 64 bits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from seatrial.records.tables import Table

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

_INT64 = 2**63
_NUMERIC: dict[str, list[tuple[str, str, float | None]]] = {}


def fitting(table: Table, row: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """The row with every number that its column cannot hold as null, and those numbers in words by column.

    A count beyond 64 bits, NaN and the infinities do not fit any column, nor a value below the column's `least`.
    """
    out: dict[str, Any] = {}
    for name, kind, least in _numeric(table):
        value = row.get(name)
        if value is not None and not _fits(value, kind, least):
            out[name] = value
    if not out:
        return row, {}
    return row | dict.fromkeys(out), {name: _words(value) for name, value in out.items()}


def frame_of(table: Table, columns: Mapping[str, Sequence[Any]]) -> pl.DataFrame:
    """A frame of whole columns with what `fitting` leaves of each row; `columns` holds all of the table's."""
    import polars as pl

    limits = {name: (kind, least) for name, kind, least in _numeric(table)}
    out = []
    for name, dtype in table.schema().items():
        values = columns[name]
        if name in limits and not _all_fit(values, *limits[name]):
            values = [v if v is None or _fits(v, *limits[name]) else None for v in values]
        out.append(pl.Series(name, values, dtype=dtype))
    return pl.DataFrame(out)


def _all_fit(values: Sequence[Any], kind: str, least: float | None) -> bool:
    """Whether every value of a column fits, at a glance; False where one has to look."""
    types = set(map(type, values))
    types.discard(type(None))
    if not types:
        return True
    if not types <= ({int} if kind == "int64" else {int, float}):
        return False
    present = [v for v in values if v is not None]
    low, high = min(present), max(present)
    if not (low >= -_INT64 and high < _INT64 and (least is None or low >= least)):
        return False
    return float not in types or all(map(math.isfinite, present))


def _fits(value: Any, kind: str, least: float | None) -> bool:
    if kind == "int64":
        fits = isinstance(value, int) and -_INT64 <= value < _INT64
    else:
        fits = isinstance(value, int | float) and _finite(value)
    return fits and (least is None or value >= least)


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
