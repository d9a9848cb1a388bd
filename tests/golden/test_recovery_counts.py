"""The recovery paper's arithmetic, as far as it is plain statistics: McNemar, sign flips, bootstrap, zero events."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seatrial.stats import bootstrap_interval, mcnemar_exact, sign_flip_test, zero_discordant

VECTORS: dict[str, Any] = json.loads((Path(__file__).parent / "recovery.json").read_text())


def task_sums(sums: dict[str, int]) -> list[int]:
    return [int(value) for value, times in sums.items() for _ in range(times)]


@pytest.mark.parametrize("row", [r for r in VECTORS["paired"] if "ci" in r], ids=lambda r: r["name"])
def test_paired_rows(row: dict[str, Any]) -> None:
    n, rescues, harms = row["n"], row["R"], row["H"]
    effect = np.repeat([1.0, -1.0, 0.0], [rescues, harms, n - rescues - harms])
    e = bootstrap_interval(100 * effect)
    assert e.value == pytest.approx(row["points"], abs=6e-3)
    assert [e.low, e.high] == pytest.approx(row["ci"], abs=100 / n)


def test_headline() -> None:
    head = VECTORS["cir_headline"]
    sums = task_sums(head["consistent_task_sums"])
    assert len(sums) == head["tasks"]
    exact = sign_flip_test(sums)
    assert exact.exact
    assert exact.p_value == pytest.approx(136 / 4096, abs=1e-15)
    assert exact.p_value == pytest.approx(head["p_sign_flip"], abs=0.002)
    assert mcnemar_exact(head["R"], head["H"]).p_value == pytest.approx(head["mcnemar_ignoring_tasks"], abs=1e-12)
    per_episode = head["episodes"] / head["tasks"]
    e = bootstrap_interval(100 * np.array(sums) / per_episode)
    assert e.value == pytest.approx(head["points"], abs=1e-9)
    assert [e.low, e.high] == pytest.approx(head["ci"], abs=0.34)


def test_transferred_policy() -> None:
    row = VECTORS["negative_replication_qwen3_8b"]["transferred"]
    e = bootstrap_interval(100 * np.array(task_sums(row["consistent_task_sums"])) / 4)
    assert e.value == pytest.approx(row["points"], abs=6e-3)
    assert [e.low, e.high] == pytest.approx(row["ci"], abs=0.34)


def test_no_discordant_pair_is_not_proof_of_no_effect() -> None:
    low, high = zero_discordant(75)
    assert low == -high
    # At the bound, a run of 75 concordant pairs is as rare as the tail that the level leaves.
    assert (1 - high) ** 75 == pytest.approx(0.025, rel=1e-12)
