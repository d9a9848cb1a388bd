"""Outcome tables with known structure."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import polars as pl
import pytest


def make_table(
    n: int = 900,
    *,
    arms: int = 3,
    users: int = 60,
    seed: int = 0,
    assigned: bool = False,
    effect: float = 0.0,
    graded: bool = False,
    tasks: int | None = None,
) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    names = np.array([f"model-{chr(97 + k)}" for k in range(arms)])
    user = rng.integers(0, users, n)
    arm = rng.integers(0, arms, n)
    kind = rng.choice(["coding", "workflow"], n)
    hard = rng.choice(["easy", "medium", "hard"], n)
    p = 0.5 + effect * (arm - (arms - 1) / 2) + 0.15 * (hard == "easy") - 0.15 * (hard == "hard")
    y = rng.random(n) if graded else (rng.random(n) < (p + rng.normal(0, 0.08, users)[user]).clip(0.02, 0.98)) * 1.0
    if graded:
        y = ((y + p).clip(0, 2) / 2).round(2)
    table = pl.DataFrame(
        {
            "session": [f"s{i:05d}" for i in range(n)],
            "arm": names[arm],
            "user": [f"u{u:03d}" for u in user],
            "task_type": kind,
            "difficulty": hard,
            "outcome": y,
            "prompt_chars": rng.integers(20, 4000, n),
            "start": 1.7e9 + np.arange(n) * 60.0,
        }
    )
    if tasks is not None:
        table = table.with_columns(pl.Series("task", [f"t{i}" for i in rng.integers(0, tasks, n)]))
    if assigned:
        chance = {str(a): 1 / arms for a in names}
        table = table.with_columns(
            unit=pl.col("session"), probability=pl.lit(1 / arms), probabilities_json=pl.lit(json.dumps(chance))
        )
    return table


@pytest.fixture
def table() -> Callable[..., pl.DataFrame]:
    return make_table
