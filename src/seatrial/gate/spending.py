"""Alpha spent over looks: Lan-DeMets with the O'Brien-Fleming shape, boundaries by numerical integration.

One-sided throughout. References: Lan & DeMets 1983; O'Brien & Fleming 1979; Armitage, McPherson & Rowe 1969 for the
recursion; Jennison & Turnbull 2000, chapters 7 and 9 (repeated p-values).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import special

from seatrial.errors import UsageError

Floats = NDArray[np.float64]
_POINTS = 141
_REACH = 8.0


def spent(fraction: float, alpha: float) -> float:
    """Alpha that may be used up by this fraction of the information: 2 - 2 Φ(z_{1-α/2}/√t)."""
    if fraction <= 0:
        return 0.0
    z = float(special.ndtri(1.0 - alpha / 2.0))
    return float(2.0 * special.ndtr(-z / math.sqrt(min(fraction, 1.0))))


def boundaries(fractions: Sequence[float], alpha: float) -> list[float]:
    """Critical z of every look: crossing any of them has probability `alpha` in all, by the last look.

    `fractions` of the full information, increasing, the last at most 1. A look that may spend nothing has an infinite
    boundary.

    Raises:
        UsageError: fractions that do not increase, or lie outside (0, 1].
    """
    t = list(fractions)
    if not t or t[0] <= 0 or t[-1] > 1.0 + 1e-9 or any(b <= a for a, b in itertools.pairwise(t)):
        raise UsageError("looks need information fractions that increase within (0, 1]")
    out: list[float] = []
    grid: Floats | None = None
    density: Floats | None = None
    before = 0.0
    for i, now in enumerate(t):
        step = spent(now, alpha) - spent(t[i - 1], alpha) if i else spent(now, alpha)
        sd = math.sqrt(now - before)
        bound = _solve(grid, density, sd, now, step)
        out.append(bound)
        grid, density = _survivors(grid, density, sd, now, bound)
        before = now
    return out


def _crossing(grid: Floats | None, density: Floats | None, sd: float, level: float) -> float:
    """Chance that the score goes beyond `level` at this look, not having crossed before."""
    if grid is None or density is None:
        return float(special.ndtr(-level / sd))
    return _integral(density * special.ndtr((grid - level) / sd), grid)


def _solve(grid: Floats | None, density: Floats | None, sd: float, now: float, step: float) -> float:
    """z at which the look spends exactly `step`."""
    if step <= 1e-14:
        return math.inf
    low, high = -_REACH, _REACH + 2.0
    for _ in range(45):
        middle = (low + high) / 2.0
        if _crossing(grid, density, sd, middle * math.sqrt(now)) > step:
            low = middle
        else:
            high = middle
    return (low + high) / 2.0


def _survivors(
    grid: Floats | None, density: Floats | None, sd: float, now: float, bound: float
) -> tuple[Floats, Floats]:
    """Density of the score (a Brownian motion at time `now`) where no look has crossed."""
    top = min(bound, _REACH) * math.sqrt(now)
    new = np.linspace(-_REACH * math.sqrt(now), top, _POINTS)
    if grid is None or density is None:
        return new, _normal(new / sd) / sd
    kernel = _normal((new[:, None] - grid[None, :]) / sd) / sd
    return new, _simpson(kernel * density[None, :], grid)


def _normal(x: Floats) -> Floats:
    return np.asarray(np.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi), dtype=np.float64)


def _weights(grid: Floats) -> Floats:
    w = np.ones(grid.size)
    w[1:-1:2], w[2:-1:2] = 4.0, 2.0
    return np.asarray(w * (grid[1] - grid[0]) / 3.0, dtype=np.float64)


def _simpson(values: Floats, grid: Floats) -> Floats:
    return np.asarray(values @ _weights(grid), dtype=np.float64)


def _integral(values: Floats, grid: Floats) -> float:
    return float(values @ _weights(grid))


def repeated_p(z: Sequence[float], fractions: Sequence[float]) -> float:
    """Smallest alpha at which some look so far would have crossed: valid however long one looks.

    `z` are the looks' statistics, large meaning evidence. 1 where no alpha below 1 would do.
    """
    low, high = 1e-12, 0.9999
    if not _crosses(z, fractions, high):
        return 1.0
    if _crosses(z, fractions, low):
        return low
    for _ in range(20):
        middle = math.sqrt(low * high)
        if _crosses(z, fractions, middle):
            high = middle
        else:
            low = middle
    return high


def _crosses(z: Sequence[float], fractions: Sequence[float], alpha: float) -> bool:
    return any(x >= b for x, b in zip(z, boundaries(fractions, alpha), strict=True))
