"""Whole columns hold what row after row would."""

from __future__ import annotations

import math
from typing import Any

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.records.fitting import fitting, frame_of
from seatrial.records.tables import CORRECTIONS, SESSIONS, Table

NUMBER = st.none() | st.integers(-(2**64), 2**64) | st.sampled_from([10**400, -(10**400), 2**63, -(2**63), 0, -1])
REAL = NUMBER.filter(lambda n: n is None or abs(n) < 2**53 or abs(n) > 10**300) | st.floats()


def rows(table: Table) -> st.SearchStrategy[list[dict[str, Any]]]:
    kinds = {"int64": NUMBER, "float64": REAL, "string": st.none() | st.text(max_size=2)}
    row = {c.name: kinds.get(c.type, st.none()) for c in table.columns}
    return st.lists(st.fixed_dictionaries(row), max_size=4)


@settings(max_examples=80, deadline=None)
@given(rows(CORRECTIONS), rows(SESSIONS))
def test_columns_are_rows(corrections: list[dict[str, Any]], sessions: list[dict[str, Any]]) -> None:
    for table, held in ((CORRECTIONS, corrections), (SESSIONS, sessions)):
        frame = frame_of(table, {name: [row[name] for row in held] for name in table.names})
        fitted = [fitting(table, row)[0] for row in held]
        assert frame.schema == table.schema()
        assert frame.equals(pl.DataFrame(fitted, schema=table.schema(), orient="row"))
        assert all(v is None or math.isfinite(v) for c in frame.iter_columns() if c.dtype.is_numeric() for v in c)
