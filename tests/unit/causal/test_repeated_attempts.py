"""Attempts of one task are one cluster, wherever a cluster is chosen (METHODS 0.4)."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import polars as pl
import pytest

from seatrial.causal import rank
from seatrial.records import Ranking


def attempts(models: int, tasks: int, trials: int, *, seed: int = 0, **more: Any) -> pl.DataFrame:
    """Every model tries every task `trials` times; tasks differ in difficulty, models do not."""
    rng = np.random.default_rng(seed)
    hard = rng.uniform(0.1, 0.9, tasks)
    rows = [
        (f"m{m}-t{t:03d}-{i:02d}", f"m{m}", f"t{t:03d}", float(rng.random() < hard[t]), float(rng.random() < 0.5))
        for m in range(models)
        for t in range(tasks)
        for i in range(trials)
    ]
    frame = pl.DataFrame(rows, schema=["session", "arm", "task", "outcome", "confirmed_success"], orient="row")
    return frame.with_columns(calls_ok=pl.lit(3), calls_counted=pl.lit(4), **more)


def _rank(frame: pl.DataFrame) -> Ranking:
    return rank(frame, outcome="outcome", draws=999, by=())


def test_one_model_on_fifty_tasks_is_fifty_clusters_everywhere() -> None:
    found = _rank(attempts(1, 50, 4))
    assert (found.basis["cluster"], found.basis["n_clusters"]) == ("task", 50)
    (model,) = found.models
    assert model.n_clusters == 50
    assert model.mean is not None
    assert model.mean.low is not None
    assert model.mean.n_clusters == 50
    assert all(s.estimate is None or s.estimate.n_clusters == 50 for s in model.signals.values())
    reliability = model.dimensions["command_reliability"].estimate
    assert reliability is not None
    assert reliability.n_clusters == 50


@pytest.mark.parametrize("user", [None, "me"])
def test_one_task_is_one_cluster_and_refused(user: str | None) -> None:
    found = _rank(attempts(2, 1, 20, user=pl.lit(user, dtype=pl.String)))
    assert found.basis["n_clusters"] == 1
    for model in found.models:
        assert model.n_clusters == 1
        assert model.rank is None
        assert model.simultaneous is None
        assert model.net_improvement is not None
        assert model.net_improvement.low is None
        assert model.net_improvement.why is not None
        assert model.mean is None or model.mean.low is None
        assert all(s.estimate is None or s.estimate.low is None for s in model.signals.values())
    assert b"NaN" not in msgspec.json.encode(found)
    assert b"extrapolation" not in msgspec.json.encode(found)


def test_few_tasks_with_known_users_are_refused_too() -> None:
    """Forty users, two tasks: no error over tasks can be estimated, so none is claimed."""
    rng = np.random.default_rng(1)
    frame = attempts(2, 2, 60).with_columns(user=pl.Series([f"u{u}" for u in rng.integers(0, 40, 240)]))
    frame = frame.filter(~((pl.col("task") == "t001") & (pl.col("arm") == "m1")))
    found = _rank(frame)
    assert found.design.verdict == "observational"
    assert found.basis["cluster"] == "task"
    assert all(m.rank is None and (m.net_improvement is None or m.net_improvement.low is None) for m in found.models)


def test_a_model_that_missed_a_quarter_of_the_tasks_is_compared_on_the_others() -> None:
    frame = attempts(3, 40, 2).filter(~((pl.col("arm") == "m2") & (pl.col("task") < "t010")))
    found = _rank(frame)
    assert found.design.verdict == "crossed"
    assert found.basis["n_tasks"] == found.basis["n_clusters"] == 30
    assert any("30 of 40 tasks that every model ran (m2 lacks 10)" in c for c in found.design.caveats)
    assert all(m.net_improvement is not None and m.net_improvement.n_clusters == 30 for m in found.models)
    assert sum(d.n for d in found.dropped) == 40


def test_one_task_id_in_two_suites_is_two_tasks() -> None:
    frame = pl.concat([attempts(2, 12, 2), attempts(2, 12, 2, seed=5).with_columns(session="x" + pl.col("session"))])
    suite = pl.when(pl.col("session").str.starts_with("x")).then(pl.lit("one")).otherwise(pl.lit("two"))
    assert _rank(frame).basis["n_clusters"] == 12
    assert _rank(frame.with_columns(suite=suite)).basis["n_clusters"] == 24


def test_intervals_over_tasks_hold_where_sessions_were_taken_for_clusters() -> None:
    """Half of the tasks are always passed: the share over tasks varies by tasks, however often each is tried."""
    widths = {}
    for trials in (2, 8):
        frame = attempts(1, 40, trials).with_columns(outcome=(pl.col("task") < "t020").cast(pl.Float64))
        mean = _rank(frame).models[0].mean
        assert mean is not None
        assert mean.high is not None
        assert mean.low is not None
        widths[trials] = mean.high - mean.low
    assert widths[8] == pytest.approx(widths[2], rel=1e-9)
