"""CIR's fit against scikit-learn, its threshold search against brute force, its rule at the edges."""

from __future__ import annotations

import math

import numpy as np
import pytest

from seatrial.errors import EvidenceError
from seatrial.recovery import simulate
from seatrial.recovery.cir import acts, fit_cir, fit_models, logistic, out_of_fold, summary, thresholds
from seatrial.recovery.episodes import design, first_crossing, folds_by_task, play
from seatrial.stats import fit_logistic


@pytest.fixture(scope="module")
def episodes() -> object:
    return simulate.episodes("three models, independent", 40, seed=3)


def test_models_are_scikit_learns_with_c_one_tenth() -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    e = simulate.episodes("three models, independent", 60, seed=1)
    x = design(e)
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    erroneous = np.repeat(~e.clean, 3).astype(float)
    for mine, y in zip(fit_models(e), (erroneous, e.y0.ravel(), e.y1.ravel()), strict=True):
        peer = linear_model.LogisticRegression(C=0.1, tol=1e-10, max_iter=10_000).fit(z, y)
        assert mine.probability(x) == pytest.approx(peer.predict_proba(z)[:, 1], abs=1e-6)
        assert mine.weights * x.std(axis=0) == pytest.approx(peer.coef_[0], abs=1e-5)


def test_shares_as_outcomes_agree_with_the_general_fit() -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=(200, 3))
    y = rng.integers(0, 6, 200) / 5
    mine, other = logistic(x, y, 0.1), fit_logistic(x, y, penalty=10.0)
    assert mine.weights == pytest.approx(other.weights, abs=1e-6)
    assert mine.intercept == pytest.approx(other.intercept, abs=1e-6)


def test_constant_columns_and_constant_outcomes() -> None:
    x = np.column_stack([np.ones(20), np.arange(20.0)])
    fit = logistic(x, (np.arange(20) > 9).astype(float))
    assert fit.weights[0] == 0.0
    always = logistic(x, np.ones(20))
    assert always.probability(x) == pytest.approx(20.5 / 21)
    with pytest.raises(EvidenceError):
        logistic(x[:0], np.zeros(0))


@pytest.mark.parametrize("limit", [0.0, 0.03, 0.2])
def test_threshold_search_is_exhaustive(limit: float) -> None:
    e = simulate.episodes("three models, independent", 12, seed=5)
    p = out_of_fold(e, 3, 0)
    found = thresholds(e, p, limit=limit, lam=1.0)
    ok = acts(p.err, p.p0, p.p1, t_err=-math.inf, t_fail=-math.inf, lam=1.0)
    best: tuple[float, float] = (0.0, 0.0)
    for t_err in np.unique(p.err[ok]):
        for t_fail in np.unique((1 - p.p0)[ok]):
            made = play(e, first_crossing(acts(p.err, p.p0, p.p1, t_err=t_err, t_fail=t_fail, lam=1.0)))
            gain, harm, rate = summary(e, made)
            if harm <= limit + 1e-12:
                best = max(best, (round(gain, 12), -rate))
    mine = summary(e, play(e, first_crossing(acts(p.err, p.p0, p.p1, t_err=found[0], t_fail=found[1], lam=1.0))))
    assert (round(mine[0], 12), -mine[2]) == pytest.approx(best)


def test_acts_for_nothing_where_nothing_can_be_saved() -> None:
    assert bool(acts(1.0, 0.0, 0.0, t_err=0.5, t_fail=0.5))
    # Two thirds is exactly twice the odds of one half.
    assert bool(acts(1.0, 0.5, 2 / 3, t_err=0.0, t_fail=0.0))
    assert not bool(acts(1.0, 0.5, 2 / 3 - 1e-9, t_err=0.0, t_fail=0.0))


def test_fit_repeats_itself_and_acts_at_most_once() -> None:
    e = simulate.episodes("three models, coupled", 40, seed=1)
    one, two = fit_cir(e, seed=4), fit_cir(e, seed=4)
    assert (one.t_err, one.t_fail, one.gain) == (two.t_err, two.t_fail, two.gain)
    at = one.at(e)
    assert set(at.tolist()) <= {-1, 0, 1, 2}
    assert one.harm <= 0.02 + 1e-12
    assert one.gain > 0


def test_folds_keep_tasks_whole() -> None:
    e = simulate.episodes("linear effect", 23, seed=1)
    fold = folds_by_task(e.task, 5, 0)
    for task in e.tasks():
        assert len(set(fold[e.task == task].tolist())) == 1
    assert np.bincount(fold).min() >= 4 * 4
    with pytest.raises(EvidenceError):
        folds_by_task(e.task[:8], 5, 0)


def test_needs_both_kinds_of_observation() -> None:
    e = simulate.episodes("linear effect", 10, seed=1)
    with pytest.raises(EvidenceError, match="clean"):
        fit_cir(e.where(e.clean))
    with pytest.raises(EvidenceError, match="altered"):
        fit_cir(e.where(~e.clean))
