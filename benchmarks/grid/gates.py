"""The gate's error rates, and monitoring: what is said at any of sixty looks."""

from __future__ import annotations

from typing import Any, NamedTuple

import gate_designs as designs
import numpy as np

from grid.cell import ALPHA, LEVEL, Cell, Method, Reply
from seatrial.causal import cells as sums
from seatrial.causal.uncertainty import contrasts
from seatrial.causal.watching import FEWEST_CLUSTERS
from seatrial.gate.noninferiority import compare
from seatrial.stats import confidence_sequence, holm, rho_for
from seatrial.stats.quantiles import two_sided_z

GATE, PASSES, LOOKS = "Gate: REGRESSION", "Gate: PASS", "Sixty looks at a growing table"
MARGIN, METRICS, RUNS = 0.02, 6, 5


class Counts(NamedTuple):
    """Passed attempts of baseline and candidate, (metrics, tasks), and attempts per task."""

    b: np.ndarray
    c: np.ndarray
    runs: int


def _blocks(x: Counts, truth: float, seed: int) -> Reply | None:
    d = (x.c - x.b) / x.runs
    t = compare(d, np.full(d.shape[0], d.shape[1] * x.runs), MARGIN, binary=True)
    return Reply(reject=bool(((holm(t.p) <= ALPHA) & t.drops).any()))


def _point(x: Counts, truth: float, seed: int) -> Reply | None:
    return Reply(reject=bool((x.b.sum(axis=1) - x.c.sum(axis=1) > MARGIN * x.b.shape[1] * x.runs + 1e-9).any()))


def _paired_t(x: Counts, truth: float, seed: int) -> Reply | None:
    from scipy import stats

    with np.errstate(all="ignore"):
        p = [stats.ttest_rel(c, b, alternative="less").pvalue for b, c in zip(x.b, x.c, strict=True)]
    return Reply(reject=bool((np.nan_to_num(p, nan=1.0) <= ALPHA).any()))


def _fisher(x: Counts, truth: float, seed: int) -> Reply | None:
    from scipy import stats

    n = x.b.shape[1] * x.runs
    p = [stats.fisher_exact([[c.sum(), n - c.sum()], [b.sum(), n - b.sum()]], alternative="less").pvalue
         for b, c in zip(x.b, x.c, strict=True)]  # fmt: skip
    return Reply(reject=min(p) <= ALPHA)


def _passes(x: Counts, truth: float, seed: int) -> Reply | None:
    d = (x.c - x.b) / x.runs
    return Reply(reject=bool(compare(d, np.full(d.shape[0], d.shape[1] * x.runs), MARGIN, binary=True).passes.all()))


def _not_worse(x: Counts, truth: float, seed: int) -> Reply | None:
    from scipy import stats

    with np.errstate(all="ignore"):
        ok = [stats.ttest_1samp((c - b) / x.runs, -MARGIN, alternative="greater").pvalue
              for b, c in zip(x.b, x.c, strict=True)]  # fmt: skip
    # Differences that do not vary have no p: the mean alone then decides, as a plain t test would have it.
    sure = [(c - b).mean() / x.runs > -MARGIN for b, c in zip(x.b, x.c, strict=True)]
    return Reply(reject=all(s if np.isnan(p) else p <= ALPHA for p, s in zip(ok, sure, strict=True)))


def _draw(rng: np.random.Generator, kind: str, tasks: int, drop: float, metrics: int, few: bool) -> Counts:
    p = designs.chances(kind, tasks, 1, rng)
    q = (designs.concentrated if few else designs.dropped)(p, drop) if drop else p
    shape = (metrics, tasks)
    return Counts(rng.binomial(RUNS, p, size=shape), rng.binomial(RUNS, q, size=shape), RUNS)


def blocking(kind: str, tasks: int) -> Cell:
    """Six metrics of an unchanged agent, and of one that lost ten points on every metric."""

    def draw(rng: np.random.Generator, effect: bool) -> tuple[Counts, float]:
        return _draw(rng, kind, tasks, 0.10 if effect else 0.0, METRICS, False), 0.0

    methods = (
        Method("gate, Holm over six metrics (default)", _blocks),
        Method("block on a drop of more than 2 points", _point, foil=True),
        Method("scipy ttest_rel on each metric", _paired_t, ours=False, share=0.3),
        Method("scipy fisher_exact on each metric", _fisher, ours=False, share=0.3),
    )
    return Cell(GATE, f"{kind}, {tasks} x {RUNS}", draw, methods, times=1.5)


def passing(kind: str, tasks: int, few: bool) -> Cell:
    """One metric: PASS of an agent that truly lost the margin is an error; PASS of an unchanged one is power."""

    def draw(rng: np.random.Generator, effect: bool) -> tuple[Counts, float]:
        return _draw(rng, kind, tasks, 0.0 if effect else MARGIN, 1, few), 0.0

    methods = (
        Method("gate (default)", _passes),
        Method("scipy ttest_1samp against the margin", _not_worse, ours=False, share=0.4),
    )
    where = "lost by few tasks" if few else "lost by all"
    return Cell(PASSES, f"{kind}, {tasks} x {RUNS}, {where}", draw, methods, alpha=0.064, times=3)


