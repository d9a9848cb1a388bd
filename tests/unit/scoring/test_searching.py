"""The searches' parts against scikit-learn and quadrature, and what they find where the answer is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

from seatrial.scoring import searching

HIDDEN = np.array([1.0, 0.6, -1.1, 0.4, -0.9])


def _all(shapes: np.ndarray) -> np.ndarray:
    return shapes


def _bowl(shapes: np.ndarray) -> np.ndarray:
    """Smooth, flat far out, rippled, and least (0) at weights in proportion to exp(HIDDEN)."""
    logs = np.log(shapes)
    d = logs - logs.mean(axis=1, keepdims=True) - HIDDEN
    far = 1 - np.exp(-0.15 * (d * d).sum(axis=1))
    return np.asarray(far + 0.05 * (1 - np.cos(2 * d[:, 0])) + 0.02 * (d[:, 3] - d[:, 4]) ** 2)


class _Counted:
    """A loss that remembers how many shapes it valued, and the least value."""

    def __init__(self) -> None:
        self.spent, self.least = 0, np.inf

    def __call__(self, shapes: np.ndarray) -> np.ndarray:
        found = _bowl(shapes)
        self.spent += len(found)
        self.least = min(self.least, float(found.min()))
        return found


@pytest.mark.parametrize("length", [0.5, 2.0, 8.0])
def test_the_process_is_scikit_learns(length: float) -> None:
    rng = np.random.default_rng(7)
    points, at = rng.uniform(-3, 3, (30, 5)), rng.uniform(-3, 3, (40, 5))
    values = np.sin(points[:, 0]) + 0.3 * points[:, 1] - np.cos(points[:, 2] * points[:, 3] / 3)
    correlation = Matern(length, "fixed", nu=2.5)
    variance = float(values @ np.linalg.solve(correlation(points) + searching.JITTER * np.eye(30), values)) / 30

    def oracle(size: float) -> GaussianProcessRegressor:
        kernel = ConstantKernel(size, "fixed") * correlation
        return GaussianProcessRegressor(kernel, alpha=size * searching.JITTER, optimizer=None).fit(points, values)

    mean, deviation = searching.posterior(points, values, at, length)
    wanted, spread = oracle(variance).predict(at, return_std=True)
    assert mean == pytest.approx(wanted, abs=1e-6)
    assert deviation == pytest.approx(spread, abs=1e-6)
    likelihood = searching.likelihood(points, values, length)
    assert likelihood == pytest.approx(oracle(variance).log_marginal_likelihood_value_, abs=1e-6)
    for other in (0.8, 1.25):
        assert oracle(variance * other).log_marginal_likelihood_value_ < likelihood


@pytest.mark.parametrize(("mean", "deviation"), [(0.3, 0.5), (-0.4, 0.2), (2.0, 0.7), (0.0, 1.5)])
def test_expected_improvement_is_the_integral(mean: float, deviation: float) -> None:
    best = 0.1
    wanted, _ = integrate.quad(
        lambda y: (best - y) * stats.norm.pdf(y, mean, deviation), mean - 12 * deviation, best, epsabs=1e-13
    )
    found = searching.expected_improvement(np.array([mean]), np.array([deviation]), best)
    assert found == pytest.approx([wanted], abs=1e-9)


def test_expected_improvement_without_doubt_is_the_improvement() -> None:
    found = searching.expected_improvement(np.array([0.2, 0.9]), np.zeros(2), 0.5)
    assert found == pytest.approx([0.3, 0.0])


@pytest.mark.parametrize("seed", range(5))
def test_a_model_finds_better_than_chance_for_the_same_number_of_evaluations(seed: int) -> None:
    model, chance = _Counted(), _Counted()
    best = searching.bayesian(model, 5, seed=seed, allowed=_all, budget=60)
    searching.narrowing(chance, 5, seed=seed, allowed=_all, rounds=4, per_round=15, keep=2)
    plain = float(_bowl(np.exp(np.random.default_rng(seed).normal(size=(60, 5)))).min())
    assert model.spent <= chance.spent == 60
    assert _bowl(best[None])[0] == pytest.approx(model.least)
    assert model.least < 0.1 * min(chance.least, plain)
    logs = np.log(best)
    assert logs - logs.mean() == pytest.approx(HIDDEN, abs=0.1)


def test_a_search_ends_when_nothing_more_is_promised_and_never_beyond_its_budget() -> None:
    patient, hasty = _Counted(), _Counted()
    searching.bayesian(patient, 5, seed=1, allowed=_all, budget=70)
    searching.bayesian(hasty, 5, seed=1, allowed=_all, budget=70, tolerance=0.01)
    assert hasty.spent < patient.spent <= 70
    assert hasty.least < patient.least + 0.05
    for budget in (1, 2, 5):
        short = _Counted()
        searching.bayesian(short, 5, seed=1, allowed=_all, budget=budget)
        assert short.spent == budget


def test_the_same_seed_walks_the_same_way_and_another_does_not() -> None:
    def found(seed: int) -> list[float]:
        return list(searching.bayesian(_bowl, 5, seed=seed, allowed=_all, budget=40).tolist())

    assert found(3) == found(3)
    assert found(3) != found(4)


def test_what_is_not_allowed_is_never_valued() -> None:
    def allowed(shapes: np.ndarray) -> np.ndarray:
        return np.asarray(shapes[shapes[:, 1] >= shapes[:, 0]])

    def loss(shapes: np.ndarray) -> np.ndarray:
        assert (shapes[:, 1] >= shapes[:, 0] * (1 - 1e-12)).all()
        return _bowl(shapes)

    best = searching.bayesian(loss, 5, seed=0, allowed=allowed, budget=60)
    assert best[1] == pytest.approx(best[0], rel=0.2)


def test_a_loss_that_never_changes_gives_equal_weights() -> None:
    best = searching.bayesian(lambda shapes: np.zeros(len(shapes)), 5, seed=0, allowed=_all)
    assert best == pytest.approx(np.ones(5))
