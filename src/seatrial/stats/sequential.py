"""Looking at any time: confidence sequences that hold at every look together (METHODS 3.4, Monitoring)."""

from __future__ import annotations

import math

from seatrial.errors import UsageError


def _check_alpha(alpha: float) -> None:
    if not 0.0 < alpha < 1.0:
        raise UsageError(f"alpha must lie between 0 and 1, got {alpha}")


def rho_for(v_target: float, alpha: float = 0.05) -> float:
    """Mixture parameter that makes the sequence tightest at information `v_target` = 1/SE^2.

    ``rho = V_target/(2 ln(1/alpha) + ln(1 + 2 ln(1/alpha)))``, two-sided. Freeze V_target before the first look.

    Raises:
        UsageError: v_target is not positive or alpha lies outside (0, 1).
    """
    _check_alpha(alpha)
    if not v_target > 0:
        raise UsageError(f"v_target must be positive, got {v_target}")
    log = 2.0 * math.log(1.0 / alpha)
    return v_target / (log + math.log1p(log))


def mixture_bound(v: float, rho: float, alpha: float = 0.05) -> float:
    """Two-sided normal-mixture boundary for a sum of variance v: ``sqrt((v + rho) ln((v + rho)/(rho alpha^2)))``.

    Howard, Ramdas, McAuliffe & Sekhon 2021 (arXiv 1810.08240).

    Raises:
        UsageError: v is negative, rho is not positive, or alpha lies outside (0, 1).
    """
    _check_alpha(alpha)
    if v < 0 or not rho > 0:
        raise UsageError(f"expected v >= 0 and rho > 0, got {v} and {rho}")
    return math.sqrt((v + rho) * math.log((v + rho) / (rho * alpha * alpha)))


def confidence_sequence(se: float, rho: float, alpha: float = 0.05) -> float:
    """Radius around the current estimate that holds at all looks with probability 1 - alpha.

    ``SE sqrt((1 + rho/V) ln((V + rho)/(rho alpha^2)))``, V = 1/SE^2 (Waudby-Smith et al., arXiv 2103.06476). For M
    models use alpha/M. Asymptotic: claim nothing until every arm has at least 40 effective clusters (METHODS 3.4).

    Raises:
        UsageError: se or rho is not positive, or alpha lies outside (0, 1).
    """
    if not se > 0:
        raise UsageError(f"se must be positive, got {se}")
    return se * se * mixture_bound(1.0 / (se * se), rho, alpha)
