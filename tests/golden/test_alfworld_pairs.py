"""The committed pairs of real ALFWorld games say what the documentation says of them."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

PAIRS = "recovery/alfworld_pairs.parquet"


@pytest.fixture(scope="module")
def sight(golden: Path) -> pl.DataFrame:
    """The agent whose cohorts are complete in full."""
    return pl.read_parquet(golden / PAIRS).filter(pl.col("agent") == "by-sight")


def _cells(pairs: pl.DataFrame, operation: str, condition: str, delay: int) -> tuple[int, float, float]:
    rows = pairs.filter(
        (pl.col("cohort") == "unseen") & (pl.col("operation") == operation) & (pl.col("condition") == condition)
        & (pl.col("delay") == delay) & ~pl.col("placebo").fill_null(value=False)
    )  # fmt: skip
    rescue = ((rows["y0"] == 0) & (rows["y1"] == 1)).sum()
    harm = ((rows["y0"] == 1) & (rows["y1"] == 0)).sum()
    return rows.height, round(100 * rescue / rows.height, 1), round(100 * harm / rows.height, 1)


def test_cohorts_are_complete_and_disjoint(sight: pl.DataFrame) -> None:
    tasks = {cohort: set(part["task"]) for (cohort,), part in sight.group_by("cohort")}
    assert len(tasks["unseen"]) == 134
    assert len(tasks["fit"]) >= 150
    assert not tasks["unseen"] & tasks["fit"]
    real = sight.filter(~pl.col("placebo").fill_null(value=False))
    for operation in ("refresh",):
        per = real.filter(pl.col("operation") == operation).group_by("cohort", "condition", "delay").len()
        assert per.height == 2 * 4 * 4
        assert {(c, n) for c, _, _, n in per.iter_rows()} == {("unseen", 134), ("fit", len(tasks["fit"]))}


@pytest.mark.parametrize(
    ("operation", "condition", "delay", "rescue", "harm"),
    [
        ("refresh", "clean", 0, 0.0, 2.2), ("refresh", "clean", 4, 3.0, 1.5), ("refresh", "stale-2", 0, 6.7, 3.7),
        ("refresh", "stale-2", 4, 6.7, 1.5), ("refresh", "missing", 2, 0.7, 6.7),
        ("ablated-refresh", "stale-2", 0, 0.0, 2.2),
    ],
)  # fmt: skip
def test_the_table_of_the_documentation(
    sight: pl.DataFrame, operation: str, condition: str, delay: int, rescue: float, harm: float
) -> None:
    assert _cells(sight, operation, condition, delay) == (134, rescue, harm)


def test_an_agent_that_draws_nothing_agrees_with_itself(sight: pl.DataFrame) -> None:
    placebo = sight.filter(pl.col("placebo").fill_null(value=False))
    assert (placebo["y0"] == placebo["y1"]).all()
