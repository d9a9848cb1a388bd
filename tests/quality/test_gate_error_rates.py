"""How often does the gate err? Unchanged agents, true drops of the margin, and drops that must be seen (METHODS 6.5).

A small version of `benchmarks/gate.py`; each limit has the Monte Carlo error of this size (2.6 standard errors) on top.
"""

from __future__ import annotations

import importlib.util
import math
import sys
from pathlib import Path

import numpy as np
import pytest

from seatrial.gate import MetricRuns, Run, TaskRuns, decide
from seatrial.gate.adaptive import plan, until_decided
from seatrial.stats import point_rule_false_alarm

_PATH = Path(__file__).parent / "gate_designs.py"
_SPEC = importlib.util.spec_from_file_location("gate_designs", _PATH)
assert _SPEC is not None
assert _SPEC.loader is not None
designs = importlib.util.module_from_spec(_SPEC)
sys.modules["gate_designs"] = designs
_SPEC.loader.exec_module(designs)

N = 3000
SIZES = [(30, 5), (100, 5)]
KINDS = list(designs.FLAKINESS)


def allowed(limit: float, n: int = N) -> float:
    return limit + 2.6 * math.sqrt(limit * (1 - limit) / n)


def needed(limit: float, n: int = N) -> float:
    return limit - 2.6 * math.sqrt(limit * (1 - limit) / n)


def chances(kind: str, tasks: int, seed: int) -> np.ndarray:
    made: np.ndarray = designs.chances(kind, tasks, N, np.random.default_rng(seed))
    return made


@pytest.mark.parametrize(("tasks", "runs"), SIZES)
@pytest.mark.parametrize("kind", KINDS)
def test_an_unchanged_agent_is_blocked_in_at_most_5_percent_over_six_metrics(kind: str, tasks: int, runs: int) -> None:
    p = chances(kind, tasks, 1)
    rates = designs.simulate(p, p, runs, metrics=6, seed=2)
    assert rates.regression <= allowed(0.05)
    alone = designs.simulate(p, p, runs, seed=3)
    assert alone.regression <= allowed(0.05)


def test_the_point_rule_blocks_an_unchanged_agent_in_a_quarter_of_comparisons() -> None:
    p = (1 - math.sqrt(0.6)) / 2  # p(1 - p) = .10
    same = np.full((N, 30), p)
    rates = designs.simulate(same, same, 5, metrics=6, seed=5)
    exact = point_rule_false_alarm(150, p, 0.02)
    assert exact == pytest.approx(0.26, abs=0.002)
    assert rates.point == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / (6 * N)))
    assert rates.point_any > 0.8
    assert rates.regression <= allowed(0.05)


@pytest.mark.parametrize(("tasks", "runs"), SIZES)
@pytest.mark.parametrize("kind", [*KINDS, "perfect"])
@pytest.mark.parametrize("how", ["dropped", "concentrated"])
def test_a_true_drop_of_the_margin_passes_in_at_most_7_percent(how: str, kind: str, tasks: int, runs: int) -> None:
    p = np.ones((N, tasks)) if kind == "perfect" else chances(kind, tasks, 7)
    rates = designs.simulate(p, getattr(designs, how)(p, 0.02), runs, seed=8)
    assert rates.passes <= allowed(0.07)


@pytest.mark.parametrize("kind", ["steady", "mixed", "flaky", "near perfect"])
def test_large_drops_are_seen(kind: str) -> None:
    p = chances(kind, 30, 9)
    assert designs.simulate(p, designs.dropped(p, 0.15), 5, seed=10).regression >= needed(0.80)
    p = chances(kind, 100, 11)
    assert designs.simulate(p, designs.dropped(p, 0.10), 5, seed=12).regression >= needed(0.95)


@pytest.mark.parametrize("how", ["dropped", "partly", "concentrated"])
def test_large_drops_of_the_methods_own_agents_are_seen_wherever_they_come_from(how: str) -> None:
    """From all tasks, a third of them, or as few as can hold the drop (METHODS 6.5: 86% and 99%)."""
    p = chances("design", 30, 23)
    assert float((p * (1 - p)).mean()) == pytest.approx(0.10, abs=0.003)
    broken = getattr(designs, how)
    q = broken(p, 0.15)
    assert (p - q).mean() == pytest.approx(0.15, abs=1e-9)
    assert designs.simulate(p, q, 5, seed=24).regression >= needed(0.80)
    p = chances("design", 100, 25)
    assert designs.simulate(p, broken(p, 0.10), 5, seed=26).regression >= needed(0.95)


