"""A judge is usable only beside two people who agree, and whatever it left unanswered."""

from __future__ import annotations

import pytest

from seatrial.grading.ratings import Ratings
from seatrial.grading.validate import validate

TRUTH = tuple("pass" if i % 2 else "fail" for i in range(200))


def ratings(humans: dict[str, tuple[str | None, ...]], judge: tuple[str | None, ...]) -> Ratings:
    n = len(judge)
    return Ratings(
        criterion="c", items=tuple(str(i) for i in range(n)), tasks=(None,) * n, humans=humans, judge=judge,
        judge_swapped=None, length=None, agent=None, binary=True, mapped={},
    )  # fmt: skip


def test_two_people_and_a_judge_that_agrees_with_them_make_it_usable() -> None:
    standing = validate(ratings({"human_1": TRUTH, "human_2": TRUTH}, TRUTH), draws=999)
    assert standing.status == "usable"


@pytest.mark.parametrize(
    "humans",
    [
        {"human_1": TRUTH},
        {"human_1": TRUTH, "human_2": (None,) * 200},
        {"human_1": (*TRUTH[:100], *(None,) * 100), "human_2": (*(None,) * 100, *TRUTH[100:])},
    ],
)
def test_without_two_people_on_the_same_items_it_is_provisional(humans: dict[str, tuple[str | None, ...]]) -> None:
    standing = validate(ratings(humans, TRUTH), draws=999)
    assert standing.status == "provisional"
    assert "two people" in standing.why


@pytest.mark.parametrize(("silent", "status"), [(10, "usable"), (60, "provisional")])
def test_what_the_judge_left_unanswered_counts_as_disagreement(silent: int, status: str) -> None:
    both = {"human_1": TRUTH, "human_2": TRUTH}
    standing = validate(ratings(both, (*(None,) * silent, *TRUTH[silent:])), draws=999)
    assert (standing.unscored, standing.status) == (silent, status)
    assert standing.agreement is not None
    assert standing.agreement.value == 1.0
    if status == "provisional":
        assert standing.why.startswith("if the 60 items without the judge's verdict disagreed: agreement 0.70")
