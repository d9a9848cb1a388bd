"""The randomisation test of a Hajek estimate: labels permuted inside the design, weights 1/p of the permuted arm.

Observed effect, null draws and p-value are one statistic: the estimator itself, recomputed for every labelling. Pooled
strata keep the estimate's pooling, so the draws need not centre on zero exactly; p counts how many of their |t| reach
the observed |t|, uncentred, which is exact under the sharp null for any statistic (METHODS 3.3, 3.5).
"""

from __future__ import annotations

import dataclasses

import numpy as np
from scipy import sparse

from seatrial.causal.cells import Floats, Weighting, stratum_weights, tally
from seatrial.causal.prepare import Codes
from seatrial.causal.uncertainty import net_coefficients
from seatrial.stats.randomisation import PERCENTILES, RandomisationTest, check_draws

WORK = 50_000_000
"""Rows x draws that are spent at most; beyond, there are fewer draws, never under 999."""
FEWEST = 999


@dataclasses.dataclass(frozen=True, slots=True)
class Rows:
    """What a labelling is judged on: stratum, outcome, cluster and every arm's probability (n, K) of each session."""

    stratum: Codes
    y: Floats
    cluster: Codes
    chance: Floats
    weighting: Weighting


def _mix(rows: Rows) -> sparse.csr_matrix:
    """Share of all sessions that each cluster has in each stratum, (G, S)."""
    values = np.full(rows.y.size, 1.0 / rows.y.size)
    shape = (int(rows.cluster.max()) + 1, int(rows.stratum.max()) + 1)
    return sparse.coo_matrix((values, (rows.cluster, rows.stratum)), shape=shape).tocsr()


def _judge(rows: Rows, mix: sparse.csr_matrix, arm: Codes, c: Floats) -> tuple[Floats, Floats, bool]:
    """Effects and CR1 variances of one labelling, each (K,), and whether every stratum holds every arm."""
    k_count, s_count, g_count = c.shape[0], mix.shape[1], mix.shape[0]
    cell, size = rows.stratum * k_count + arm, s_count * k_count
    w = 1.0 / rows.chance[np.arange(arm.size), arm]
    n = tally(cell, None, size).reshape(s_count, k_count)
    a = tally(cell, w, size)
    mean = np.divide(tally(cell, w * rows.y, size), a, out=np.zeros(size), where=a > 0)
    whole = np.asarray((n > 0).all(axis=1))
    h = np.where(whole, stratum_weights(n, rows.weighting), 0.0)
    if h.sum() == 0:
        return np.zeros(k_count), np.full(k_count, -1.0), False
    share, table = h / h.sum(), mean.reshape(s_count, k_count)
    effect = c @ (share @ table)
    scale = np.divide(np.repeat(share, k_count), a, out=np.zeros(size), where=a > 0)
    residual = scale[cell] * w * (rows.y - mean[cell])
    rise = g_count / (g_count - 1)
    if rows.weighting != "share" or s_count == 1:
        return effect, rise * _quadratic(rows, residual, arm, c, g_count), bool(whole.all())
    own = tally(rows.cluster * k_count + arm, residual, g_count * k_count)
    # Strata that this labelling leaves out carry no weight, so their mix says nothing either.
    drift = mix @ np.where(whole[:, None], table @ c.T - effect, 0.0) / h.sum() * rows.y.size
    psi = own.reshape(g_count, k_count) @ c.T + drift
    return effect, rise * (psi**2).sum(axis=0), bool(whole.all())


def _quadratic(rows: Rows, residual: Floats, arm: Codes, c: Floats, g_count: int) -> Floats:
    """Sum over clusters of squared influence of every contrast, (K,), without a mix of strata."""
    k_count = c.shape[0]
    if g_count == residual.size:
        alone: Floats = c**2 @ tally(arm, residual**2, k_count)
        return alone
    own = tally(rows.cluster * k_count + arm, residual, g_count * k_count).reshape(g_count, k_count)
    out: Floats = np.einsum("mk,kl,ml->m", c, own.T @ own, c)
    return out


def _studentise(effect: Floats, variance: Floats, scale: float) -> Floats:
    still = (np.abs(effect) <= 1e-12 * scale) & (variance >= 0.0)
    flat = variance <= (1e-12 * scale) ** 2
    with np.errstate(invalid="ignore", divide="ignore"):
        t = np.where(flat, np.copysign(np.inf, effect), effect / np.sqrt(np.where(flat, 1.0, variance)))
    return np.where(still, 0.0, t)


def run(
    rows: Rows, arm: Codes, block: Codes, unit: Codes | None, q: Floats, *, draws: int, seed: int
) -> RandomisationTest:
    """Permute the arms of sessions, or of whole `unit`s (n,) that have one arm each, inside `block` (n,).

    Sessions of one block share their probabilities. Effects are against the baseline `q` (K,).

    Raises:
        UsageError: fewer than 999 draws.
    """
    check_draws(draws, seed)
    draws = max(FEWEST, min(draws, WORK // arm.size))
    owner = np.arange(arm.size) if unit is None else unit
    first = np.unique(owner, return_index=True)[1]
    order = np.argsort(block[first], kind="stable")
    unit_arm, unit_block = arm[first][order], block[first][order].astype(np.float64)
    c, mix, rng = net_coefficients(q), _mix(rows), np.random.default_rng(seed)
    observed, variance, _ = _judge(rows, mix, arm, c)
    effects, variances = np.zeros((draws, q.size)), np.zeros((draws, q.size))
    labels, incomplete = np.empty_like(unit_arm), 0
    for b in range(draws):
        labels[order] = unit_arm[np.argsort(unit_block + rng.random(unit_arm.size))]
        effects[b], variances[b], complete = _judge(rows, mix, labels[owner], c)
        incomplete += not complete
    scale = float(np.abs(rows.y).mean()) or 1.0
    t, own = _studentise(effects, variances, scale), _studentise(observed, variance, scale)
    reach = np.where(np.isinf(own), np.inf, np.abs(own) * (1 - 1e-9) - 1e-12)
    size = np.abs(t)
    what = "sessions" if unit is None else "units"
    return RandomisationTest(
        effects=effects, t=t, observed=observed, observed_se=np.sqrt(variance.clip(0.0)), observed_t=own,
        p_values=(1 + (size >= reach).sum(axis=0)) / (1 + draws),
        p_any=float((1 + (size.max(axis=1) >= reach.max()).sum()) / (1 + draws)),
        null_mean=effects.mean(axis=0), percentiles=np.percentile(effects, PERCENTILES, axis=0), draws=draws,
        exact=False, incomplete=incomplete, engine="numpy",
        method=f"{what} inside assignment blocks, weights 1/p of the shuffled arm, CR1-studentised, {draws} draws",
    )  # fmt: skip
