"""The fastest kernel of the randomisation test: permuted tables of a two-valued outcome, by inverted tables.

Inside a stratum the sessions still to be labelled are a fixed number; only the successes left over vary from draw to
draw, over a narrow range. So the hypergeometric law is tabulated once per leftover and thousands of draws are read
off it, one uniform each. Laws too wide to tabulate are drawn one by one as in `compiled`. Which of the two it is
follows from the margins alone, and every uniform is keyed by (seed, stratum, replicate, arm), so neither threads nor
blocks of draws change a bit.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from seatrial.stats.compiled import _GOLDEN, _S11, _UNIT, Floats, Ints, _hypergeometric, _scramble, _stream

BUILT_WITH = ("compiled 1e23f34219f1",)
"""Digests of the files that the compiled code below was made from: Numba keeps it until this file changes."""

_GUIDES = 64
_MOST_ENTRIES = 60_000
_NEGLIGIBLE = 1e-18


@njit(error_model="numpy")
def _tabulate(
    good: int, bad: int, sample: int, inverse: Floats, start: int, cdf: Floats, guide: NDArray[np.int16]
) -> None:
    """Cumulative law of the good balls among `sample`, from `start` on, and where to begin searching it."""
    width = cdf.size
    mode = int((sample + 1.0) * (good + 1.0) / (good + bad + 2.0)) - start
    mode = min(max(mode, 0), width - 1)
    for i in range(width):
        cdf[i] = 0.0
    cdf[mode] = 1.0
    p = 1.0
    for i in range(mode, width - 1):
        x = start + i
        if x >= good or x >= sample:
            break
        p *= (good - x) * (sample - x) * (inverse[x + 1] * inverse[bad - sample + x + 1])
        cdf[i + 1] = p
        if p < _NEGLIGIBLE:
            break
    p = 1.0
    for i in range(mode, 0, -1):
        x = start + i
        if bad - sample + x <= 0:
            break
        p *= x * (bad - sample + x) * (inverse[good - x + 1] * inverse[sample - x + 1])
        cdf[i - 1] = p
        if p < _NEGLIGIBLE:
            break
    total = 0.0
    for i in range(width):
        total += cdf[i]
        cdf[i] = total
    scale = 1.0 / total
    at = 0
    for i in range(width):
        cdf[i] *= scale
        while at < _GUIDES and at < cdf[i] * _GUIDES:
            guide[at] = i
            at += 1
    while at < _GUIDES:
        guide[at] = width - 1
        at += 1


@njit(error_model="numpy")
def _draw_arm(
    good: int, bad: int, mean_left: float, sd_left: float, arm: int, states: NDArray[np.uint64], left: Ints,
    inverse: Floats, log_table: Floats, got: Floats,
) -> None:  # fmt: skip
    """Successes of one arm in every draw, taken from `left`; `good` sessions of it, `bad` of the arms after it."""
    total = good + bad
    share = good / total
    spread = mean_left * share * (1.0 - share) * (total - mean_left) / max(total - 1.0, 1.0)
    sd = math.sqrt(max(0.0, spread))
    first_left = int(max(0.0, math.floor(mean_left - 9.0 * sd_left) - 1.0))
    rows = math.ceil(mean_left + 9.0 * sd_left) + 2 - first_left
    width = min(good, int(20.0 * sd) + 12) + 1
    jump = np.uint64(arm + 1) * _GOLDEN
    if rows * width > _MOST_ENTRIES:
        for i in range(left.size):
            k, _ = _hypergeometric(_scramble(states[i] + jump), good, bad, left[i], log_table)
            got[i] = k
            left[i] -= k
        return
    cdf = np.empty((rows, width))
    guide = np.empty((rows, _GUIDES), np.int16)
    start = np.full(rows, -1, np.int64)
    for i in range(left.size):
        sample = left[i]
        row = sample - first_left
        if row < 0 or row >= rows:
            k, _ = _hypergeometric(_scramble(states[i] + jump), good, bad, sample, log_table)
        else:
            if start[row] < 0:
                least = max(0, sample - bad)
                most = min(good, sample)
                begin = max(least, min(int(sample * share) - width // 2, most - width + 1))
                start[row] = begin
                _tabulate(good, bad, sample, inverse, begin, cdf[row], guide[row])
            u = ((_scramble(states[i] + jump) >> _S11) + 0.5) * _UNIT
            j = guide[row, int(u * _GUIDES)]
            while j < width - 1 and cdf[row, j] <= u:
                j += 1
            k = start[row] + j
        got[i] = k
        left[i] -= k


@njit(cache=True, parallel=True, error_model="numpy")
def binary_draws(
    cell_n: Ints, ones: Ints, gap: Floats, weight: Floats, q: Floats, mix: bool, seed: int, draws: int, blocks: int,
    inverse: Floats, log_table: Floats, effects: Floats, variances: Floats,
) -> None:  # fmt: skip
    """As `compiled.table_draws` for two levels a distance `gap` (S,) apart, `ones` (S,) sessions at the upper one."""
    n_strata, n_models = cell_n.shape
    total = 0.0
    for s in range(n_strata):
        for k in range(n_models):
            total += cell_n[s, k]
    for block in prange(blocks):
        low = block * draws // blocks
        n = (block + 1) * draws // blocks - low
        left = np.empty(n, np.int64)
        states = np.empty(n, np.uint64)
        got = np.empty((n_models, n))
        common = np.empty(n)
        common_var = np.empty(n)
        effect = np.zeros((n_models, n))
        within = np.zeros((n_models, n))
        mixed = np.zeros((n_models, n))
        mixed_square = np.zeros((n_models, n))
        mixed_weight = 0.0
        for s in range(n_strata):
            n_s = 0
            for k in range(n_models):
                n_s += cell_n[s, k]
            for i in range(n):
                states[i] = _stream(seed, s, low + i)
                left[i] = ones[s]
            room = n_s
            success = ones[s] / n_s
            for k in range(n_models - 1):
                sd = math.sqrt(room * success * (1.0 - success) * (n_s - room) / max(n_s - 1.0, 1.0))
                _draw_arm(
                    cell_n[s, k], room - cell_n[s, k], room * success, sd, k, states, left, inverse, log_table, got[k]
                )
                room -= cell_n[s, k]
            for i in range(n):
                got[n_models - 1, i] = left[i]
                common[i] = 0.0
                common_var[i] = 0.0
            w = weight[s]
            for k in range(n_models):
                n_sk = float(cell_n[s, k])
                slope = gap[s] / n_sk
                offset = success * gap[s]
                spread = (w * gap[s]) ** 2 / (n_sk * n_sk * n_sk)
                for i in range(n):
                    x = got[k, i]
                    mean = slope * x - offset
                    part = spread * x * (n_sk - x)
                    got[k, i] = mean
                    common[i] += q[k] * mean
                    common_var[i] += q[k] * q[k] * part
                    within[k, i] += (1.0 - 2.0 * q[k]) * part
            a = w * w / n_s
            mixed_weight += a
            for m in range(n_models):
                for i in range(n):
                    tau = got[m, i] - common[i]
                    effect[m, i] += w * tau
                    within[m, i] += common_var[i]
                    if mix:
                        mixed[m, i] += a * tau
                        mixed_square[m, i] += a * tau * tau
        for m in range(n_models):
            for i in range(n):
                tau = effect[m, i]
                between = mixed_square[m, i] - 2.0 * tau * mixed[m, i] + tau * tau * mixed_weight if mix else 0.0
                effects[low + i, m] = tau
                variances[low + i, m] = (within[m, i] + max(0.0, between)) * total / (total - 1.0)
