"""Rogan-Gladen rates in a ranking: by hand, clusters left out by brute force, coverage, bias of common rates."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from seatrial.causal import corrected, effect, prepare, rank
from seatrial.causal.effect import Analysis
from seatrial.causal.uncertainty import contrasts, net_coefficients
from seatrial.stats import rogan_gladen
from seatrial.stats.quantiles import two_sided_t


def _flattered(n: int, labelled: float, seed: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Model b fails more (.45 against .60) but its users thank it all the same: the signal ranks it first."""
    rng = np.random.default_rng(seed)
    arm, user = rng.integers(0, 2, n), rng.integers(0, max(20, n // 20), n)
    truth = (rng.random(n) < np.where(arm == 0, 0.6, 0.45)) * 1.0
    signal = (rng.random(n) < np.where(truth == 1, 0.8, np.where(arm == 1, 0.5, 0.2))) * 1.0
    frame = pl.DataFrame(
        {"session": [f"s{i:05d}" for i in range(n)], "arm": np.array(["a", "b"])[arm], "outcome": signal,
         "user": [f"u{u:03d}" for u in user]}
    )  # fmt: skip
    pi = np.where(arm == 0, labelled, labelled / 2)
    chosen = rng.random(n) < pi
    labels = pl.DataFrame(
        {"session": frame["session"].filter(pl.Series(chosen)), "label": truth[chosen], "probability": pi[chosen]}
    )
    return frame, labels


def _analysis(frame: pl.DataFrame) -> Analysis:
    sample = prepare.sample(prepare.complete(frame.rename({"outcome": "_y"})))
    analysis = effect.stratified(sample, observational=False)
    assert analysis is not None
    return analysis


def _by_hand(frame: pl.DataFrame, labels: pl.DataFrame) -> list[float]:
    out = []
    joined = frame.join(labels, on="session", how="left")
    for arm in "ab":
        mine = joined.filter(pl.col("arm") == arm)
        known = mine.filter(pl.col("label").is_not_null())
        w = (1 / known["probability"]).to_numpy()
        y, f = known["label"].to_numpy(), known["outcome"].to_numpy()
        q1, q0 = (w * y * f).sum() / (w * y).sum(), (w * (1 - y) * (1 - f)).sum() / (w * (1 - y)).sum()
        out.append((float(mine["outcome"].mean()) + q0 - 1) / (q0 + q1 - 1))  # type: ignore[arg-type]
    return out


def test_means_and_left_out_clusters_are_those_by_hand() -> None:
    frame, labels = _flattered(1500, 0.9, 1)
    found = corrected.estimate(_analysis(frame), labels)
    assert found.moments is not None
    assert found.moments.mean == pytest.approx(_by_hand(frame, labels))
    users = sorted(frame["user"].unique().to_list())
    again = np.array([_by_hand(frame.filter(pl.col("user") != u), labels) for u in users])
    shift = again - again.mean(axis=0)
    assert found.moments.cr3 == pytest.approx((len(users) - 1) / len(users) * shift.T @ shift)


def test_one_model_s_rate_is_that_of_the_formula_on_its_own() -> None:
    frame, labels = _flattered(3000, 0.5, 2)
    found = corrected.estimate(_analysis(frame), labels.with_columns(probability=pl.lit(1.0)))
    assert found.moments is not None
    p = float(frame.filter(pl.col("arm") == "a")["outcome"].mean())  # type: ignore[arg-type]
    alone = rogan_gladen(p, float(found.specificity[0]), float(found.sensitivity[0]))
    assert alone is not None
    assert alone.value == pytest.approx(found.moments.mean[0])


def test_the_corrected_contrast_covers_where_the_raw_one_and_common_rates_do_not() -> None:
    """60 runs; the truth is .075. Common error rates keep the bias of the model that is thanked for nothing."""
    c = net_coefficients(np.array([0.5, 0.5]))
    hits, raw, common = [], [], []
    for seed in range(60):
        frame, labels = _flattered(3000, 0.8, seed)
        analysis = _analysis(frame)
        found = corrected.estimate(analysis, labels)
        assert found.moments is not None
        each = contrasts(found.moments, c)
        hits.append(abs(each.value[0] - 0.075) <= two_sided_t(0.95, float(each.df[0])) * each.se[0])
        raw.append(contrasts(analysis.moments, c).value[0])
        q1, q0 = found.sensitivity.mean(), found.specificity.mean()
        common.append(raw[-1] / (q0 + q1 - 1))
    assert 0.88 <= np.mean(hits) <= 1.0
    assert abs(np.mean(raw) - 0.075) > 0.05
    assert abs(np.mean(common) - 0.075) > 0.05


def test_a_ranking_shows_it_beside_the_raw_one_and_wider() -> None:
    frame, labels = _flattered(4000, 0.25, 3)
    a = next(m for m in rank(frame, outcome="outcome", labels=labels, draws=999, by=()).models if m.model == "a")
    assert a.rogan_gladen is not None
    assert a.raw is not None
    assert a.rogan_gladen.low is not None
    assert a.rogan_gladen.high is not None
    assert a.rogan_gladen.low < 0.075 < a.rogan_gladen.high
    assert a.rogan_gladen.high - a.rogan_gladen.low > a.raw.high - a.raw.low  # type: ignore[operator]


@pytest.mark.parametrize(
    ("label", "said"),
    [
        (pl.lit(1.0), "too few labels to measure error rates"),
        (pl.lit(0.5), "labels are graded"),
        ((pl.int_range(pl.len()) % 2).cast(pl.Float64), "may say nothing about success"),
    ],
)
def test_what_cannot_be_corrected_says_why(label: pl.Expr, said: str) -> None:
    frame, labels = _flattered(1200, 0.9, 4)
    if said.startswith("may"):
        joined = labels.join(frame, on="session", maintain_order="left")
        labels = joined.select("session", "probability", label=1.0 - pl.col("outcome"))
    else:
        labels = labels.with_columns(label=label)
    found = corrected.estimate(_analysis(frame), labels)
    assert found.moments is None
    assert any(said in note for note in found.notes)
