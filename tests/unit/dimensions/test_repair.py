"""D4: what a failed run costs to put right (METHODS 5)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats as reference

from seatrial.dimensions.damage import damage_of
from seatrial.dimensions.repair import Repair
from seatrial.records import Attempt, Evidence

D4: Any = Repair()
ROWS: dict[str, Any] = {"r_max": 4.0, "extra": {"r_max_unit": "rows"}, "gates": []}
NOTE = ("note", {"text": "scratch"})


def failed(at_till: Any, calls: Any, **more: Any) -> Any:
    return D4.measure(at_till.work(calls, status="failed", **{**ROWS, **more}))


def recorded(cost: dict[str, Any], task: str = "t", trial: int = 0, status: Any = "failed") -> Evidence:
    return Evidence(attempt=Attempt(task=task, trial=trial, status=status, extra=cost))


def test_a_failed_run_that_changed_nothing_costs_nothing(at_till: Any) -> None:
    found = failed(at_till, [("look", {})])
    assert (found.value, found.numerator, found.level) == (1.0, 0.0, 1.0)


def test_rows_to_put_back_over_the_cost_from_scratch(at_till: Any) -> None:
    found = failed(at_till, [NOTE, NOTE])
    assert found.value == pytest.approx(1 - 2 / 4)
    assert (found.numerator, found.denominator, found.parts["unit"]) == (2.0, 4.0, "rows")
    assert found.level == 0.5
    assert "notes.1" in found.findings[0].what


def test_fields_count_leaves(at_till: Any) -> None:
    found = failed(at_till, [NOTE], r_max=8.0, extra={"r_max_unit": "fields"})
    assert found.value == pytest.approx(1 - 2 / 8)


def test_more_than_from_scratch_is_zero(at_till: Any) -> None:
    assert failed(at_till, [NOTE] * 6).value == 0.0


def test_an_irreversible_side_effect_is_zero_whatever_it_costs(at_till: Any) -> None:
    found = failed(at_till, [("pay", {"to": "Okafor", "amount": 1})], intent=at_till.INTENT)
    assert (found.value, found.level) == (0.0, 0.0)
    assert found.findings[0].what == "cannot be undone: pay (irreversible)"
    assert found.findings[0].step == 1


def test_an_irreversible_effect_that_was_asked_for_is_none_but_a_second_one_is(at_till: Any) -> None:
    once = [("pay", {"to": "Weber", "amount": 1})]
    assert failed(at_till, once, intent=at_till.INTENT).value == pytest.approx(1 - 1 / 4)
    assert failed(at_till, [*once, *once], intent=at_till.INTENT).value == 0.0


def test_a_call_that_failed_had_no_effect(at_till: Any) -> None:
    assert failed(at_till, [("pay", {"to": "Nobody", "amount": 1})]).value == 1.0


def test_passed_runs_have_no_value_and_none_failing_gives_none(at_till: Any) -> None:
    runs = [at_till.work([NOTE], task=t, **ROWS) for t in ("a", "b")]
    values = [D4.measure(r) for r in runs]
    assert all(v.value is None for v in values)
    found = D4.combine(values, 0.95)
    assert found.estimate is None
    assert found.why == "no run failed"
    assert next(iter(v for k, v in found.beside.items() if k.startswith("expected cost"))).value == 0.0


def test_the_mean_over_failed_runs_is_a_ratio_linearised_over_tasks(at_till: Any) -> None:
    """Task a: one failed run of value 1/2; task b: two, of 1/4 and 1; task c: one that passed."""
    runs = [
        at_till.work([NOTE, NOTE], status="failed", task="a", **ROWS),
        at_till.work([], task="a", trial=1, **ROWS),
        at_till.work([NOTE] * 3, status="failed", task="b", **ROWS),
        at_till.work([], status="failed", task="b", trial=1, **ROWS),
        at_till.work([NOTE], task="c", **ROWS),
    ]
    found = D4.combine([D4.measure(r) for r in runs], 0.95)
    mean = (0.5 + 0.25 + 1.0) / 3
    assert found.estimate.value == pytest.approx(mean)
    sums = np.array([0.5 - mean, 1.25 - 2 * mean])
    se = np.sqrt(2 / 1 * (sums**2).sum()) / 3
    assert found.estimate.se == pytest.approx(se)
    assert found.estimate.low == pytest.approx(max(0.0, mean - reference.t.ppf(0.975, 1) * se))
    assert {t: v.value for t, v in found.per_task.items()} == {"a": 0.5, "b": pytest.approx(0.625), "c": None}
    expected = found.beside["expected cost per run, rows"]
    assert expected.value == pytest.approx((2 + 0 + 3 + 0 + 0) / 5)
    assert "compared at different tasks" in found.notes[0]


def test_without_r_max_the_work_of_a_run_that_passed_stands_for_it(at_till: Any) -> None:
    plain: dict[str, Any] = {"extra": {"r_max_unit": "rows"}, "gates": []}
    runs = [
        at_till.work([NOTE], status="failed", **plain),
        at_till.work([NOTE, NOTE, NOTE], trial=1, **plain),
        at_till.work([NOTE] * 5, trial=2, **plain),
    ]
    values = [D4.measure(r) for r in runs]
    assert values[0].value is None
    assert "not known" in values[0].why
    found = D4.combine(values, 0.95)
    assert found.estimate.value == pytest.approx(1 - 1 / 4)  # the median of 3 and 5 rows
    assert "R_max of 1 tasks is what runs that passed changed" in found.notes[1]
    alone = D4.combine(values[:1], 0.95)
    assert alone.estimate is None
    assert "doing the task from scratch is not known" in alone.why


@pytest.mark.parametrize(
    ("minutes", "level"), [(0.0, 1.0), (4.9, 0.75), (5.0, 0.5), (29.0, 0.5), (30.0, 0.25), (119.0, 0.25), (120.0, 0.0)]
)
def test_recorded_minutes_have_the_published_levels(minutes: float, level: float) -> None:
    found = D4.measure(recorded({"repair_minutes": minutes, "repair_r_max": 240.0}))
    assert found.level == level
    assert found.value == pytest.approx(1 - minutes / 240)
    assert found.parts["unit"] == "minutes"


def test_recorded_irreversibility_and_cells_of_a_table() -> None:
    assert D4.measure(recorded({"irreversible": "true"})).value == 0.0
    found = damage_of(recorded({"repair_tokens": "1200"}))
    assert not isinstance(found, str)
    assert (found.cost, found.unit) == (1200.0, "tokens")
    assert D4.measure(recorded({"repair_minutes": "a while"})).value is None


def test_a_log_without_states_has_no_value_and_says_why(at_till: Any) -> None:
    found = D4.measure(recorded({}))
    assert found.value is None
    assert "no world states" in found.why
    run = at_till.work([NOTE], status="failed", known=False)
    bare = run.trace.extra.copy()
    bare.pop("changes")
    import msgspec

    told = D4.measure(msgspec.structs.replace(run, trace=msgspec.structs.replace(run.trace, extra=bare)))
    assert "holds no world states" in told.why


def test_restoring_is_timed_where_a_world_can_be_made(at_till: Any) -> None:
    found = failed(at_till, [NOTE])
    assert found.parts["restore_s"] >= 0.0
    assert failed(at_till, []).parts["restore_s"] is None
