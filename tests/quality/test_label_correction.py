"""Where one model's users phrase things differently, signals alone rank wrongly and labels mend it (METHODS 3.4d).

Both models succeed equally often but the second's users seldom say so: the detector misses them. The raw contrast must
be far off, and the prediction-powered one must cover the truth, 0, about as often as it says.
"""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from seatrial import causal
from seatrial.stats import ppi_mean, rogan_gladen

SUCCESS = 0.6
HEARD = {"a": (0.9, 0.1), "b": (0.5, 0.1)}
"""Chance that a success, and a failure, is heard as a confirmation."""


def _sessions(seed: int, n: int = 600) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    arm = rng.choice(["a", "b"], n)
    truth = rng.random(n) < SUCCESS
    hit = np.array([HEARD[m][0 if t else 1] for m, t in zip(arm, truth, strict=True)])
    return pl.DataFrame(
        {
            "session": [f"s{i}" for i in range(n)],
            "arm": arm,
            "user": [f"u{i // 3}" for i in range(n)],
            "task_type": "coding",
            "heard": (rng.random(n) < hit).astype(float),
            "truth": truth.astype(float),
            "drawn": rng.random(n) < 0.3,
        }
    )


def _labels(table: pl.DataFrame) -> pl.DataFrame:
    return table.filter("drawn").select("session", pl.col("truth").alias("label"), pl.lit(0.3).alias("probability"))


def test_a_ranking_by_signals_is_biased_and_labels_correct_it() -> None:
    table = _sessions(1)
    ranking = causal.rank(
        table.drop("truth", "drawn"), outcome="heard", labels=_labels(table), draws=999, by=(), covariates=(),
        estimator="post-stratified",
    )  # fmt: skip
    rows = {row.model: row for row in ranking.models}
    raw, powered = rows["a"].signals_only, rows["a"].ppi
    assert raw is not None
    assert powered is not None
    assert raw.low is not None
    assert raw.low > 0.05  # far from the truth, and sure of it
    assert powered.low is not None
    assert powered.high is not None
    assert powered.low <= 0.0 <= powered.high
    assert powered.high - powered.low > raw.high - raw.low  # type: ignore[operator]


@pytest.mark.parametrize("how", ["PPI++", "Rogan-Gladen"])
def test_corrected_rates_cover_and_raw_rates_do_not(how: str) -> None:
    covered = raw_covered = total = 0
    for seed in range(150):
        table = _sessions(seed)
        for model in ("a", "b"):
            part = table.filter(pl.col("arm") == model)
            some, rest = part.filter("drawn"), part.filter(~pl.col("drawn"))
            if how == "PPI++":
                found = ppi_mean(some["truth"], some["heard"], rest["heard"])
            else:
                bad, good = some.filter(pl.col("truth") == 0), some.filter(pl.col("truth") == 1)
                found = rogan_gladen(
                    float(rest["heard"].to_numpy().mean()), float(1 - bad["heard"].to_numpy().mean()),
                    float(good["heard"].to_numpy().mean()), n=rest.height, m0=bad.height, m1=good.height,
                )  # fmt: skip
            assert found is not None
            assert found.low is not None
            assert found.high is not None
            covered += found.low <= SUCCESS <= found.high
            share = part["heard"].to_numpy()
            raw_covered += abs(share.mean() - SUCCESS) <= 1.96 * share.std() / np.sqrt(share.size)
            total += 1
    assert covered / total >= 0.92
    assert raw_covered / total <= 0.5
