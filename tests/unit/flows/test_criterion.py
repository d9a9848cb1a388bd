"""Criterion validity on tables whose answer is known."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from seatrial.errors import EvidenceError
from seatrial.flows import criterion
from seatrial.records import OUTCOMES


def _table(n: int, informative: bool) -> pl.DataFrame:
    rng = np.random.default_rng(3)
    arm = np.repeat(["a", "b"], n)
    reward = (rng.random(2 * n) < np.where(arm == "a", 0.8, 0.3)).astype(float)
    signal = reward if informative else rng.integers(0, 2, 2 * n).astype(float)
    columns: dict[str, object] = {
        "session": [str(i) for i in range(2 * n)],
        "task": [str(i % n) for i in range(2 * n)],
        "arm": arm,
        "outcome": reward,
        "score": signal,
        **dict.fromkeys(OUTCOMES, signal),
    }
    for name in ("confirmation", "accept_implicit", "praise", "complaint", "correction", "execution_error"):
        columns[f"n_{name}"] = signal.astype(int) if name == "praise" else np.zeros(2 * n, int)
    return pl.DataFrame(columns)


def test_a_signal_that_is_the_reward_has_auc_one_and_the_true_order() -> None:
    table = _table(80, informative=True)
    found = {row.signal: row for row in criterion.aucs(table)}
    assert found["signals_mean"].auc == 1.0
    assert found["n_correction"].auc is None
    systems = criterion.orders(table)
    assert [s.system for s in systems] == ["a", "b"]
    assert criterion.agreement(systems) == 1.0
    powered, alone = systems[0].powered, systems[0].labelled
    assert powered is not None
    assert alone is not None
    assert powered.se is not None
    assert alone.se is not None
    assert powered.se < alone.se


def test_noise_has_an_auc_near_one_half_and_labels_still_cover() -> None:
    table = _table(200, informative=False)
    found = {row.signal: row.auc for row in criterion.aucs(table)}
    assert found["signals_mean"] == pytest.approx(0.5, abs=0.1)
    for system in criterion.orders(table, share=0.5):
        assert system.powered is not None
        assert system.powered.low is not None
        assert system.powered.high is not None
        assert system.powered.low <= system.truth <= system.powered.high


def test_without_rewards_there_is_nothing_to_check() -> None:
    table = _table(5, informative=True).with_columns(pl.lit(None, pl.Float64).alias("outcome"))
    with pytest.raises(EvidenceError):
        criterion.aucs(table)
