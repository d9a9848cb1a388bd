"""How strong would hidden bias have to be? And the Mann-Whitney reading of improvement (METHODS 3.4c)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special

from seatrial.causal.cells import Floats, tally
from seatrial.causal.effect import Analysis
from seatrial.causal.prepare import Codes
from seatrial.records import Estimate
from seatrial.stats.quantiles import two_sided_t

MAX_GAMMA = 100.0
LEVEL_CELLS = 20_000_000
"""Cells of stratum x arm x outcome level up to which net benefit is counted by level rather than by sorting."""


def robustness_value(t: float, df: float) -> float:
    """``(sqrt(f^4 + 4 f^2) - f^2)/2``, f = |t|/sqrt(df): share of residual variance of both arm and outcome that a
    confounder must explain to bring the estimate to 0 (Cinelli & Hazlett 2020)."""
    f = abs(t) / math.sqrt(df)
    return 0.5 * (math.sqrt(f**4 + 4 * f**2) - f**2)


def e_value(ratio: float) -> float:
    """``RR + sqrt(RR (RR - 1))``, the ratio inverted when below 1 (VanderWeele & Ding 2017)."""
    rr = 1.0 / ratio if ratio < 1 else ratio
    return rr + math.sqrt(rr * (rr - 1.0))


def ols_t(n_sk: Floats, b_sk: Floats, squares: float, m: int) -> tuple[float, float] | None:
    """Classical t of the dummy 'arm m' in OLS on stratum dummies, and its df; None without residual degrees."""
    n_s, b_s = n_sk.sum(axis=1), b_sk.sum(axis=1)
    live = n_s > 0
    n_s, b_s, n_m, b_m = n_s[live], b_s[live], n_sk[live, m], b_sk[live, m]
    sxx = float((n_m - n_m**2 / n_s).sum())
    sxy = float((b_m - n_m * b_s / n_s).sum())
    syy = squares - float((b_s**2 / n_s).sum())
    df = float(n_s.sum()) - live.sum() - 1.0
    if sxx <= 1e-12 or df < 1:
        return None
    residual = syy - sxy**2 / sxx
    if residual <= 1e-12 * max(squares, 1e-300):
        return None
    return sxy / sxx / math.sqrt(residual / df / sxx), df


def _tables(n_sk: Floats, b_sk: Floats, m: int) -> list[tuple[Floats, Floats, float]]:
    """Per stratum with something to learn: support of the arm's successes, log weights, successes seen."""
    out = []
    for n_k, b_k in zip(n_sk, b_sk, strict=True):
        n, ones, mine = float(n_k.sum()), float(round(b_k.sum())), float(n_k[m])
        low, high = max(0.0, ones + mine - n), min(ones, mine)
        if high <= low:
            continue
        x = np.arange(low, high + 1)
        log = -(
            special.gammaln(x + 1) + special.gammaln(ones - x + 1)
            + special.gammaln(mine - x + 1) + special.gammaln(n - ones - mine + x + 1)
        )  # fmt: skip
        out.append((x, log - log.max(), float(round(b_k[m]))))
    return out


def _p_at(tables: list[tuple[Floats, Floats, float]], total: float, log_gamma: float, up: bool) -> float:
    """One-sided p of the stratified extended hypergeometric test at odds gamma, normal with continuity correction."""
    mean = variance = 0.0
    for x, log, _ in tables:
        weight = np.exp(log + log_gamma * x - (log + log_gamma * x).max())
        weight /= weight.sum()
        centre = float(weight @ x)
        mean += centre
        variance += float(weight @ (x - centre) ** 2)
    if variance <= 0:
        return 1.0
    gap = (total - mean if up else mean - total) - 0.5
    return float(special.ndtr(-gap / math.sqrt(variance)))


def rosenbaum_gamma(n_sk: Floats, b_sk: Floats, m: int, *, alpha: float = 0.05) -> float | None:
    """Largest odds of hidden bias at which arm m against the rest stays significant, one-sided `alpha`.

    Extended hypergeometric per stratum; 1.0 when it is not significant without bias; None when no stratum informs.
    It treats sessions as independent: 'ignores clusters'.
    """
    tables = _tables(n_sk, b_sk, m)
    if not tables:
        return None
    total = sum(seen for _, _, seen in tables)
    up = _p_at(tables, total, 0.0, True) < 0.5
    sign = 1.0 if up else -1.0
    if _p_at(tables, total, 0.0, up) > alpha:
        return 1.0
    low, high = 0.0, math.log(MAX_GAMMA)
    if _p_at(tables, total, sign * high, up) <= alpha:
        return MAX_GAMMA
    for _ in range(40):
        middle = (low + high) / 2
        if _p_at(tables, total, sign * middle, up) <= alpha:
            low = middle
        else:
            high = middle
    return math.exp(low)


