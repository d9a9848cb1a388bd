"""How `rank` grows with sessions, models, strata and draws: processor seconds and peak memory, one process each.

    python benchmarks/growth.py [--sessions 10000 100000 1000000 10000000] [--quick] [--json]

Rows of outcomes are synthetic: uneven users, a binary outcome, twenty task types. One thing grows at a time, the others
stay at 100,000 sessions (10,000 with `--quick`), 5 models, 20 strata and 999 draws. Memory is the peak of the process;
*beyond* is what it took more than it held when the rows were made.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from typing import Any

from contract import row, told

BASE = {"sessions": 100_000, "models": 5, "strata": 20, "draws": 999}
SESSIONS = (10_000, 100_000, 1_000_000, 10_000_000)
MODELS = (2, 5, 20, 50)
STRATA = (1, 20, 200, 1_000)
DRAWS = (999, 9_999, 99_999)


def table(sessions: int, models: int, strata: int) -> Any:
    """Outcomes of so many sessions; users as many as a tenth of them, uneven."""
    import numpy as np
    import polars as pl

    rng = np.random.default_rng(0)
    users = max(50, sessions // 10)
    weight = rng.pareto(1.6, users) + 0.3
    types = min(strata, 20)
    names = pl.Series([f"model {k:03d}" for k in range(models)])
    number = pl.Series(np.arange(sessions))
    kind, level = rng.integers(0, types, sessions), rng.integers(0, max(1, strata // types), sessions)
    return pl.DataFrame(
        {
            "session": pl.select(pl.format("s{}", pl.lit(number).cast(pl.String).str.zfill(9))).to_series(),
            "user": pl.Series(rng.choice(users, sessions, p=weight / weight.sum())).cast(pl.String),
            "arm": names.gather(pl.Series(rng.integers(0, models, sessions))),
            "task_type": pl.select(pl.format("type {}", pl.lit(pl.Series(kind)))).to_series(),
            "difficulty": pl.Series(level).cast(pl.String),
            "outcome": (rng.random(sessions) < 0.5) * 1.0,
        }
    )


def child(size: dict[str, int]) -> None:
    """Rank once in this process, after a small ranking that loads and compiles what is needed."""
    from seatrial.causal.ranking import rank

    rank(table(2_000, 2, 1), outcome="outcome", by=(), draws=999)
    frame = table(size["sessions"], size["models"], size["strata"])
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    cpu, wall = time.process_time(), time.perf_counter()
    rank(frame, outcome="outcome", by=(), draws=size["draws"])
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"cpu": cpu, "wall": wall, "beyond": (peak - held) / 1024, "peak": peak / 1024}))


def measure(size: dict[str, int]) -> dict[str, float]:
    """One size in a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, "--child", json.dumps(size)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(done.stderr)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main(quick: bool) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, nargs="+", default=list(SESSIONS[:2] if quick else SESSIONS))
    parser.add_argument("--child", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child:
        child(json.loads(asked.child))
        return
    grown = {"sessions": tuple(asked.sessions), "models": MODELS[: 2 if quick else None],
             "strata": STRATA[: 2 if quick else None], "draws": DRAWS[: 2 if quick else None]}  # fmt: skip
    print(f"{'what':10s}{'size':>12s}{'CPU s':>9s}{'wall s':>9s}{'beyond MB':>11s}{'peak MB':>9s}")
    for what, sizes in grown.items():
        for n in sizes:
            base = BASE if not quick else {**BASE, "sessions": BASE["sessions"] // 10}
            m = measure({**base, what: n})
            print(f"{what:10s}{n:12,d}{m['cpu']:9.2f}{m['wall']:9.2f}{m['beyond']:11.0f}{m['peak']:9.0f}", flush=True)
            row(f"rank, {n:,} {what}", m["cpu"], "CPU s", note=f"peak {m['peak']:,.0f} MB")


if __name__ == "__main__":
    with told("growth") as small:
        main(small)
