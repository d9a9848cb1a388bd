"""Sessions and signals to what waits for triage, by column: worst first, made once for each state of the store."""

from __future__ import annotations

import polars as pl

from seatrial.records.tables import OUTCOMES_TABLE, SIGNALS, TRIAGE
from seatrial.server.index import Snapshot
from seatrial.store import Store

BAD = ("correction", "complaint", "escalation", "abandonment", "retry_request")
"""Kinds of signal that speak against a session."""

FAILED = ("failed", "error_agent", "timeout")
"""Recorded outcomes that do."""

TABLES = (SIGNALS.name, TRIAGE.name, OUTCOMES_TABLE.name)
"""What a board is made from, beside the sessions."""


def board(store: Store, snapshot: Snapshot) -> pl.DataFrame:
    """One row for each session that anything speaks against, or that was decided on, and each incident.

    `against` counts what speaks against it, one column of `BAD` each kind; `status` is the recorded outcome where
    that is a failure.
    """
    said = (
        store.table(SIGNALS.name, ordered=False)
        .filter(pl.col("dropped_by").is_null() & pl.col("kind").is_in(list(BAD)))
        .group_by("session")
        .agg(*((pl.col("kind") == kind).sum().cast(pl.Int32).alias(kind) for kind in BAD))
    )
    decided = store.table(TRIAGE.name, ordered=False).rename({"time": "decided", "kind": "what"})
    status = pl.col("outcome_status").cast(pl.String)
    sessions = (
        snapshot.frame.lazy()
        .filter(pl.col("parent").is_null())
        .select("session", "arm", "start", pl.when(status.is_in(list(FAILED))).then(status).alias("status"))
        .join(said, on="session", how="left")
        .join(decided, on="session", how="left")
        .filter(pl.col(BAD[0]).is_not_null() | pl.col("state").is_not_null() | pl.col("status").is_not_null())
    )
    incidents = decided.filter(pl.col("what") == "incident").with_columns(pl.col("decided").alias("start"))
    return (
        pl.concat([sessions, incidents], how="diagonal")
        .with_columns(
            pl.col("state").fill_null("new"),
            (pl.col("what") == "incident").fill_null(False).alias("incident"),
            *(pl.col(kind).fill_null(0) for kind in BAD),
        )
        .with_columns(
            (pl.sum_horizontal(*BAD) + pl.col("status").is_not_null() + pl.col("incident")).alias("against"),
        )
        .sort(["against", "start", "session"], descending=[True, True, False], nulls_last=[False, True, False])
        .collect()
    )
