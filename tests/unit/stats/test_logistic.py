from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss as sklearn_log_loss
from sklearn.metrics import roc_auc_score

from seatrial.errors import EvidenceError, UsageError
from seatrial.stats import auc, fit_logistic, log_loss


def data(seed: int = 0, n: int = 300) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = np.log1p(rng.poisson([2.0, 0.7, 1.0, 1.5, 0.4], (n, 5)))
    eta = x @ [0.8, 0.9, -1.2, -0.6, -0.1] - 0.2
    return x, (rng.random(n) < 1 / (1 + np.exp(-eta))).astype(float)


@pytest.mark.parametrize("penalty", [0.1, 1.0, 10.0])
def test_free_signs_are_scikit_learn(penalty: float) -> None:
    x, y = data()
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    theirs = LogisticRegression(C=1 / penalty, tol=1e-10, max_iter=5000).fit(z, y)
    ours = fit_logistic(x, y, penalty=penalty)
    assert ours.converged
    assert ours.standardised == pytest.approx(theirs.coef_[0], abs=1e-5)
    assert ours.probability(x) == pytest.approx(theirs.predict_proba(z)[:, 1], abs=1e-5)


def test_sample_weights_repeat_rows() -> None:
    x, y = data(n=120)
    times = np.random.default_rng(0).integers(1, 4, 120)
    repeated = fit_logistic(np.repeat(x, times, axis=0), np.repeat(y, times))
    weighted = fit_logistic(x, y, sample_weight=times)
    assert weighted.weights == pytest.approx(repeated.weights, abs=1e-6)


def test_signs_bind_and_the_rest_is_optimal() -> None:
    """Against a general constrained solver, from another start."""
    x, y = data(seed=4, n=60)
    signs = [1, 1, 1, -1, -1]
    ours = fit_logistic(x, y, signs=signs)
    z = (x - x.mean(axis=0)) / x.std(axis=0)

    def loss(v: np.ndarray) -> float:
        eta = v[0] + z @ v[1:]
        return float((np.logaddexp(0, eta) - y * eta).sum() + 0.5 * (v[1:] ** 2).sum())

    theirs = optimize.minimize(
        loss, np.full(6, 0.1), method="SLSQP", options={"ftol": 1e-12, "maxiter": 1000},
        bounds=[(None, None)] + [(0, None) if s > 0 else (None, 0) for s in signs],
    )  # fmt: skip
    assert ours.objective == pytest.approx(theirs.fun, abs=1e-5)
    assert ours.standardised == pytest.approx(theirs.x[1:], abs=2e-3)
    assert (ours.weights * signs >= 0).all()
    assert 0.0 in ours.weights.tolist()


def test_order_binds_on_weights_per_unit() -> None:
    rng = np.random.default_rng(2)
    x = np.log1p(rng.poisson([3.0, 0.3], (400, 2)))
    y = (rng.random(400) < 1 / (1 + np.exp(-(2.0 * x[:, 0] + 0.2 * x[:, 1] - 2.5)))).astype(float)
    free = fit_logistic(x, y, signs=[1, 1])
    ordered = fit_logistic(x, y, signs=[1, 1], order=[(1, 0)])
    assert free.weights[1] < free.weights[0]
    assert ordered.weights[1] >= ordered.weights[0] - 1e-12
    # The constraint binds, so both become equal: one weight on the sum of the columns.
    assert ordered.weights[1] == pytest.approx(ordered.weights[0], rel=1e-6)
    assert ordered.objective > free.objective


def test_order_with_negative_signs_and_chains() -> None:
    x, y = data()
    fit = fit_logistic(x, y, signs=[1, 1, -1, -1, -1], order=[(2, 3), (4, 2)])
    assert fit.weights[4] <= fit.weights[2] + 1e-9
    assert fit.weights[2] <= fit.weights[3] + 1e-9
    assert fit.weights[3] <= 0


def test_constant_columns_get_no_weight() -> None:
    x, y = data()
    fit = fit_logistic(np.column_stack([x, np.full(y.size, 3.3)]), y)
    assert fit.weights[-1] == 0.0
    assert fit.weights[:-1] == pytest.approx(fit_logistic(x, y).weights, abs=1e-6)


def test_what_cannot_be_fitted_is_refused() -> None:
    x, y = data()
    with pytest.raises(EvidenceError, match="both outcomes"):
        fit_logistic(x, np.ones(y.size))
    for kwargs in (
        {"signs": [1, 1]}, {"signs": [2, 0, 0, 0, 0]}, {"order": [(0, 1)]}, {"penalty": -1.0},
        {"signs": [1, 1, 1, 1, 1], "order": [(0, 1), (1, 0)]}, {"sample_weight": [1.0]},
    ):  # fmt: skip
        with pytest.raises(UsageError):
            fit_logistic(x, y, **kwargs)  # type: ignore[arg-type]


def test_auc_and_log_loss_are_scikit_learns() -> None:
    rng = np.random.default_rng(0)
    y = (rng.random(200) < 0.3).astype(float)
    score = np.round(rng.random(200) * 0.5 + 0.3 * y, 1)
    assert auc(score, y) == pytest.approx(roc_auc_score(y, score), abs=1e-12)
    assert log_loss(score, y) == pytest.approx(sklearn_log_loss(y, np.clip(score, 1e-12, 1 - 1e-12)), abs=1e-9)
    assert auc([0.1, 0.2], [1, 1]) is None
    assert log_loss([], []) is None
    assert log_loss([1.0, 0.0], [1.0, 0.0]) == pytest.approx(0.0, abs=1e-9)
