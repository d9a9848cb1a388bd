"""Corrective responsiveness: agent turns from a correction to acceptance, if it ever came (METHODS 3.8)."""

from __future__ import annotations

import dataclasses

import numpy as np
import polars as pl
from numpy.typing import NDArray

from seatrial.causal.prepare import Codes, Floats, Sample
from seatrial.errors import SchemaError

HORIZON = 10


@dataclasses.dataclass(frozen=True, slots=True)
class Responses:
    """One row per correction episode: `time` in agent turns (inf: ended or abandoned first), `event` accepted (True)
    or cut while live (False), cluster and arm codes of the sample."""

    time: Floats
    event: NDArray[np.bool_]
    cluster: Codes
    arm: Codes


def responses(corrections: pl.DataFrame, everyone: Sample) -> Responses:
    """Correction rows of the sample's sessions. `ended` rows never end: T is infinite, a competing event.

    Raises:
        SchemaError: a column of the corrections table is missing.
    """
    for name in ("session", "turns", "ended", "follow_up"):
        if name not in corrections.columns:
            raise SchemaError(f"corrections: no column {name!r}", hint="expected the corrections table's columns")
    place = pl.DataFrame({"session": everyone.frame["session"], "_arm": everyone.arm, "_cluster": everyone.cluster})
    rows = corrections.join(place, on="session", how="inner").sort(
        "session", "step" if "step" in corrections.columns else "session"
    )
    accepted = ((rows["ended"] == "accepted") & rows["turns"].is_not_null()).to_numpy()
    censored = (rows["ended"] == "censored").to_numpy()
    turns = rows["turns"].cast(pl.Float64).fill_null(float("inf")).to_numpy()
    follow = rows["follow_up"].cast(pl.Float64).fill_null(0.0).to_numpy()
    time = np.where(accepted, turns, np.where(censored, follow, np.inf))
    return Responses(time, accepted, rows["_cluster"].to_numpy(), rows["_arm"].to_numpy())


def mean_wait(accepted: Floats, at_risk: Floats) -> NDArray[np.float64]:
    """``RMST(L) = sum_{t<L} S(t)``, Kaplan-Meier, for many samples (..., L); NaN where S is not known up to L.

    `accepted[..., t - 1]` counts acceptances at turn t = 1..L, `at_risk` those still open just before it. S(0) = 1:
    a correction is never accepted in less than one turn.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = np.where(at_risk > 0, 1.0 - accepted / at_risk, np.nan)
    survival = np.ones((*accepted.shape[:-1], accepted.shape[-1]))
    for t in range(1, accepted.shape[-1]):
        before = survival[..., t - 1]
        # Once everyone has accepted, nobody need be at risk: S stays 0.
        survival[..., t] = np.where(before <= 1e-12, 0.0, before * factor[..., t - 1])
    result: NDArray[np.float64] = survival.sum(axis=-1)
    return result


def tables(time: Floats, event: NDArray[np.bool_], group: Codes, g_count: int, horizon: int) -> tuple[Floats, Floats]:
    """Acceptances at, and episodes at risk just before, every turn 1..L by cluster, each (G, L).

    An episode cut after f turns was still open at turn f, so it is at risk at turns up to f; turn 0 counts as 1.
    """
    turn = np.where(event, np.maximum(time, 1.0), time)
    accepted, risk = np.zeros((g_count, horizon)), np.zeros((g_count, horizon))
    for t in range(1, horizon + 1):
        accepted[:, t - 1] = np.bincount(group, weights=(event & (turn == t)).astype(float), minlength=g_count)
        risk[:, t - 1] = np.bincount(group, weights=(turn >= t).astype(float), minlength=g_count)
    return accepted, risk


def by_arm(
    found: Responses, k: int, horizon: int = HORIZON
) -> tuple[float | None, Floats | None, Codes, dict[str, int]]:
    """1/RMST of one arm, its delete-one-cluster values (G_k,), the clusters, and episode counts.

    None when the arm has no correction, or its follow-up ends before the horizon with episodes still open.
    """
    mine = found.arm == k
    counts = {
        "episodes": int(mine.sum()),
        "accepted": int((mine & found.event).sum()),
        "never_accepted": int((mine & np.isinf(found.time)).sum()),
        "cut_while_live": int((mine & ~found.event & np.isfinite(found.time)).sum()),
    }
    if not mine.any():
        return None, None, np.zeros(0, dtype=np.int64), counts
    clusters, group = np.unique(found.cluster[mine], return_inverse=True)
    accepted, risk = tables(found.time[mine], found.event[mine], group, clusters.size, horizon)
    value = mean_wait(accepted.sum(axis=0), risk.sum(axis=0))
    if np.isnan(value):
        return None, None, clusters, counts
    without = mean_wait(accepted.sum(axis=0) - accepted, risk.sum(axis=0) - risk)
    return float(1.0 / value), 1.0 / without, clusters, counts
