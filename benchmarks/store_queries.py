"""Questions to a store of many sessions: our answers, DuckDB's and Polars' on the same Parquet files.

    python benchmarks/store_queries.py [--sessions 1000000] [--quick] [--json]

`seatrial` asks through the store, which goes by the table's log (which files are of this version) and gives rows in
order. `polars` and `duckdb` read the files themselves, without a log, order or check. Processor seconds, best of three;
all answers must be equal.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

from contract import installed, row, told
from million_sessions import fill
from seatrial.store import Store

Tables = Callable[[str], pl.LazyFrame]
Answer = list[tuple[Any, ...]]


def by_model(table: Tables) -> Answer:
    """Sessions, steps and dollars by model and type."""
    found = table("sessions").group_by("arm", "task_type").agg(pl.len(), pl.col("steps").sum()).sort("arm", "task_type")
    return found.collect().rows()


def rates(table: Tables) -> Answer:
    """Mean outcome and errors of each model's main sessions."""
    kept = table("outcomes").filter(pl.col("parent").is_null())
    found = kept.group_by("arm").agg(pl.col("n_complaint").sum(), pl.col("calls_ok").sum()).sort("arm")
    return found.collect().rows()


def joined(table: Tables) -> Answer:
    """Signals by kind and harness of the session: two tables."""
    both = table("signals").join(table("sessions").select("session", "agent"), on="session")
    return both.group_by("kind", "agent").agg(pl.len()).sort("kind", "agent").collect().rows()


def one(table: Tables) -> Answer:
    """The signals of one session."""
    found = table("signals").filter(pl.col("session") == "session-0000004000-of-many").select("session", "kind", "step")
    return found.sort("kind", "step").collect().rows()


def top(table: Tables) -> Answer:
    """The fifty longest sessions of one model."""
    kept = table("sessions").filter(pl.col("arm") == "model-b").sort(["steps", "session"], descending=[True, False])
    return kept.select("session", "steps").head(50).collect().rows()


QUERIES: tuple[tuple[Callable[[Tables], Answer], str], ...] = (
    (by_model, "select arm, task_type, count(*), sum(steps) from sessions group by all order by all"),
    (rates, "select arm, sum(n_complaint), sum(calls_ok) from outcomes where parent is null group by arm order by arm"),
    (joined, "select kind, agent, count(*) from signals join sessions using (session) group by all order by all"),
    (one, "select session, kind, step from signals where session = 'session-0000004000-of-many' order by kind, step"),
    (top, "select session, steps from sessions where arm = 'model-b' order by steps desc, session limit 50"),
)


def best(work: Callable[[], Answer]) -> tuple[Answer, float]:
    """The answer and the least processor seconds of three calls."""
    out, least = work(), float("inf")
    for _ in range(3):
        began = time.process_time()
        out = work()
        least = min(least, time.process_time() - began)
    return out, least


def main(quick: bool) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=50_000 if quick else 1_000_000)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        store = fill(Path(folder) / "store", asked.sessions)
        ask(store, Path(folder) / "store" / "tables", asked.sessions)


def ask(store: Store, tables: Path, n: int) -> None:
    """Every question to everybody."""
    database: Any = None
    if installed("duckdb"):
        import duckdb

        database = duckdb.connect()
        for name in ("sessions", "outcomes", "signals"):
            database.execute(f"create view {name} as select * from read_parquet('{tables / name}/*.parquet')")
    print(f"{n:,} sessions; milliseconds of processor time")
    print(f"{'question':62s}{'seatrial':>10s}{'polars':>10s}{'duckdb':>10s}")
    for query, sql in QUERIES:
        what = (query.__doc__ or "").rstrip(".")
        mine, spent = best(lambda q=query: q(store.table))  # type: ignore[misc]
        row(f"seatrial: {what}", 1000 * spent, "CPU ms")
        plain, theirs = best(lambda q=query: q(lambda name: pl.scan_parquet(tables / name / "*.parquet")))  # type: ignore[misc]
        assert plain == mine, f"{what}: polars answers otherwise"
        row(f"polars: {what}", 1000 * theirs, "CPU ms", peer=True, times=theirs / max(spent, 1e-9))
        line = f"{what:62s}{1000 * spent:10.1f}{1000 * theirs:10.1f}"
        if database is None:
            row(f"duckdb: {what}", peer=True, missing="duckdb is not installed")
            print(line + " not installed")
            continue
        said, took = best(lambda s=sql: database.execute(s).fetchall())  # type: ignore[misc]
        assert said == mine, f"{what}: duckdb answers otherwise"
        row(f"duckdb: {what}", 1000 * took, "CPU ms", peer=True, times=took / max(spent, 1e-9))
        print(f"{line}{1000 * took:10.1f}", flush=True)


if __name__ == "__main__":
    with told("store_queries") as small:
        main(small)
