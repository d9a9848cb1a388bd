"""Extractions to columns: the signals, calls and corrections tables of `records.tables`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import polars as pl

from seatrial.records import CallFact, CorrectionFact, Signal
from seatrial.records.fitting import frame_of
from seatrial.records.tables import CALLS, CORRECTIONS, SIGNALS
from seatrial.signals.extraction import Extraction

_PLACES = {"span_start": "start", "span_end": "end", "span_field": "field"}


def frames(extractions: Iterable[Extraction]) -> dict[str, pl.DataFrame]:
    """One frame per table, keyed by table name, with exactly its columns; empty frames keep their schema."""
    held = list(extractions)
    return {
        SIGNALS.name: _signals([s for x in held for s in x.signals]),
        CALLS.name: frame_of(CALLS, _columns([c for x in held for c in x.calls], CallFact)),
        CORRECTIONS.name: frame_of(CORRECTIONS, _columns([c for x in held for c in x.corrections], CorrectionFact)),
    }


def _signals(signals: Sequence[Signal]) -> pl.DataFrame:
    spans = [s.span for s in signals]
    places = {name: [getattr(span, field) if span else None for span in spans] for name, field in _PLACES.items()}
    return frame_of(SIGNALS, _columns(signals, Signal) | places)


def _columns(rows: Sequence[msgspec.Struct], kind: type[msgspec.Struct]) -> dict[str, Sequence[Any]]:
    """Every field of rows of one kind as a column."""
    names = kind.__struct_fields__
    return dict(
        zip(names, zip(*map(msgspec.structs.astuple, rows), strict=True) if rows else ((),) * len(names), strict=True)
    )
