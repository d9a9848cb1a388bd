"""Looks: fixed in advance, the same runs for every task in both arms."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from seatrial.errors import UsageError
from seatrial.gate import Run
from seatrial.gate.adaptive import Plan, look, plan, until_decided
from seatrial.gate.spending import boundaries

_SPEC = importlib.util.spec_from_file_location("gate_making", Path(__file__).parent / "making.py")
assert _SPEC is not None
assert _SPEC.loader is not None
making = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(making)
run = making.run


def mixed(runs: int, lost: int = 0) -> dict[str, list[int]]:
    """30 tasks, half of them flaky in a fixed pattern; `lost` tasks always fail."""
    return {f"t{i:02d}": [int(i >= lost and (i % 2 == 0 or (i + k) % 3 > 0)) for k in range(runs)] for i in range(30)}


def test_a_plan_spends_the_budget_on_every_task_in_both_arms() -> None:
    assert plan(5, 30, 600, 3).runs == (5, 10, 15)
    assert plan(5, 30, 60, 10).runs == (5, 6)
    with pytest.raises(UsageError, match="budget"):
        plan(5, 30, 59, 10)


def test_a_clear_regression_stops_early_and_an_undecided_run_goes_on() -> None:
    p = Plan(runs=(6, 9, 12))
    step = look(run(mixed(6)), run(mixed(6, lost=20)), p)
    assert (step.comparison.verdict, step.done, step.add) == ("REGRESSION", True, 0)
    other = {t: list(reversed(o)) for t, o in mixed(6).items()}
    step = look(run(mixed(6)), run(other), p)
    assert (step.done, step.add) == (False, 3)


def test_the_looks_end_with_the_plan() -> None:
    asked: list[int] = []

    def more(add: int, tasks: tuple[str, ...]) -> tuple[Run, Run]:
        asked.append(add)
        assert len(tasks) == 30
        n = 4 + sum(asked)
        return run(mixed(n)), run({t: list(reversed(o)) for t, o in mixed(n).items()})

    step = until_decided(run(mixed(4)), run({t: list(reversed(o)) for t, o in mixed(4).items()}), Plan(runs=(4, 6, 8)),
                         more)  # fmt: skip
    assert step.done
    assert sum(asked) <= 4
    if step.comparison.verdict == "INCONCLUSIVE":
        assert "looks are used" in step.why
        with pytest.raises(UsageError, match="fixed in advance"):
            look(run(mixed(8)), run(mixed(8)), Plan(runs=(4, 6, 8)), step.looks)


def test_runs_only_where_tasks_dropped_are_refused() -> None:
    start = {t: list(reversed(o)) for t, o in mixed(4).items()}

    def more(add: int, tasks: tuple[str, ...]) -> tuple[Run, Run]:
        again = {t: (o + [1] * add if sum(o) < 4 else o) for t, o in start.items()}
        return run(mixed(6)), run(again)

    with pytest.raises(UsageError, match="every task"):
        until_decided(run(mixed(4)), run(start), Plan(runs=(4, 6)), more)


@pytest.mark.parametrize("bad", [[], [0.5, 0.5], [0.6, 0.4], [0.0, 1.0], [0.5, 1.2]])
def test_fractions_must_increase(bad: list[float]) -> None:
    with pytest.raises(UsageError):
        boundaries(bad, 0.05)
