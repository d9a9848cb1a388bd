"""Agents whose pass chances are known, for measuring how often the gate errs. Shared by tests and benchmark."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from seatrial.gate.noninferiority import compare
from seatrial.stats import holm

Floats = NDArray[np.float64]


class Rates(NamedTuple):
    """Shares of simulated comparisons by the suite's verdict; `point` is how often the literal rule blocks, per metric
    and over any of them; `pass_one` how often the first metric alone passes."""

    regression: float
    passes: float
    inconclusive: float
    point: float
    point_any: float
    pass_one: float
    regression_one: float


FLAKINESS: dict[str, tuple[float, float]] = {
    # Beta(a, b) over tasks: mean pass chance and how much of the spread lies between tasks.
    "steady": (0.4, 0.1),
    "mixed": (2.0, 1.0),
    "flaky": (8.0, 4.0),
    "coin": (50.0, 50.0),
    "near perfect": (30.0, 0.3),
}


DESIGN: tuple[float, float] = (4 / 3, 1 / 3)
"""The agents of METHODS 6.5, whose mean p(1 - p) is .10: mean chance .8."""


def chances(kind: str, tasks: int, n: int, rng: np.random.Generator) -> Floats:
    """Pass chances of tasks, (n, tasks)."""
    a, b = DESIGN if kind == "design" else FLAKINESS[kind]
    return rng.beta(a, b, size=(n, tasks))


def dropped(p: Floats, drop: float) -> Floats:
    """Chances whose mean over tasks is lower by exactly `drop` where possible: every task loses the same share of its
    chance, so that none falls below 0."""
    mean = p.mean(axis=-1, keepdims=True)
    return p * np.maximum(0.0, 1.0 - drop / mean)


def concentrated(p: Floats, drop: float) -> Floats:
    """The same mean drop from as few tasks as possible: they break altogether, the last one in part."""
    tasks = p.shape[-1]
    left = np.full(p.shape[:-1], drop * tasks)
    out = p.copy()
    for t in range(tasks):
        loss = np.minimum(out[..., t], left)
        out[..., t] -= loss
        left = left - loss
    return out


def partly(p: Floats, drop: float, share: float = 1 / 3) -> Floats:
    """The same mean drop from this share of the tasks alone (the first; chances are exchangeable): each loses the same,
    as far as it can, and all tasks make up for what is then missing."""
    tasks = p.shape[-1]
    broken = max(1, round(share * tasks))
    loss = np.zeros_like(p)
    loss[..., :broken] = np.minimum(p[..., :broken], drop * tasks / broken)
    missing = drop * tasks - loss.sum(axis=-1, keepdims=True)
    room = p - loss
    whole = room.sum(axis=-1, keepdims=True)
    return np.asarray(room - room * np.minimum(1.0, missing / np.maximum(whole, 1e-12)))


def simulate(
    baseline: Floats, candidate: Floats, runs: int, *, metrics: int = 1, margin: float = 0.02, seed: int = 0,
    alpha: float = 0.05,
) -> Rates:  # fmt: skip
    """Verdicts over simulations; chances are (n, tasks), the same for each of `metrics` independent metrics."""
    rng = np.random.default_rng(seed)
    n, tasks = baseline.shape
    shape = (metrics, n, tasks)
    b = rng.binomial(runs, baseline, size=shape)
    c = rng.binomial(runs, candidate, size=shape)
    d = (c - b) / runs
    t = compare(d, np.full((metrics, n), tasks * runs), margin, binary=True, alpha=alpha)
    p = np.apply_along_axis(holm, 0, t.p) if metrics > 1 else t.p
    regressed = (p <= alpha) & t.drops
    passed = t.passes & ~regressed
    lost = b.sum(axis=-1) - c.sum(axis=-1)
    point = lost > margin * tasks * runs + 1e-9
    any_regression = regressed.any(axis=0)
    all_pass = passed.all(axis=0)
    return Rates(
        regression=float(any_regression.mean()),
        passes=float(all_pass.mean()),
        inconclusive=float((~any_regression & ~all_pass).mean()),
        point=float(point.mean()),
        point_any=float(point.any(axis=0).mean()),
        pass_one=float(passed[0].mean()),
        regression_one=float(regressed[0].mean()),
    )
