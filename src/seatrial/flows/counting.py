"""A store's tool calls to counts, by the engine's `aggregate`: what a ranking needs of its largest table."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import partial

import polars as pl

from seatrial.causal import calls as counting
from seatrial.engine.choice import Engine, LocalEngine
from seatrial.flows.reach import address_of, reached
from seatrial.store import Store

PART = 65_536
"""Sessions that are counted at once: calls of so many fit into memory, and few parts are to be merged."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Part:
    """Sessions from the first to the last by name, with what their calls are counted by."""

    place: pl.DataFrame

    def __str__(self) -> str:
        names = self.place["session"]
        return f"calls of the sessions {names[0]} to {names[-1]}"


def call_counts(
    store: Store, rows: pl.DataFrame, by: Sequence[str], engine: Engine, *, part: int = PART
) -> pl.DataFrame | pl.LazyFrame:
    """The calls of the sessions in `rows` (columns session and arm, and those of `by` that are there) counted by arm
    and `by` (`causal.calls.count`). Counts add up exactly: they do not depend on `engine` or `part`.

    Raises:
        InfrastructureError: a worker cannot reach the store.
    """
    fields = [f for f in dict.fromkeys(by) if f in rows.columns]
    if "session" in fields:
        return store.table("calls", ordered=False)
    here = rows.filter(pl.col("arm").is_not_null()).sort("session")
    place = here.select("session", pl.col("arm").alias(counting.ARM), *fields)
    parts = [_Part(place[i : i + part]) for i in range(0, max(1, place.height), part)]
    work = partial(_count, address_of(store), store.data_version)
    # On this machine Polars keeps all processors busy as it is: processes would only cost their start.
    power = LocalEngine(1) if isinstance(engine, LocalEngine) else engine
    found = power.aggregate(work, parts, counting.merge, what="calls")
    assert found is not None
    return found


def _count(address: str, version: str, part: _Part) -> pl.DataFrame:
    names = part.place["session"]
    calls = reached(address).table("calls", version, ordered=False)
    if names.len():
        calls = calls.filter(pl.col("session").is_between(pl.lit(names[0]), pl.lit(names[-1])))
    return counting.count(calls, part.place)
