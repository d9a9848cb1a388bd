"""The gate's verdicts, held to the definitions of METHODS 6.5 computed apart from the code."""

from __future__ import annotations

import importlib.util
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np
import pytest
from scipy import stats as reference

from seatrial.errors import EvidenceError, InputError, SettingsError, UsageError
from seatrial.gate import GateSettings, MetricSettings, Run, decide, exit_status, run_of
from seatrial.gate.needs import needs
from seatrial.gate.noninferiority import compare, exact_attempts
from seatrial.records import Attempt, Verdict

_SPEC = importlib.util.spec_from_file_location("gate_making", Path(__file__).parent / "making.py")
assert _SPEC is not None
assert _SPEC.loader is not None
making = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(making)
run, suite, attempts = making.run, making.suite, making.attempts


def test_same_run_passes_once_it_has_149_attempts() -> None:
    assert exact_attempts(0.02) == 149
    assert 0.98**149 <= 0.05 < 0.98**148
    enough = run(suite(30, 20))
    assert decide(enough, enough).verdict == "PASS"
    few = run(suite(29, 20))  # 145 attempts
    answer = decide(few, few)
    assert answer.verdict == "INCONCLUSIVE"
    assert answer.metrics[0].more_runs == math.ceil(149 / 29)


def test_statistics_are_those_of_a_one_sample_t_test() -> None:
    rng = np.random.default_rng(4)
    b = {f"t{i}": rng.integers(0, 2, 5).tolist() for i in range(25)}
    c = {t: [x if rng.random() < 0.6 else 0 for x in xs] for t, xs in b.items()}
    d = np.array([np.mean(c[t]) - np.mean(b[t]) for t in b])
    row = decide(run(b), run(c)).metrics[0]
    assert row.difference is not None
    assert row.difference.value == pytest.approx(d.mean())
    test = reference.ttest_1samp(d, 0.0, alternative="less")
    assert row.p_value == pytest.approx(test.pvalue)
    interval = reference.ttest_1samp(d, 0.0).confidence_interval(0.90)
    assert (row.difference.low, row.difference.high) == pytest.approx((interval.low, interval.high))
    se = max(d.std(ddof=1) / 5, math.sqrt(0.02 * 0.98 / 125))
    assert row.lower == pytest.approx(d.mean() - reference.t.ppf(0.95, 24) * se)
    assert row.mde == pytest.approx((reference.norm.ppf(0.95) + reference.norm.ppf(0.80)) * se)


@pytest.mark.parametrize(("differing", "level"), [(1, 0.975), (9, 0.975), (10, 0.95), (20, 0.95)])
def test_few_discordant_tasks_take_the_wider_bound(differing: int, level: float) -> None:
    d = np.zeros(30)
    d[:differing] = np.where(np.arange(differing) % 2, 0.2, -0.2)
    t = compare(d, 150, 0.02, binary=True)
    se = max(d.std(ddof=1) / math.sqrt(30), math.sqrt(0.02 * 0.98 / 150))
    assert float(t.lower) == pytest.approx(d.mean() - reference.t.ppf(level, 29) * se)


def test_a_drop_of_exactly_the_margin_is_no_drop_beyond_it() -> None:
    # 3 of 150 attempts are exactly 2 points; floats would make it 0.0200000000000000004.
    b, c = suite(30, 30), suite(30, 30)
    for task in ("t000", "t001", "t002"):
        c[task] = [1, 1, 1, 1, 0]
    point = decide(run(b), run(c), GateSettings(rule="point"))
    assert point.verdict == "PASS"
    c["t003"] = [1, 1, 1, 1, 0]
    assert decide(run(b), run(c), GateSettings(rule="point")).verdict == "REGRESSION"


def test_equal_drops_have_the_sign_tests_p() -> None:
    b = {f"t{i}": [1, 1] for i in range(6)}
    c = {f"t{i}": [1, 0] for i in range(6)}
    row = decide(run(b), run(c)).metrics[0]
    assert row.p_value == pytest.approx(0.5**6)
    assert row.verdict == "REGRESSION"
    assert decide(run({"a": [1]}), run({"a": [0]})).metrics[0].p_value == 0.5


