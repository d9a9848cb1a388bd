"""The designs on which interval coverage is measured: each draws a sample whose true net improvement is known."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import polars as pl

from seatrial.causal import effect
from seatrial.causal.prepare import Sample
from seatrial.causal.uncertainty import WARN_BELOW, contrasts, net_coefficients, refusal, warnings
from seatrial.stats.quantiles import two_sided_t, two_sided_z


@dataclasses.dataclass(frozen=True)
class Design:
    """A named way to draw sessions: `truth` (K,) are the true arm means, `draw` gives one sample."""

    name: str
    truth: np.ndarray
    draw: Callable[[np.random.Generator], Sample]
    crossed: bool = False
    observational: bool = False
    estimator: effect.Estimator = "post-stratified"


def make_sample(
    arm: np.ndarray,
    y: np.ndarray,
    cluster: np.ndarray,
    stratum: np.ndarray,
    k: int,
    p: np.ndarray | None = None,
    task: np.ndarray | None = None,
    covariate: np.ndarray | None = None,
) -> Sample:
    """Arrays to a `Sample`, as `prepare.sample` would build it; strata are task types, `task` None is unknown.

    `covariate` is a number known before treatment, the column `prompt_chars`."""
    kept, group = np.unique(cluster, return_inverse=True)
    labels = np.array([f"type {s}" for s in range(int(stratum.max()) + 1)])
    n = arm.size
    frame = pl.DataFrame(
        {
            "session": np.arange(n).astype(str),
            "task_type": labels[stratum],
            "difficulty": pl.Series([None] * n, dtype=pl.String),
            "epoch": pl.Series([None] * n, dtype=pl.String),
            "task": pl.Series([None] * n if task is None else [f"task {t}" for t in task], dtype=pl.String),
        }
    )
    if covariate is not None:
        frame = frame.with_columns(pl.Series("prompt_chars", covariate))
    return Sample(
        frame=frame, y=y.astype(np.float64), arm=arm.astype(np.int64), cluster=group.astype(np.int64),
        n_clusters=kept.size, probability=np.full(n, np.nan) if p is None else p,
        arms=tuple(f"m{i}" for i in range(k)), cluster_kind="user", one_user=False, bounded=True,
        binary=bool(np.isin(y, (0.0, 1.0)).all()),
    )  # fmt: skip


def _activity(rng: np.random.Generator, users: int, uneven: bool) -> np.ndarray:
    share = rng.pareto(1.6, users) + 0.3 if uneven else np.ones(users)
    return share / share.sum()


_NORMAL = np.random.default_rng(987654321).standard_normal(200_000)


def _logit_mean(centre: np.ndarray, sd: float) -> np.ndarray:
    """E[1/(1 + exp(-(centre + sd Z)))] by averaging over fixed normal draws."""
    return np.array([np.mean(1.0 / (1.0 + np.exp(-(c + sd * _NORMAL)))) for c in centre.ravel()]).reshape(centre.shape)


def sessions(
    name: str,
    *,
    n: int,
    users: int,
    k: int = 3,
    strata: int = 3,
    uneven: bool = False,
    sticky: bool = False,
    chances: tuple[float, ...] | None = None,
    specialists: bool = False,
    confounded: bool = False,
    vary_p: bool = False,
    centre: float = 0.2,
    user_sd: float = 0.8,
    user_model_sd: float = 0.4,
    estimator: effect.Estimator = "post-stratified",
    gap: float = 0.2,
    tilt: float = 0.8,
    absent: bool = False,
    covariate: float = 0.0,
    hidden: float = 0.0,
) -> Design:
    """Binary outcomes, logit = arm x stratum + user + user x arm.

    `specialists`: users keep to one stratum, and arms differ between strata, so that estimated weights matter.
    `confounded`: the arm depends on the stratum, unrecorded. `vary_p`: the recorded chance varies inside strata.
    `gap`: the arms' logits run from -gap to gap; `tilt`: and by stratum. `absent`: the last arm never serves the first
    stratum, and the truth is that of the others. `covariate`: a number known before treatment moves the outcome's
    logit so much, and the arm's as well where `confounded`. `hidden`: so does the user's own ability, which no column
    holds.
    """
    base = np.array(chances if chances is not None else [1.0 / k] * k)
    lines = np.linspace(-1.0, 1.0, k)[None, :] * np.linspace(-tilt, tilt, strata)[:, None]
    logit = centre + np.linspace(-gap, gap, k)[None, :] + np.linspace(-0.7, 0.7, strata)[:, None] + lines
    mix = np.linspace(1.0, 2.0, strata) / np.linspace(1.0, 2.0, strata).sum()
    sd = float(np.sqrt(user_sd**2 + user_model_sd**2 + covariate**2))
    aim = np.where(np.arange(strata) == 0, 0.0, mix) / mix[1:].sum() if absent else mix
    truth = aim @ _logit_mean(logit, sd)

    def draw(rng: np.random.Generator) -> Sample:
        share = _activity(rng, users, uneven)
        user = rng.choice(users, n, p=share)
        home = rng.choice(strata, users, p=mix)
        stratum = home[user] if specialists else rng.choice(strata, n, p=mix)
        chance = np.broadcast_to(base, (n, k)).copy()
        if vary_p:
            half = rng.random(n) < 0.5
            chance[half] = base[::-1]
        if confounded:
            lean = np.exp(np.linspace(-0.6, 0.6, k)[None, :] * np.linspace(1.0, -1.0, strata)[:, None])
            chance = (base * lean / (base * lean).sum(axis=1, keepdims=True))[stratum]
        own = rng.normal(0, user_sd, users)[user] if hidden or covariate else None
        x = rng.normal(0, 1.0, n) if covariate else None
        if own is not None:
            pull = (covariate * x if x is not None and confounded else 0.0) + hidden * own
            chance = chance * np.exp(np.linspace(-1.0, 1.0, k)[None, :] * np.asarray(pull)[..., None])
        if absent:
            chance[stratum == 0, k - 1] = 0.0
        chance = chance / chance.sum(axis=1, keepdims=True)
        if sticky:
            drawn = rng.permutation(np.resize(np.arange(k), users))
            arm = drawn[user]
        else:
            arm = (rng.random(n)[:, None] > np.cumsum(chance, axis=1)).sum(axis=1).clip(0, k - 1)
        if own is None:
            own = rng.normal(0, user_sd, users)[user]
        effect_u = own + rng.normal(0, user_model_sd, (users, k))[user, arm]
        if x is not None:
            effect_u = effect_u + covariate * x
        y = rng.random(n) < 1.0 / (1.0 + np.exp(-(logit[stratum, arm] + effect_u)))
        p = chance[np.arange(n), arm] if vary_p else None
        return make_sample(arm, y, user, stratum, k, p, covariate=x)

    return Design(name, truth, draw, observational=confounded or hidden > 0, estimator=estimator)


def tasks(name: str, *, n_tasks: int, k: int = 4, repeats: int = 2, centre: float = 0.3) -> Design:
    """Every arm runs every task `repeats` times; binary outcomes, logit = arm + task + task x arm."""
    logit = centre + np.linspace(-0.4, 0.4, k)
    truth = _logit_mean(logit, float(np.hypot(1.2, 0.7)))

    def draw(rng: np.random.Generator) -> Sample:
        value = logit + rng.normal(0, 1.2, (n_tasks, 1)) + rng.normal(0, 0.7, (n_tasks, k))
        p = np.repeat((1.0 / (1.0 + np.exp(-value))).ravel(), repeats)
        task = np.repeat(np.arange(n_tasks), k * repeats)
        arm = np.tile(np.repeat(np.arange(k), repeats), n_tasks)
        return make_sample(arm, rng.random(p.size) < p, np.arange(p.size), np.zeros(p.size, dtype=int), k, task=task)

    return Design(name, truth, draw, crossed=True)


def repeated_tasks(name: str, *, n: int, n_tasks: int, k: int = 3) -> Design:
    """Users unknown, tasks drawn with replacement, arms at random: tasks, not sessions, are the evidence."""
    logit = 0.3 + np.linspace(-0.4, 0.4, k)
    truth = _logit_mean(logit, float(np.hypot(1.0, 1.0)))

    def draw(rng: np.random.Generator) -> Sample:
        value = logit + rng.normal(0, 1.0, (n_tasks, 1)) + rng.normal(0, 1.0, (n_tasks, k))
        task, arm = rng.integers(0, n_tasks, n), rng.integers(0, k, n)
        y = rng.random(n) < 1.0 / (1.0 + np.exp(-value[task, arm]))
        return make_sample(arm, y, np.arange(n), np.zeros(n, dtype=int), k, task=task)

    return Design(name, truth, draw)


def grid() -> tuple[Design, ...]:
    """The designs of METHODS 3.4 that intervals are held to."""
    return (
        sessions("many even users", n=2000, users=300),
        sessions("many uneven users", n=3000, users=400, uneven=True),
        sessions("few even users", n=900, users=20),
        sessions("few uneven users", n=1500, users=60, uneven=True),
        sessions("thin arm", n=1200, users=150, chances=(0.48, 0.46, 0.06)),
        sessions("thinnest arm", n=1200, users=150, strata=1, chances=(0.49, 0.49, 0.02)),
        sessions("sticky users", n=1500, users=60, sticky=True),
        sessions("sticky, uneven", n=2500, users=150, sticky=True, uneven=True),
        sessions("estimated strata weights", n=900, users=36, specialists=True),
        sessions("probabilities vary, Hajek", n=1500, users=120, chances=(0.6, 0.3, 0.1), vary_p=True),
        sessions("confounded by strata", n=2000, users=200, confounded=True),
        sessions("confounded, AIPW", n=2000, users=200, confounded=True, estimator="aipw"),
        sessions("Lin, few users", n=900, users=40, estimator="lin"),
        sessions("near the ceiling", n=1500, users=150, centre=2.6),
        sessions("mix of three heavy users", n=900, users=14, uneven=True),
        repeated_tasks("tasks repeat, users unknown", n=900, n_tasks=40),
        tasks("crossed, 12 tasks", n_tasks=12),
        tasks("crossed, 50 tasks", n_tasks=50, repeats=1),
    )


@dataclasses.dataclass(frozen=True)
class Measured:
    """Coverage over replicates and arms: `cover` of the default interval, `cr1` of CR1 with z; counts of replicates."""

    name: str
    replicates: int
    refused: int
    warned: int
    silent: int
    cover: float
    cr1: float
    width: float
    g_thinnest: float


def measure(design: Design, replicates: int, *, seed: int, level: float = 0.95) -> Measured:
    """Draw, analyse as `rank` does, and see how often the truth lies inside.

    `silent` counts replicates whose thinnest arm is under 30 effective clusters without a warning or refusal.
    """
    k = design.truth.size
    c = net_coefficients(np.full(k, 1.0 / k))
    truth = c @ design.truth
    hits: list[np.ndarray] = []
    plain: list[np.ndarray] = []
    widths: list[float] = []
    thinnest: list[float] = []
    refused = warned = silent = 0
    for r in range(replicates):
        sample = design.draw(np.random.default_rng([seed, r]))
        analysis = analyse(design, sample)
        if analysis is None or refusal(analysis.moments, sample.arms, tested=False):
            refused += 1
            continue
        said = bool(warnings(analysis.moments, sample.arms))
        warned += said
        silent += not said and float(analysis.moments.g_star_k.min()) < WARN_BELOW
        each = contrasts(analysis.moments, c)
        half = np.array([two_sided_t(level, df) for df in each.df]) * each.se
        miss = np.abs(each.value - truth)
        hits.append(miss <= half)
        plain.append(miss <= two_sided_z(level) * each.se_cr1)
        widths.append(float(2 * half.mean()))
        thinnest.append(float(analysis.moments.g_star_k.min()))
    kept = len(hits)
    return Measured(
        design.name, replicates, refused, warned, silent,
        float(np.mean(hits)) if kept else float("nan"), float(np.mean(plain)) if kept else float("nan"),
        float(np.mean(widths)) if kept else float("nan"), float(np.mean(thinnest)) if kept else float("nan"),
    )  # fmt: skip


def analyse(design: Design, sample: Sample) -> effect.Analysis | None:
    """What `rank` would do with this sample under this design."""
    if design.crossed:
        return effect.crossed(sample, frozenset(sample.frame["task"].unique().to_list()))
    return effect.stratified(sample, estimator=design.estimator, observational=design.observational, covariates=())
