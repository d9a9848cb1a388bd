"""What this much data can see, and how much would be needed (METHODS 3.11)."""

from __future__ import annotations

import math

import numpy as np

from seatrial.causal.cells import Floats, Moments
from seatrial.causal.uncertainty import Contrasts
from seatrial.errors import UsageError
from seatrial.records import Power
from seatrial.stats.quantiles import normal, student

POWER = 0.8
POINTS = (1, 2, 5)


def _reach(level: float, df: float = math.inf) -> float:
    return student(0.5 + level / 2.0, df) + student(POWER, df)


def observed(
    moments: Moments, each: Contrasts, arms: tuple[str, ...], *, level: float, bounded: bool, refused: str | None
) -> Power:
    """Minimum detectable effect per arm, ``(t_{1-a/2} + t_.80) SE``, and sessions per arm for 1, 2 and 5 points.

    Sessions: variance per session of each arm, ``D_k = V_kk n_k``, carries the observed cluster correlation; with n
    sessions per arm ``Var(tau_m) = sum_k c_mk^2 D_k/n``; the largest n over arms is printed.
    """
    if refused is not None:
        return Power(mde=dict.fromkeys(arms), sessions_for={str(p): None for p in POINTS}, level=level, why=refused)
    mde = {
        a: None if se == 0 else float(_reach(level, df) * se) for a, se, df in zip(arms, each.se, each.df, strict=True)
    }
    per_session = np.diag(moments.cr3) * moments.n_k
    need = (each.coefficients**2 @ per_session).max()
    sessions: dict[str, int | None] = {str(p): None for p in POINTS}
    why = None
    if not bounded:
        why = "points need an outcome in [0, 1]"
    elif need > 0:
        sessions = {str(p): math.ceil(_reach(level) ** 2 * need / (p / 100.0) ** 2) for p in POINTS}
    return Power(mde=mde, sessions_for=sessions, level=level, why=why)


def plan(
    models: int,
    *,
    sessions_per_model: int | None = None,
    rate: float = 0.5,
    sd: float | None = None,
    sessions_per_cluster: float = 1.0,
    icc: float = 0.0,
    sticky: bool = False,
    baseline: Floats | None = None,
    level: float = 0.95,
) -> Power:
    """Power before any data: a design of `models` arms with equal sessions each.

    `sd` is the outcome's standard deviation (None: sqrt(rate (1 - rate)) of a share); `icc` the correlation of two
    sessions of one cluster, `sessions_per_cluster` their number. `sticky`: a cluster keeps one arm, so its sessions
    share their arm's luck (design effect ``1 + (m - 1) icc``). Otherwise a cluster's sessions are spread over all
    arms and its common part cancels out of every contrast (design effect ``1 - icc``, conservative at 1 when
    icc < 0). `mde` has the one key "any model" (None without `sessions_per_model`).

    Raises:
        UsageError: fewer than two models, or a number out of range.
    """
    if models < 2:
        raise UsageError(f"a plan needs at least two models, got {models}")
    if not 0 < level < 1 or not -1 <= icc <= 1 or sessions_per_cluster < 1:
        raise UsageError("level must lie in (0, 1), icc in [-1, 1], sessions_per_cluster be at least 1")
    if sd is None:
        if not 0 < rate < 1:
            raise UsageError(f"rate must lie in (0, 1), got {rate}")
        sd = math.sqrt(rate * (1 - rate))
    q = np.full(models, 1.0 / models) if baseline is None else np.asarray(baseline, dtype=np.float64)
    if q.size != models or q.min() < 0 or abs(q.sum() - 1) > 1e-9:
        raise UsageError("baseline: expected one share per model, summing to 1")
    effect = 1 + (sessions_per_cluster - 1) * icc if sticky else (1 - icc if sessions_per_cluster > 1 else 1.0)
    effect = max(effect, 1e-9) if icc >= 0 else 1.0
    spread = float(((np.eye(models) - q) ** 2).sum(axis=1).max()) * sd**2 * effect
    reach = (normal(0.5 + level / 2) + normal(POWER)) ** 2
    sessions: dict[str, int | None] = {str(p): math.ceil(reach * spread / (p / 100.0) ** 2) for p in POINTS}
    if sessions_per_model is None:
        return Power(mde={"any model": None}, sessions_for=sessions, level=level, why="no number of sessions was given")
    if sessions_per_model < 1:
        raise UsageError("sessions_per_model must be at least 1")
    return Power(mde={"any model": math.sqrt(reach * spread / sessions_per_model)}, sessions_for=sessions, level=level)
