"""Where probabilities vary inside pooled strata: estimate, printed null and p-value are one statistic."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from seatrial.causal import cells, rank, reweighted
from seatrial.causal.uncertainty import contrasts, net_coefficients

HALF = np.array([0.5, 0.5])
CHANCE = np.array([[0.8, 0.2], [0.25, 0.75]])


def uneven(n: int = 60, seed: int = 0, effect: float = 0.0) -> pl.DataFrame:
    """Easy tasks mostly go to a and mostly succeed, hard ones to b; too few of each for strata of their own."""
    rng = np.random.default_rng(seed)
    hard = (np.arange(n) % 4 == 0).astype(int)
    b = (rng.random(n) > CHANCE[hard, 0]).astype(int)
    y = (rng.random(n) < np.where(hard, 0.2, 0.8) + effect * b) * 1.0
    names = np.array(["a", "b"])
    return pl.DataFrame(
        {
            "session": [f"s{i:04d}" for i in range(n)],
            "arm": names[b],
            "difficulty": np.array(["easy", "hard"])[hard],
            "assigned_stratum": np.array(["easy", "hard"])[hard],
            "unit": [f"s{i:04d}" for i in range(n)],
            "outcome": y,
            "probability": CHANCE[hard, b],
            "probabilities_json": [json.dumps(dict(zip(("a", "b"), CHANCE[h].tolist(), strict=True))) for h in hard],
        }
    )


def test_observed_effect_null_and_p_are_one_statistic() -> None:
    found = rank(uneven(), outcome="outcome", draws=1999, by=())
    assert found.design.verdict == "randomised"
    assert found.estimator == "Hajek inside strata, CR3"
    assert found.null is not None
    assert not found.null.centred
    for model in found.models:
        assert model.net_improvement is not None
        assert found.null.observed[model.model] == pytest.approx(model.net_improvement.value, abs=1e-12)


def test_one_labelling_is_judged_like_the_estimate_itself() -> None:
    """Effects and CR1 errors against the estimator's own moments, with users of several sessions and two strata."""
    rng = np.random.default_rng(3)
    n = 240
    stratum, arm, cluster = rng.integers(0, 2, n), rng.integers(0, 2, n), np.sort(np.arange(n) % 40)
    chance = CHANCE[rng.integers(0, 2, n)]
    y = rng.random(n)
    rows = reweighted.Rows(stratum, y, cluster, chance, "share")
    test = reweighted.run(rows, arm, np.arange(n) % 2, None, HALF, draws=999, seed=0)
    built = cells.build(cluster, stratum, arm, y, weight=1 / chance[np.arange(n), arm], n_strata=2, n_arms=2)
    each = contrasts(cells.moments(built), net_coefficients(HALF))
    assert test.observed == pytest.approx(each.value)
    assert test.observed_se == pytest.approx(each.se_cr1)


def test_the_null_is_what_the_estimator_gives_under_the_design() -> None:
    """Draws against an independent loop that shuffles names inside recorded strata and recomputes 1/p means."""
    frame = uneven(80, seed=4)
    found = rank(frame, outcome="outcome", draws=4999, by=())
    rng = np.random.default_rng(9)
    hard = (frame["difficulty"] == "hard").to_numpy().astype(int)
    arm, y = (frame["arm"] == "b").to_numpy().astype(int), frame["outcome"].to_numpy()
    effects = []
    for _ in range(4000):
        drawn = arm.copy()
        for h in (0, 1):
            drawn[hard == h] = rng.permutation(drawn[hard == h])
        w = 1 / CHANCE[hard, drawn]
        mean = [np.average(y[drawn == k], weights=w[drawn == k]) for k in (0, 1)]
        effects.append((mean[1] - mean[0]) / 2)
    assert found.null is not None
    assert found.null.mean["b"] == pytest.approx(np.mean(effects), abs=0.005)
    for at in ("2.5", "97.5"):
        assert found.null.percentiles["b"][at] == pytest.approx(np.percentile(effects, float(at)), abs=0.02)


def test_p_agrees_with_the_printed_null() -> None:
    clear = rank(uneven(200, seed=1, effect=-0.2), outcome="outcome", draws=999, by=())
    for found in (clear, rank(uneven(200, seed=2), outcome="outcome", draws=999, by=())):
        assert found.null is not None
        for model in found.models:
            span = found.null.percentiles[model.model]
            inside = span["2.5"] < found.null.observed[model.model] < span["97.5"]
            assert model.p_value is not None
            assert inside == (model.p_value > 0.05)


def _p_values(sims: int, n: int) -> np.ndarray:
    out = []
    for seed in range(sims):
        frame = uneven(n, seed=seed)
        hard = (frame["difficulty"] == "hard").to_numpy().astype(np.int64)
        arm = (frame["arm"] == "b").to_numpy().astype(np.int64)
        one = np.zeros(n, dtype=np.int64)
        rows = reweighted.Rows(one, frame["outcome"].to_numpy(), np.arange(n), CHANCE[hard], "share")
        out.append(reweighted.run(rows, arm, hard, None, HALF, draws=999, seed=seed).p_values[0])
    return np.array(out)


def _uniform_enough(p: np.ndarray) -> None:
    """At most alpha in [0, alpha], and near it: three binomial standard errors, discreteness allowed for below."""
    for alpha in (0.05, 0.1, 0.25, 0.5):
        slack = 3 * np.sqrt(alpha * (1 - alpha) / p.size)
        assert (p <= alpha).mean() <= alpha + slack
        assert (p <= alpha).mean() >= alpha - slack - 0.05


def test_p_is_uniform_when_no_model_matters() -> None:
    _uniform_enough(_p_values(40, 60))


@pytest.mark.full
def test_p_is_uniform_when_no_model_matters_at_length() -> None:
    _uniform_enough(_p_values(800, 60))


def test_whole_units_are_shuffled_where_units_were_drawn() -> None:
    rng = np.random.default_rng(0)
    unit = np.repeat(np.arange(40), 5)
    arm = rng.integers(0, 2, 40)[unit]
    block = (np.arange(40) % 2)[unit]
    rows = reweighted.Rows(np.zeros(200, dtype=np.int64), rng.random(40)[unit], unit, CHANCE[block], "share")
    whole = reweighted.run(rows, arm, block, unit, HALF, draws=999, seed=0)
    alone = reweighted.run(rows, arm, block, None, HALF, draws=999, seed=0)
    assert whole.effects.std() > 1.5 * alone.effects.std()


def test_unadjusted_is_the_plain_difference() -> None:
    frame = uneven(200, seed=1)
    found = rank(frame, outcome="outcome", draws=999, by=())
    means = dict(frame.group_by("arm").agg(pl.col("outcome").mean()).rows())
    for model in found.models:
        assert model.raw is not None
        assert model.net_improvement is not None
        assert model.raw.value == pytest.approx(means[model.model] - sum(means.values()) / 2)
        assert model.raw.low is not None
        assert abs(model.raw.value) > abs(model.net_improvement.value) + 0.05
        assert model.signals_only is None
