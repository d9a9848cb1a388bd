"""Power before and after data; prediction-powered estimates."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import polars as pl
import pytest
from statsmodels.stats.power import NormalIndPower

from seatrial.causal import plan, rank
from seatrial.errors import SchemaError, UsageError

Table = Callable[..., pl.DataFrame]


def test_a_plan_for_two_models_is_the_textbook_sample_size() -> None:
    """tau is half the difference: seeing tau = 5 points is seeing a difference of 10 (statsmodels, sd .5)."""
    expect = NormalIndPower().solve_power(effect_size=0.10 / 0.5, alpha=0.05, power=0.8)
    assert plan(2).sessions_for["5"] == pytest.approx(expect, abs=1.5)


def test_a_plan_runs_both_ways() -> None:
    need = plan(4, rate=0.3).sessions_for["2"]
    assert need is not None
    back = plan(4, rate=0.3, sessions_per_model=need).mde["any model"]
    assert back == pytest.approx(0.02, rel=1e-3)


def test_sticky_users_cost_and_shared_users_save() -> None:
    plain = plan(3).sessions_for["5"]
    sticky = plan(3, sessions_per_cluster=10, icc=0.2, sticky=True).sessions_for["5"]
    shared = plan(3, sessions_per_cluster=10, icc=0.2).sessions_for["5"]
    assert sticky == pytest.approx(plain * 2.8, rel=0.01)
    assert shared == pytest.approx(plain * 0.8, rel=0.01)


BAD = ({"models": 1}, {"rate": 1.0}, {"icc": 2.0}, {"sessions_per_cluster": 0.5}, {"sessions_per_model": 0})


@pytest.mark.parametrize("bad", BAD)
def test_plans_that_mean_nothing(bad: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        plan(**({"models": 2} | bad))  # type: ignore[arg-type]


def test_observed_power_matches_its_standard_error(table: Table) -> None:
    found = rank(table(1200, users=400, assigned=True), outcome="outcome", draws=999, by=())
    assert found.power is not None
    for row in found.models:
        assert row.net_improvement is not None
        assert found.power.mde[row.model] == pytest.approx(2.81 * row.net_improvement.se, rel=0.02)
    # With the sessions that five points need, the same spread would see five points.
    n = found.power.sessions_for["5"]
    assert n is not None
    largest = max(v for v in found.power.mde.values() if v)
    assert n == pytest.approx(400 * (largest / 0.05) ** 2, rel=0.1)


def _sycophancy(n: int = 4000, labelled: float = 0.25, seed: int = 0) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Model b is worse but is praised more: the signal ranks it first."""
    rng = np.random.default_rng(seed)
    arm, user = rng.integers(0, 2, n), rng.integers(0, 200, n)
    truth = (rng.random(n) < np.where(arm == 0, 0.6, 0.45)) * 1.0
    signal = (rng.random(n) < np.where(truth == 1, 0.8, np.where(arm == 1, 0.65, 0.2))) * 1.0
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


def test_labels_turn_a_flattered_ranking_round() -> None:
    frame, labels = _sycophancy(seed=1)
    found = rank(frame, outcome="outcome", labels=labels, draws=999, by=())
    a = next(m for m in found.models if m.model == "a")
    assert a.signals_only is not None
    assert a.ppi is not None
    assert a.signals_only.value < 0 < a.ppi.value
    assert a.net_improvement == a.ppi
    assert a.ppi.low < 0.075 < a.ppi.high  # type: ignore[operator]
    assert found.models[0].model == "a"
    assert a.rank is not None
    assert a.rank.value == 1


