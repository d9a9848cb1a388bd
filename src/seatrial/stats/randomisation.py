"""The randomisation test inside the design: outcomes and arms in, null draws, t statistics and p-values out.

Permuting arms never estimates an effect: the mean over permutations is zero by construction (METHODS 3.2). The
observed contrast is the estimate; the draws say how surprising it is (METHODS 3.5). Three ways to draw:

- `table_draws` / `hypergeometric_draws`: each cluster is one session and outcomes are discrete, so a permuted
  cell table is a multivariate hypergeometric draw and costs nothing in the number of sessions;
- `row_permutation`: session labels inside blocks, any outcome, CR1 by cluster recomputed in every draw;
- `cluster_permutation`: whole clusters inside assignment strata, the same studentiser.

All arms are permuted at once, so the sharp null is that no arm matters for anyone. Numba does the work where it is
installed and the work is large; NumPy draws from the same distribution otherwise (`engine` says which).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seatrial.errors import UsageError
from seatrial.stats import drawing, permuting
from seatrial.stats.drawing import Cells, Entries, Rule
from seatrial.stats.inputs import Codes, Floats, Labels, codes, floats, same_length

ENUMERATE_UP_TO = 2**20
FEWEST_DRAWS = 999
PERCENTILES = (2.5, 50.0, 97.5)

Engine = Literal["auto", "numba", "numpy"]


@dataclass(frozen=True, slots=True, eq=False)
class RandomisationTest:
    """Null draws of every arm's effect and what the observed effects look like among them.

    `effects`, `t`: (n_draws, M), permuted effects tau*_m in outcome units and their cluster-robust t. `observed`,
    `observed_se`, `observed_t`: (M,), the same for the real labels (CR1). `p_values`: (M,), two-sided, one per arm;
    `p_any`: of max_m |t_m|. `null_mean` (M,) and `percentiles` (3, M) at `PERCENTILES` describe `effects`; they are
    a check of the null, never a result. `exact`: every assignment was enumerated. `incomplete`: draws in which some
    stratum lacked an arm and was left out of that draw, weights renormalised (cluster permutation only); a draw
    without any complete stratum has effect 0 and infinite t. `engine`
    is numba or numpy; the two draw from one distribution, not one stream.
    """

    effects: Floats
    t: Floats
    observed: Floats
    observed_se: Floats
    observed_t: Floats
    p_values: Floats
    p_any: float
    null_mean: Floats
    percentiles: Floats
    draws: int
    exact: bool
    incomplete: int
    engine: str
    method: str


def check_draws(draws: int, seed: int = 0) -> None:
    """Raises: UsageError for fewer than 999 Monte Carlo draws (METHODS 3.5) or a seed outside [0, 2**63)."""
    if not 0 <= seed < 2**63:
        raise UsageError(f"seed must be at least 0 and below 2**63, got {seed}")
    if draws < FEWEST_DRAWS:
        raise UsageError(f"at least {FEWEST_DRAWS} draws are needed, got {draws}", hint="9999 is the default")


def _policy(baseline: ArrayLike) -> Floats:
    q = floats(baseline, "baseline")
    if q.size < 2 or q.min() < 0 or abs(q.sum() - 1.0) > 1e-9:
        raise UsageError("baseline: expected at least two shares of at least 0 that sum to 1")
    return q


def _stratum_weights(weights: ArrayLike | None, stratum_n: Floats) -> Floats:
    if weights is None:
        return np.asarray(stratum_n / stratum_n.sum(), dtype=np.float64)
    w = floats(weights, "weights")
    if w.size != stratum_n.size:
        raise UsageError(f"weights: expected one per stratum ({stratum_n.size}), got {w.size}")
    if w.min() < 0 or abs(w.sum() - 1.0) > 1e-9:
        raise UsageError("weights: expected shares of at least 0 that sum to 1")
    return w


def _check_overlap(cell_n: NDArray[np.int64], weights: Floats) -> None:
    empty = ((cell_n == 0).any(axis=1) & (weights > 0)).nonzero()[0]
    if empty.size:
        raise UsageError(
            f"stratum {int(empty[0])} (and {empty.size - 1} more) has no session of some arm",
            hint="merge strata or give them weight 0 (METHODS 3.4b)",
        )


def _integer_codes(values: ArrayLike, what: str, limit: int | None = None) -> Codes:
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise UsageError(
            f"{what}: expected one-dimensional integer codes, got {array.dtype} of {array.ndim} dimensions"
        )
    if array.size and (array.min() < 0 or (limit is not None and array.max() >= limit)):
        raise UsageError(f"{what}: codes must run from 0" + (f" to {limit - 1}" if limit else ""))
    return array.astype(np.int64)


def null_variance(
    strata: ArrayLike, models: ArrayLike, y: ArrayLike, *, baseline: ArrayLike, weights: ArrayLike | None = None
) -> Floats:
    """Variance of each permuted effect, ``sum_s W_s^2 S_s^2 sum_k c_mk^2/n_sk``, shape (M,) (METHODS 3.5).

    S_s^2 has divisor n_s - 1 and weights are fixed: sessions permuted inside strata, unstudentised. It checks draws.

    Raises:
        UsageError: codes, weights or baseline are malformed, or a weighted stratum lacks an arm.
    """
    q = _policy(baseline)
    s, k, values = _integer_codes(strata, "strata"), _integer_codes(models, "models", q.size), floats(y, "y")
    same_length({"strata": s, "models": k, "y": values})
    n_strata = int(s.max()) + 1
    n_s = np.bincount(s, minlength=n_strata).astype(np.float64)
    w = _stratum_weights(weights, n_s)
    cell_n = np.bincount(s * q.size + k, minlength=n_strata * q.size).reshape(n_strata, q.size)
    _check_overlap(cell_n, w)
    live = w > 0
    mean = np.bincount(s, weights=values, minlength=n_strata) / np.maximum(n_s, 1)
    spread = np.bincount(s, weights=(values - mean[s]) ** 2, minlength=n_strata) / np.maximum(n_s - 1, 1)
    contrast = np.eye(q.size) - q
    return np.asarray((w[live] ** 2 * spread[live]) @ ((1.0 / cell_n[live]) @ (contrast**2).T), dtype=np.float64)


def _finish(
    rule: Rule, effects: Floats, variances: Floats, observed: tuple[Floats, Floats], scale: Floats,
    *, exact: bool, incomplete: int, engine: str, what: str,
) -> RandomisationTest:  # fmt: skip
    """p-values with METHODS 0.5's conventions; a variance of 0 makes t infinite unless the effect is 0 too."""
    effect, variance = observed
    t_observed, t = _studentise(effect, variance, scale), _studentise(effects, variances, scale)
    with np.errstate(invalid="ignore", divide="ignore"):
        slack = np.where(variance > 0, 1e-12 * scale / np.sqrt(variance), 0.0)
    size = np.abs(t)
    reach = np.where(np.isinf(t_observed), np.inf, np.abs(t_observed) - slack)
    hits = (size >= reach).sum(axis=0)
    any_hits = int((size.max(axis=1) >= reach.max()).sum())
    total = effects.shape[0]
    extra = 0 if exact else 1
    mean = effects.mean(axis=0)
    mix = "estimated mix" if rule.mix else "fixed mix"
    kind = f"{total} assignments enumerated" if exact else f"{total} draws"
    return RandomisationTest(
        effects=effects, t=t, observed=effect, observed_se=np.sqrt(variance), observed_t=t_observed,
        p_values=(hits + extra) / (total + extra), p_any=(any_hits + extra) / (total + extra), null_mean=mean,
        percentiles=np.percentile(effects, PERCENTILES, axis=0), draws=total, exact=exact, incomplete=incomplete,
        engine=engine, method=f"{what}, CR1-studentised ({mix}), {kind}, {engine}",
    )  # fmt: skip


