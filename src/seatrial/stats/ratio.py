"""Planned shares against observed counts: did assignment do what it was asked to do? (METHODS 3.6)"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from seatrial.errors import EvidenceError, UsageError

_MIN_EXPECTED = 5.0


def sample_ratio_test(counts: ArrayLike, shares: ArrayLike, *, seed: int = 0, draws: int = 9999) -> tuple[float, float]:
    """Sample-ratio mismatch: chi-square summed over strata, and its p-value.

    `counts` (S, M) assignment units by stratum and arm, `shares` (S, M) the planned probabilities, rows summing to 1.
    Degrees of freedom: arms with a positive share, less one, summed over strata that hold units. Where an expected
    count is below 5 the p-value is Monte Carlo, ``(1 + #)/(1 + draws)`` of multinomial draws. A unit in an arm of
    share 0 gives p = 0: the plan was broken outright.

    Raises:
        UsageError: shapes disagree, shares do not sum to 1, or fewer than 999 draws where they are needed.
        EvidenceError: no stratum with units has two arms to choose from.
    """
    seen, plan = (
        np.atleast_2d(np.asarray(counts, dtype=np.float64)),
        np.atleast_2d(np.asarray(shares, dtype=np.float64)),
    )
    if seen.shape != plan.shape or seen.ndim != 2:
        raise UsageError(f"counts {seen.shape} and shares {plan.shape} must have one shape (strata, arms)")
    if not (np.isfinite(seen).all() and (seen >= 0).all() and (seen == np.floor(seen)).all()):
        raise UsageError("counts: expected whole numbers of at least 0")
    if not ((plan >= 0).all() and np.allclose(plan.sum(axis=1), 1.0, atol=1e-9)):
        raise UsageError("shares: expected probabilities that sum to 1 in every stratum")
    n = seen.sum(axis=1)
    seen, plan, n = seen[n > 0], plan[n > 0], n[n > 0]
    if (seen[plan == 0] > 0).any():
        return float("inf"), 0.0
    freedom = int(((plan > 0).sum(axis=1) - 1).sum())
    if freedom == 0:
        raise EvidenceError("no stratum with units had two arms to choose from")
    expected = n[:, None] * plan
    chi2 = _chi2(seen[None], expected)[0]
    if expected[plan > 0].min() >= _MIN_EXPECTED:
        return float(chi2), float(special.chdtrc(freedom, chi2))
    if draws < 999:
        raise UsageError(f"at least 999 draws are needed, got {draws}")
    rng = np.random.default_rng(seed)
    drawn = np.stack([rng.multinomial(int(k), p / p.sum(), size=draws) for k, p in zip(n, plan, strict=True)], axis=1)
    reached = int((_chi2(drawn.astype(np.float64), expected) >= chi2 * (1.0 - 1e-12)).sum())
    return float(chi2), (1 + reached) / (1 + draws)


def _chi2(seen: np.ndarray, expected: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore", divide="ignore"):
        terms = np.where(expected > 0, (seen - expected) ** 2 / np.where(expected > 0, expected, 1.0), 0.0)
    return np.asarray(terms.sum(axis=(1, 2)))