def test_holm_goes_over_every_declared_metric() -> None:
    rng = np.random.default_rng(0)
    rows_b, rows_c = [], []
    for metric in ("one", "two", "three"):
        for i in range(20):
            good = rng.random() < 0.7
            for trial in range(2):
                rows_b.append(Attempt(task=f"t{i}", trial=trial, status="passed" if good else "failed",
                                      extra={"metric": metric}))  # fmt: skip
                lost = metric == "one" and i < 4
                rows_c.append(Attempt(task=f"t{i}", trial=trial, status="passed" if good and not lost else "failed",
                                      extra={"metric": metric}))  # fmt: skip
    answer = decide(run_of(rows_b, label="b"), run_of(rows_c, label="c"))
    raw = sorted(r.p_value for r in answer.metrics if r.p_value is not None)
    smallest = min(answer.metrics, key=lambda r: r.p_value or 1.0)
    assert smallest.p_holm == pytest.approx(min(1.0, 3 * raw[0]))


def test_an_uncomputable_metric_enters_holm_with_p_1_and_stops() -> None:
    b = run_of([*attempts({"a": [1], "b": [1]}, extra={"metric": "x"}),
                *attempts({"a": [1], "b": [1]}, extra={"metric": "y"})], label="b")  # fmt: skip
    c = run({"a": [1], "b": [1]}, extra={"metric": "x"})
    answer = decide(b, c)
    (gone,) = [r for r in answer.metrics if r.metric == "y"]
    assert (gone.verdict, gone.p_value, gone.p_holm) == ("INCONCLUSIVE", None, 1.0)
    assert exit_status(answer) == 3


def test_vector_missing_and_new_is_never_pass(golden: Path) -> None:
    vector = json.loads((golden / "gate.json").read_text())["missing_and_new"]
    sides = [run({t: [o == "pass"] for t, o in vector[side].items()}) for side in ("baseline", "candidate")]
    for rule in ("noninferiority", "point"):
        answer = decide(*sides, GateSettings(rule=rule))
        assert answer.verdict != "PASS"
        assert answer.population.missing == ("b", "c")
        assert answer.population.new == ("d",)
        assert exit_status(answer) == 3


def test_population_policies() -> None:
    b, c = suite(30, 30), suite(31, 31)
    assert decide(run(b), run(c)).verdict == "PASS"  # a new case that passes is a note
    c["t030"] = [0] * 5
    answer = decide(run(b), run(c))
    assert (answer.verdict, exit_status(answer), exit_status(answer, "fail")) == ("INCONCLUSIVE", 0, 3)
    assert decide(run(b), run(c), GateSettings(new_failing="note")).verdict == "PASS"
    old, new = run(b, task_hash="1"), run(b, task_hash="2")
    answer = decide(old, new, GateSettings(changed="note"))
    assert len(answer.population.changed) == 30
    assert answer.verdict == "INCONCLUSIVE"  # nothing is left to compare


def test_candidate_exclusions_must_not_be_needed_for_a_pass() -> None:
    b, c = suite(40, 40), suite(40, 40)
    assert decide(run(b), run(c)).verdict == "PASS"
    for i in range(10):
        c[f"t{i:03d}"] = [1, 1, 1, 1, "error_infra"]
    answer = decide(run(b), run(c))
    assert answer.verdict == "INCONCLUSIVE"
    assert answer.metrics[0].excluded == {"error_infra": 10}
    assert "excluded" in (answer.metrics[0].why or "")


def test_a_case_without_any_scored_attempt_is_missing_evidence() -> None:
    b, c = suite(40, 40), suite(40, 40)
    c["t000"] = ["error_infra"] * 5
    answer = decide(run(b), run(c))
    assert answer.population.missing == ("t000",)
    assert exit_status(answer) == 3


def test_timeouts_and_agent_errors_count_as_failed() -> None:
    b, c = suite(40, 40), suite(40, 40)
    for i in range(20):
        c[f"t{i:03d}"] = ["timeout", "error_agent", 0, 0, 0]
    assert decide(run(b), run(c)).verdict == "REGRESSION"


def test_nothing_scored_is_no_pass() -> None:
    with pytest.raises(EvidenceError, match="nothing was scored"):
        decide(run({"a": ["error_infra"]}), run({"a": [1]}))


