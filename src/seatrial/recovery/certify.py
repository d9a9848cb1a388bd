"""Rules and untouched tasks to a certified limit on harm: Learn-then-Test with a fixed sequence (METHODS 4.5).

Rules are tested in an order fixed on the fitting tasks, rarest intervention first, each at the full level delta, until
the first that is not rejected; whatever was certified before it holds at once with confidence 1 - delta (Angelopoulos
et al., arXiv 2110.01052, proposition 5). One rule is a whole policy: what counts is whether a clean task is harmed at
the first decision point at which the rule holds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy import special

from seatrial.errors import UsageError
from seatrial.records import Certificate
from seatrial.recovery.bounds import Floats, p_at_most
from seatrial.stats import zero_events_needed

LIMIT, CONFIDENCE = 0.02, 0.95


@dataclass(frozen=True, slots=True, eq=False)
class Tested:
    """Of rules in testing order: `p_values` and `harms`, as far as tested; `certified` of them hold."""

    p_values: tuple[float, ...]
    harms: tuple[float, ...]
    certified: int


def needed(limit: float = LIMIT, confidence: float = CONFIDENCE) -> int:
    """Clean tasks without any harm that certification takes: 149 for 2%, 59 for 5%, 299 for 1% at 95%."""
    return zero_events_needed(limit, confidence)


def split_size(tasks: int, limit: float = LIMIT, confidence: float = CONFIDENCE) -> int:
    """How many of `tasks` to certify on: the largest number up to 60% of them (70% for the first) at which one more
    harm becomes bearable (149, 236, 313, ... for 2%): between two such numbers more tasks only add chances to fail.
    Half of the tasks where even the first is out of reach."""
    found, k = 0, 0
    while (n := _step(k, limit, 1.0 - confidence, int((0.6 if k else 0.7) * tasks))) is not None:
        found, k = n, k + 1
    return found or tasks // 2


def _step(k: int, limit: float, delta: float, most: int) -> int | None:
    """Fewest tasks of which `k` harms still certify the limit; None where that takes more than `most`."""
    low, high = k + 1, most
    if high < low or special.bdtr(k, high, limit) > delta:
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if special.bdtr(k, middle, limit) <= delta else (middle + 1, high)
    return low


def fixed_sequence(harms: Iterable[Floats], *, limit: float = LIMIT, confidence: float = CONFIDENCE) -> Tested:
    """Test rules in the given order and stop at the first that fails.

    `harms` holds for each rule the harm of every clean certify task, in [0, 1]: 0 or 1 for single runs, shares for
    averaged replays.

    Raises:
        UsageError: limit or confidence outside (0, 1).
    """
    if not 0.0 < confidence < 1.0:
        raise UsageError(f"confidence lies between 0 and 1, got {confidence}")
    delta = 1.0 - confidence
    p_values: list[float] = []
    totals: list[float] = []
    for values in harms:
        p_values.append(p_at_most(limit, np.asarray(values, dtype=np.float64)))
        totals.append(float(np.sum(values)))
        # A rate of exactly (1 - limit)^n = delta is certified; the last digit of a power must not decide.
        if p_values[-1] > delta * (1.0 + 1e-12):
            return Tested(tuple(p_values), tuple(totals), len(p_values) - 1)
    return Tested(tuple(p_values), tuple(totals), len(p_values))


def certificate(n_clean: int, harms: float, feasible: bool, *, limit: float, confidence: float) -> Certificate:
    """What is deployed and what it rests on; `harms` are those of the deployed rule on the clean certify tasks."""
    return Certificate(limit=limit, confidence=confidence, n_clean=n_clean, harms=harms, feasible=feasible,
                       need=needed(limit, confidence))  # fmt: skip
