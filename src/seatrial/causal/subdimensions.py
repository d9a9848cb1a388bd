"""Command reliability, corrective responsiveness and positivity, beside the ranking (METHODS 3.8)."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from seatrial.causal import calls as counting
from seatrial.causal.prepare import Floats, Sample
from seatrial.causal.responsiveness import HORIZON, by_arm, responses
from seatrial.records import Dimension, Estimate
from seatrial.stats import rank_intervals, ratio_estimate
from seatrial.stats.quantiles import two_sided_t

WEIGHTS = {"command_reliability": 0.40, "corrective_responsiveness": 0.30, "positivity": 0.20, "net_improvement": 0.10}
RANK_FROM = 10


@dataclasses.dataclass(frozen=True, slots=True)
class Part:
    """One dimension of every arm, with the cluster contributions (G, K) that make errors and ranks comparable."""

    name: str
    estimates: tuple[Estimate | None, ...]
    why: tuple[str | None, ...]
    detail: tuple[dict[str, Any], ...]
    influence: Floats | None


def _column(sample: Sample, name: str) -> Floats | None:
    if name not in sample.frame.columns or sample.frame[name].null_count() == sample.n:
        return None
    return sample.frame[name].cast(pl.Float64).fill_null(0.0).to_numpy()


def _ratio(
    name: str,
    sample: Sample,
    top: Floats | None,
    bottom: Floats | None,
    level: float,
    empty: str,
    detail: list[dict[str, Any]],
) -> Part:
    estimates: list[Estimate | None] = []
    why: list[str | None] = []
    influence = np.zeros((sample.n_clusters, len(sample.arms)))
    for k in range(len(sample.arms)):
        mine = sample.arm == k
        if top is None or bottom is None or bottom[mine].sum() == 0:
            estimates.append(None)
            why.append(empty)
            continue
        estimate = ratio_estimate(top[mine], bottom[mine], sample.cluster[mine], level)
        estimates.append(estimate)
        why.append(None)
        if estimate is not None:
            residual = (top[mine] - estimate.value * bottom[mine]) / bottom[mine].sum()
            influence[:, k] = np.bincount(sample.cluster[mine], weights=residual, minlength=sample.n_clusters)
    return Part(name, tuple(estimates), tuple(why), tuple(detail), influence)


def reliability(sample: Sample, calls: pl.DataFrame | pl.LazyFrame | None, level: float) -> Part:
    """Successful / counted calls, with what was left out of the count, recovery, and the worst tools and commands."""
    ok, counted = _column(sample, "calls_ok"), _column(sample, "calls_counted")
    recovery = _column(sample, "command_recovery")
    detail: list[dict[str, Any]] = []
    worst = _worst(sample, calls)
    for k, arm in enumerate(sample.arms):
        mine = sample.arm == k
        row: dict[str, Any] = {}
        for name in ("calls_counted", "calls_ok", "calls_environment", "calls_rejected", "calls_interrupted"):
            column = _column(sample, name)
            row[name.removeprefix("calls_")] = None if column is None else int(column[mine].sum())
        if recovery is not None:
            there = sample.frame["command_recovery"].is_not_null().to_numpy() & mine
            row["recovery"] = float(recovery[there].mean()) if there.any() else None
            row["recovery_sessions"] = int(there.sum())
        row["worst"] = worst.get(arm, [])
        detail.append(row)
    return _ratio("command_reliability", sample, ok, counted, level, "no counted call with a result", detail)


def _worst(sample: Sample, calls: pl.DataFrame | pl.LazyFrame | None) -> Mapping[str, list[dict[str, Any]]]:
    """Per arm the five tools and command heads with the most failures, with examples (session, step)."""
    if calls is None:
        return {}
    if isinstance(calls, pl.DataFrame) and counting.is_counted(calls):
        return counting.worst(calls)
    arms = pl.Series(counting.ARM, [sample.arms[k] for k in sample.arm.tolist()], dtype=pl.String)
    return counting.worst(counting.count(calls, pl.DataFrame([sample.frame["session"], arms])))


def positivity(sample: Sample, level: float) -> Part:
    """(praise + confirmation) / (praise + confirmation + complaint + correction), pooled over sessions."""
    kinds = {k: _column(sample, f"n_{k}") for k in ("praise", "confirmation", "complaint", "correction")}
    detail: list[dict[str, Any]] = []
    for k in range(len(sample.arms)):
        mine = sample.arm == k
        detail.append({name: None if x is None else int(x[mine].sum()) for name, x in kinds.items()})
    zero = np.zeros(sample.n)
    have = any(x is not None for x in kinds.values())
    praise, confirm, complaint, correction = (zero if x is None else x for x in kinds.values())
    top = praise + confirm if have else None
    bottom = praise + confirm + complaint + correction if have else None
    return _ratio("positivity", sample, top, bottom, level, "no praise, confirmation, complaint or correction", detail)


def responsiveness(sample: Sample, corrections: pl.DataFrame | None, level: float) -> Part:
    """1/RMST(10) of agent turns from a correction to acceptance, cluster-jackknife t interval."""
    k_count, g_count = len(sample.arms), sample.n_clusters
    if corrections is None or corrections.is_empty():
        nothing = "no correction episode"
        return Part("corrective_responsiveness", (None,) * k_count, (nothing,) * k_count, ({},) * k_count, None)
    found = responses(corrections, sample)
    estimates: list[Estimate | None] = []
    why: list[str | None] = []
    detail: list[dict[str, Any]] = []
    influence = np.zeros((g_count, k_count))
    for k in range(k_count):
        value, without, clusters, counts = by_arm(found, k)
        detail.append(counts | {"horizon": HORIZON, "mean_wait": None if value is None else 1.0 / value})
        if value is None or without is None:
            estimates.append(None)
            why.append("no correction episode" if counts["episodes"] == 0 else f"no follow-up to {HORIZON} agent turns")
            continue
        n, g = counts["episodes"], clusters.size
        method = f"1/RMST({HORIZON}), Kaplan-Meier, cluster jackknife t"
        if g < 2 or not np.isfinite(without).all():
            reason = (
                "one cluster: its spread cannot be estimated" if g < 2 else "one cluster alone carries the follow-up"
            )
            estimates.append(
                Estimate(value=value, low=None, high=None, level=level, n=n, n_clusters=g, method=method, why=reason)
            )
            why.append(None)
            continue
        shift = without - without.mean()
        influence[clusters, k] = -(g - 1) / g * shift
        se = math.sqrt((g - 1) / g * float((shift**2).sum()))
        half = two_sided_t(level, g - 1) * se
        none = se == 0.0
        estimates.append(
            Estimate(
                value=value,
                low=None if none else max(1.0 / HORIZON, value - half),
                high=None if none else min(1.0, value + half),
                level=level,
                n=n,
                n_clusters=g,
                method=method,
                se=se,
                why="the clusters do not vary" if none else None,
            )
        )
        why.append(None)
    return Part("corrective_responsiveness", tuple(estimates), tuple(why), tuple(detail), influence)


def dimensions(parts: list[Part], sample: Sample, *, level: float, seed: int) -> list[dict[str, Dimension]]:
    """Per arm {name: Dimension}; ranks only among arms with an interval from ten clusters or more."""
    out: list[dict[str, Dimension]] = [{} for _ in sample.arms]
    for part in parts:
        ranked = [
            k for k, e in enumerate(part.estimates) if e is not None and e.low is not None and e.n_clusters >= RANK_FROM
        ]
        ranks = {}
        if len(ranked) >= 2 and part.influence is not None:
            psi = part.influence[:, ranked]
            g = sample.n_clusters
            chosen = [part.estimates[k] for k in ranked]
            values = [e.value for e in chosen if e is not None]
            df = min(e.n_clusters for e in chosen if e is not None) - 1
            ranks = dict(
                zip(ranked, rank_intervals(values, g / (g - 1) * psi.T @ psi, df, level, seed=seed), strict=True)
            )
        for k in range(len(sample.arms)):
            out[k][part.name] = Dimension(
                estimate=part.estimates[k], rank=ranks.get(k), why=part.why[k], detail=part.detail[k]
            )
    return out


def composite(row: dict[str, Dimension], net: Estimate | None) -> dict[str, Any]:
    """The suggested .40/.30/.20/.10 blend, beside the ranking and never used for it; value None if any part is."""
    parts: dict[str, float | None] = {
        name: None if row[name].estimate is None else row[name].estimate.value  # type: ignore[union-attr]
        for name in WEIGHTS
        if name != "net_improvement"
    }
    parts["net_improvement"] = None if net is None else net.value
    missing = [name for name, value in parts.items() if value is None]
    value = None if missing else sum(WEIGHTS[name] * (v or 0.0) for name, v in parts.items())
    return {
        "value": value,
        "weights": dict(WEIGHTS),
        "parts": parts,
        "why": f"not applicable: {', '.join(missing)}"
        if missing
        else "contains the net improvement itself: never ranks",
    }
