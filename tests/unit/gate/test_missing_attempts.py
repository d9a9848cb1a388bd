"""Attempts that are simply not there count as failed in the bound, as rows that say `missing` do (METHODS 0.1, 6.5)."""

from __future__ import annotations

import pytest

from seatrial.gate import Run, run_of
from seatrial.gate.decision import decide
from seatrial.gate.settings import GateSettings
from seatrial.records import Attempt, Status


def rows(tasks: int, k: int, *, score: float | None = None) -> list[Attempt]:
    return [Attempt(task=f"t{t:02d}", trial=i, status="passed", score=score) for t in range(tasks) for i in range(k)]


def lose(attempts: list[Attempt], lost: set[int], status: Status | None = None) -> list[Attempt]:
    if status is None:
        return [a for n, a in enumerate(attempts) if n not in lost]
    return [Attempt(task=a.task, trial=a.trial, status=status) if n in lost else a for n, a in enumerate(attempts)]


def verdict(baseline: Run, candidate: Run) -> tuple[str, int, str | None]:
    row = next(r for r in decide(baseline, candidate, GateSettings()).metrics if r.metric == "passed")
    return row.verdict, sum(row.excluded.values()), row.why


@pytest.mark.parametrize(
    "lost",
    [
        {5 * t + i for t in range(2, 7) for i in range(1, 5)},  # most attempts of a few tasks
        {3 + 5 * t for t in range(30)},  # the fourth trial of the first tasks
        {5 * t + t % 5 for t in range(40)},  # one of every task, each another: all tasks have the same number
        {199},
    ],
)
def test_attempts_left_out_count_as_rows_that_say_missing(lost: set[int]) -> None:
    full = rows(40, 5)
    baseline = run_of(full, label="b")
    told = verdict(baseline, run_of(lose(full, lost, "missing"), label="c"))
    assert verdict(baseline, run_of(lose(full, lost), label="c")) == told
    assert told[1] == len(lost)
    if len(lost) > 1:
        assert (told[0], told[2]) == (
            "INCONCLUSIVE",
            f"it would pass, but not if its {len(lost)} excluded attempts had failed",
        )


@pytest.mark.parametrize("k", [4, 5, 6])
def test_the_same_number_on_every_task_is_a_plan_and_nothing_is_missing(k: int) -> None:
    assert verdict(run_of(rows(40, 5), label="b"), run_of(rows(40, k), label="c"))[:2] == ("PASS", 0)


def test_a_design_with_other_numbers_by_task_on_both_sides_lacks_nothing() -> None:
    uneven = rows(20, 5) + [Attempt(task=f"u{t}", trial=i, status="passed") for t in range(20) for i in range(10)]
    assert verdict(run_of(uneven, label="b"), run_of(uneven, label="c"))[:2] == ("PASS", 0)


def test_trials_numbered_through_the_whole_run_are_not_taken_for_missing() -> None:
    numbered = [Attempt(task=a.task, trial=n, status="passed") for n, a in enumerate(rows(40, 5))]
    assert verdict(run_of(rows(40, 5), label="b"), run_of(numbered, label="c"))[:2] == ("PASS", 0)
