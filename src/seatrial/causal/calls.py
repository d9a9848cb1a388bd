"""Tool calls to counts by model and command: all that the ranking needs of them, however many there were (METHODS 3.8).

Counts of parts add up exactly, so that calls may be counted wherever they lie and the counts be merged in any order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from seatrial.errors import SchemaError

WORST = 5
EXAMPLES = 3
ARM = "_arm"
_WHERE = ["tool", "command"]


def count(calls: pl.DataFrame | pl.LazyFrame, place: pl.DataFrame) -> pl.DataFrame:
    """Calls counted by the columns of `place` other than `session`, by tool and by command (its head).

    `place` has one row per session; calls of other sessions are left out, as is what is not the model's doing
    (METHODS 1.3). `failed` is how many of `n` failed, `examples` the first three of them by session and step.

    Raises:
        SchemaError: the calls lack a column.
    """
    lazy = calls.lazy()
    have = lazy.collect_schema().names()
    for name in ("session", "step", "tool", "command", "outcome", "cause"):
        if name not in have:
            raise SchemaError(f"calls: no column {name!r}", hint="expected the calls table's columns")
    excluded = pl.col("cause").fill_null("").is_in(["environment"]) | pl.col("outcome").is_in(
        ["rejected", "interrupted", "unknown"]
    )
    failed = (pl.col("outcome") == "error") & (pl.col("cause").fill_null("") != "benign")
    by = [*(c for c in place.columns if c != "session"), *_WHERE]
    counted = (
        lazy.select("session", "step", "tool", "command", "outcome", "cause")
        .filter(~excluded)
        .with_columns(pl.col("tool").fill_null("?"), pl.col("command").fill_null(""), failed.alias("bad"))
        .join(place.lazy(), on="session", how="inner")
    )
    sums = counted.group_by(by).agg(
        pl.len().cast(pl.Int64).alias("n"), pl.col("bad").sum().cast(pl.Int64).alias("failed")
    )
    shown = (
        counted.filter("bad")
        .group_by(by)
        .agg(
            pl.struct("session", pl.col("step").cast(pl.Int64))
            .bottom_k_by(["session", "step"], EXAMPLES)
            .alias("examples")
        )
    )
    numbers, examples = pl.collect_all([sums, shown], engine="streaming")
    joined = numbers.join(examples, on=by, how="left", nulls_equal=True)
    return joined.with_columns(pl.col("examples").fill_null([])).sort(by)


def merge(one: pl.DataFrame, other: pl.DataFrame) -> pl.DataFrame:
    """The counts of two parts as those of the whole."""
    by = [c for c in one.columns if c not in ("n", "failed", "examples")]
    first = pl.col("examples").list.explode().drop_nulls()
    first = first.sort_by(first.struct.field("session"), first.struct.field("step")).head(EXAMPLES)
    return pl.concat([one, other]).group_by(by).agg(pl.col("n", "failed").sum(), first.alias("examples")).sort(by)


def part(counts: pl.DataFrame, field: str, value: str) -> pl.DataFrame:
    """The counts of the sessions whose `field` has this value (as text)."""
    return counts.filter(pl.col(field).cast(pl.String) == value)


def is_counted(calls: pl.DataFrame) -> bool:
    """Whether these are counts already, and no calls."""
    return ARM in calls.columns


def worst(counts: pl.DataFrame) -> Mapping[str, list[dict[str, Any]]]:
    """Per model the five tools and commands with the most failures."""
    first = pl.col("examples").list.explode().drop_nulls()
    first = first.sort_by(first.struct.field("session"), first.struct.field("step")).head(EXAMPLES)
    found = (
        counts.group_by(ARM, *_WHERE)
        .agg(pl.col("n", "failed").sum(), first.alias("examples"))
        .filter(pl.col("failed") > 0)
        .sort(ARM, "failed", *_WHERE, descending=[False, True, False, False])
        .group_by(ARM, maintain_order=True)
        .head(WORST)
    )
    out: dict[str, list[dict[str, Any]]] = {}
    for row in found.iter_rows(named=True):
        shown = row.pop("examples")
        row |= {"reliability": 1.0 - row["failed"] / row["n"], "examples": shown}
        out.setdefault(row.pop(ARM), []).append(row)
    return out