def test_ppi_covers_and_never_does_worse_than_labels_alone() -> None:
    """60 runs of few clusters: cover at least 87% (93% less 2.6 errors of 60 runs x 1 contrast)."""
    from seatrial.causal import effect, ppi, prepare
    from seatrial.causal.uncertainty import contrasts, net_coefficients
    from seatrial.stats.quantiles import two_sided_t

    c = net_coefficients(np.array([0.5, 0.5]))
    hits, width, alone = [], [], []
    for seed in range(60):
        frame, labels = _sycophancy(1200, 0.3, seed)
        sample = prepare.sample(prepare.complete(frame.rename({"outcome": "_y"})))
        analysis = effect.stratified(sample, observational=False)
        assert analysis is not None
        found = ppi.estimate(analysis, labels, level=0.95)
        assert found.moments is not None
        each = contrasts(found.moments, c)
        hits.append(abs(each.value[0] - 0.075) <= two_sided_t(0.95, float(each.df[0])) * each.se[0])
        width.append(each.se[0])
        joined = labels.join(frame, on="session").sort("session")
        errors = [
            joined.filter(pl.col("arm") == arm)["label"].std() / math.sqrt(joined.filter(pl.col("arm") == arm).height)
            for arm in "ab"
        ]
        alone.append(0.5 * math.hypot(*errors))
    assert np.mean(hits) >= 0.87
    assert np.mean(width) < np.mean(alone) * 1.02


def test_ppi_jackknife_is_leaving_clusters_out_with_lambda_fixed(monkeypatch: pytest.MonkeyPatch) -> None:
    from seatrial.causal import effect, ppi, prepare

    frame, labels = _sycophancy(500, 0.5)
    rng = np.random.default_rng(1)
    frame = frame.with_columns(task_type=pl.Series(rng.choice(["x", "y"], 500)))
    frame = frame.with_columns(user=pl.col("user").str.slice(0, 3))
    sample = prepare.sample(prepare.complete(frame.rename({"outcome": "_y"})))
    analysis = effect.stratified(sample, observational=False)
    assert analysis is not None
    found = ppi.estimate(analysis, labels, level=0.95)
    assert found.moments is not None

    def means(part: pl.DataFrame) -> list[float]:
        out = []
        joined = part.join(labels, on="session", how="left")
        for k, arm in enumerate("ab"):
            f_all = top = bottom = 0.0
            for kind in "xy":
                stratum = joined.filter(pl.col("task_type") == kind)
                w = stratum.height / joined.height
                mine = stratum.filter(pl.col("arm") == arm)
                f_all += w * float(mine["outcome"].mean())  # type: ignore[arg-type]
                known = mine.filter(pl.col("label").is_not_null())
                v = w / mine.height / known["probability"]
                top += float((v * (known["label"] - found.lam[k] * known["outcome"])).sum())
                bottom += float(v.sum())
            out.append(found.lam[k] * f_all + top / bottom)
        return out

    assert found.moments.mean == pytest.approx(means(frame))
    users = sorted(frame["user"].unique().to_list())
    again = np.array([means(frame.filter(pl.col("user") != u)) for u in users])
    shift = again - again.mean(axis=0)
    assert found.moments.cr3 == pytest.approx((len(users) - 1) / len(users) * shift.T @ shift)


def test_too_few_labels_leave_the_raw_headline_and_say_so(table: Table) -> None:
    frame = table(600, assigned=True)
    labels = frame.select("session", label="outcome").head(60)
    found = rank(frame, outcome="outcome", labels=labels, draws=999, by=())
    assert all(m.ppi is m.signals_only is None and m.net_improvement is not None for m in found.models)
    assert any("fewer than 30 labels" in w for w in found.warnings)


def test_labels_that_cannot_be_used_are_refused(table: Table) -> None:
    frame = table(120)
    labels = frame.select("session", label="outcome")
    with pytest.raises(SchemaError, match="no column 'label'"):
        rank(frame, outcome="outcome", labels=labels.drop("label"), draws=999)
    with pytest.raises(SchemaError, match="more than once"):
        rank(frame, outcome="outcome", labels=pl.concat([labels, labels]), draws=999)
    with pytest.raises(UsageError, match="outside"):
        rank(frame, outcome="outcome", labels=labels.with_columns(probability=pl.lit(0.0)), draws=999)
