"""Weights fitted on labelled sessions: signs, orders, worth out of fold, and refusals."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from seatrial.errors import EvidenceError, UsageError
from seatrial.records import Weights
from seatrial.scoring import fitting

TRUE = np.array([1.0, 2.0, -2.5, -1.0, -0.2])


def _sessions(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, list[str]]:
    rng = np.random.default_rng(seed)
    counts = rng.poisson([1.0, 0.6, 0.4, 1.2, 2.0], (n, 5)).astype(float)
    odds = np.log1p(counts) @ TRUE + 0.3
    labels = (rng.random(n) < 1 / (1 + np.exp(-odds))).astype(float)
    return counts, labels, [f"u{i % (n // 6)}" for i in range(n)]


def test_weights_are_found_and_beat_unit_weights_out_of_fold() -> None:
    counts, labels, users = _sessions(1_200)
    found = fitting.fit(counts, labels, users, draws=60, fingerprint="f")
    assert found.used
    assert found.weights.fitted
    assert found.weights.fingerprint == "f"
    truth = np.abs(TRUE) * 5 / np.abs(TRUE).sum()
    for one, wanted in zip(found.intervals, truth, strict=True):
        assert one.low is not None
        assert one.high is not None
        assert one.low - 0.3 <= wanted <= one.high + 0.3
    assert found.auc is not None
    assert found.unit_auc is not None
    assert found.auc > found.unit_auc
    assert found.log_loss is not None
    assert found.unit_log_loss is not None
    assert found.log_loss < found.unit_log_loss
    assert len(found.scores) == 1_200


def test_the_convex_fit_is_scikit_learns_where_no_sign_binds() -> None:
    counts, labels, _ = _sessions(900, seed=2)
    x = np.log1p(counts)
    beta, intercept = fitting._shape(x, labels, np.ones(900), 1.0, fitting._Plan(False, "logistic", 0))
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    oracle = LogisticRegression(C=1.0, tol=1e-8, max_iter=2_000).fit(z, labels)
    assert beta * x.std(axis=0) == pytest.approx(oracle.coef_[0], abs=1e-3)
    assert intercept == pytest.approx(oracle.intercept_[0] - beta @ x.mean(axis=0), abs=1e-3)


@pytest.mark.parametrize("method", ["grid", "random", "bayesian"])
def test_searches_come_near_the_convex_fit_and_never_beat_it_in_sample(method: fitting.Method) -> None:
    counts, labels, _ = _sessions(600, seed=1)
    x, w = np.log1p(counts), np.ones(600)

    def loss(name: fitting.Method) -> float:
        p = fitting._probability(x, *fitting._shape(x, labels, w, 1e-4, fitting._Plan(False, name, 0)))
        return float(-(labels * np.log(p) + (1 - labels) * np.log1p(-p)).mean())

    assert loss("logistic") <= loss(method) + 1e-3
    assert loss(method) < loss("logistic") + 0.02


def test_an_imposed_order_holds() -> None:
    counts, labels, users = _sessions(400, seed=5)
    swapped = counts[:, [1, 0, 3, 2, 4]]
    found = {w.kind: w.value for w in fitting.fit(swapped, labels, users, ordered=True, draws=20).intervals}
    assert found["praise"] >= found["confirmation"] - 1e-9
    assert found["complaint"] >= found["correction"] - 1e-9


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_bayesian_search_needs_an_eighth_of_the_evaluations_of_the_random_one(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts, labels, _ = _sessions(400, seed=seed)
    x, w, losses, seen = np.log1p(counts), np.ones(400), fitting._losses, []

    def counted(x: np.ndarray, y: np.ndarray, w: np.ndarray, directions: np.ndarray) -> np.ndarray:
        found = losses(x, y, w, directions)
        seen.extend(found.tolist())
        return found

    monkeypatch.setattr(fitting, "_losses", counted)
    spent, least = {}, {}
    for method in ("random", "bayesian"):
        seen.clear()
        fitting._search(x, labels, w, fitting._Plan(False, method, 0))
        spent[method], least[method] = len(seen), min(seen)
    assert spent["bayesian"] < spent["random"] / 8
    assert least["bayesian"] < least["random"] + 400 * fitting._ENOUGH


def test_a_bayesian_search_keeps_the_order_and_is_scored_out_of_fold() -> None:
    counts, labels, users = _sessions(240, seed=5)
    swapped = counts[:, [1, 0, 3, 2, 4]]
    found = fitting.fit(swapped, labels, users, ordered=True, draws=4, method="bayesian")
    value = {w.kind: w.value for w in found.intervals}
    assert value["praise"] >= value["confirmation"] - 1e-9
    assert value["complaint"] >= value["correction"] - 1e-9
    assert found.method == "bayesian"
    assert found.penalty is None
    assert found.auc is not None
    assert found.auc > 0.6
    assert len(found.scores) == 240


def test_few_labels_keep_unit_weights_and_say_so() -> None:
    counts, labels, users = _sessions(60)
    found = fitting.fit(counts, labels, users, draws=20)
    assert not found.used
    assert found.weights.name == "unit"
    assert not found.weights.fitted
    assert "60 labels" in found.why[0]


def test_what_cannot_be_fitted_is_refused() -> None:
    counts, labels, users = _sessions(120)
    with pytest.raises(EvidenceError):
        fitting.fit(counts, np.ones(120), users)
    with pytest.raises(EvidenceError):
        fitting.fit(counts, labels, ["one"] * 120)
    with pytest.raises(UsageError):
        fitting.fit(counts[:, :3], labels, users)
    with pytest.raises(UsageError):
        fitting.check(Weights(name="fitted", fitted=True, fingerprint="old"), "new")


def test_the_same_seed_gives_the_same_weights() -> None:
    counts, labels, users = _sessions(150)
    assert fitting.fit(counts, labels, users, draws=20) == fitting.fit(counts, labels, users, draws=20)


def test_a_session_is_never_scored_by_its_own_label() -> None:
    counts, labels, users = _sessions(600, seed=3)
    names = [f"s{i}" for i in range(600)]
    found = fitting.fit(counts, labels, users, sessions=names, draws=5)
    mine = fitting.success(found, counts, names)
    assert mine == pytest.approx([found.scores[n] for n in names])
    strangers = fitting.success(found, counts, [f"t{i}" for i in range(600)])
    whole = 1 / (1 + np.exp(-(found.intercept + np.log1p(counts) @ np.array(found.coefficients))))
    assert strangers == pytest.approx(whole)
    # Another label of the first user's sessions moves the whole fit, and not that user's own scores by much.
    turned = labels.copy()
    his = np.array(users) == users[0]
    turned[his] = 1 - turned[his]
    again = fitting.success(fitting.fit(counts, turned, users, sessions=names, draws=5), counts, names)
    assert again[his] == pytest.approx(mine[his], abs=0.02)


def test_unit_weights_make_no_probability() -> None:
    counts, labels, users = _sessions(60)
    with pytest.raises(EvidenceError, match="labels"):
        fitting.success(fitting.fit(counts, labels, users, draws=5), counts, users)
