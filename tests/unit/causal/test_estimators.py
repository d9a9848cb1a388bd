"""Lin, AIPW, the additive model and overlap weights against independent computations."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
import statsmodels.api as sm
from sklearn.linear_model import LogisticRegression, Ridge

from seatrial.causal import additive, aipw, lin, prepare
from seatrial.causal.lin import design_matrix


def _sample(n: int = 400, g: int = 40, k: int = 3, seed: int = 0, s: int = 3):
    rng = np.random.default_rng(seed)
    user, stratum = rng.integers(0, g, n), rng.integers(0, s, n)
    x = rng.normal(size=(n, 2))
    lean = np.exp(0.5 * x[:, :1] * np.linspace(-1, 1, k) + 0.4 * stratum[:, None] * np.linspace(1, -1, k))
    chance = lean / lean.sum(axis=1, keepdims=True)
    arm = (rng.random(n)[:, None] > chance.cumsum(axis=1)).sum(axis=1)
    y = 0.3 * arm + 0.5 * x[:, 0] + 0.2 * stratum + rng.normal(0, 0.4, g)[user] + rng.normal(size=n)
    frame = pl.DataFrame({"session": [f"s{i:04d}" for i in range(n)], "arm": [f"m{a}" for a in arm], "_y": y,
                          "user": [f"u{u:03d}" for u in user]})  # fmt: skip
    return prepare.sample(prepare.complete(frame)), stratum, x


def test_lin_is_ols_with_full_interactions() -> None:
    """statsmodels: arm dummies, centred covariates, all interactions; coefficients of the dummies are the means."""
    sample, stratum, x = _sample()
    z = design_matrix(stratum, x)[:, 1:]
    z = z - z.mean(axis=0)
    dummies = np.eye(3)[sample.arm]
    columns = np.column_stack([dummies] + [dummies[:, [k]] * z for k in range(3)])
    fit = sm.OLS(sample.y, columns).fit(
        cov_type="cluster", cov_kwds={"groups": sample.cluster, "use_correction": False}
    )
    ours = lin.moments(sample, stratum, x)
    assert ours.mean == pytest.approx(fit.params[:3])
    # CR1 has the term for estimated covariate means as well, so it is never far below the fixed-mean error.
    fixed = np.sqrt(np.diag(fit.cov_params())[:3])
    assert np.sqrt(np.diag(ours.cr1)) == pytest.approx(fixed, rel=0.35)


def test_lin_jackknife_is_refitting() -> None:
    sample, stratum, x = _sample(n=150, g=12)
    ours = lin.moments(sample, stratum, x)
    again = []
    for g in range(sample.n_clusters):
        keep = sample.cluster != g
        z = design_matrix(stratum[keep], x[keep])
        means = []
        for k in range(3):
            rows = sample.arm[keep] == k
            beta = sm.OLS(sample.y[keep][rows], z[rows]).fit().params
            means.append(z.mean(axis=0) @ beta)
        again.append(means)
    shift = np.array(again) - np.mean(again, axis=0)
    size = sample.n_clusters
    assert ours.cr3 == pytest.approx((size - 1) / size * shift.T @ shift)


def test_propensity_is_scikit_learns_ridge_logistic() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(1500, 3))
    score = np.exp(x @ rng.normal(size=(3, 4)))
    arm = (rng.random(1500)[:, None] > (score / score.sum(axis=1, keepdims=True)).cumsum(axis=1)).sum(axis=1)
    ours = aipw.propensity(np.column_stack([np.ones(1500), x]), np.eye(4)[arm], 1.0)
    theirs = LogisticRegression(C=1.0, tol=1e-10, max_iter=5000).fit(x, arm).predict_proba(x)
    assert ours == pytest.approx(theirs, abs=1e-5)


def test_aipw_scores_are_those_of_an_independent_cross_fit() -> None:
    """The same folds, scikit-learn's ridge and logistic regression, the textbook score."""
    sample, stratum, x = _sample(n=300, g=30)
    x = np.round(x, 0)  # few values: no binning between the two computations
    scores, _ = aipw.scores(sample, stratum, x, seed=7)
    z = design_matrix(stratum, x)[:, 1:]
    fold_of = np.random.default_rng(7).permutation(sample.n_clusters) % aipw.FOLDS
    fold = fold_of[sample.cluster]
    expect = np.zeros((sample.n, 3))
    for f in range(aipw.FOLDS):
        out, held = fold != f, fold == f
        chance = LogisticRegression(C=1.0, tol=1e-10, max_iter=5000).fit(z[out], sample.arm[out]).predict_proba(z[held])
        chance = np.maximum(chance, aipw.FLOOR)
        for k in range(3):
            rows = out & (sample.arm == k)
            fitted = Ridge(alpha=1.0, tol=1e-12).fit(z[rows], sample.y[rows]).predict(z[held])
            own = sample.arm[held] == k
            expect[held, k] = fitted + np.where(own, (sample.y[held] - fitted) / chance[:, k], 0.0)
    assert scores == pytest.approx(expect, abs=1e-4)


def test_aipw_removes_confounding_that_strata_do_not_hold() -> None:
    """The arm leans on x, x moves y: plain means are off by a third of a unit, AIPW by a few hundredths."""
    sample, stratum, x = _sample(n=6000, g=600, seed=3)
    found, _ = aipw.moments(sample, stratum, x)
    plain = np.array([sample.y[sample.arm == k].mean() for k in range(3)])
    truth = np.array([-0.3, 0.0, 0.3])
    assert np.abs(found.mean - found.mean.mean() - truth).max() < 0.07
    assert np.abs(plain - plain.mean() - truth).max() > 0.12


def test_additive_model_is_ols_on_dummies_and_its_jackknife_refits() -> None:
    sample, stratum, _ = _sample(n=120, g=15)
    # Arm 2 never meets arm 0 in one stratum: 0-1 in stratum 0 and 1, 1-2 in stratum 2.
    keep = ((stratum == 2) & (sample.arm != 0)) | ((stratum != 2) & (sample.arm != 2))
    sample, stratum = sample.take(keep), stratum[keep]

    def means(rows: np.ndarray) -> np.ndarray:
        d = np.column_stack([np.eye(3)[sample.arm[rows]], np.eye(3)[stratum[rows]][:, 1:]])
        fit = sm.OLS(sample.y[rows], d).fit().params
        share = np.bincount(stratum[rows], minlength=3) / rows.sum()
        return fit[:3] + share[1:] @ fit[3:]

    found = additive.moments(sample, stratum)
    assert found is not None
    assert found.mean == pytest.approx(means(np.ones(sample.n, dtype=bool)))
    again = np.array([means(sample.cluster != g) for g in range(sample.n_clusters)])
    shift = again - again.mean(axis=0)
    size = sample.n_clusters
    assert found.cr3 == pytest.approx((size - 1) / size * shift.T @ shift)


def test_additive_model_refuses_arms_that_nothing_links() -> None:
    sample, stratum, _ = _sample(n=120, g=15)
    keep = (stratum == 2) == (sample.arm == 2)
    assert additive.moments(sample.take(keep), stratum[keep]) is None
