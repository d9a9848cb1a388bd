"""The randomisation test inside the design: is there any evidence that models matter at all? (METHODS 3.2, 3.5)."""

from __future__ import annotations

import dataclasses

import numpy as np
import polars as pl

from seatrial.causal import reweighted
from seatrial.causal.cells import Floats, stratum_weights, tally
from seatrial.causal.effect import Analysis
from seatrial.causal.prepare import Codes, Sample, codes, numbered, probabilities
from seatrial.records import NullDistribution
from seatrial.stats.randomisation import (
    RandomisationTest,
    cluster_permutation,
    hypergeometric_draws,
    null_variance,
    row_permutation,
)

LEVELS = 64
"""Distinct outcome values up to which permuted cell tables are drawn instead of permuted labels."""

FLIPS = 20
"""Tasks up to which all 2^T sign flips of a paired comparison of two arms are enumerated."""


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """The test, or None and why there is none.

    `null_sd` (K,): standard deviation of the permuted effects in closed form (sessions permuted inside the strata of
    the statistic only), which checks the draws. `centred`: the draws' mean is zero by construction, since labels are
    permuted one by one in exactly the strata of the statistic; where it pools several, they centre near zero only.
    """

    test: RandomisationTest | None
    why: str | None = None
    null_sd: Floats | None = None
    centred: bool = True


def _text(frame: pl.DataFrame, columns: tuple[str, ...]) -> Codes:
    parts = [pl.col(c).cast(pl.String).fill_null("") for c in columns]
    return codes(frame.select(pl.concat_str(*parts, separator="\x1f").alias("key"))["key"])[0]


def _compact(*columns: Codes) -> Codes:
    """One code per distinct combination."""
    out = columns[0]
    for column in columns[1:]:
        out = out * (int(column.max()) + 1) + column
        out = np.unique(out, return_inverse=True)[1].astype(np.int64)
    return out


def _sticky(sample: Sample, randomised: bool, block: Codes) -> Codes | None:
    """Codes of the units whose arms were drawn as a whole (several sessions each), or None: sessions were drawn."""
    unit = sample.cluster
    if randomised:
        if sample.frame["unit"].null_count():
            return None
        unit = _compact(numbered(sample.frame["unit"])[0], block)
    n_units = int(unit.max()) + 1
    if n_units == sample.n:
        return None
    pairs = np.unique(unit * len(sample.arms) + sample.arm).size
    return unit if pairs == n_units else None


def run(analysis: Analysis, q: Floats, *, randomised: bool, draws: int, seed: int) -> Outcome:
    """Permute arms inside the design, all arms at once; the statistic is studentised by the cluster-robust error.

    Recorded assignments permute what was drawn: sessions inside assignment stratum x epoch x probabilities, or whole
    units there. Without a record the relabelling stays inside strata x epochs and tests a null; it randomises nothing.

    Raises:
        UsageError: fewer than 999 draws.
    """
    sample = analysis.sample
    if len(sample.arms) < 2:
        return Outcome(None, "one model: nothing to permute")
    if sample.n_clusters < 2:
        return Outcome(None, f"one {sample.cluster_kind} holds every session: nothing to studentise by")
    if analysis.paired:
        built = analysis.cells
        table = (built.b / built.n).reshape(-1, len(sample.arms))
        if len(sample.arms) == 2 and table.shape[0] <= FLIPS:
            return Outcome(sign_flips(table[:, 0] - table[:, 1], q))
        test = row_permutation(
            built.stratum, built.arm, built.b / built.n, built.cluster, baseline=q, draws=draws, seed=seed
        )
        return Outcome(dataclasses.replace(test, method=f"labels inside tasks: {test.method}"))
    design = ("assigned_stratum", "epoch", "probabilities_json") if randomised else ("epoch",)
    block = _text(sample.frame, design)
    stratum = analysis.code
    if not np.array_equal(analysis.cells.a, analysis.cells.n):
        return _reweighted(analysis, block, q, randomised, draws, seed)
    k_count = len(sample.arms)
    n_sk = tally(stratum * k_count + sample.arm, None, (int(stratum.max()) + 1) * k_count).reshape(-1, k_count)
    raw = np.where((n_sk > 0).all(axis=1), stratum_weights(n_sk, analysis.weighting), 0.0)
    if raw.sum() == 0:
        return Outcome(None, "no stratum holds every model: labels cannot be permuted for all of them at once")
    weights = raw / raw.sum()
    test = _draw(sample, stratum, block, weights, q, randomised, draws, seed)
    closed = None
    centred = _sticky(sample, randomised, block) is None and int(_compact(stratum, block).max()) == int(stratum.max())
    if centred:
        closed = np.sqrt(null_variance(stratum, sample.arm, sample.y, baseline=q, weights=weights))
    return Outcome(test, null_sd=closed, centred=centred)