class Stream(NamedTuple):
    """Sessions in order of their users' arrival; `ends` of the rows seen at each look."""

    user: np.ndarray
    arm: np.ndarray
    y: np.ndarray
    ends: np.ndarray


def _seen(x: Stream) -> list[tuple[float, float, float]]:
    """Difference of two arms at every look, its CR3 error, and the smaller number of effective clusters."""
    out = []
    for end in x.ends:
        zero = np.zeros(end, dtype=np.int64)
        m = sums.moments(sums.build(x.user[:end], zero, x.arm[:end], x.y[:end], n_strata=1, n_arms=2))
        each = contrasts(m, np.array([[-1.0, 1.0]]))
        out.append((float(each.value[0]), float(each.se[0]), float(m.g_star_k.min())))
    return out


_KEPT: dict[int, list[tuple[float, float, float]]] = {}


def _once(x: Stream) -> list[tuple[float, float, float]]:
    """All methods look at the same sample one after the other: its errors are computed once."""
    if id(x.y) not in _KEPT:
        _KEPT.clear()
        _KEPT[id(x.y)] = _seen(x)
    return _KEPT[id(x.y)]


def _at_any(looks: list[tuple[float, float]], truth: float) -> Reply:
    hit = all(abs(v - truth) <= r for v, r in looks)
    return Reply(hit, any(abs(v) > r for v, r in looks), 2 * looks[-1][1])


def _sequence(x: Stream, truth: float, seed: int) -> Reply | None:
    seen = _once(x)
    # The target is frozen before the first look: the information that the plan expects at the end, here half of it.
    rho = rho_for(0.5 * x.ends[-1] / 4 / 0.35, ALPHA)
    looks = [(v, confidence_sequence(se, rho, ALPHA)) for v, se, g in seen if g >= FEWEST_CLUSTERS and se > 0]
    return _at_any(looks, truth) if looks else None


def _fixed(x: Stream, truth: float, seed: int) -> Reply | None:
    return _at_any([(v, two_sided_z(LEVEL) * se) for v, se, g in _once(x) if g >= FEWEST_CLUSTERS and se > 0], truth)


def _bonferroni(x: Stream, truth: float, seed: int) -> Reply | None:
    z = two_sided_z(1 - ALPHA / len(x.ends))
    return _at_any([(v, z * se) for v, se, g in _once(x) if g >= FEWEST_CLUSTERS and se > 0], truth)


def _tea(x: Stream, truth: float, seed: int) -> Reply | None:
    import polars as pl
    import tea_tasting as tt

    looks = []
    frame = pl.DataFrame({"user": x.user, "variant": x.arm, "y": x.y, "n": 1.0})
    for end, (_, _, g) in zip(x.ends, _once(x), strict=True):
        if g < FEWEST_CLUSTERS:
            continue
        table = frame[:end].group_by("user", "variant").agg(pl.col("y", "n").sum()).sort("user", "variant")
        found: Any = tt.Experiment(r=tt.RatioOfMeans("y", "n")).analyze(table)["r"]
        looks.append((found.effect_size, (found.effect_size_ci_upper - found.effect_size_ci_lower) / 2))
    return _at_any(looks, truth)


def looking(name: str, *, users: int, each: float, sd: float, mean: float = 0.0, rise: float = 0.35) -> Cell:
    """Users arrive one after the other, each assigned once; sixty looks after as many users each."""
    grid = np.random.default_rng(5).standard_normal(400_000) * sd
    shares = [float((1 / (1 + np.exp(-(mean + grid + r)))).mean()) for r in (0.0, rise)]

    def draw(rng: np.random.Generator, effect: bool) -> tuple[Stream, float]:
        n = rng.poisson(each - 1, users) + 1
        user = np.repeat(np.arange(users), n)
        arm = rng.integers(0, 2, users)[user]
        score = mean + rng.normal(0, sd, users)[user] + (rise * arm if effect else 0.0)
        y = (rng.random(user.size) < 1 / (1 + np.exp(-score))).astype(float)
        ends = np.searchsorted(user, np.linspace(users / 60, users, 60).astype(int), side="left")
        return Stream(user, arm.astype(np.int64), y, ends), (shares[1] - shares[0]) if effect else 0.0

    methods = (
        Method("confidence sequence (default)", _sequence),
        Method("95% interval at every look", _fixed, foil=True),
        Method("Bonferroni over the looks", _bonferroni, foil=True),
        Method("tea-tasting at every look", _tea, ours=False, needs="tea_tasting", share=0.05),
    )
    return Cell(LOOKS, name, draw, methods, times=1.5)


def cells() -> list[Cell]:
    """Steady, mixed, flaky and near-perfect agents; looks over few and many users, rare outcomes."""
    out = [blocking(kind, tasks) for kind in ("design", "mixed", "near perfect") for tasks in (30, 100)]
    out += [passing(kind, 100, few) for kind in ("design", "steady", "near perfect") for few in (False, True)]
    return [
        *out,
        looking("1,200 users, 2 sessions each", users=1200, each=2.0, sd=0.8),
        looking("600 users, 5 sessions each, unlike", users=600, each=5.0, sd=1.5),
        looking("2,400 users, rare outcome (4%)", users=2400, each=2.0, sd=0.7, mean=-3.4, rise=0.7),
    ]
