"""A store's calls counted by the engine, in parts: the same counts, and a store out of reach is told."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from seatrial.causal import calls as counting
from seatrial.engine.choice import LocalEngine
from seatrial.errors import InfrastructureError
from seatrial.flows.counting import call_counts
from seatrial.flows.reach import reached
from seatrial.records.tables import CALLS
from seatrial.store import Store

ROWS = pl.DataFrame(
    {"session": [f"s{i:02d}" for i in range(23)], "arm": ["a", "b", None][:1] * 12 + ["b"] * 10 + [None]}
)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store.open(tmp_path / "store", create=True)
    rows = [
        {"session": f"s{i:02d}", "step": j, "call": 0, "tool": "bash", "command": "ls" if j % 2 else "cat",
         "outcome": "error" if (i + j) % 3 == 0 else "ok", "cause": "model" if (i + j) % 3 == 0 else None}
        for i in range(23) for j in range(9)
    ]  # fmt: skip
    made.commit({"calls": pl.DataFrame([{c: r.get(c) for c in CALLS.names} for r in rows], schema=CALLS.schema())})
    return made


@pytest.mark.parametrize(("part", "workers"), [(1_000, 1), (7, 1), (1, 1), (7, 2)])
def test_counts_depend_neither_on_parts_nor_on_workers(store: Store, part: int, workers: int) -> None:
    found = call_counts(store, ROWS, ("task_type",), LocalEngine(workers), part=part)
    place = ROWS.filter(pl.col("arm").is_not_null()).rename({"arm": counting.ARM})
    assert isinstance(found, pl.DataFrame)
    assert found.equals(counting.count(store.table("calls"), place))
    assert found["n"].sum() == 22 * 9, "a session without a model has no part"


def test_nothing_to_count_is_no_count(store: Store) -> None:
    found = call_counts(store, ROWS.head(0), (), LocalEngine(1))
    assert isinstance(found, pl.DataFrame)
    assert found.is_empty()


def test_a_store_out_of_a_workers_reach_is_told_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match="cannot open the store") as refused:
        reached(str(tmp_path / "nowhere"))
    assert "same path" in str(refused.value.hint)