def _studentise(effect: Floats, variance: Floats, scale: Floats) -> Floats:
    still = (np.abs(effect) <= 1e-12 * scale) & (variance >= 0.0)
    flat = variance <= (1e-12 * scale) ** 2
    with np.errstate(invalid="ignore", divide="ignore"):
        t = np.where(flat, np.copysign(np.inf, effect), effect / np.sqrt(variance))
    return np.where(still, 0.0, t)


def table_draws(
    table: ArrayLike, levels: ArrayLike, *, baseline: ArrayLike, weights: ArrayLike | None = None,
    frozen_mix: bool = False, draws: int = 9999, seed: int = 0, engine: Engine = "auto",
) -> RandomisationTest:  # fmt: skip
    """Randomisation test from sufficient statistics: counts of sessions by stratum, arm and outcome level.

    `table` (S, M, L) counts, `levels` (L,) the outcome of each level, `baseline` (M,) the policy q, `weights` (S,)
    the stratum weights W (None: shares of sessions; 0 leaves a stratum out). Valid only where every cluster is one
    session. `frozen_mix` omits the studentiser's term for estimated weights (METHODS 3.4). Every assignment is
    enumerated when there are at most 2**20 of them; otherwise `draws` permuted tables are drawn exactly
    (multivariate hypergeometric), keyed by (seed, stratum, replicate).

    Raises:
        UsageError: malformed arrays, a weighted stratum lacking an arm, fewer than two sessions, or fewer than
            999 draws where enumeration is out of reach.
        MissingExtra: `engine="numba"` and Numba is not installed.
    """
    q, values = _policy(baseline), floats(levels, "levels")
    counts = np.asarray(table)
    if counts.ndim != 3 or counts.shape[1:] != (q.size, values.size) or counts.dtype.kind not in "iu":
        raise UsageError(f"table: expected integer counts of shape (S, {q.size}, {values.size}), got {counts.shape}")
    if counts.size == 0 or counts.min() < 0 or counts.sum() < 2:
        raise UsageError("table: expected counts of at least 0 and two sessions or more")
    counts = counts.astype(np.int64)
    w = _stratum_weights(weights, counts.sum(axis=(1, 2)).astype(np.float64))
    _check_overlap(counts.sum(axis=2), w)
    cells = Cells.of(counts[w > 0], values)
    rule = Rule(weights=w[w > 0], baseline=q, mix=not frozen_mix)
    if permuting.assignments_of_tables(cells.cell_n) <= ENUMERATE_UP_TO:
        s, k, level = np.nonzero(counts[w > 0])
        times = counts[w > 0][s, k, level]
        rows = [np.repeat(x, times) for x in (s, k, level)]
        entries = Entries.of_rows(rows[0], rows[1], values[rows[2]], None, rows[0])
        return _entries_test(entries, rule, draws, seed, engine, "sessions inside strata")
    check_draws(draws, seed)
    first, second = cells.moments(counts[w > 0])
    sizes = cells.cell_n.astype(np.float64)
    observed = drawing.cell_statistics(sizes[None], first[None], second[None], rule, cells.n)
    effects, variances, used = permuting.draw_tables(cells, rule, draws, seed, engine)
    scale = drawing.effect_scale(cells.cell_n, cells.absolute(counts[w > 0]), rule)
    return _finish(
        rule, effects, variances, (observed[0][0], observed[1][0]), scale,
        exact=False, incomplete=0, engine=used, what="sessions inside strata (hypergeometric)",
    )  # fmt: skip


