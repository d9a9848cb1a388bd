"""Repeated attempts in a table of outcomes: pass^k and pass@k by model (METHODS 6.3)."""

from __future__ import annotations

import polars as pl

from seatrial.records import SCORED, STATUSES, Counts, RepeatRow
from seatrial.stats import pass_at_k, pass_hat_k

K_MAX = 10


def by_model(rows: pl.DataFrame, level: float) -> tuple[RepeatRow, ...]:
    """One row per model whose tasks were attempted with a recorded status, pass^k for k up to the largest number
    of attempts (at most ten); empty where no row has a task and a status. `rows` is the outcomes table."""
    tried = rows.filter(pl.col("task").is_not_null() & pl.col("status").is_not_null())
    out = []
    for (model,), part in tried.group_by("arm", maintain_order=True):
        scored = pl.col("status").is_in(list(SCORED))
        tasks = part.group_by("task").agg(scored.sum().alias("n"), (pl.col("status") == "passed").sum().alias("c"))
        tasks = tasks.sort("task")
        n, c = tasks["n"].to_numpy(), tasks["c"].to_numpy()
        most = min(int(n.max()), K_MAX) if len(n) else 0
        ks = range(1, most + 1)
        out.append(
            RepeatRow(
                model=str(model),
                n_tasks=tasks.height,
                counts=_counts(part),
                pass_hat={str(k): pass_hat_k(n, c, k, level) for k in ks},
                pass_at={str(k): pass_at_k(n, c, k, level) for k in ks},
                short={str(k): int((n < k).sum()) for k in ks if (n < k).any()},
            )
        )
    return tuple(sorted(out, key=lambda row: row.model))


def _counts(part: pl.DataFrame) -> Counts:
    """METHODS 0.1: an excluded attempt never leaves a denominator silently."""
    by = dict(part["status"].value_counts().iter_rows())
    planned = part.height
    passed = by.get("passed", 0)
    excluded: dict[str, int] = {s: int(by[s]) for s in STATUSES if s not in SCORED and s in by}
    out = sum(excluded.values())
    return Counts(
        n_planned=planned,
        n_attempted=planned - by.get("missing", 0) - by.get("skipped", 0),
        n_scored=planned - out,
        excluded=excluded,
        worst=passed / planned if planned else None,
        best=(passed + out) / planned if planned else None,
    )
