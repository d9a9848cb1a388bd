"""Shares over clusters, pass^k, and the scorecard's means over tasks: one number and its interval, no contrast."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from grid.cell import LEVEL, Cell, Method, Reply, limits
from grid.peers import RESAMPLES, over_clusters
from seatrial.dimensions.aggregate import mean_over_tasks
from seatrial.dimensions.reproducibility import consistency_of
from seatrial.records import Estimate, TaskValue
from seatrial.stats import clustered_proportion, effective_number, pass_hat_k, ratio_estimate
from seatrial.stats.quantiles import two_sided_t, wilson_limits

SHARES, PASSING, CARDS = "Shares over clusters", "pass^k", "Scorecard means over tasks"
K = 4


class Clustered(NamedTuple):
    """Zeros and ones of clusters."""

    values: np.ndarray
    cluster: np.ndarray


def _told(e: Estimate | None, truth: float) -> Reply | None:
    return None if e is None else limits(e.low, e.high, truth, None)


def _proportion(s: Clustered, truth: float, seed: int) -> Reply | None:
    return _told(clustered_proportion(s.values, s.cluster), truth)


def _jackknife(s: Clustered, truth: float, seed: int) -> Reply | None:
    sums, sizes = np.bincount(s.cluster, s.values), np.bincount(s.cluster).astype(float)
    left = (sums.sum() - sums) / (sizes.sum() - sizes)
    g = sums.size
    se = float(np.sqrt((g - 1) / g * ((left - left.mean()) ** 2).sum()))
    share, effective = float(s.values.mean()), effective_number(sizes)
    n = float(g) if se < 1e-12 else min(max(share * (1 - share) / se**2, 1.0), s.values.size)
    low, high = wilson_limits(share, n, two_sided_t(LEVEL, max(effective - 1, 1.0)))
    return limits(low, high, truth, None)


def _wilson(s: Clustered, truth: float, seed: int) -> Reply | None:
    from statsmodels.stats.proportion import proportion_confint

    low, high = proportion_confint(int(s.values.sum()), s.values.size, 1 - LEVEL, method="wilson")
    return limits(float(low), float(high), truth, None)


def _binomial(s: Clustered, truth: float, seed: int) -> Reply | None:
    from scipy import stats

    ci = stats.binomtest(int(s.values.sum()), s.values.size).proportion_ci(LEVEL)
    return limits(float(ci.low), float(ci.high), truth, None)


def _mean(s: Clustered, truth: float, seed: int) -> Reply | None:
    import statsmodels.api as sm

    fit = sm.OLS(s.values, np.ones(s.values.size)).fit(cov_type="cluster", cov_kwds={"groups": s.cluster})
    low, high = np.ravel(fit.conf_int(1 - LEVEL))
    return limits(float(low), float(high), truth, None)


def _resampled(s: Clustered, truth: float, seed: int) -> Reply | None:
    return over_clusters(np.bincount(s.cluster, s.values), np.bincount(s.cluster).astype(float), truth, seed, None)


def shares(name: str, *, groups: int, size: int, mean: float, spread: float, uneven: bool = False) -> Cell:
    """Clusters with a chance of their own, Beta with this mean; `spread` is the correlation inside a cluster."""
    a, b = mean * (1 / spread - 1), (1 - mean) * (1 / spread - 1)

    def draw(rng: np.random.Generator, effect: bool) -> tuple[Clustered, float]:
        sizes = np.maximum(1, rng.pareto(1.5, groups) * size / 2).astype(int) if uneven else np.full(groups, size)
        cluster = np.repeat(np.arange(groups), sizes)
        return Clustered((rng.random(cluster.size) < rng.beta(a, b, groups)[cluster]).astype(float), cluster), mean

    methods = (
        Method("clustered Wilson, t (default)", _proportion),
        Method("the same, CR3 and t of G* - 1 (not the default)", _jackknife),
        Method("statsmodels OLS of a constant, cluster-robust", _mean, ours=False, needs="statsmodels"),
        Method("statsmodels proportion_confint, Wilson", _wilson, ours=False, needs="statsmodels"),
        Method("scipy binomtest, exact", _binomial, ours=False, share=0.3),
        Method("scipy bootstrap of clusters, BCa", _resampled, ours=False, share=0.2),
    )
    return Cell(SHARES, name, draw, methods, times=2, without=False)


def _hat(c: np.ndarray, truth: float, seed: int, n: int) -> Reply | None:
    return _told(pass_hat_k(np.full(c.size, n), c, K), truth)


def _per_task(c: np.ndarray, n: int) -> np.ndarray:
    out = np.ones(c.size)
    for j in range(K):
        out *= np.maximum(c - j, 0) / (n - j)
    return out


def _tasks_bca(values: np.ndarray, truth: float, seed: int) -> Reply | None:
    from scipy import stats

    if np.ptp(values) == 0:
        return Reply(hit=bool(abs(values[0] - truth) < 1e-12), width=0.0)
    ci = stats.bootstrap((values,), np.mean, vectorized=True, n_resamples=RESAMPLES, confidence_level=LEVEL,
                         rng=np.random.default_rng(seed)).confidence_interval  # fmt: skip
    return limits(float(ci.low), float(ci.high), truth, None)


def _tasks_t(values: np.ndarray, truth: float, seed: int) -> Reply | None:
    from scipy import stats

    if np.ptp(values) == 0:
        return Reply(hit=bool(abs(values[0] - truth) < 1e-12), width=0.0)
    low, high = stats.t.interval(LEVEL, values.size - 1, loc=values.mean(), scale=stats.sem(values))
    return limits(float(low), float(high), truth, None)


def _tasks_wilson(values: np.ndarray, truth: float, seed: int) -> Reply | None:
    mean, se = float(values.mean()), float(values.std(ddof=1)) / values.size**0.5
    n = float(values.size) if se == 0 else max(mean * (1 - mean) / se**2, 1.0)
    low, high = wilson_limits(min(max(mean, 0.0), 1.0), n, two_sided_t(LEVEL, values.size - 1))
    return limits(low, high, truth, None)


def _power(c: np.ndarray, truth: float, seed: int, n: int) -> Reply | None:
    from statsmodels.stats.proportion import proportion_confint

    low, high = proportion_confint(int(c.sum()), c.size * n, 1 - LEVEL, method="wilson")
    return limits(float(low) ** K, float(high) ** K, truth, None)


def passing(name: str, *, tasks: int, a: float, b: float, n: int = 8) -> Cell:
    """Tasks whose chance is Beta(a, b), n attempts at each: the chance that K fresh attempts all pass."""
    truth = float(np.prod([(a + j) / (a + b + j) for j in range(K)]))

    def draw(rng: np.random.Generator, effect: bool) -> tuple[np.ndarray, float]:
        return rng.binomial(n, rng.beta(a, b, tasks)), truth

    methods = (
        Method("pass^4, t over tasks (default)", lambda c, t, s: _hat(c, t, s, n)),
        Method("Wilson with the size that gives this error, t (not the default)",
               lambda c, t, s: _tasks_wilson(_per_task(c, n), t, s)),
        Method("scipy bootstrap of tasks, BCa", lambda c, t, s: _tasks_bca(_per_task(c, n), t, s), ours=False,
               share=0.2),
        Method("pooled share to the 4th power, statsmodels Wilson", lambda c, t, s: _power(c, t, s, n), ours=False,
               needs="statsmodels"),
    )  # fmt: skip
    return Cell(PASSING, name, draw, methods, times=2, without=False)


def _card(values: Callable[[np.ndarray], dict[str, TaskValue]]) -> Callable[[Any, Any, int], Reply | None]:
    return lambda x, truth, seed: _told(mean_over_tasks(values(x), LEVEL, "")[0], truth)


def _d1(x: np.ndarray) -> dict[str, TaskValue]:
    return {str(t): TaskValue(value=float(ys.mean()), n=ys.size) for t, ys in enumerate(x)}


def _d3(x: np.ndarray) -> dict[str, TaskValue]:
    return {str(t): consistency_of(ys.tolist()) for t, ys in enumerate(x)}


def _values(x: np.ndarray, d3: bool) -> np.ndarray:
    return np.array([t.value for t in (_d3(x) if d3 else _d1(x)).values()])


def card(name: str, *, d3: bool, tasks: int, k: int, a: float, b: float) -> Cell:
    """Completion (D1) or reproducibility (D3) of tasks whose chance is Beta(a, b), k runs each."""
    truth = 1 - 4 * a * b / ((a + b) * (a + b + 1)) if d3 else a / (a + b)

    def draw(rng: np.random.Generator, effect: bool) -> tuple[np.ndarray, float]:
        return (rng.random((tasks, k)) < rng.beta(a, b, tasks)[:, None]).astype(float), truth

    methods = (
        Method("t over tasks (default)", _card(_d3 if d3 else _d1)),
        Method("scipy t interval of task values", lambda x, t, s: _tasks_t(_values(x, d3), t, s), ours=False),
        Method("scipy bootstrap of tasks, BCa", lambda x, t, s: _tasks_bca(_values(x, d3), t, s), ours=False,
               share=0.2),
    )  # fmt: skip
    return Cell(CARDS, name, draw, methods, times=1.5, without=False)


def _repair(x: tuple[np.ndarray, np.ndarray], truth: float, seed: int) -> Reply | None:
    return _told(ratio_estimate(x[0], x[1], np.arange(x[0].size)), truth)


def _repair_bca(x: tuple[np.ndarray, np.ndarray], truth: float, seed: int) -> Reply | None:
    keep = x[1] > 0
    return over_clusters(x[0][keep], x[1][keep], truth, seed, None)


def repair(name: str, *, tasks: int, k: int) -> Cell:
    """Repair cost (D4) of failed runs: a ratio of sums over tasks, costs that differ between tasks."""

    def draw(rng: np.random.Generator, effect: bool) -> tuple[tuple[np.ndarray, np.ndarray], float]:
        failed = rng.binomial(k, rng.beta(1.0, 2.0, tasks))
        cost = rng.beta(2.0, 3.0, tasks)
        each = [float(rng.beta(8 * c + 0.1, 8 * (1 - c) + 0.1, m).sum()) for c, m in zip(cost, failed, strict=True)]
        return (failed - np.array(each), failed.astype(float)), _REPAIR

    methods = (
        Method("pooled ratio, linearised, t (default)", _repair),
        Method("scipy bootstrap of tasks, BCa", _repair_bca, ours=False, share=0.2),
    )
    return Cell(CARDS, name, draw, methods, times=1.5, without=False)


_NODES = (np.arange(100_000) + 0.5) / 100_000


def _beta_mean() -> float:
    from scipy import stats

    c = stats.beta(2.0, 3.0).ppf(_NODES)
    return float(1.0 - ((8 * c + 0.1) / 8.2).mean())


_REPAIR = _beta_mean()


def cells() -> list[Cell]:
    """Few and many clusters, uneven ones, rare and near-certain outcomes."""
    out = [
        shares("10 clusters of 10, p = .7", groups=10, size=10, mean=0.7, spread=0.2),
        shares("30 clusters of 5, p = .8", groups=30, size=5, mean=0.8, spread=0.3),
        shares("200 clusters of 10, p = .5", groups=200, size=10, mean=0.5, spread=0.2),
        shares("40 uneven clusters, p = .7", groups=40, size=10, mean=0.7, spread=0.2, uneven=True),
        shares("200 uneven clusters, p = .7", groups=200, size=10, mean=0.7, spread=0.2, uneven=True),
        shares("rare: 100 clusters of 5, p = .02", groups=100, size=5, mean=0.02, spread=0.1),
        shares("near certain: 30 clusters of 5, p = .97", groups=30, size=5, mean=0.97, spread=0.1),
    ]
    for name, a, b in (("mixed tasks", 1.0, 1.0), ("good agent", 4.0, 1.0), ("near certain", 12.0, 0.4)):
        out += [passing(f"{t} tasks, {name}", tasks=t, a=a, b=b) for t in (10, 30, 100)]
    for t, k, a, b in ((10, 4, 1.0, 1.0), (30, 4, 1.0, 1.0), (50, 10, 8.0, 0.5), (30, 10, 0.3, 0.3)):
        text = f"{t} tasks x {k}, Beta({a:g}, {b:g})"
        out += [
            card(f"D1, {text}", d3=False, tasks=t, k=k, a=a, b=b),
            card(f"D3, {text}", d3=True, tasks=t, k=k, a=a, b=b),
        ]
    return [*out, repair("D4, 30 tasks x 5", tasks=30, k=5), repair("D4, 100 tasks x 5", tasks=100, k=5)]