def test_must_pass_fails_alone() -> None:
    b, c = suite(40, 40), suite(40, 40)
    c["t007"] = [1, 1, 1, 1, 0]
    assert decide(run(b), run(c)).verdict != "REGRESSION"
    answer = decide(run(b), run(c), GateSettings(must_pass=("t007",)))
    assert (answer.verdict, answer.must_pass_failed, exit_status(answer)) == ("REGRESSION", ("t007",), 1)
    marked = run_of([*attempts({t: o for t, o in c.items() if t != "t007"}),
                     *attempts({"t007": c["t007"]}, extra={"must_pass": "yes"})], label="c")  # fmt: skip
    assert decide(run(b), marked).must_pass_failed == ("t007",)
    absent = decide(run(b), run(b), GateSettings(must_pass=("elsewhere",)))
    assert exit_status(absent) == 3


def test_cost_alone_is_review_and_an_undecided_cost_does_not_withhold_pass() -> None:
    tasks = suite(30, 30)
    cheap = run(tasks, cost_usd=1.0)
    dear = run(tasks, cost_usd=1.5)
    answer = decide(cheap, dear)
    assert (answer.verdict, exit_status(answer)) == ("REVIEW", 0)
    (cost,) = [r for r in answer.metrics if r.metric == "cost_usd"]
    assert cost.difference is not None
    assert cost.difference.value == pytest.approx(-0.5)
    assert cost.verdict == "REVIEW"
    worse = run(suite(30, 10), cost_usd=1.5)
    assert decide(cheap, worse).verdict == "REGRESSION"
    tight = GateSettings(metrics={"cost_usd": MetricSettings(margin=0.6)})
    assert decide(cheap, dear, tight).verdict != "REVIEW"


def test_a_watched_latency_must_grow_by_a_second_and_a_declared_one_need_not() -> None:
    tasks = suite(30, 30)
    fast, slower, slow = (run(tasks, latency_s=s) for s in (0.010, 0.015, 2.0))
    assert decide(fast, slower).verdict == "PASS"
    assert decide(fast, slow).verdict == "REVIEW"
    declared = GateSettings(metrics={"latency_s": MetricSettings(margin=0.1)})
    assert decide(fast, slower, declared).verdict == "REVIEW"


def test_an_unknown_price_is_not_zero() -> None:
    tasks = suite(30, 30)
    answer = decide(run(tasks, cost_usd=1.0), run(tasks, cost_usd=0.0))
    (cost,) = [r for r in answer.metrics if r.metric == "cost_usd"]
    assert cost.difference is None
    assert answer.verdict == "PASS"


def test_fingerprint_names_what_changed() -> None:
    tasks = suite(30, 30)
    a, b = run(tasks, fingerprint={"model": "m", "prompt": "1"}), run(tasks, fingerprint={"model": "m", "prompt": "2"})
    assert decide(a, b).changed == ("prompt",)
    same = decide(a, a)
    assert same.changed == ()
    assert any("A/A" in w for w in same.warnings)
    assert not any("A/A" in w for w in decide(run(tasks), run(tasks)).warnings)


def test_versions_of_checks_must_agree() -> None:
    def with_version(version: str) -> object:
        rows = attempts(suite(30, 30))
        said = {(a.task, a.trial): [Verdict(metric="ordered", passed=True, reason="", by="ordered", version=version)]
                for a in rows}  # fmt: skip
        return run_of(rows, label=version, verdicts=said)

    answer = decide(with_version("1"), with_version("2"))  # type: ignore[arg-type]
    (row,) = [r for r in answer.metrics if r.metric == "ordered"]
    assert row.verdict == "INCONCLUSIVE"
    assert "grade both again" in (row.why or "")
    assert exit_status(answer) == 3


def test_a_check_that_never_applies_to_a_task_is_left_out_of_it() -> None:
    rows = attempts({"a": [1, 1], "b": [1, 1]})
    said = {(a.task, a.trial): [Verdict(metric="ordered", passed=True if a.task == "a" else None, reason="n/a",
                                        by="ordered", version="1")] for a in rows}  # fmt: skip
    made = run_of(rows, label="x", verdicts=said)
    assert set(made.metrics["ordered"].tasks) == {"a"}


