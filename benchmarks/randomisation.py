"""How fast is the randomisation test, and does it agree with shuffling labels?

    python benchmarks/randomisation.py [--sessions 1000000] [--models 20] [--strata 200] [--draws 10000]
        [--quick] [--json]

In one run, on one data set: NumPy label shuffling (per stratum, effects of all models and their CR1 errors from cell
sums), then hypergeometric draws compiled and in NumPy, then compiled row permutation (continuous outcome; users as
clusters) and cluster permutation. Prints wall and processor time per draw, the ratio to shuffling, and the largest
gap between p-values in Monte Carlo standard errors. Exits with 1 if a limit of the project is missed. Processor time
is the figure to compare on a shared machine.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable
from itertools import pairwise

import numpy as np

from contract import installed, row, told
from seatrial.stats import (
    RandomisationTest,
    cluster_permutation,
    null_variance,
    row_permutation,
    table_draws,
)

LIMIT_COMPILED_S = 2.0
LIMIT_NUMPY_S = 4.0
LIMIT_RATIO = 100.0


def timed(work: Callable[[], RandomisationTest]) -> tuple[RandomisationTest, float, float]:
    wall, processor = time.perf_counter(), time.process_time()
    result = work()
    return result, time.perf_counter() - wall, time.process_time() - processor


def shuffle_labels(s: np.ndarray, k: np.ndarray, y: np.ndarray, models: int, draws: int) -> np.ndarray:
    """The plain way: shuffle labels inside every stratum, recompute effects and CR1, session by session."""
    rng = np.random.default_rng(1)
    order = np.argsort(s, kind="stable")
    s, k, y = s[order], k[order].copy(), y[order].astype(np.float64)
    n_s = np.bincount(s)
    bounds, w, q = np.concatenate([[0], np.cumsum(n_s)]), n_s / s.size, np.full(models, 1 / models)
    cells = n_s.size * models
    n = np.bincount(s * models + k, minlength=cells).reshape(-1, models)
    out = np.empty((draws, models))
    for b in range(draws):
        for a, z in pairwise(bounds):
            rng.shuffle(k[a:z])
        total = np.bincount(s * models + k, weights=y, minlength=cells).reshape(-1, models)
        mean = total / n
        by_stratum = mean - (mean @ q)[:, None]
        effect = w @ by_stratum
        part = w[:, None] ** 2 * (total - n * mean**2) / n**2  # y is 0/1, so its square sums to the total
        variance = (part * (1 - 2 * q) + (part @ q**2)[:, None]).sum(axis=0)
        variance += (w[:, None] ** 2 / n_s[:, None] * (by_stratum - effect) ** 2).sum(axis=0)
        out[b] = effect / np.sqrt(variance * s.size / (s.size - 1))
    return out


def by_scipy(k: np.ndarray, y: np.ndarray, draws: int) -> float | None:
    """Processor seconds of scipy's permutation_test, one model against the rest, no strata; None: not installed."""
    if not installed("scipy"):
        return None
    from scipy import stats

    one, rest = y[k == 0].astype(float), y[k != 0].astype(float)

    def gap(a: np.ndarray, b: np.ndarray, axis: int = -1) -> np.ndarray:
        return np.asarray(a.mean(axis=axis) - b.mean(axis=axis))

    began = time.process_time()
    stats.permutation_test((one, rest), gap, vectorized=True, n_resamples=draws, batch=1, rng=np.random.default_rng(0))
    return time.process_time() - began


def report(name: str, draws: int, wall: float, processor: float, base: float | None = None) -> None:
    ratio = f"{base / (processor / draws):9.0f}x" if base else " " * 10
    note = f"{base / (processor / draws):,.0f} times as fast as shuffling" if base else ""
    row(f"{name} ({draws:,} draws)", 1e3 * processor / draws, "CPU ms/draw", note=note)
    print(f"{name:44s} {draws:7d} {wall:8.2f} {processor:8.2f} {1e3 * processor / draws:11.4f} {ratio}")


def report_rows(s: np.ndarray, k: np.ndarray, y: np.ndarray, q: np.ndarray) -> None:
    """Any outcome, users as clusters: labels are moved one by one and CR1 is recomputed in every draw."""
    rng = np.random.default_rng(2)
    n_users = y.size // 13 + 2
    users = rng.integers(0, n_users, y.size)
    sticky, value = rng.integers(0, q.size, n_users)[users], y + rng.random(y.size)
    common = {"baseline": q, "draws": 999, "engine": "numba"}
    for name, work in (
        ("row permutation, sessions independent", lambda z: row_permutation(s[z], k[z], value[z], **common)),
        ("row permutation, users as clusters", lambda z: row_permutation(s[z], k[z], value[z], users[z], **common)),
        ("cluster permutation", lambda z: cluster_permutation(s[z] % 5, sticky[z], value[z], users[z], **common)),
    ):
        work(slice(None))  # compile off the clock
        _, wall, processor = timed(lambda work=work: work(slice(None)))  # type: ignore[misc]
        report(f"{name}, {y.size} sessions", 999, wall, processor)


