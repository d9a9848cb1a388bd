"""D1 and D3: completion, and whether it would come out the same again (METHODS 5)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats as reference

from seatrial.dimensions.completion import Completion
from seatrial.dimensions.reproducibility import Reproducibility, consistency_of
from seatrial.records import Attempt, Evidence

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "proportions.json").read_text(encoding="utf-8"))


def result(dimension: Any, runs: Any, level: float = 0.95) -> Any:
    return dimension.combine([dimension.measure(run) for run in runs], level)


def test_completion_is_the_mean_of_task_means_with_a_t_interval_over_tasks(scored: Any) -> None:
    found = result(Completion(), scored({"a": "pppp", "b": "pf", "c": "fff"}))
    means = np.array([1.0, 0.5, 0.0])
    half = reference.t.ppf(0.975, 2) * means.std(ddof=1) / np.sqrt(3)
    assert found.estimate.value == pytest.approx(0.5)  # not 5 of 9 runs: every task weighs the same
    assert found.estimate.low == pytest.approx(max(0.0, 0.5 - half))
    assert found.estimate.high == pytest.approx(min(1.0, 0.5 + half))
    assert (found.estimate.n, found.estimate.n_clusters) == (9, 3)
    assert {t: v.value for t, v in found.per_task.items()} == {"a": 1.0, "b": 0.5, "c": 0.0}


def test_tasks_that_do_not_vary_keep_a_width(scored: Any) -> None:
    found = result(Completion(), scored(dict.fromkeys("abcde", "ppp")))
    assert found.estimate.value == 1.0
    assert found.estimate.low == pytest.approx(0.025 ** (1 / 5))


def test_one_task_has_no_interval_and_says_why(scored: Any) -> None:
    found = result(Completion(), scored({"a": "ppf"}))
    assert found.estimate.low is None
    assert "one cluster" in found.estimate.why


def test_excluded_runs_have_no_value_and_are_counted_by_reason(scored: Any) -> None:
    found = result(Completion(), scored({"a": "pip", "b": "fxt"}))
    assert found.n_runs == 5
    assert found.estimate.value == pytest.approx(0.5)
    measured = Completion().measure(scored({"a": "i"})[0])
    assert measured.value is None
    assert "error_infra" in measured.why


def test_a_graded_outcome_counts_as_it_is_but_not_after_a_crash(scored: Any) -> None:
    found = result(Completion(), scored({"a": [0.25, 0.75], "b": [1.0, 0.0]}))
    assert found.estimate.value == pytest.approx(0.5)
    assert Completion().measure(scored({"a": "x"})[0]).value == 0.0


def test_a_score_in_units_of_its_own_is_no_share(scored: Any) -> None:
    assert Completion().measure(scored({"a": [532.0]})[0]).value == 0.0
    passed = Evidence(attempt=Attempt(task="a", trial=0, status="passed", score=532.0))
    assert Completion().measure(passed).value == 1.0


@pytest.mark.parametrize("case", GOLDEN["d3_unbiased"])
def test_consistency_has_the_worked_numbers(case: dict[str, Any]) -> None:
    outcomes = [1.0] * case["c"] + [0.0] * (case["k"] - case["c"])
    assert consistency_of(outcomes).value == pytest.approx(case["expect"], abs=1e-9)


def test_reproducibility_is_not_clipped_before_it_is_averaged(scored: Any) -> None:
    runs = scored({"a": "pppppppfff", "b": "pppppfffff", "c": "p" * 10})
    found = result(Reproducibility(), runs)
    assert found.raw == pytest.approx((0.0666666667 - 0.1111111111 + 1.0) / 3)
    assert found.estimate.value == pytest.approx(found.raw)
    assert found.per_task["b"].value == pytest.approx(-0.1111111111)
    assert found.beside["max(p, 1 - p)"].value == pytest.approx((0.7 + 0.5 + 1.0) / 3)


def test_a_negative_mean_is_shown_as_zero_and_kept_raw(scored: Any) -> None:
    found = result(Reproducibility(), scored({"a": "pf", "b": "fp"}))
    assert found.raw == pytest.approx(-1.0)
    assert (found.estimate.value, found.estimate.low) == (0.0, 0.0)
    assert found.estimate.high == pytest.approx(1.0 - 0.025**0.5)


def test_graded_outcomes_use_the_unbiased_variance(scored: Any) -> None:
    found = result(Reproducibility(), scored({"a": [0.2, 0.4, 0.9], "b": [0.5, 0.5, 0.5]}))
    expected = 1.0 - 4.0 * np.var([0.2, 0.4, 0.9], ddof=1)
    assert found.per_task["a"].value == pytest.approx(expected)
    assert found.per_task["b"].value == 1.0


def test_always_failing_is_perfectly_reproducible_and_the_note_says_so(scored: Any) -> None:
    found = result(Reproducibility(), scored({"a": "fff", "b": "fff"}))
    assert found.estimate.value == 1.0
    assert "always fails is perfectly reproducible" in found.notes[0]
    certified = GOLDEN["certified_consistency"]
    told = result(Reproducibility(), scored({"a": "p" * certified["identical_runs"]}))
    assert f"{certified['expect_p_at_least']:.3f}" in " ".join(told.notes)


def test_a_task_with_one_scored_run_has_no_value(scored: Any) -> None:
    found = result(Reproducibility(), scored({"a": "pii", "b": "pf"}))
    assert found.per_task["a"].value is None
    assert "two scored runs" in found.per_task["a"].why
    assert found.unmeasured == {"fewer than two scored runs of the task": 1}
    nothing = result(Reproducibility(), scored({"a": "p", "b": "f"}))
    assert nothing.estimate is None
    assert "two scored runs" in nothing.why


@pytest.mark.parametrize(("runs", "level"), [("pppp", 1.0), ("p" * 19 + "f", 0.9), ("pppf", 0.75), ("ppff", 0.5)])
def test_the_rubric_of_reproducibility_goes_by_the_commoner_outcome(scored: Any, runs: str, level: float) -> None:
    assert result(Reproducibility(), scored({"a": runs, "b": runs})).level == level