def hypergeometric_draws(
    strata: ArrayLike, models: ArrayLike, outcomes: ArrayLike, levels: ArrayLike, *, baseline: ArrayLike,
    weights: ArrayLike | None = None, frozen_mix: bool = False, draws: int = 9999, seed: int = 0,
    engine: Engine = "auto",
) -> RandomisationTest:  # fmt: skip
    """`table_draws` from one row per session: integer codes of stratum, arm and outcome level, each (n,).

    `levels` (L,) holds the outcome value of each level code.

    Raises:
        UsageError: as `table_draws`, or codes out of range.
    """
    q, values = _policy(baseline), floats(levels, "levels")
    s, k = _integer_codes(strata, "strata"), _integer_codes(models, "models", q.size)
    level = _integer_codes(outcomes, "outcomes", values.size)
    same_length({"strata": s, "models": k, "outcomes": level})
    if s.size == 0:
        raise UsageError("strata: no sessions")
    shape = (int(s.max()) + 1, q.size, values.size)
    table = np.bincount((s * q.size + k) * values.size + level, minlength=math.prod(shape)).reshape(shape)
    return table_draws(
        table, values, baseline=q, weights=weights, frozen_mix=frozen_mix, draws=draws, seed=seed, engine=engine
    )


def _kept_rows(
    strata: ArrayLike, models: ArrayLike, y: ArrayLike, q: Floats, weights: ArrayLike | None
) -> tuple[Codes, Codes, Floats, Floats, NDArray[np.bool_]]:
    s, k, values = _integer_codes(strata, "strata"), _integer_codes(models, "models", q.size), floats(y, "y")
    same_length({"strata": s, "models": k, "y": values})
    if s.size < 2:
        raise UsageError("strata: expected at least two sessions")
    n_strata = int(s.max()) + 1
    w = _stratum_weights(weights, np.bincount(s, minlength=n_strata).astype(np.float64))
    _check_overlap(np.bincount(s * q.size + k, minlength=n_strata * q.size).reshape(n_strata, q.size), w)
    keep = w[s] > 0
    compact = np.cumsum(w > 0) - 1
    return compact[s[keep]], k[keep], values[keep], w[w > 0], keep


