"""Sessions that ran another model than the drawn one are said, and still count for the draw."""

from __future__ import annotations

import polars as pl

from seatrial.flows.compliance import warnings


def rows(*cells: tuple[str, str | None, str | None]) -> pl.DataFrame:
    schema = {"arm": pl.String, "served": pl.String, "unit": pl.String}
    return pl.DataFrame(list(cells), schema=schema, orient="row")


def test_arms_named_otherwise_than_their_models_comply() -> None:
    table = rows(
        *[("opus", "claude-opus-4", f"u{i}") for i in range(5)], *[("son", "sonnet-4", f"v{i}") for i in range(5)]
    )
    assert warnings(table) == []


def test_switched_sessions_are_counted_by_arm() -> None:
    table = rows(*[("A", "a", f"u{i}") for i in range(9)], ("A", "b", "x"), *[("B", "b", f"v{i}") for i in range(10)])
    (text,) = warnings(table)
    assert "1 of 10 sessions (10.0%) drawn for A ran another model" in text


def test_one_model_behind_two_arms_is_said() -> None:
    (text,) = warnings(rows(("A", "m", "u"), ("B", "m", "v")))
    assert "arms A, B were served by one model, m" in text


def test_sessions_without_a_draw_say_nothing() -> None:
    assert warnings(rows(("a", "a", None), ("b", "b", None))) == []
