"""A results table with nothing but tasks, trials, outcomes and a recorded draw; and what is refused there."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import polars as pl
import pytest

from seatrial.causal import balance, rank
from seatrial.causal.uncertainty import contrasts, net_coefficients, simultaneous
from seatrial.errors import EvidenceError
from seatrial.stats.quantiles import two_sided_t

Table = Callable[..., pl.DataFrame]


def drawn(tasks: int = 40, trials: int = 6, p: float = 0.5, seed: int = 0, by_task: bool = False) -> pl.DataFrame:
    """Every trial (or every task) was given model a with probability `p`; no users, times, prompts or types."""
    rng = np.random.default_rng(seed)
    n = tasks * trials
    task = np.repeat(np.arange(tasks), trials)
    first = (rng.random(tasks) < p)[task] if by_task else rng.random(n) < p
    arm = np.where(first, "a", "b")
    own = {"a": p, "b": 1 - p}
    return pl.DataFrame(
        {
            "session": [f"s{i:04d}" for i in range(n)],
            "task": [f"t{t:03d}" for t in task],
            "arm": arm,
            "outcome": (rng.random(n) < 0.3 + 0.4 * (task % 2)) * 1.0,
            "unit": [f"t{t:03d}" for t in task],
            "assigned_stratum": "all",
            "probability": [own[a] for a in arm],
            "probabilities_json": json.dumps(own),
        }
    )


@pytest.mark.parametrize("unit", ["task", "session"])
@pytest.mark.parametrize("typed", [False, True])
def test_a_plain_benchmark_with_a_recorded_draw_is_randomised(unit: str, typed: bool) -> None:
    frame = drawn().with_columns(pl.col(unit).alias("unit"))
    if typed:
        frame = frame.with_columns(task_type=pl.when(pl.col("task") < "t020").then(pl.lit("x")).otherwise(pl.lit("y")))
    found = rank(frame, outcome="outcome", draws=999)
    assert found.design.verdict == "randomised", found.design.checks
    assert (len(found.by) == 1) == typed
    for part in (found, *found.by.get("task_type", {}).values()):
        (check,) = [c for c in part.design.checks if c.name == "covariate balance"]
        if part is not found or not typed:
            assert check.ok is None
            assert check.why == "no covariate varies inside the design"


def test_whole_tasks_that_were_drawn_are_the_units() -> None:
    found = rank(drawn(by_task=True), outcome="outcome", draws=999)
    assert found.design.verdict == "randomised"
    assert "40 assignment units" in found.design.checks[1].why
    assert found.basis["n_clusters"] == 40


def test_uneven_draws_of_repeated_trials_are_counted_by_trial() -> None:
    """One row per (task, model) would turn nine in ten into half and half, and refuse a draw that went well."""
    found = rank(drawn(p=0.9, trials=20), outcome="outcome", draws=999)
    assert found.design.verdict == "randomised", found.design.checks
    assert "800 assignment units" in found.design.checks[1].why


def test_the_balance_test_never_rests_on_a_handful_of_draws() -> None:
    rng = np.random.default_rng(0)
    x, arm = rng.normal(size=(200, 2)), rng.integers(0, 2, 200)
    stratum = np.zeros(200, dtype=np.int64)
    _, _, p, how = balance.omnibus_balance(x, arm, stratum)
    assert int(how.split()[-2]) >= 199
    assert 0 < p <= 1
    flat = balance.omnibus_balance(np.zeros((200, 0)), arm, stratum)
    assert flat == (0.0, 0, 1.0, "no covariate varies inside the design")


def test_an_all_excluded_table_is_told_by_status() -> None:
    status = ["error_infra"] * 200 + ["skipped"] * 40
    frame = drawn().with_columns(pl.Series("status", status), outcome=pl.lit(None, dtype=pl.Float64))
    with pytest.raises(EvidenceError, match="every attempt was excluded, by status: 200 error_infra, 40 skipped"):
        rank(frame, outcome="outcome", draws=999)


@pytest.mark.parametrize("seed", range(5))
def test_joint_intervals_are_never_narrower_than_pointwise_ones(seed: int) -> None:
    """Two arms: both contrasts are one number, so the joint quantile is the t quantile, up to Monte Carlo noise."""
    from seatrial.causal import cells

    rng = np.random.default_rng(seed)
    cluster, arm = np.arange(60), np.arange(60) % 2
    m = cells.moments(cells.build(cluster, np.zeros(60, dtype=np.int64), arm, rng.normal(size=60)))
    each = contrasts(m, net_coefficients(np.array([0.5, 0.5])))
    for k, wide in enumerate(simultaneous(each, level=0.95, seed=seed)):
        assert wide is not None
        assert wide[1] - wide[0] >= 2 * two_sided_t(0.95, float(each.df[k])) * each.se[k] - 1e-12
