"""Neyman's blocked variance: what the error would be if sessions were independent (METHODS 3.5)."""

from __future__ import annotations

import numpy as np

from seatrial.causal.cells import Codes, Floats, tally


def neyman_variance(stratum: Codes, arm: Codes, y: Floats, coefficients: Floats) -> Floats:
    """``sum_s W_s^2 sum_k c_mk^2 s^2_sk/n_sk`` of every contrast, (M,), W_s = n_s/n fixed, s^2 with divisor n_sk - 1.

    It ignores clusters: reports print it beside CR3 to show what clustering costs, never as the error. NaN where a
    cell of some stratum holds fewer than two sessions.
    """
    k_count, s_count = coefficients.shape[1], int(stratum.max()) + 1
    cell, size = stratum * k_count + arm, s_count * k_count
    n, total = tally(cell, None, size), tally(cell, y, size)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = total / n
        spread = tally(cell, (y - mean[cell]) ** 2, size) / (n - 1)
        per_cell = (spread / n).reshape(s_count, k_count)
    share = n.reshape(s_count, k_count).sum(axis=1) / n.sum()
    result: Floats = (share**2) @ (per_cell @ (coefficients**2).T)
    return result