def main(quick: bool) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (
        ("sessions", 100_000 if quick else 1_000_000),
        ("models", 20),
        ("strata", 200),
        ("draws", 10_000),
    ):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument(
        "--shuffles", type=int, default=20 if quick else 60, help="draws of the plain way, which is slow"
    )
    parser.add_argument(
        "--rows", action="store_true", help="also row and cluster permutation: 999 draws on a tenth of the sessions"
    )
    size = parser.parse_args()
    rng = np.random.default_rng(0)
    s, k = rng.integers(0, size.strata, size.sessions), rng.integers(0, size.models, size.sessions)
    y = (rng.random(size.sessions) < 0.3 + 0.002 * (k == 0)).astype(np.int64)
    q = np.full(size.models, 1 / size.models)
    start = time.perf_counter()
    table = np.bincount((s * size.models + k) * 2 + y, minlength=size.strata * size.models * 2)
    table = table.reshape(size.strata, size.models, 2)
    print(f"aggregation {time.perf_counter() - start:.2f} s (not part of the figures below)")
    table_draws(table, [0, 1], baseline=q, draws=999, engine="numba")  # compile off the clock

    print(f"{'':44s} {'draws':>7s} {'wall s':>8s} {'cpu s':>8s} {'cpu ms/draw':>11s} {'faster':>10s}")
    wall, processor = time.perf_counter(), time.process_time()
    shuffled = shuffle_labels(s, k, y, size.models, size.shuffles)
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    base = processor / size.shuffles
    report("NumPy label shuffling", size.shuffles, wall, processor)

    compiled, wall_c, cpu_c = timed(lambda: table_draws(table, [0, 1], baseline=q, draws=size.draws, engine="numba"))
    report("hypergeometric draws, Numba", size.draws, wall_c, cpu_c, base)
    plain, wall_p, cpu_p = timed(lambda: table_draws(table, [0, 1], baseline=q, draws=size.draws, engine="numpy"))
    report("hypergeometric draws, NumPy", size.draws, wall_p, cpu_p, base)

    few = 10
    theirs = by_scipy(k, y, few)
    name = "scipy permutation_test, one model, no strata"
    if theirs is None:
        row(name, peer=True, missing="scipy is not installed")
    else:
        print(f"{name:44s} {few:7d} {'':8s} {theirs:8.2f} {1e3 * theirs / few:11.4f}")
        row(name, 1e3 * theirs / few, "CPU ms/draw", peer=True, times=(theirs / few) / (cpu_c / size.draws))
    if size.rows:
        report_rows(s[: size.sessions // 10], k[: size.sessions // 10], y[: size.sessions // 10], q)

    closed = null_variance(s, k, y, baseline=q)
    spread = np.abs(compiled.effects.var(axis=0) / closed - 1.0).max()
    noise = np.sqrt(compiled.p_values * (1 - compiled.p_values) * 2 / size.draws)
    gap = np.abs(compiled.p_values - plain.p_values).max() / noise.max()
    hits = (np.abs(shuffled) >= np.abs(compiled.observed_t)).mean(axis=0)
    rough = np.abs(hits - compiled.p_values).max() / math.sqrt(0.25 / size.shuffles)
    print(f"null variance against the closed form: largest relative gap {spread:.3f}")
    print(f"p-values, Numba against NumPy: {gap:.1f} standard errors; against shuffling: {rough:.1f}")
    ratio = base / (cpu_c / size.draws)
    limits = {
        f"compiled within {LIMIT_COMPILED_S} s": (wall_c <= LIMIT_COMPILED_S, f"{wall_c:.1f} s of wall clock"),
        f"NumPy within {LIMIT_NUMPY_S} s": (wall_p <= LIMIT_NUMPY_S, f"{wall_p:.1f} s of wall clock"),
        f"at least {LIMIT_RATIO:.0f}x faster than shuffling": (ratio >= LIMIT_RATIO, f"{ratio:.0f}x"),
        "same answer within Monte Carlo error": (
            gap < 5 and rough < 5 and spread < 0.1,
            f"{max(gap, rough):.1f} standard errors at most",
        ),
    }
    for name, (kept, note) in limits.items():
        row(name, float(kept), "kept", note=note)
        print(f"{'ok    ' if kept else 'MISSED'} {name}: {note}")
    return 0 if all(kept for kept, _ in limits.values()) else 1


if __name__ == "__main__":
    # Numba looks for the module `coverage`; this folder has a script of that name, which must not be found.
    sys.path.pop(0)
    with told("randomisation") as small:
        status = main(small)
    sys.exit(status)