def test_what_a_coin_hides_no_test_can_see() -> None:
    """Ten points on 100 x 5 attempts of an agent that passes every second one: the best test there is, which is told
    the variances, sees 94%; so does the gate."""
    se = math.sqrt((0.5 * 0.5 + 0.4 * 0.6) / 500)
    best = 0.5 * (1.0 + math.erf((0.10 / se - 1.6449) / math.sqrt(2.0)))
    assert best == pytest.approx(0.94, abs=0.005)
    p = np.full((N, 100), 0.5)
    assert designs.simulate(p, p - 0.1, 5, seed=27).regression >= needed(best - 0.01)


def test_power_grows_with_the_drop() -> None:
    p = chances("mixed", 30, 13)
    curve = [designs.simulate(p, designs.dropped(p, d / 100), 5, seed=14).regression for d in (0, 2, 5, 10, 15, 20)]
    assert curve == sorted(curve)
    assert curve[-1] > 0.97


def test_a_stable_agent_passes() -> None:
    """A gate that always answers INCONCLUSIVE would keep every error rate."""
    p = chances("near perfect", 100, 15)
    assert designs.simulate(p, p, 5, seed=16).passes > 0.8
    solid = np.round(chances("steady", 100, 17))
    assert designs.simulate(solid, solid, 5, seed=18).passes == 1.0


def test_the_simulation_decides_as_the_gate_does() -> None:
    """The vectorised lines and `decide` on the same counts give the same verdicts."""
    rng = np.random.default_rng(19)
    for kind in KINDS:
        p = designs.chances(kind, 30, 1, rng)
        q = designs.dropped(p, float(rng.choice([0.0, 0.05, 0.2])))
        b = rng.random((30, 5)) < p[0][:, None]
        c = rng.random((30, 5)) < q[0][:, None]
        d = (c.sum(axis=1) - b.sum(axis=1)) / 5
        t = designs.compare(d, 150, 0.02, binary=True)
        expected = "REGRESSION" if t.p <= 0.05 and t.drops else "PASS" if t.passes else "INCONCLUSIVE"
        assert decide(_run("b", b), _run("c", c)).verdict == expected


def _run(label: str, passed: np.ndarray) -> Run:
    tasks = {f"t{i:03d}": TaskRuns(values=tuple(float(v) for v in row)) for i, row in enumerate(passed)}
    return Run(label=label, metrics={"passed": MetricRuns(tasks=tasks)}, tasks=dict.fromkeys(tasks))


def _adaptive(drop: float, n: int, seed: int, most: int = 8, start: int = 4) -> dict[str, int]:
    rng = np.random.default_rng(seed)
    found: dict[str, int] = {}
    for _ in range(n):
        p = rng.beta(2.0, 1.0, 30)
        q = p * max(0.0, 1.0 - drop / p.mean())
        b, c = rng.random((30, most)) < p[:, None], rng.random((30, most)) < q[:, None]
        runs = start

        def more(add: int, tasks: tuple[str, ...], b: np.ndarray = b, c: np.ndarray = c) -> tuple[Run, Run]:
            nonlocal runs
            runs += add
            return _run("b", b[:, :runs]), _run("c", c[:, :runs])

        looks = plan(start, 30, 2 * 30 * (most - start), 3)
        step = until_decided(_run("b", b[:, :start]), _run("c", c[:, :start]), looks, more)
        found[step.comparison.verdict] = found.get(step.comparison.verdict, 0) + 1
    return found


@pytest.mark.full
def test_looking_three_times_keeps_both_error_rates() -> None:
    n = 400
    assert _adaptive(0.0, n, 20).get("REGRESSION", 0) / n <= allowed(0.05, n)
    assert _adaptive(0.02, n, 21).get("PASS", 0) / n <= allowed(0.07, n)


def test_looking_three_times_sees_a_large_drop() -> None:
    assert _adaptive(0.30, 12, 22) == {"REGRESSION": 12}