def test_single_run_is_marked_and_asks_for_tasks() -> None:
    rng = np.random.default_rng(1)
    b = {f"t{i}": [int(rng.random() < 0.7)] for i in range(40)}
    c = {f"t{i}": [int(rng.random() < 0.7)] for i in range(40)}
    answer = decide(run(b), run(c))
    assert answer.single_run
    row = answer.metrics[0]
    assert row.more_runs is None
    assert row.more_tasks is not None
    d = np.array([c[t][0] - b[t][0] for t in b])
    z = reference.norm.ppf(0.95) + reference.norm.ppf(0.80)
    assert row.more_tasks == math.ceil(z**2 * d.var(ddof=1) / 0.02**2)


def test_more_runs_is_the_least_k_of_the_formula() -> None:
    rng = np.random.default_rng(12)
    p = np.where(np.arange(400) < 200, 0.9, 0.8)
    b = {f"t{i:03d}": (rng.random(40) < p[i]).astype(int).tolist() for i in range(400)}
    c = {f"t{i:03d}": (rng.random(5) < p[i]).astype(int).tolist() for i in range(400)}
    row = decide(run(b), run(c)).metrics[0]
    if row.verdict != "INCONCLUSIVE":
        pytest.fail("the design is meant to be undecided")
    d = np.array([np.mean(c[t]) - np.mean(b[t]) for t in b])
    s_a = np.mean([np.var(b[t], ddof=1) for t in b])
    s_b = np.mean([np.var(c[t], ddof=1) for t in b])
    omega = max(0.0, d.var(ddof=1) - s_a / 40 - s_b / 5)
    q2 = (reference.t.ppf(0.95, 399) + reference.norm.ppf(0.80)) ** 2
    least = next(k for k in range(1, 10_000) if q2 * (omega + s_a / 40 + s_b / k) / 400 <= 0.02**2)
    assert row.more_runs == max(least, 6)


def test_scores_between_0_and_1_are_their_own_metric() -> None:
    rng = np.random.default_rng(2)
    rows = [
        Attempt(task=f"t{i}", trial=k, status="failed", score=float(rng.random())) for i in range(20) for k in (0, 1)
    ]
    made = run_of(rows, label="x")
    assert list(made.metrics) == ["score"]
    assert not made.metrics["score"].binary


def test_the_same_trial_twice_is_refused() -> None:
    with pytest.raises(InputError, match="twice"):
        run_of([Attempt(task="a", trial=0, status="passed")] * 2, label="x")


@pytest.mark.parametrize("bad", [{"margin": 0.0}, {"margin": 1.5}, {"alpha": 0.6}, {"looks": 0}])
def test_settings_that_mean_nothing_are_refused(bad: dict[str, float]) -> None:
    made = run(suite(5, 5))
    with pytest.raises(SettingsError):
        decide(made, made, msgspec.convert(bad, GateSettings))


def test_regressed_tasks_are_listed_worst_first() -> None:
    b, c = suite(30, 30), suite(30, 30)
    for i in range(12):
        c[f"t{i:03d}"] = [0] * 5 if i < 6 else [1, 1, 1, 1, 0]
    answer = decide(run(b), run(c))
    assert answer.verdict == "REGRESSION"
    assert [t.task for t in answer.regressed_tasks] == [f"t{i:03d}" for i in range(12)]


def test_needs_of_one_task_says_so() -> None:
    row = decide(run({"a": [1, 0]}), run({"a": [1, 0]})).metrics[0]
    assert row.verdict == "INCONCLUSIVE"
    assert "one task" in (row.why or "")
    assert needs.__doc__


def test_cases_that_were_noted_as_unscored_still_count_as_failed_for_a_pass() -> None:
    b, c = suite(40, 40), suite(40, 40)
    for i in range(4):
        c[f"t{i:03d}"] = ["error_infra"] * 5
    answer = decide(run(b), run(c), GateSettings(missing="note"))
    assert answer.missing_evidence == ()
    assert answer.verdict == "INCONCLUSIVE"
    assert answer.metrics[0].excluded == {"error_infra": 20}


def _scored(values: Sequence[float], excluded: int = 0) -> Run:
    """30 tasks with these scores each; of the first `excluded` tasks one attempt more, without a score."""
    rows = [
        Attempt(task=f"t{i:02d}", trial=k, status="failed", score=v + 0.001 * ((i * 7 + k) % 5))
        for i in range(30) for k, v in enumerate(values)
    ]  # fmt: skip
    rows += [Attempt(task=f"t{i:02d}", trial=len(values), status="unscored") for i in range(excluded)]
    return run_of(rows, label="x")


