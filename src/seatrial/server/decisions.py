"""What was decided on a session or an incident in triage, and the refusal of a form that did not show it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from seatrial.records.tables import TRIAGE
from seatrial.server.based import Overtaken, stamp
from seatrial.store import Store


def on(store: Store, session: str) -> dict[str, Any] | None:
    """The stored decision on a session or an incident; None where there is none."""
    rows = store.table(TRIAGE.name, ordered=False).filter(pl.col("session") == session).collect()
    return next(rows.iter_rows(named=True), None)


def decided(row: Mapping[str, Any] | None) -> str:
    """What a form is based on: how a session or an incident was decided on; ``new`` where nobody did."""
    if row is None or row["state"] == "new":
        return "new"
    return f"{row['state']} {stamp([row['task'], row['reason'], row['by']])}"


def unchanged(store: Store, session: str, was: str) -> None:
    """Make sure that nobody decided on a session since its form was shown.

    Raises:
        Overtaken: somebody did.
    """
    row = on(store, session)
    if row is None or decided(row) == was:
        return
    became = {"task": f"became the task {row['task']}", "dismissed": f"was dismissed: {row['reason']}"}
    by = f" (by {row['by']})" if row["by"] else ""
    raise Overtaken(
        f"this session {became.get(row['state'], 'is undecided again')}{by}, after your page was made",
        hint="nothing was changed",
    )
