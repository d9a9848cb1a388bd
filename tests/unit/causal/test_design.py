"""The verdict and its checks."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import polars as pl
import pytest

from seatrial.causal import balance, design, prepare
from seatrial.causal.ranking import rank

Table = Callable[..., pl.DataFrame]


def _ready(frame: pl.DataFrame) -> tuple[pl.DataFrame, tuple[str, ...]]:
    full = prepare.complete(frame).with_columns(_y=pl.col("outcome").cast(pl.Float64))
    return full, tuple(sorted(full["arm"].unique().to_list()))


def _check(verdict: design.Verdict, name: str):
    return next(c for c in verdict.checks if c.name == name)


def test_a_recorded_draw_is_randomised(table: Table) -> None:
    verdict = design.decide(*_ready(table(assigned=True)))
    assert verdict.kind == "randomised"
    assert [c.ok for c in verdict.checks] == [True, True, True]


def test_no_record_is_observational(table: Table) -> None:
    verdict = design.decide(*_ready(table()))
    assert verdict.kind == "observational"
    assert _check(verdict, "assignment record").ok is False


def test_one_session_without_a_record_is_enough_to_lose_the_word(table: Table) -> None:
    frame = table(assigned=True).with_columns(
        probabilities_json=pl.when(pl.col("session") == "s00007").then(None).otherwise(pl.col("probabilities_json"))
    )
    verdict = design.decide(*_ready(frame))
    assert verdict.kind == "observational"
    assert "0.1% of sessions lack a usable draw" in _check(verdict, "assignment record").why


def test_an_arm_that_could_not_be_drawn_is_no_randomisation_between_all(table: Table) -> None:
    chance = json.dumps({"model-a": 0.5, "model-b": 0.5})
    frame = table(assigned=True).with_columns(
        probabilities_json=pl.when((pl.col("session") < "s00100") & (pl.col("arm") != "model-c"))
        .then(pl.lit(chance)).otherwise(pl.col("probabilities_json")),
        probability=pl.when((pl.col("session") < "s00100") & (pl.col("arm") != "model-c"))
        .then(0.5).otherwise(pl.col("probability")),
    )  # fmt: skip
    verdict = design.decide(*_ready(frame))
    assert verdict.kind == "observational"
    assert "could not have been given every model" in _check(verdict, "assignment record").why


def test_units_that_vanished_show_as_a_ratio_mismatch(table: Table) -> None:
    frame = table(assigned=True).filter(~((pl.col("arm") == "model-b") & (pl.col("session").str.ends_with("1"))))
    frame = frame.filter(~((pl.col("arm") == "model-b") & (pl.col("session").str.ends_with("2"))))
    frame = frame.filter(~((pl.col("arm") == "model-b") & (pl.col("session").str.ends_with("3"))))
    verdict = design.decide(*_ready(frame))
    assert _check(verdict, "sample ratio").ok is False
    assert verdict.kind == "observational"


def test_sticky_units_count_once(table: Table) -> None:
    """Sixty users with fifteen sessions each are sixty draws: sessions alone would look like a broken draw."""
    frame = table(assigned=True)
    arms = sorted(frame["arm"].unique().to_list())
    users = sorted(frame["user"].unique().to_list())
    drawn = {u: arms[i % 3] for i, u in enumerate(users)}
    frame = frame.with_columns(unit=pl.col("user"), arm=pl.col("user").replace_strict(drawn))
    verdict = design.decide(*_ready(frame))
    assert "60 assignment units" in _check(verdict, "sample ratio").why
    assert _check(verdict, "sample ratio").value == pytest.approx(1.0)


def test_an_arm_given_the_long_prompts_fails_balance(table: Table) -> None:
    frame = table(assigned=True).sort("prompt_chars")
    arms = frame["arm"].sort()
    verdict = design.decide(*_ready(frame.with_columns(arm=arms)))
    assert _check(verdict, "covariate balance").ok is False
    assert verdict.kind == "observational"


def test_balance_is_uniform_under_a_fair_draw() -> None:
    """p-values of the omnibus test under 200 fair draws: uniform by Kolmogorov-Smirnov."""
    from scipy.stats import kstest

    rng = np.random.default_rng(5)
    stratum = np.repeat([0, 1, 2], [30, 50, 20])
    x = np.column_stack([rng.normal(size=100), rng.random(100) < 0.3])
    ps = [balance.omnibus_balance(x, rng.permutation(np.arange(100) % 3), stratum, seed=i)[2] for i in range(60)]
    assert kstest(ps, "uniform").pvalue > 0.01


def test_balance_statistic_is_mahalanobis_for_two_arms() -> None:
    """One stratum, one covariate, two arms: the squared z of the difference under permutation."""
    rng = np.random.default_rng(6)
    x, arm = rng.normal(size=40), np.repeat([0, 1], [25, 15])
    value, rank_, _, _ = balance.omnibus_balance(x[:, None], arm, np.zeros(40, int))
    difference = x[arm == 1].mean() - x[arm == 0].mean()
    variance = x.var(ddof=1) * (1 / 25 + 1 / 15)
    assert value == pytest.approx(difference**2 / variance)
    assert rank_ == 1


def test_small_expected_counts_are_drawn() -> None:
    """Six units in two strata: p by enumeration of the two binomials against our Monte Carlo."""
    arm, stratum = np.array([0, 0, 0, 1, 0, 0]), np.array([0, 0, 0, 0, 1, 1])
    p = np.full((6, 2), 0.5)
    value, df, p_value, how = balance.ratio_mismatch(arm, stratum, p, seed=1)
    assert "Monte Carlo" in how
    assert df == 2
    from math import comb

    exact = 0.0
    for a in range(5):
        for b in range(3):
            stat = 2 * (a - 2) ** 2 / 2 + 2 * (b - 1) ** 2 / 1
            if stat >= value - 1e-9:
                exact += comb(4, a) / 16 * comb(2, b) / 4
    assert p_value == pytest.approx(exact, abs=0.02)


def test_same_tasks_by_every_model_are_crossed_and_differing_harnesses_are_named() -> None:
    rows = [(f"{a}{t}", a, f"t{t}", float((t + len(a)) % 3 == 0)) for t in range(20) for a in ("aa", "b")]
    frame = pl.DataFrame(rows, schema=["session", "arm", "task", "outcome"], orient="row")
    conditions = frame.select("session", simulator=pl.col("arm"), agent=pl.lit("h1"))
    found = rank(frame, outcome="outcome", conditions=conditions, draws=999)
    assert found.design.verdict == "crossed"
    assert found.design.caveats == ("simulator differed: aa for aa; b for b",)
    named = next(c for c in found.design.checks if c.name == "only the model differed")
    assert named.why == "more than the model differed: simulator"


def test_a_few_missing_pairs_stay_crossed_and_are_counted() -> None:
    rows = [(f"{a}{t}", a, f"t{t:02d}", float((t + len(a)) % 3 == 0)) for t in range(20) for a in ("aa", "b")]
    frame = pl.DataFrame(rows, schema=["session", "arm", "task", "outcome"], orient="row")
    found = rank(frame.filter(pl.col("session") != "b7"), outcome="outcome", draws=999)
    assert found.design.verdict == "crossed"
    assert found.dropped[0].n == 1
    assert "both sides" in found.dropped[0].why
    assert found.models[0].n_clusters == 19
    few = frame.filter(~((pl.col("arm") == "b") & (pl.col("task") > "t08")))
    lost = rank(few, outcome="outcome", draws=999)
    assert lost.design.verdict == "observational"
    assert any("pairing by task was lost: only 9 of 20 tasks" in c and "b lacks 11" in c for c in lost.design.caveats)


def test_the_word_appears_only_where_it_may(table: Table) -> None:
    import msgspec

    assert b"causal" not in msgspec.json.encode(rank(table(), outcome="outcome", draws=999)).lower()
    assert b"causal" in msgspec.json.encode(rank(table(assigned=True), outcome="outcome", draws=999)).lower()


def test_models_that_never_meet_are_not_identified() -> None:
    frame = pl.DataFrame(
        {
            "session": [f"s{i:03d}" for i in range(60)],
            "arm": ["x"] * 30 + ["y"] * 30,
            "task_type": ["coding"] * 30 + ["workflow"] * 30,
            "outcome": [float(i % 2) for i in range(60)],
        }
    )
    found = rank(frame, outcome="outcome", draws=999)
    assert found.design.verdict == "not_identified"
    assert [m.rank for m in found.models] == [None, None]
    assert all(m.net_improvement is None and m.mean is not None and m.why for m in found.models)