@pytest.mark.parametrize("values", [(-3.0, -2.0), (4.0, 6.0)])
def test_scores_outside_their_range_are_refused_by_name(values: tuple[float, float]) -> None:
    with pytest.raises(UsageError, match=r"metric 'score' has the value .* outside its range from 0 to 1"):
        decide(_scored(values), _scored(values))


@pytest.mark.parametrize(("better", "worst"), [("higher", -10.0), ("lower", 10.0)])
def test_excluded_attempts_count_as_the_worst_of_a_declared_range(
    better: Literal["higher", "lower"], worst: float
) -> None:
    own = MetricSettings(margin=0.5, better=better, range=(-10.0, 10.0))
    settings = GateSettings(metrics={"score": own})
    before = _scored((-3.0, -2.0))
    assert decide(before, _scored((-3.0, -2.0)), settings).metrics[0].verdict == "PASS"
    row = decide(before, _scored((-3.0, -2.0), excluded=30), settings).metrics[0]
    assert row.verdict == "INCONCLUSIVE"
    assert row.lower is not None
    # Two attempts near -2.5 and one at the worst: the mean moves by a third of the way.
    assert row.lower == pytest.approx(-abs(worst + 2.5) / 3, abs=0.05)


@pytest.mark.parametrize("bad", [(1.0, 1.0), (2.0, 1.0), (0.0, float("inf"))])
def test_a_range_must_have_two_ends(bad: tuple[float, float]) -> None:
    made = run(suite(5, 5))
    with pytest.raises(SettingsError, match="range"):
        decide(made, made, GateSettings(metrics={"passed": MetricSettings(range=bad)}))


def _runs_promised(tasks: int, lost: int, runs: int, margin: float = 0.02) -> tuple[int | None, int | None]:
    """`lost` tasks fail one run each in the candidate, and one each in the baseline of other tasks."""
    b = {f"t{i:03d}": [int(not (k == 0 and lost <= i < 2 * lost)) for k in range(runs)] for i in range(tasks)}
    c = {f"t{i:03d}": [int(not (k == 0 and i < lost)) for k in range(runs)] for i in range(tasks)}
    row = decide(run(b), run(c), GateSettings(margin=margin)).metrics[0]
    assert row.verdict == "INCONCLUSIVE"
    return row.more_runs, row.more_tasks


@pytest.mark.parametrize(("tasks", "lost", "runs"), [(10, 1, 5), (20, 2, 5), (30, 6, 4), (80, 1, 2)])
def test_the_promised_runs_clear_the_bound_where_nothing_was_lost(tasks: int, lost: int, runs: int) -> None:
    k, more_tasks = _runs_promised(tasks, lost, runs)
    d = np.array([-1.0 / runs] * lost + [1.0 / runs] * lost + [0.0] * (tasks - 2 * lost))
    within = lost / tasks * (1 / runs) * (1 - 1 / runs) * runs / (runs - 1)
    omega = max(0.0, d.var(ddof=1) - 2 * within / runs)
    beyond = reference.t.ppf(0.975 if 2 * lost <= 9 else 0.95, tasks - 1)
    power = reference.norm.ppf(0.80)

    def clears(n: int) -> bool:
        se = math.sqrt((omega + within / runs + within / n) / tasks)
        floor = max(se, math.sqrt(0.02 * 0.98 / (n * tasks)))
        return bool(beyond * floor + power * se <= 0.02)

    least = next((n for n in range(runs + 1, 10_001) if clears(n)), None)
    assert k is None or (least is not None and k >= least and clears(k))
    if least is None:
        assert more_tasks is not None
    elif least * tasks >= 149:
        assert k == least


def test_no_runs_are_promised_where_the_differences_are_fixed() -> None:
    """Half a point lost in tasks without any flakiness: no number of runs moves it, or the interval of few tasks."""
    b = {f"t{i:03d}": [1] * 5 for i in range(200)}
    c = {f"t{i:03d}": [int(i >= 3)] * 5 for i in range(200)}
    row = decide(run(b), run(c)).metrics[0]
    assert row.verdict == "INCONCLUSIVE"
    assert row.more_runs is None
    assert row.more_tasks is not None
