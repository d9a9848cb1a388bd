"""How long an interval takes, and what it says: ours and peers' on the same sessions.

    python benchmarks/intervals.py [--sessions 50000] [--quick] [--json]

Five models, twenty task types, uneven users, and a choice of model that depends on the task type: the difference of the
last model and the first is 4 points in truth and has the other sign where strata are ignored. Times are processor
seconds of this process, after one call that loads what is needed; peers are called as their manuals say.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import polars as pl

from contract import installed, row, told

MODELS, STRATA = 5, 20
TRUTH = 0.04
Limits = tuple[float, float]


def sessions(n: int) -> pl.DataFrame:
    """Outcomes whose chance is task type + model + user; better models get the harder types more often."""
    rng = np.random.default_rng(0)
    users = max(200, n // 20)
    share = rng.pareto(1.6, users) + 0.3
    user = rng.choice(users, n, p=share / share.sum())
    stratum = rng.integers(0, STRATA, n)
    hard = stratum / (STRATA - 1)
    lean = np.exp(np.linspace(-1, 1, MODELS)[None, :] * (2 * hard - 1)[:, None])
    arm = (rng.random(n)[:, None] > np.cumsum(lean / lean.sum(axis=1, keepdims=True), axis=1)).sum(axis=1)
    chance = 0.75 - 0.5 * hard + TRUTH * arm / (MODELS - 1) + rng.uniform(-0.1, 0.1, users)[user]
    return pl.DataFrame(
        {
            "session": [f"s{i:08d}" for i in range(n)], "user": user.astype(str), "arm": [f"model {a}" for a in arm],
            "task_type": [f"type {s:02d}" for s in stratum], "outcome": (rng.random(n) < chance) * 1.0,
        }
    )  # fmt: skip


def ours(frame: pl.DataFrame) -> Limits:
    """Post-stratified means of all models, CR3, and this contrast."""
    from seatrial.causal import cells
    from seatrial.causal.prepare import codes
    from seatrial.causal.uncertainty import contrasts
    from seatrial.stats.quantiles import two_sided_t

    cluster, stratum, arm = (codes(frame[c])[0] for c in ("user", "task_type", "arm"))
    m = cells.moments(cells.build(cluster, stratum, arm, frame["outcome"].to_numpy()))
    each = contrasts(m, _contrast()[None, :])
    half = two_sided_t(0.95, float(each.df[0])) * float(each.se[0])
    return float(each.value[0]) - half, float(each.value[0]) + half


def whole(frame: pl.DataFrame) -> Limits:
    """The whole ranking without its randomisation test: design checks, all models, simultaneous, ranks."""
    from seatrial.causal.ranking import rank

    found = rank(frame, outcome="outcome", by=(), estimator="post-stratified", draws=999)
    net = {r.model: r.net_improvement for r in found.models}
    last, first = net[f"model {MODELS - 1}"], net["model 0"]
    assert last is not None
    assert first is not None
    return last.value - first.value, last.value - first.value


def _contrast() -> np.ndarray:
    row_ = np.zeros(MODELS)
    row_[-1], row_[0] = 1.0, -1.0
    return row_


def _matrix(frame: pl.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    arm = frame["arm"].str.slice(6).cast(pl.Int64).to_numpy()
    stratum = frame["task_type"].str.slice(5).cast(pl.Int64).to_numpy()
    dummies = np.column_stack([(stratum == s) * 1.0 for s in range(1, STRATA)])
    z = dummies - dummies.mean(axis=0)
    arms = np.column_stack([(arm == a) * 1.0 for a in range(MODELS)])
    x = np.column_stack([arms] + [arms[:, a : a + 1] * z for a in range(MODELS)])
    contrast = np.zeros(x.shape[1])
    contrast[:MODELS] = _contrast()
    return x, contrast


def ols(frame: pl.DataFrame) -> Limits:
    """statsmodels, every interaction, cluster-robust."""
    import statsmodels.api as sm

    x, contrast = _matrix(frame)
    groups = frame["user"].cast(pl.Int64).to_numpy()
    fit = sm.OLS(frame["outcome"].to_numpy(), x).fit(cov_type="cluster", cov_kwds={"groups": groups})
    low, high = np.ravel(fit.t_test(contrast).conf_int())
    return float(low), float(high)


def _two(frame: pl.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    return tuple(frame.filter(pl.col("arm") == f"model {a}")["outcome"].to_numpy() for a in (MODELS - 1, 0))  # type: ignore[return-value]


def tea(frame: pl.DataFrame) -> Limits:
    """tea-tasting, one row per user and variant, no strata."""
    import tea_tasting as tt

    kept = frame.filter(pl.col("arm").is_in(["model 0", f"model {MODELS - 1}"]))
    table = kept.group_by("user", pl.col("arm").eq(f"model {MODELS - 1}").cast(pl.Int64).alias("variant")).agg(
        pl.col("outcome").sum(), pl.len().cast(pl.Float64).alias("n")
    )
    found = tt.Experiment(r=tt.RatioOfMeans("outcome", "n")).analyze(table.sort("user", "variant"))["r"]
    return float(found.effect_size_ci_lower), float(found.effect_size_ci_upper)


def welch(frame: pl.DataFrame) -> Limits:
    """scipy ttest_ind, no strata, sessions independent."""
    from scipy import stats

    a, b = _two(frame)
    ci = stats.ttest_ind(a, b, equal_var=False).confidence_interval()
    return float(ci.low), float(ci.high)


def bootstrap(frame: pl.DataFrame) -> Limits:
    """scipy bootstrap, percentile, 999 resamples, in batches that fit memory."""
    from scipy import stats

    ci = stats.bootstrap(
        _two(frame), lambda p, q, axis: p.mean(axis=axis) - q.mean(axis=axis), vectorized=True, n_resamples=999,
        method="percentile", batch=50, rng=np.random.default_rng(0),
    ).confidence_interval  # fmt: skip
    return float(ci.low), float(ci.high)


METHODS: tuple[tuple[str, str | None, Callable[[pl.DataFrame], Limits]], ...] = (
    ("seatrial: CR3 interval of the difference", None, ours),
    ("seatrial: the whole ranking, 999 draws (no interval of it)", None, whole),
    ("statsmodels OLS, interacted, cluster-robust", "statsmodels", ols),
    ("tea-tasting RatioOfMeans by user", "tea_tasting", tea),
    ("scipy ttest_ind, Welch", "scipy", welch),
    ("scipy bootstrap of sessions, 999", "scipy", bootstrap),
)


def main(quick: bool) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=5_000 if quick else 50_000)
    asked = parser.parse_args()
    frame, small = sessions(asked.sessions), sessions(2_000)
    print(f"{asked.sessions:,} sessions, {MODELS} models, {STRATA} strata; the truth is about {TRUTH:+.3f}")
    base: float | None = None
    for name, module, work in METHODS:
        if module is not None and not installed(module):
            print(f"{name:58s} not installed")
            row(name, peer=True, missing=f"{module} is not installed")
            continue
        work(small)
        began = time.process_time()
        low, high = work(frame)
        spent = time.process_time() - began
        base = spent if base is None else base
        inside = "holds the truth" if low <= TRUTH <= high else "misses the truth"
        answer = f"{low:+.3f}, the estimate alone" if low == high else f"[{low:+.3f}, {high:+.3f}] {inside}"
        print(f"{name:58s}{spent:9.3f} s{spent / base:9.1f}x  {answer}", flush=True)
        row(
            name,
            spent,
            "CPU s",
            peer=module is not None,
            times=spent / base,
            note=answer,
        )


if __name__ == "__main__":
    with told("intervals") as small_:
        main(small_)
