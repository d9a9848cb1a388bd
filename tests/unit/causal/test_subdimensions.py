"""Reliability, responsiveness, positivity, and the composite that never ranks (METHODS 3.8)."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

from seatrial.causal import rank
from seatrial.causal.responsiveness import mean_wait, tables


def _outcomes(rng: np.random.Generator, n: int = 120) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "session": [f"s{i:03d}" for i in range(n)],
            "arm": ["a", "b"] * (n // 2),
            "user": [f"u{i % 30:02d}" for i in range(n)],
            "outcome": (rng.random(n) < 0.5) * 1.0,
            "calls_counted": rng.integers(1, 20, n),
            "calls_environment": np.ones(n, dtype=np.int64),
            "calls_rejected": np.zeros(n, dtype=np.int64),
            "calls_interrupted": np.zeros(n, dtype=np.int64),
            "command_recovery": [1.0 if i % 4 == 0 else None for i in range(n)],
            "n_praise": rng.poisson(0.6, n),
            "n_confirmation": rng.poisson(0.8, n),
            "n_complaint": rng.poisson(0.3, n),
            "n_correction": rng.poisson(0.5, n),
        }
    ).with_columns(calls_ok=(pl.col("calls_counted") * 0.8).cast(pl.Int64))


def _corrections(rows: list[tuple[str, int, int | None, str, int]]) -> pl.DataFrame:
    names = ["session", "step", "turns", "ended", "follow_up"]
    return pl.DataFrame(rows, schema=names, orient="row", infer_schema_length=None)


def _row(found, model: str):
    return next(m for m in found.models if m.model == model)


def test_reliability_and_positivity_are_pooled_ratios_with_cluster_errors() -> None:
    frame = _outcomes(np.random.default_rng(0))
    found = rank(frame, outcome="outcome", draws=999, by=())
    mine = frame.filter(pl.col("arm") == "a")
    reliability = _row(found, "a").dimensions["command_reliability"]
    ok, counted = mine["calls_ok"].to_numpy(), mine["calls_counted"].to_numpy()
    assert reliability.estimate is not None
    assert reliability.estimate.value == pytest.approx(ok.sum() / counted.sum())
    residual = ok - reliability.estimate.value * counted
    users = mine["user"].to_numpy()
    sums = np.array([residual[users == u].sum() for u in np.unique(users)])
    g = sums.size
    assert reliability.estimate.se == pytest.approx(math.sqrt(g / (g - 1) * (sums**2).sum()) / counted.sum())
    assert reliability.detail["environment"] == mine.height
    assert reliability.detail["recovery"] == 1.0
    good = mine["n_praise"].sum() + mine["n_confirmation"].sum()
    bad = mine["n_complaint"].sum() + mine["n_correction"].sum()
    positivity = _row(found, "a").dimensions["positivity"].estimate
    assert positivity is not None
    assert positivity.value == pytest.approx(good / (good + bad))
    assert _row(found, "a").dimensions["positivity"].rank is not None


def test_nothing_to_divide_by_is_none_with_a_reason_and_the_composite_follows() -> None:
    frame = _outcomes(np.random.default_rng(0)).with_columns(
        calls_counted=pl.when(pl.col("arm") == "a").then(0).otherwise(pl.col("calls_counted")),
        calls_ok=pl.when(pl.col("arm") == "a").then(0).otherwise(pl.col("calls_ok")),
    )
    found = rank(frame, outcome="outcome", draws=999, by=())
    dimension = _row(found, "a").dimensions["command_reliability"]
    assert dimension.estimate is None
    assert dimension.why == "no counted call with a result"
    composite = _row(found, "a").composite
    assert composite is not None
    assert composite["value"] is None
    assert "command_reliability" in composite["why"]


def test_composite_is_the_suggested_blend_of_what_is_printed() -> None:
    frame = _outcomes(np.random.default_rng(1))
    rows = [(f"s{i:03d}", 2, 1 + i % 3, "accepted", 12) for i in range(0, 120, 2)]
    rows += [(f"s{i:03d}", 2, None, "ended", 3) for i in range(1, 120, 2)]
    found = rank(frame, outcome="outcome", corrections=_corrections(rows), draws=999, by=())
    for row in found.models:
        assert row.composite is not None
        assert row.net_improvement is not None
        parts = {name: d.estimate.value for name, d in row.dimensions.items() if d.estimate}
        expect = (
            0.4 * parts["command_reliability"] + 0.3 * parts["corrective_responsiveness"]
            + 0.2 * parts["positivity"] + 0.1 * row.net_improvement.value
        )  # fmt: skip
        assert row.composite["value"] == pytest.approx(expect)
        assert "never ranks" in row.composite["why"]
    # a accepts after 1, 2 or 3 turns: RMST 2; b never does: RMST 10.
    assert _row(found, "a").dimensions["corrective_responsiveness"].estimate.value == pytest.approx(0.5)
    assert _row(found, "b").dimensions["corrective_responsiveness"].estimate.value == pytest.approx(0.1)


def test_kaplan_meier_by_hand() -> None:
    """Times 1, 2+, 3, 3, 5+, inf: S = 1, 5/6, 5/6, 5/12, ...; RMST(6) is their sum."""
    time = np.array([1.0, 2.0, 3.0, 3.0, 5.0, np.inf])
    event = np.array([True, False, True, True, False, False])
    accepted, risk = tables(time, event, np.zeros(6, dtype=np.int64), 1, 6)
    s = [1.0, 5 / 6, 5 / 6, 5 / 6 * 0.5, 5 / 12, 5 / 12]
    assert mean_wait(accepted[0], risk[0]) == pytest.approx(sum(s))


def test_kaplan_meier_agrees_with_statsmodels() -> None:
    from statsmodels.duration.survfunc import SurvfuncRight

    rng = np.random.default_rng(0)
    time = rng.integers(1, 14, 200).astype(float)
    event = rng.random(200) < 0.6
    accepted, risk = tables(time, event, np.zeros(200, dtype=np.int64), 1, 10)
    curve = SurvfuncRight(time, event.astype(int))
    at = [1.0] + [float(curve.surv_prob[curve.surv_times <= t][-1]) if (curve.surv_times <= t).any() else 1.0
                  for t in range(1, 10)]  # fmt: skip
    assert mean_wait(accepted[0], risk[0]) == pytest.approx(sum(at))


def test_no_follow_up_to_the_horizon_is_none_unless_all_accepted() -> None:
    event = np.array([True, False])
    short = tables(np.array([1.0, 4.0]), event, np.zeros(2, dtype=np.int64), 1, 10)
    assert np.isnan(mean_wait(short[0][0], short[1][0]))
    done = tables(np.array([1.0, 4.0]), np.array([True, True]), np.zeros(2, dtype=np.int64), 1, 10)
    assert mean_wait(done[0][0], done[1][0]) == pytest.approx(1 + 3 * 0.5)


def test_responsiveness_interval_is_the_cluster_jackknife() -> None:
    frame = _outcomes(np.random.default_rng(2))
    rng = np.random.default_rng(3)
    rows = [
        (s, 1, int(t), "accepted", 15) if rng.random() < 0.7 else (s, 1, None, "ended", 2)
        for s, t in zip(frame["session"].to_list(), rng.integers(1, 8, 120), strict=True)
    ]
    found = rank(frame, outcome="outcome", corrections=_corrections(rows), draws=999, by=())
    estimate = _row(found, "a").dimensions["corrective_responsiveness"].estimate
    time = {s: (t if e == "accepted" else np.inf) for s, _, t, e, _ in rows}
    mine = frame.filter(pl.col("arm") == "a")

    def value(keep: pl.DataFrame) -> float:
        times = np.array([time[s] for s in keep["session"].to_list()], dtype=float)
        return 1 / sum(float((times > t).mean()) for t in range(10))

    users = sorted(mine["user"].unique().to_list())
    without = np.array([value(mine.filter(pl.col("user") != u)) for u in users])
    g = len(users)
    assert estimate.value == pytest.approx(value(mine))
    assert estimate.se == pytest.approx(math.sqrt((g - 1) / g * ((without - without.mean()) ** 2).sum()))


def test_worst_tools_come_with_examples_and_leave_out_what_is_not_the_models_fault() -> None:
    frame = _outcomes(np.random.default_rng(0))
    calls = pl.DataFrame(
        [
            ("s000", 1, "bash", "pytest", "error", "model"),
            ("s000", 2, "bash", "pytest", "ok", None),
            ("s002", 1, "bash", "grep", "error", "benign"),
            ("s002", 2, "bash", "curl", "error", "environment"),
            ("s004", 1, "edit", None, "rejected", None),
            ("s001", 1, "edit", None, "error", "model"),
        ],
        schema=["session", "step", "tool", "command", "outcome", "cause"],
        orient="row",
    )
    found = rank(frame, outcome="outcome", calls=calls, draws=999, by=())
    assert _row(found, "a").dimensions["command_reliability"].detail["worst"] == [
        {"tool": "bash", "command": "pytest", "n": 2, "failed": 1, "reliability": 0.5,
         "examples": [{"session": "s000", "step": 1}]},
    ]  # fmt: skip
    assert _row(found, "b").dimensions["command_reliability"].detail["worst"][0]["tool"] == "edit"


def test_signal_rates_show_the_conditional_and_the_unconditional() -> None:
    frame = _outcomes(np.random.default_rng(0))
    found = rank(frame, outcome="outcome", draws=999, by=())
    signals = _row(found, "a").signals
    assert signals["command_recovery"].coverage == pytest.approx(0.5)
    assert signals["any_correction"].coverage == 1.0
    mine = frame.filter(pl.col("arm") == "a")
    assert signals["any_correction"].estimate.value == pytest.approx((mine["n_correction"] > 0).mean())
