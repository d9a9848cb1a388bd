"""Numba kernels for the randomisation test: permuted cell tables or labels in, effects and variances out.

Imported only by `randomisation`, and only where the work repays loading Numba. Every stream of random numbers is
keyed by (seed, stratum, replicate), so neither the number of threads nor the order of work changes a bit.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.integer[Any]]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S11, _S32 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11), np.uint64(32)
_LOW_32 = np.uint64(0xFFFFFFFF)
_UNIT = 2.0**-53
_UNIT_32 = 2.0**-32
_HAT_SLOPE = 2.0 * math.sqrt(2.0 / math.e)
_HAT_OFFSET = 3.0 - 2.0 * math.sqrt(3.0 / math.e)
_HALF_LOG_TAU = 0.5 * math.log(2.0 * math.pi)


@njit(inline="always")
def _scramble(z: np.uint64) -> np.uint64:
    """SplitMix64's finaliser (Steele, Lea & Flood 2014)."""
    z = (z ^ (z >> _S30)) * _MIX_1
    z = (z ^ (z >> _S27)) * _MIX_2
    return z ^ (z >> _S31)


@njit(inline="always")
def _stream(seed: int, stratum: int, replicate: int) -> np.uint64:
    z = _scramble(np.uint64(seed) + _GOLDEN)
    z = _scramble(z ^ (np.uint64(stratum) + _GOLDEN))
    return _scramble(z ^ (np.uint64(replicate) * _MIX_2 + _GOLDEN))


@njit(error_model="numpy")
def _log_factorial(x: int, table: Floats) -> float:
    if x < table.size:
        return float(table[x])
    # Stirling beyond the table; the next term is below 1e-18 there.
    y = x + 1.0
    return (y - 0.5) * math.log(y) - y + _HALF_LOG_TAU + 1.0 / (12.0 * y) - 1.0 / (360.0 * y * y * y)


@njit(error_model="numpy")
def _urn(state: np.uint64, good: int, bad: int, sample: int) -> tuple[int, np.uint64]:
    """A hypergeometric count by drawing ball after ball; for few draws."""
    hits, left, total = 0, good, good + bad
    for _ in range(sample):
        state += _GOLDEN
        if ((_scramble(state) >> _S11) + 0.5) * _UNIT * total < left:
            hits += 1
            left -= 1
        total -= 1
    return hits, state


@njit(error_model="numpy")
def _ratio_of_uniforms(state: np.uint64, few: int, many: int, sample: int, table: Floats) -> tuple[int, np.uint64]:
    """A hypergeometric count by Stadlober's ratio of uniforms (HRUA, 1990); few <= many, sample <= half."""
    total = float(few + many)
    share = 1.0 / total
    mean = sample * few * share
    # 1/(N - 1) <= (1/N)(1 + 2/N): a hat that is a hair too wide is still a hat, and saves a division.
    spread = math.sqrt(mean * (many * share) * ((total - sample) * share) * (1.0 + 2.0 * share) + 0.5)
    hat = _HAT_SLOPE * spread + _HAT_OFFSET
    centre = mean + 0.5
    mode = int((sample + 1.0) * (few + 1.0) / (total + 2.0))
    peak = (
        _log_factorial(mode, table)
        + _log_factorial(few - mode, table)
        + _log_factorial(sample - mode, table)
        + _log_factorial(many - sample + mode, table)
    )
    end = min(min(sample, few) + 1.0, math.floor(centre + 16.0 * spread))
    while True:
        state += _GOLDEN
        bits = _scramble(state)
        u = (np.float64(np.int64(bits >> _S32)) + 0.5) * _UNIT_32
        v = (np.float64(np.int64(bits & _LOW_32)) + 0.5) * _UNIT_32
        x = centre + hat * (v - 0.5) / u
        if x < 0.0 or x >= end:
            continue
        k = int(x)
        log_ratio = peak - (
            _log_factorial(k, table)
            + _log_factorial(few - k, table)
            + _log_factorial(sample - k, table)
            + _log_factorial(many - sample + k, table)
        )
        if u * (4.0 - u) - 3.0 <= log_ratio:
            return k, state
        if u * (u - log_ratio) >= 1.0:
            continue
        if 2.0 * math.log(u) <= log_ratio:
            return k, state


@njit(error_model="numpy")
def _hypergeometric(state: np.uint64, good: int, bad: int, sample: int, table: Floats) -> tuple[int, np.uint64]:
    """Good balls among `sample` drawn without replacement; symmetries reduce every case to a small one."""
    if sample == 0 or good == 0:
        return 0, state
    if bad == 0:
        return sample, state
    total = good + bad
    if sample == total:
        return good, state
    less = min(sample, total - sample)
    if less < 8:
        k, state = _urn(state, good, bad, less)
    elif min(good, bad) < 8:
        # Good balls and drawn balls play the same part in the distribution.
        few = min(good, bad)
        k, state = _urn(state, less, total - less, few)
        if good > bad:
            k = less - k
    elif good <= bad:
        k, state = _ratio_of_uniforms(state, good, bad, less, table)
    else:
        k, state = _ratio_of_uniforms(state, bad, good, less, table)
        k = less - k
    return (k if less == sample else good - k), state


