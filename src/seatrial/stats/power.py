"""How much data a question needs, and what this much data can see (METHODS 3.11, 6.5; Miller 2024)."""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from seatrial.errors import UsageError
from seatrial.stats.quantiles import normal


def _critical(level: float, power: float, two_sided: bool) -> float:
    for name, x in (("level", level), ("power", power)):
        if not 0.0 < x < 1.0:
            raise UsageError(f"{name} must lie between 0 and 1, got {x}")
    return normal(0.5 + level / 2.0 if two_sided else level) + normal(power)


def _unit_variance(omega2: float, s2_a: float, k_a: int, s2_b: float, k_b: int) -> float:
    if min(omega2, s2_a, s2_b) < 0 or min(k_a, k_b) < 1:
        raise UsageError("variances must be at least 0 and attempts at least 1")
    return omega2 + s2_a / k_a + s2_b / k_b


def sample_size(
    delta: float, omega2: float, s2_a: float = 0.0, s2_b: float | None = None, k_a: int = 1, k_b: int | None = None,
    *, level: float = 0.95, power: float = 0.8, two_sided: bool = True,
) -> int:  # fmt: skip
    """Tasks needed to see a paired difference `delta`: ``(z + z_power)^2 (omega2 + s2_a/k_a + s2_b/k_b)/delta^2``.

    `omega2`: variance over tasks of the true difference; `s2_a`, `s2_b` (None: as a): mean variance of one attempt
    inside a task; `k_a`, `k_b` (None: as a): attempts per task (Miller 2024, arXiv 2411.00640). Rounded up, at
    least 1.

    Raises:
        UsageError: delta is 0 or an argument is out of range.
    """
    variance = _unit_variance(omega2, s2_a, k_a, s2_a if s2_b is None else s2_b, k_a if k_b is None else k_b)
    if delta == 0 or not math.isfinite(delta):
        raise UsageError("delta must be a number other than 0")
    exact = (_critical(level, power, two_sided) / delta) ** 2 * variance
    # Inputs with ten digits must not turn 969.0000000001 into 970.
    return max(1, math.ceil(exact - 1e-9 * max(1.0, exact)))


def mde(se: float, *, level: float = 0.95, power: float = 0.8, two_sided: bool = True) -> float:
    """Smallest true difference that a test with standard error `se` detects with the given power.

    METHODS 3.11 uses two-sided 95%; the gate (6.5) ``(z.95 + z.80) SE`` is ``two_sided=False``.

    Raises:
        UsageError: se is negative or a probability is out of range.
    """
    if not se >= 0:
        raise UsageError(f"se must be at least 0, got {se}")
    return _critical(level, power, two_sided) * se


def attempts_needed(
    delta: float, omega2: float, s2_a: float, k_a: int, s2_b: float, tasks: int,
    *, level: float = 0.95, power: float = 0.8, two_sided: bool = False,
) -> int | None:  # fmt: skip
    """Least attempts K per task for arm b with ``(z + z_power)^2 (omega2 + s2_a/k_a + s2_b/K)/tasks <= delta^2``.

    None when no K suffices: then more tasks are needed (`sample_size`). METHODS 6.5's `more_runs`.

    Raises:
        UsageError: an argument is out of range.
    """
    fixed = _unit_variance(omega2, s2_a, k_a, 0.0, 1)
    if delta == 0 or tasks < 1 or s2_b < 0:
        raise UsageError("delta must not be 0, tasks at least 1 and s2_b at least 0")
    room = delta * delta * tasks / _critical(level, power, two_sided) ** 2 - fixed
    if s2_b == 0:
        return 1 if room >= 0 else None
    if room <= 0:
        return None
    exact = s2_b / room
    return max(1, math.ceil(exact - 1e-9 * exact))


def clustered_sample_size(
    delta: float, variance: float, cluster_size: float, correlation: float,
    *, level: float = 0.95, power: float = 0.8, share: float = 0.5,
) -> int:  # fmt: skip
    """Sessions of one arm needed to see `delta` against the rest, with the design effect 1 + (m - 1) rho.

    `variance` of one session's outcome, `cluster_size` m mean sessions per cluster, `correlation` rho of sessions
    in a cluster, `share` the arm's share of all sessions (METHODS 3.11).

    Raises:
        UsageError: an argument is out of range.
    """
    if delta == 0 or variance < 0 or cluster_size < 1 or not -1.0 <= correlation <= 1.0 or not 0.0 < share < 1.0:
        raise UsageError("delta, variance, cluster_size, correlation or share is out of range")
    effect = max(0.0, 1.0 + (cluster_size - 1.0) * correlation)
    exact = (_critical(level, power, True) / delta) ** 2 * variance * effect * (1.0 + share / (1.0 - share))
    return max(1, math.ceil(exact - 1e-9 * max(1.0, exact)))


def point_rule_false_alarm(n: int, p: float, threshold: float, *, strict: bool = True) -> float:
    """Chance that "block on a drop of more than `threshold`" blocks an unchanged agent (METHODS 6.5).

    Baseline and candidate are each n independent attempts with pass chance p; exact, by both binomials. `strict`
    False blocks at the threshold too. Drops are compared as counts: with 150 attempts 2 points are 3 passes.

    Raises:
        UsageError: n is below 1, p outside [0, 1] or the threshold negative.
    """
    if n < 1 or not 0.0 <= p <= 1.0 or threshold < 0:
        raise UsageError("expected n >= 1, 0 <= p <= 1 and threshold >= 0")
    k = np.arange(n + 1)
    log_choose = special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)
    mass = np.exp(log_choose + special.xlogy(k, p) + special.xlog1py(n - k, -p))
    bar = threshold * n
    lost = math.floor(bar + 1e-9) + 1 if strict else math.ceil(bar - 1e-9)
    below = np.concatenate([[0.0], np.cumsum(mass)])
    # Candidate passes at most k - lost.
    return float(min(1.0, mass @ below[np.clip(k - lost + 1, 0, n + 1)]))
