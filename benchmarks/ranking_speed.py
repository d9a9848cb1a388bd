"""Time to rank a million sessions of 20 models in 200 strata, with and without the randomisation test.

Usage: python benchmarks/ranking_speed.py [SESSIONS] [--quick] [--json]  (default 1,000,000)
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np
import polars as pl

from contract import row, told
from seatrial.causal import randomise, ranking

MODELS, USERS = 20, 78_000


def table(n: int, design: str) -> pl.DataFrame:
    """`design`: session (users unknown, no record), user (78,000 uneven users), assigned (users and a record)."""
    rng = np.random.default_rng(0)
    names = np.array([f"model {k:02d}" for k in range(MODELS)])
    frame = pl.DataFrame(
        {
            "session": [f"s{i:08d}" for i in range(n)],
            "arm": names[rng.integers(0, MODELS, n)],
            "task_type": np.array([f"type {s:02d}" for s in range(20)])[rng.integers(0, 20, n)],
            "difficulty": np.array([str(d) for d in range(10)])[rng.integers(0, 10, n)],
            "outcome": (rng.random(n) < 0.5) * 1.0,
            "prompt_chars": rng.integers(10, 5000, n),
        }
    )
    if design != "session":
        share = rng.pareto(1.6, USERS) + 0.3
        user = rng.choice(USERS, n, p=share / share.sum())
        frame = frame.with_columns(user=pl.Series(user).cast(pl.String))
    if design == "assigned":
        chance = json.dumps({str(m): 1 / MODELS for m in names})
        frame = frame.with_columns(
            unit=pl.col("session"), probability=pl.lit(1 / MODELS), probabilities_json=pl.lit(chance)
        )
    return frame


def main(quick: bool) -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000 if quick else 1_000_000
    print(f"{n} sessions, {MODELS} models, 200 strata; seconds of wall clock and of CPU")
    test = randomise.run
    for design in ("session", "user", "assigned"):
        frame = table(n, design)
        ranking.randomise.run = lambda *_, **__: randomise.Outcome(None, "left out")  # type: ignore[assignment]
        start, cpu = time.perf_counter(), time.process_time()
        ranking.rank(frame, outcome="outcome", by=())
        wall, used = time.perf_counter() - start, time.process_time() - cpu
        row(f"rank {n:,} sessions, {design}, without the test", used, "CPU s")
        print(f"{design:9s} without the test: {wall:6.2f} s, CPU {used:6.2f} s", flush=True)
        ranking.randomise.run = test  # type: ignore[assignment]
        if design == "session":
            for again in ("with it, first call", "with it, compiled"):
                start, cpu = time.perf_counter(), time.process_time()
                ranking.rank(frame, outcome="outcome", by=(), draws=10_000)
                wall, used = time.perf_counter() - start, time.process_time() - cpu
                row(f"rank {n:,} sessions, {design}, {again}", used, "CPU s")
                print(f"{design:9s} {again}: {wall:6.2f} s, CPU {used:6.2f} s", flush=True)


if __name__ == "__main__":
    with told("ranking_speed") as small:
        main(small)
