"""What is not recorded is not known: no level, no cost and no reason is made of its absence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from seatrial.dimensions.fidelity import Fidelity
from seatrial.dimensions.gates import Gates
from seatrial.dimensions.repair import Repair
from seatrial.dimensions.replay import ReplayIntegrity
from seatrial.records import Attempt, Estimate, Evidence

COST = "expected cost per run, minutes"


def _run(task: str, trial: int, status: Any, **extra: Any) -> Evidence:
    return Evidence(attempt=Attempt(task=task, trial=trial, status=status, extra=extra))


def _d4(runs: list[Evidence]) -> Any:
    return Repair().combine([Repair().measure(run) for run in runs], 0.95)


@pytest.mark.parametrize("made", [Gates, ReplayIntegrity])
def test_a_run_without_a_log_has_no_level(made: Callable[[], Any], scored: Callable[..., list[Evidence]]) -> None:
    values = [made().measure(run) for run in scored({"a": "pf", "b": "fp"})]
    found = made().combine(values, 0.95)
    assert [v.level for v in values] == [None] * 4
    assert (found.estimate, found.level) == (None, None)
    assert "no gate was triggered" not in found.level_why + found.why


def test_the_expected_cost_is_over_all_runs_and_never_below_zero() -> None:
    runs = [_run("a", 0, "failed", repair_minutes=30), *(_run(t, 1, "passed") for t in "abc")]
    expected = _d4(runs).beside[COST]
    assert isinstance(expected, Estimate)
    assert (expected.value, expected.n) == (30 / 4, 4)
    assert expected.low == 0.0


def test_a_failed_run_without_a_cost_leaves_the_expected_cost_open() -> None:
    found = _d4([_run("a", 0, "failed", repair_minutes=30), _run("a", 1, "failed"), _run("b", 0, "passed")])
    assert found.beside[COST] is None
    assert any("the cost of 1 of 2 failed runs is not recorded" in note for note in found.notes)


def test_why_the_whole_task_s_cost_is_not_known_says_whether_a_run_passed() -> None:
    failed = _run("a", 0, "failed", repair_minutes=30)
    alone = _d4([failed])
    assert "no run passed" in alone.why
    beside = _d4([failed, _run("a", 1, "passed")])
    assert "no run passed" not in beside.why
    assert "no run that passed recorded any work" in beside.why


def test_one_reason_for_unknown_relevance_is_counted_once(at_till: Any) -> None:
    """Three runs of one, two and three calls, whose relevance nothing tells."""
    runs = [at_till.work([("note", {"text": "x"})] * n, task=f"t{n}", known=False) for n in (1, 2, 3)]
    values = [Fidelity().measure(run) for run in runs]
    assert [next(w for w in ("of 1", "of 2", "of 3") if w in v.why) for v in values] == ["of 1", "of 2", "of 3"]
    found = Fidelity().combine(values, 0.95)
    assert list(found.unmeasured.values()) == [3]
    assert found.why == next(iter(found.unmeasured))
