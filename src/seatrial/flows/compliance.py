"""Did every session run what was drawn for it? (METHODS 3.1: intention to treat, said out loud.)"""

from __future__ import annotations

import polars as pl


def warnings(rows: pl.DataFrame) -> list[str]:
    """Sentences about assigned sessions that another model served, and about arms that one model served.

    The arm's name need not be the model's name: an arm's own model is the one that served most of its sessions.
    Deviating sessions still count for the arm that was drawn.
    """
    known = rows.filter(pl.col("unit").is_not_null() & pl.col("served").is_not_null())
    if known.is_empty():
        return []
    counts = known.group_by("arm", "served").len().sort(["arm", "len", "served"], descending=[False, True, False])
    own = counts.group_by("arm", maintain_order=True).first().select("arm", pl.col("served").alias("own"))
    out = []
    for arm, total, other in (
        known.join(own, on="arm")
        .group_by("arm")
        .agg(pl.len().alias("n"), (pl.col("served") != pl.col("own")).sum().alias("other"))
        .sort("arm")
        .iter_rows()
    ):
        if other:
            out.append(
                f"{other} of {total} sessions ({100 * other / total:.1f}%) drawn for {arm} ran another model; they "
                f"count for {arm}, so its effect is that of being assigned to it (intention to treat)"
            )
    for model, arms in own.group_by("own").agg(pl.col("arm").sort()).sort("own").iter_rows():
        if len(arms) > 1:
            out.append(f"arms {', '.join(arms)} were served by one model, {model}: they cannot differ by model")
    return out
