"""Extractions to columns: the signals, calls and corrections tables of `records.tables`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import polars as pl

from seatrial.records import Signal
from seatrial.records.fitting import fitting
from seatrial.records.tables import CALLS, CORRECTIONS, SIGNALS, Table
from seatrial.signals.extraction import Extraction


def frames(extractions: Iterable[Extraction]) -> dict[str, pl.DataFrame]:
    """One frame per table, keyed by table name, with exactly its columns; empty frames keep their schema."""
    signals: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    corrections: list[dict[str, Any]] = []
    for extraction in extractions:
        signals.extend(_signal(s) for s in extraction.signals)
        calls.extend({name: getattr(c, name) for name in CALLS.names} for c in extraction.calls)
        corrections.extend({name: getattr(c, name) for name in CORRECTIONS.names} for c in extraction.corrections)
    return {
        SIGNALS.name: _frame(signals, SIGNALS),
        CALLS.name: _frame(calls, CALLS),
        CORRECTIONS.name: _frame(corrections, CORRECTIONS),
    }


def _signal(signal: Signal) -> dict[str, Any]:
    span = signal.span
    place = {
        "span_start": span.start if span else None,
        "span_end": span.end if span else None,
        "span_field": span.field if span else None,
    }
    return {name: place[name] if name in place else getattr(signal, name) for name in SIGNALS.names}


def _frame(rows: list[dict[str, Any]], table: Table) -> pl.DataFrame:
    schema = table.schema()
    rows = [fitting(table, row)[0] for row in rows]
    return pl.DataFrame({name: [row[name] for row in rows] for name in schema}, schema=schema)