def row_permutation(
    strata: ArrayLike, models: ArrayLike, y: ArrayLike, clusters: Labels | None = None, *, baseline: ArrayLike,
    weights: ArrayLike | None = None, blocks: Labels | None = None, frozen_mix: bool = False, draws: int = 9999,
    seed: int = 0, engine: Engine = "auto",
) -> RandomisationTest:  # fmt: skip
    """Permute session labels inside `blocks` (None: the strata), effects studentised by CR1 over `clusters`.

    `strata` (n,) and `models` (n,) integer codes, `y` (n,) outcomes, `clusters` (n,) labels (None: every session is
    its own). `blocks` are the units' assignment blocks (stratum x epoch); labels never leave one. Weights, baseline,
    `frozen_mix`, enumeration and draws as in `table_draws`.

    Raises:
        UsageError: as `table_draws`, or fewer than two clusters.
        MissingExtra: `engine="numba"` and Numba is not installed.
    """
    q = _policy(baseline)
    s, k, values, w, keep = _kept_rows(strata, models, y, q, weights)
    group = None if clusters is None else codes(np.asarray(clusters)[keep], "clusters")[0]
    block = s if blocks is None else codes(np.asarray(blocks)[keep], "blocks")[0]
    same_length({"y": values, "blocks": block, "clusters": values if group is None else group})
    entries = Entries.of_rows(s, k, values, group, block)
    return _entries_test(entries, Rule(w, q, not frozen_mix), draws, seed, engine, "sessions inside blocks")


def cluster_permutation(
    strata: ArrayLike, models: ArrayLike, y: ArrayLike, clusters: Labels, *, baseline: ArrayLike,
    weights: ArrayLike | None = None, assignment_strata: Labels | None = None, frozen_mix: bool = False,
    draws: int = 9999, seed: int = 0, engine: Engine = "auto",
) -> RandomisationTest:  # fmt: skip
    """Permute the arms of whole clusters inside `assignment_strata`; session `strata` enter only the statistic.

    Every cluster has one arm and stands in one assignment stratum (None: all in one). A draw that leaves a session
    stratum without some arm leaves that stratum out of that draw, weights renormalised, for all arms: a function of
    labels and outcomes alone, so the test stays exact under the sharp null; `incomplete` counts such draws.
    Other arguments as in `row_permutation`.

    Raises:
        UsageError: as `row_permutation`, or a cluster with two arms or two assignment strata.
        MissingExtra: `engine="numba"` and Numba is not installed.
    """
    q = _policy(baseline)
    s, k, values, w, keep = _kept_rows(strata, models, y, q, weights)
    group, _ = codes(np.asarray(clusters)[keep], "clusters")
    if assignment_strata is None:
        block = np.zeros(group.size, dtype=np.int64)
    else:
        block, _ = codes(np.asarray(assignment_strata)[keep], "assignment_strata")
    same_length({"y": values, "clusters": group, "assignment_strata": block})
    for what, column in (("arms", k), ("assignment strata", block)):
        last = np.empty(int(group.max()) + 1, dtype=np.int64)
        last[group] = column
        if (last[group] != column).any():
            raise UsageError(
                f"a cluster has two {what}", hint="row_permutation permutes sessions that were assigned one by one"
            )
    entries = Entries.of_clusters(s, k, values, group, block)
    return _entries_test(entries, Rule(w, q, not frozen_mix), draws, seed, engine, "clusters inside assignment strata")


def _entries_test(entries: Entries, rule: Rule, draws: int, seed: int, engine: Engine, what: str) -> RandomisationTest:
    if entries.n_clusters < 2:
        raise UsageError("clusters: expected at least two")
    exact = permuting.assignments_of_labels(entries) <= ENUMERATE_UP_TO
    observed = drawing.label_statistics(entries, rule, entries.labels[None])
    if exact:
        effects, variances, incomplete = permuting.enumerate_labels(entries, rule)
        used = "numpy"
    else:
        check_draws(draws, seed)
        effects, variances, incomplete, used = permuting.draw_labels(entries, rule, draws, seed, engine)
    return _finish(
        rule, effects, variances, (observed[0][0], observed[1][0]), entries.scale(rule),
        exact=exact, incomplete=incomplete, engine=used, what=what,
    )  # fmt: skip