def report(analysis: Analysis, m: int, q: Floats, net: Estimate) -> dict[str, Any]:
    """Robustness value, E-value (also for the limit nearest no effect) and Rosenbaum's Gamma of one arm."""
    sample = analysis.sample
    k_count, s_count = len(sample.arms), int(analysis.code.max()) + 1
    cell = analysis.code * k_count + sample.arm
    n_sk = tally(cell, None, s_count * k_count).reshape(s_count, k_count)
    b_sk = tally(cell, sample.y, s_count * k_count).reshape(s_count, k_count)
    out: dict[str, Any] = {"robustness_value": None, "e_value": None, "e_value_limit": None, "gamma": None}
    fit = ols_t(n_sk, b_sk, float(sample.y @ sample.y), m)
    if fit is not None:
        out["robustness_value"] = robustness_value(*fit)
        out["robustness_note"] = "classical t of this model against the rest, inside strata"
    base = float(q @ analysis.moments.mean)
    mean = float(analysis.moments.mean[m])
    if sample.bounded and base > 0 and mean > 0:
        out["e_value"] = e_value(mean / base)
        if net.low is not None and net.high is not None:
            near = net.low if net.value > 0 else net.high
            crosses = net.low <= 0 <= net.high
            out["e_value_limit"] = 1.0 if crosses else e_value(max(base + near, 1e-9) / base)
    if sample.binary:
        out["gamma"] = rosenbaum_gamma(n_sk, b_sk, m)
        out["gamma_note"] = "ignores clusters; one-sided 5%; at most 100 is searched"
    return out


def net_benefit(
    analysis: Analysis, q: Floats, *, level: float, refused: str | None, df: Floats
) -> list[Estimate | None]:
    """Within-stratum Mann-Whitney net benefit of every arm, ``sum_s W_s sum_k q_k [P(Y_m > Y_k) - P(Y_m < Y_k)]``.

    For graded outcomes; for 0/1 outcomes it equals tau. Interval: influence summed inside clusters, CR1, t.
    """
    sample, code = analysis.sample, analysis.code
    k_count, s_count, n = len(sample.arms), int(code.max()) + 1, sample.n
    cell = code * k_count + sample.arm
    n_sk = np.bincount(cell, minlength=s_count * k_count).reshape(s_count, k_count).astype(np.float64)
    if (n_sk == 0).any():
        return [None] * k_count
    share = n_sk.sum(axis=1) / n
    above = _superiority(code, sample.arm, sample.y, n_sk)  # (n, K): P(Y_sk < y_i) - P(Y_sk > y_i)
    mine = above @ q
    by_stratum = np.bincount(cell, weights=mine, minlength=n_sk.size).reshape(n_sk.shape) / n_sk
    value = share @ by_stratum
    weight = share[code] / n_sk[code, sample.arm]
    out: list[Estimate | None] = []
    for m in range(k_count):
        # The other arms' sessions move the comparison from the other side.
        level_k = -np.bincount(cell, weights=above[:, m], minlength=n_sk.size).reshape(n_sk.shape) / n_sk
        psi = weight * q[sample.arm] * (-above[:, m] - level_k[code, sample.arm])
        own = sample.arm == m
        psi[own] += weight[own] * (mine[own] - by_stratum[code[own], m])
        psi += (by_stratum[code, m] - value[m]) / n
        group = np.bincount(sample.cluster, weights=psi, minlength=sample.n_clusters)
        g_count = sample.n_clusters
        se = math.sqrt(float((group**2).sum()) * g_count / max(g_count - 1, 1))
        half = None if refused or se == 0 else two_sided_t(level, float(df[m])) * se
        low = None if half is None else max(-1.0, float(value[m]) - half)
        high = None if half is None else min(1.0, float(value[m]) + half)
        out.append(
            Estimate(
                value=float(value[m]),
                low=low,
                high=high,
                level=level,
                n=n,
                n_clusters=g_count,
                se=se,
                method="Mann-Whitney net benefit inside strata, CR1 t",
                why=refused,
            )
        )
    return out


def _superiority(code: Codes, arm: Codes, y: Floats, n_sk: Floats) -> Floats:
    s_count, k_count = n_sk.shape
    levels, place = np.unique(y, return_inverse=True)
    if levels.size * s_count * k_count <= LEVEL_CELLS:
        key = (code * k_count + arm) * levels.size + place
        counts = np.bincount(key, minlength=n_sk.size * levels.size).reshape(s_count, k_count, levels.size)
        share = counts / n_sk[..., None]
        upto = np.cumsum(share, axis=2)
        edge = 2.0 * upto - share - 1.0  # P(< y) - P(> y)
        flat = edge.transpose(0, 2, 1).reshape(-1, k_count)
        result: Floats = flat[code * levels.size + place]
        return result
    out = np.zeros((y.size, k_count))
    order = np.lexsort((y, arm, code))
    edges = np.searchsorted((code * k_count + arm)[order], np.arange(s_count * k_count + 1))
    by_code = np.argsort(code, kind="stable")
    rows_of = np.searchsorted(code[by_code], np.arange(s_count + 1))
    for s in range(s_count):
        rows = by_code[rows_of[s] : rows_of[s + 1]]
        for k in range(k_count):
            values = y[order[edges[s * k_count + k] : edges[s * k_count + k + 1]]]
            below = np.searchsorted(values, y[rows], side="left")
            upto_ = np.searchsorted(values, y[rows], side="right")
            out[rows, k] = (below + upto_ - values.size) / values.size
    return out
