"""The columns of the sessions that pages filter, count and cut, read from the store with little memory beside them."""

from __future__ import annotations

import polars as pl

from seatrial.records.tables import OUTCOMES_TABLE, SESSIONS
from seatrial.store import Store

_SESSION = (
    "session", "arm", "agent", "task", "task_type", "suite", "user", "parent", "start", "steps", "tool_calls",
    "tool_errors", "human_turns", "cost_usd", "input_tokens", "output_tokens", "outcome_status", "outcome_score",
    "format", "blob",
)  # fmt: skip
_COUNTED = ("n_complaint", "n_correction", "n_praise", "n_confirmation", "n_execution_error")
_CATEGORIES = ("arm", "agent", "outcome_status", "format")
_TYPE = "task_type"


def read(store: Store, version: str) -> pl.DataFrame:
    """One row for each session as of a data version, newest first, with what its signals count.

    Labels are categories ("" where there is none). `extracted`: signals have been looked for in it; `blob` is the
    hash as bytes.
    """
    sessions = _collected(store, version, SESSIONS.name, _SESSION, (*_CATEGORIES, _TYPE))
    outcomes = _collected(store, version, OUTCOMES_TABLE.name, ("session", _TYPE, *_COUNTED), (_TYPE,))
    order = pl.arg_sort_by("start", "session", descending=[True, False], nulls_last=True)
    at = sessions.select(order.alias("at"))["at"]
    made = [_taken(sessions, "session", at)]
    where = made[0].to_frame().join(
        outcomes.select("session").with_row_index("at"), on="session", how="left", maintain_order="left"
    )["at"]  # fmt: skip
    # One column after the other, so that no second copy of all of them is ever held.
    made += [_taken(sessions, name, at) for name in _SESSION if name != "session"]
    made += [_taken(outcomes, name, where).fill_null(0).cast(pl.Int32) for name in _COUNTED]
    given = _taken(outcomes, _TYPE, where).alias("given")
    kind = pl.when(pl.col(_TYPE).cast(pl.String) == "").then(pl.col("given").fill_null("")).otherwise(pl.col(_TYPE))
    return pl.DataFrame([*made, where.is_not_null().alias("extracted"), given]).with_columns(kind).drop("given")


def _collected(
    store: Store, version: str, table: str, names: tuple[str, ...], categories: tuple[str, ...]
) -> pl.DataFrame:
    lazy = store.table(table, version, ordered=False).select(*names)
    if "blob" in names:
        lazy = lazy.with_columns(pl.col("blob").str.decode("hex", strict=False))
    return lazy.with_columns(pl.col(c).fill_null("").cast(pl.Categorical) for c in categories).collect()


def _taken(frame: pl.DataFrame, name: str, at: pl.Series) -> pl.Series:
    """A column of a frame, which loses it, in another order."""
    return frame.drop_in_place(name).gather(at)