def _reweighted(analysis: Analysis, block: Codes, q: Floats, randomised: bool, draws: int, seed: int) -> Outcome:
    """Hajek's estimate under permuted labels, each weighted by 1/p of the arm that it gives."""
    sample = analysis.sample
    chance = probabilities(sample.frame, sample.arms)
    if chance is None or not (chance > 0).all():
        return Outcome(None, "weights 1/p under other labels need every arm's recorded probability")
    if not randomised:
        block = _compact(block, analysis.code, _text(sample.frame, ("probabilities_json",)))
    rows = reweighted.Rows(analysis.code, sample.y, sample.cluster, chance, analysis.weighting)
    unit = _sticky(sample, randomised, block)
    return Outcome(reweighted.run(rows, sample.arm, block, unit, q, draws=draws, seed=seed), centred=False)


def sign_flips(difference: Floats, q: Floats) -> RandomisationTest:
    """Exact test of two arms on the same tasks: every sign pattern of the task differences (T,) is one assignment.

    Sums of the two halves of the tasks are added in all combinations, so 2^20 patterns cost two tables of 2^10.
    """
    tasks, middle = difference.size, difference.size // 2

    def sums(part: Floats) -> Floats:
        out = np.zeros(1)
        for d in part:
            out = np.concatenate([out + d, out - d])
        return out

    mean = np.add.outer(sums(difference[:middle]), sums(difference[middle:])).ravel() / tasks
    square, scale = float(difference @ difference), float(np.abs(difference).sum()) / tasks
    loading = np.array([q[1], -q[0]])

    def studentised(m: Floats) -> tuple[Floats, Floats]:
        variance = np.maximum(square - tasks * m**2, 0.0) / (tasks * max(tasks - 1, 1))
        flat = variance <= (1e-12 * max(scale, 1e-300)) ** 2
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.where(flat, np.copysign(np.inf, m), m / np.sqrt(variance))
        return np.where(np.abs(m) <= 1e-12 * scale, 0.0, t), np.sqrt(variance)

    t, _ = studentised(mean)
    own = np.array([difference.mean()])
    t_own, se = studentised(own)
    # t grows with |mean|, since flips leave the sum of squares alone: comparing means avoids rounding of t.
    p = float((np.abs(mean) >= abs(own[0]) - 1e-12 * scale).mean())
    effects, sign = mean[:, None] * loading, np.sign(loading)
    return RandomisationTest(
        effects=effects, t=t[:, None] * sign, observed=own[0] * loading, observed_se=se[0] * np.abs(loading),
        observed_t=t_own[0] * sign, p_values=np.array([p, p]), p_any=p, null_mean=effects.mean(axis=0),
        percentiles=np.percentile(effects, (2.5, 50.0, 97.5), axis=0), draws=mean.size, exact=True, incomplete=0,
        engine="numpy", method=f"sign flips of task differences, {mean.size} assignments enumerated",
    )  # fmt: skip


def _draw(
    sample: Sample, stratum: Codes, block: Codes, weights: Floats, q: Floats, randomised: bool, draws: int, seed: int
) -> RandomisationTest:
    unit = _sticky(sample, randomised, block)
    if unit is not None:
        return cluster_permutation(
            stratum, sample.arm, sample.y, unit, assignment_strata=block if randomised else None, baseline=q,
            weights=weights, draws=draws, seed=seed,
        )  # fmt: skip
    fine = _compact(stratum, block)
    levels = np.unique(sample.y)
    alone = sample.n_clusters == sample.n
    if alone and levels.size <= LEVELS and int(fine.max()) == int(stratum.max()):
        return hypergeometric_draws(
            stratum, sample.arm, np.searchsorted(levels, sample.y), levels, baseline=q, weights=weights, draws=draws,
            seed=seed,
        )  # fmt: skip
    return row_permutation(
        stratum, sample.arm, sample.y, None if alone else sample.cluster, blocks=fine, baseline=q, weights=weights,
        draws=draws, seed=seed,
    )  # fmt: skip


def _tidy(x: float) -> float:
    """Rounding noise around 0 is 0."""
    return 0.0 if abs(x) < 1e-15 else float(x)


def null(outcome: Outcome, arms: tuple[str, ...]) -> NullDistribution | None:
    """The draws as what they are: the distribution when no model matters, beside the same statistic as observed."""
    test = outcome.test
    if test is None:
        return None
    names = ("2.5", "50", "97.5")
    return NullDistribution(
        draws=test.draws,
        mean={a: _tidy(x) for a, x in zip(arms, test.null_mean, strict=True)},
        percentiles={
            a: {p: _tidy(x) for p, x in zip(names, column, strict=True)}
            for a, column in zip(arms, test.percentiles.T, strict=True)
        },
        method=test.method,
        observed={a: _tidy(x) for a, x in zip(arms, test.observed, strict=True)},
        centred=outcome.centred,
    )
