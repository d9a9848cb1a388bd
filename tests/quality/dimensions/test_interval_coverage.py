"""Do the intervals over tasks hold what they say? Agents with a known chance at every task of a known population."""

from __future__ import annotations

import numpy as np
import pytest

from seatrial.dimensions.aggregate import mean_over_tasks
from seatrial.dimensions.reproducibility import consistency_of
from seatrial.records import TaskValue

RUNS = 600
MONTE_CARLO = 2 * (0.95 * 0.05 / RUNS) ** 0.5


def covered(a: float, b: float, tasks: int, k: int, seed: int) -> tuple[float, float]:
    """Shares of simulations in which the interval of D1, and of D3, holds the population's value. Chances of tasks are
    Beta(a, b): the mean of p is a/(a + b), that of 4p(1 - p) is 4ab/((a + b)(a + b + 1))."""
    true1 = a / (a + b)
    true3 = 1 - 4 * a * b / ((a + b) * (a + b + 1))
    rng = np.random.default_rng(seed)
    hit1 = hit3 = 0
    for _ in range(RUNS):
        outcomes = (rng.random((tasks, k)) < rng.beta(a, b, tasks)[:, None]).astype(float)
        d1 = {str(t): TaskValue(value=float(ys.mean()), n=k) for t, ys in enumerate(outcomes)}
        d3 = {str(t): consistency_of(ys.tolist()) for t, ys in enumerate(outcomes)}
        one, _ = mean_over_tasks(d1, 0.95, "")
        three, _ = mean_over_tasks(d3, 0.95, "")
        assert one is not None
        assert three is not None
        assert one.low is not None
        assert one.high is not None
        assert three.low is not None
        assert three.high is not None
        hit1 += one.low <= true1 <= one.high
        hit3 += three.low <= true3 <= three.high
    return hit1 / RUNS, hit3 / RUNS


@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (2.0, 1.0)])
def test_intervals_of_completion_and_reproducibility_cover(a: float, b: float) -> None:
    d1, d3 = covered(a, b, tasks=30, k=4, seed=3)
    assert d1 >= 0.95 - 0.015 - MONTE_CARLO
    assert d3 >= 0.95 - 0.015 - MONTE_CARLO


@pytest.mark.full
@pytest.mark.parametrize(("a", "b"), [(0.3, 0.3), (1.0, 1.0), (4.0, 1.0), (8.0, 0.5)])
@pytest.mark.parametrize("tasks", [10, 50])
@pytest.mark.parametrize("k", [4, 10])
def test_intervals_cover_widely(a: float, b: float, tasks: int, k: int) -> None:
    """Near the ceiling and with few tasks the t interval falls a little short: at least 90%."""
    d1, d3 = covered(a, b, tasks, k, seed=5)
    assert min(d1, d3) >= 0.90 - MONTE_CARLO


def test_plugging_in_is_biased_and_ours_is_not() -> None:
    """Ten tasks of p = .7, four runs each, many times: 1 - 4p(1 - p) is .16."""
    rng = np.random.default_rng(11)
    outcomes = (rng.random((20_000, 4)) < 0.7).astype(float)
    ours = np.mean([consistency_of(ys.tolist()).value or 0.0 for ys in outcomes])
    p = outcomes.mean(axis=1)
    plugged = np.mean(1 - 4 * p * (1 - p))
    assert ours == pytest.approx(0.16, abs=0.02)
    assert plugged == pytest.approx(0.16 + 4 * 0.21 / 4, abs=0.02)
