"""Rows of a pairs table become columns, or an error that names the line."""

from __future__ import annotations

import numpy as np
import pytest

from seatrial.errors import EvidenceError, SchemaError, UsageError
from seatrial.records import Pair
from seatrial.recovery.table import Row, from_pairs, from_rows

GOOD = {"task": "a", "condition": "clean", "operation": "refresh", "delay": "1", "y0": "0", "y1": "1"}


def test_features_are_the_numeric_columns_and_others_are_named() -> None:
    pairs = from_rows([Row(2, GOOD | {"novelty": "0.5", "note": "late", "empty": ""})])
    assert pairs.features == ("novelty",)
    assert pairs.x.tolist() == [[0.5]]
    assert pairs.ignored == ("note", "empty")


def test_operation_none_is_a_placebo() -> None:
    pairs = from_rows([Row(2, GOOD | {"operation": "none"}), Row(3, GOOD | {"placebo": "false"})])
    assert pairs.placebo.tolist() == [True, False]


@pytest.mark.parametrize(
    ("cell", "says"),
    [
        ({"y0": "1.5"}, "y0: expected an outcome between 0 and 1, found 1.5"),
        ({"y1": "maybe"}, "y1: expected a number"),
        ({"y1": "nan"}, "y1: expected a finite number"),
        ({"delay": "-1"}, "delay: expected a whole number"),
        ({"delay": "1.5"}, "delay: expected a whole number"),
        ({"task": " "}, "task is empty"),
        ({"placebo": "perhaps"}, "placebo: expected true or false"),
    ],
)
def test_a_bad_cell_names_file_line_and_what_was_expected(cell: dict[str, str], says: str) -> None:
    with pytest.raises(SchemaError) as caught:
        from_rows([Row(2, GOOD), Row(3, GOOD | {"task": "b"} | cell)], "pairs.csv")
    assert says in str(caught.value)
    assert (caught.value.file, caught.value.line) == ("pairs.csv", 3)


def test_missing_columns_repeated_rows_and_nothing() -> None:
    with pytest.raises(SchemaError, match="no column y1"):
        from_rows([Row(2, {k: v for k, v in GOOD.items() if k != "y1"})])
    with pytest.raises(SchemaError, match="as in line 2"):
        from_rows([Row(2, GOOD), Row(3, GOOD)])
    with pytest.raises(EvidenceError):
        from_rows([])


def test_records_go_in_as_well() -> None:
    pairs = from_pairs([Pair(task="a", condition="clean", operation="refresh", delay=1, y0=1, y1=0, cohort="fit",
                             terminated=True, agent="x", features={"f": 2.0})])  # fmt: skip
    assert (pairs.cohort[0], pairs.agent[0], bool(pairs.terminated[0])) == ("fit", "x", True)
    assert pairs.with_features(["f"]).x[0, 0] == 2.0
    with pytest.raises(UsageError, match="no feature g"):
        pairs.with_features(["g"])
    assert len(pairs.where(np.array([False]))) == 0
