"""The task of a tau2 simulation is the one by whose criteria it was judged."""

from __future__ import annotations

from typing import Any

from seatrial.ingest.tau2_tasks import evaluated

TASKS: dict[str, dict[str, Any]] = {
    "0": {"evaluation_criteria": {"actions": [], "nl_assertions": ["Agent refuses."]}},
    "1": {"evaluation_criteria": {"actions": [{"action_id": "1_0"}, {"action_id": "1_1"}], "nl_assertions": []}},
    "2": {"evaluation_criteria": {"actions": [{"action_id": "2_0"}], "nl_assertions": None}},
    "3": {"evaluation_criteria": None},
}


def judged(actions: list[str] | None = None, assertions: list[str] | None = None) -> dict[str, Any]:
    return {
        "action_checks": None if actions is None else [{"action": {"action_id": a}} for a in actions],
        "nl_assertions": None if assertions is None else [{"nl_assertion": a, "met": True} for a in assertions],
    }


def test_the_recorded_task_stays_where_its_criteria_fit() -> None:
    assert evaluated(TASKS, "1", judged(["1_0", "1_1"])) == "1"
    assert evaluated(TASKS, "0", judged(assertions=["Agent refuses."])) == "0"


def test_the_task_is_told_by_actions_or_by_assertions() -> None:
    assert evaluated(TASKS, "0", judged(["2_0"])) == "2"
    assert evaluated(TASKS, "2", judged(assertions=["Agent refuses."])) == "0"


def test_nothing_judged_or_nothing_that_fits_changes_nothing() -> None:
    assert evaluated(TASKS, "1", judged()) == "1"
    assert evaluated(TASKS, "1", {}) == "1"
    assert evaluated(TASKS, "1", judged(["9_0"])) == "1"
    assert evaluated(TASKS, "9", judged(["2_0"])) == "9"
    assert evaluated(TASKS, "1", {"action_checks": 7, "nl_assertions": [None, {"nl_assertion": 3}]}) == "1"


def test_two_tasks_that_fit_change_nothing() -> None:
    twins = TASKS | {"4": TASKS["2"]}
    assert evaluated(twins, "1", judged(["2_0"])) == "1"