@njit(cache=True, parallel=True, error_model="numpy")
def table_draws(
    cell_n: Ints, level_n: Ints, value: Floats, weight: Floats, q: Floats, mix: bool, seed: int, draws: int,
    log_table: Floats, effects: Floats, variances: Floats,
) -> None:  # fmt: skip
    """Permuted tables, one per draw and stratum; see `randomisation.table_draws` for the meaning of every array.

    cell_n (S, M), level_n (S, L), value (S, L) centred, weight (S,), q (M,); fills effects and variances (B, M).
    """
    n_strata, n_models = cell_n.shape
    n_levels = level_n.shape[1]
    total = 0.0
    for s in range(n_strata):
        for k in range(n_models):
            total += cell_n[s, k]
    for b in prange(draws):
        room = np.empty(n_models, np.int64)
        first = np.empty(n_models)
        second = np.empty(n_models)
        effect = np.zeros(n_models)
        within = np.zeros(n_models)
        mixed = np.zeros(n_models)
        mixed_square = np.zeros(n_models)
        mixed_weight = 0.0
        for s in range(n_strata):
            state = _stream(seed, s, b)
            left_room = 0
            for k in range(n_models):
                room[k] = cell_n[s, k]
                left_room += room[k]
                first[k] = 0.0
                second[k] = 0.0
            n_s = float(left_room)
            for level in range(n_levels):
                balls = level_n[s, level]
                left = left_room
                v = value[s, level]
                for k in range(n_models):
                    if balls == 0:
                        break
                    left -= room[k]
                    if level == n_levels - 1:
                        got = room[k]
                    else:
                        got, state = _hypergeometric(state, room[k], left, balls, log_table)
                    balls -= got
                    room[k] -= got
                    first[k] += v * got
                    second[k] += v * v * got
                left_room -= level_n[s, level]
            w = weight[s]
            common = 0.0
            common_var = 0.0
            for k in range(n_models):
                n_sk = float(cell_n[s, k])
                mean = first[k] / n_sk
                first[k] = mean
                second[k] = w * w * max(0.0, second[k] - n_sk * mean * mean) / (n_sk * n_sk)
                common += q[k] * mean
                common_var += q[k] * q[k] * second[k]
            a = w * w / n_s
            mixed_weight += a
            for m in range(n_models):
                tau = first[m] - common
                effect[m] += w * tau
                within[m] += (1.0 - 2.0 * q[m]) * second[m] + common_var
                mixed[m] += a * tau
                mixed_square[m] += a * tau * tau
        for m in range(n_models):
            tau = effect[m]
            between = mixed_square[m] - 2.0 * tau * mixed[m] + tau * tau * mixed_weight if mix else 0.0
            effects[b, m] = tau
            variances[b, m] = (within[m] + max(0.0, between)) * total / (total - 1.0)


@njit(error_model="numpy")
def _shuffle(labels: Ints, starts: Ints, seed: int, replicate: int) -> None:
    """Fisher-Yates inside every block; two 32-bit indices per 64 random bits (bias below n/2^32)."""
    for block in range(starts.size - 1):
        low = starts[block]
        state = _stream(seed, block, replicate)
        for i in range(starts[block + 1] - low - 1, 0, -1):
            state += _GOLDEN
            j = np.int64(((_scramble(state) >> _S32) * np.uint64(i + 1)) >> _S32)
            labels[low + i], labels[low + j] = labels[low + j], labels[low + i]


@njit(error_model="numpy")
def _strata_effects(
    cell_n: Floats, cell_y: Floats, weight: Floats, q: Floats, live: Floats, tau_s: Floats, effect: Floats
) -> int:
    """Turn sums into means and stratum effects; `live` gets the weights of complete strata, renormalised.

    Returns 0 where every stratum is complete, 1 where some lack an arm, 2 where all do.
    """
    n_strata, n_models = cell_n.shape
    kept = 0.0
    lacking = 0
    for s in range(n_strata):
        live[s] = weight[s]
        for k in range(n_models):
            if cell_n[s, k] == 0.0:
                live[s] = 0.0
                lacking = 1
        kept += live[s]
    for m in range(n_models):
        effect[m] = 0.0
    for s in range(n_strata):
        if live[s] == 0.0:
            continue
        live[s] /= kept
        common = 0.0
        for k in range(n_models):
            cell_y[s, k] /= cell_n[s, k]
            common += q[k] * cell_y[s, k]
        for m in range(n_models):
            tau_s[s, m] = cell_y[s, m] - common
            effect[m] += live[s] * tau_s[s, m]
    return lacking if kept > 0.0 else 2


