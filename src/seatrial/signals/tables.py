"""Extractions to columns: the signals, calls and corrections tables of `records.tables`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import polars as pl

from seatrial.records import Signal
from seatrial.records.fitting import frame_of
from seatrial.records.tables import CALLS, CORRECTIONS, SIGNALS, Table
from seatrial.signals.extraction import Extraction

_PLACES = {"span_start": "start", "span_end": "end", "span_field": "field"}


def frames(extractions: Iterable[Extraction]) -> dict[str, pl.DataFrame]:
    """One frame per table, keyed by table name, with exactly its columns; empty frames keep their schema."""
    held = list(extractions)
    return {
        SIGNALS.name: _signals([s for x in held for s in x.signals]),
        CALLS.name: _frame([c for x in held for c in x.calls], CALLS),
        CORRECTIONS.name: _frame([c for x in held for c in x.corrections], CORRECTIONS),
    }


def _signals(signals: Sequence[Signal]) -> pl.DataFrame:
    spans = [s.span for s in signals]
    places = {name: [getattr(span, field) if span else None for span in spans] for name, field in _PLACES.items()}
    return frame_of(SIGNALS, _columns(signals, [n for n in SIGNALS.names if n not in places]) | places)


def _frame(rows: Sequence[Any], table: Table) -> pl.DataFrame:
    return frame_of(table, _columns(rows, table.names))


def _columns(rows: Sequence[Any], names: Iterable[str]) -> dict[str, list[Any]]:
    return {name: [getattr(row, name) for row in rows] for name in names}
