"""Reflexion against its base on 134 ALFWorld tasks: published counts, exact test and intervals from the analysis."""

from __future__ import annotations

import json
from math import comb
from pathlib import Path

import pytest
from scipy import stats

from seatrial.recovery.contrast import contrast
from seatrial.recovery.table import Row, from_rows

pytestmark = pytest.mark.real


def outcomes(file: Path) -> dict[str, bool]:
    return {one["name"]: one["is_success"] for one in json.loads(file.read_text())}


def test_trial_6(data: Path) -> None:
    folder = data / "reflexion-alfworld"
    if not folder.exists():
        pytest.skip(f"{folder} is absent")
    base = outcomes(folder / "base_run_logs" / "trial_6.json")
    better = outcomes(folder / "reflexion_run_logs" / "trial_6.json")
    assert base.keys() == better.keys()
    assert (len(base), sum(base.values()), sum(better.values())) == (134, 101, 123)
    rows = [Row(None, {"task": t, "condition": "clean", "operation": "reflexion", "delay": 0, "y0": base[t],
                       "y1": better[t]}) for t in base]  # fmt: skip
    (found,) = contrast(from_rows(rows)).rows
    assert (round(134 * found.rescue), round(134 * found.harm), found.n) == (23, 1, 134)
    assert found.effect.value == pytest.approx(22 / 134)
    # Exact McNemar, written out: 24 discordant tasks, one of them a harm.
    assert found.mcnemar == pytest.approx(2 * (1 + 24) / 2**24, rel=1e-9)
    # Over 24 discordant tasks the sign-flip test enumerates nothing and draws; it agrees with McNemar's order.
    assert found.p_value is not None
    assert found.p_value < 1e-4
    assert found.effect.low is not None
    assert found.effect.high is not None
    exact = stats.bootstrap(([1.0] * 23 + [-1.0] + [0.0] * 110,), lambda x, axis: x.mean(axis=axis),
                            method="percentile", n_resamples=20_000, rng=1)  # fmt: skip
    assert found.effect.low == pytest.approx(exact.confidence_interval.low, abs=1 / 134)
    assert found.effect.high == pytest.approx(exact.confidence_interval.high, abs=1 / 134)
    # One harm in 134: the exact one-sided bound p with P(Bin(134, p) <= 1) = 0.05.
    p = found.harm_upper
    assert p is not None
    assert sum(comb(134, k) * p**k * (1 - p) ** (134 - k) for k in (0, 1)) == pytest.approx(0.05, abs=1e-9)