@njit(cache=True, parallel=True, error_model="numpy")
def entry_draws(
    labels0: Ints, starts: Ints, unit: Ints, stratum: Ints, count: Ints, y: Floats, cluster_starts: Ints,
    mix_starts: Ints, mix_stratum: Ints, mix_count: Ints, stratum_n: Floats, weight: Floats, q: Floats,
    mix: bool, seed: int, draws: int, effects: Floats, variances: Floats, incomplete: Ints,
) -> None:  # fmt: skip
    """Permute labels of units inside blocks; CR1 by cluster, recomputed in every draw.

    Entries are sorted by cluster (`cluster_starts` (G + 1,)); entry j carries `count[j]` sessions of sum `y[j]` in
    `stratum[j]` and wears the label of unit `unit[j]`. `mix_*` is the sparse (cluster, stratum) count table. Narrow
    integers keep what is read at random near the processor.
    """
    n_strata, n_models = stratum_n.size, q.size
    n_clusters = cluster_starts.size - 1
    for b in prange(draws):
        labels = labels0.copy()
        _shuffle(labels, starts, seed, b)
        worn = np.empty(unit.size, labels0.dtype)
        cell_n = np.zeros((n_strata, n_models))
        cell_y = np.zeros((n_strata, n_models))
        for j in range(unit.size):
            k = labels[unit[j]]
            worn[j] = k
            cell_n[stratum[j], k] += count[j]
            cell_y[stratum[j], k] += y[j]
        live = np.empty(n_strata)
        tau_s = np.zeros((n_strata, n_models))
        effect = np.empty(n_models)
        incomplete[b] = _strata_effects(cell_n, cell_y, weight, q, live, tau_s, effect)
        for s in range(n_strata):
            for m in range(n_models):
                tau_s[s, m] = (tau_s[s, m] - effect[m]) * live[s] / stratum_n[s]
                cell_n[s, m] = live[s] / cell_n[s, m] if live[s] > 0.0 else 0.0
        total = np.zeros(n_models)
        psi = np.empty(n_models)
        for g in range(n_clusters):
            psi[:] = 0.0
            shared = 0.0
            for j in range(cluster_starts[g], cluster_starts[g + 1]):
                k = worn[j]
                s = stratum[j]
                e = cell_n[s, k] * (y[j] - count[j] * cell_y[s, k])
                psi[k] += e
                shared += q[k] * e
            if mix:
                for j in range(mix_starts[g], mix_starts[g + 1]):
                    row = mix_stratum[j]
                    for m in range(n_models):
                        psi[m] += mix_count[j] * tau_s[row, m]
            for m in range(n_models):
                total[m] += (psi[m] - shared) * (psi[m] - shared)
        for m in range(n_models):
            effects[b, m] = effect[m]
            variances[b, m] = total[m] * n_clusters / (n_clusters - 1.0)


@njit(cache=True, parallel=True, error_model="numpy")
def row_draws(
    labels0: Ints, starts: Ints, stratum: Ints, y: Floats, stratum_n: Floats, weight: Floats, q: Floats,
    mix: bool, seed: int, draws: int, effects: Floats, variances: Floats, incomplete: Ints,
) -> None:  # fmt: skip
    """As `entry_draws` where every row is its own cluster: cell sums suffice for CR1. Rows stand in block order."""
    n_strata, n_models = stratum_n.size, q.size
    n = float(y.size)
    for b in prange(draws):
        labels = labels0.copy()
        _shuffle(labels, starts, seed, b)
        cell_n = np.zeros((n_strata, n_models))
        cell_y = np.zeros((n_strata, n_models))
        cell_yy = np.zeros((n_strata, n_models))
        for i in range(y.size):
            k, s = labels[i], stratum[i]
            cell_n[s, k] += 1.0
            cell_y[s, k] += y[i]
            cell_yy[s, k] += y[i] * y[i]
        live = np.empty(n_strata)
        tau_s = np.zeros((n_strata, n_models))
        effect = np.empty(n_models)
        incomplete[b] = _strata_effects(cell_n, cell_y, weight, q, live, tau_s, effect)
        total = np.zeros(n_models)
        for s in range(n_strata):
            if live[s] == 0.0:
                continue
            shared = 0.0
            for k in range(n_models):
                squares = max(0.0, cell_yy[s, k] - cell_n[s, k] * cell_y[s, k] * cell_y[s, k])
                cell_yy[s, k] = live[s] * live[s] * squares / (cell_n[s, k] * cell_n[s, k])
                shared += q[k] * q[k] * cell_yy[s, k]
            for m in range(n_models):
                total[m] += (1.0 - 2.0 * q[m]) * cell_yy[s, m] + shared
                if mix:
                    gap = live[s] * (tau_s[s, m] - effect[m])
                    total[m] += gap * gap / stratum_n[s]
        for m in range(n_models):
            effects[b, m] = effect[m]
            variances[b, m] = total[m] * n / (n - 1.0)
