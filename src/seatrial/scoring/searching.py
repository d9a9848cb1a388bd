"""Searches for the shape of the weights where the loss is only evaluated, never differentiated (METHODS 2).

Both walk the logarithms of the weights; a loss takes shapes (n, d), all positive, and returns one value for each.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import special

Floats = NDArray[np.float64]
Loss = Callable[[Floats], Floats]
Filter = Callable[[Floats], Floats]

ROUNDS, PER_ROUND, KEEP = 4, 200, 20
REACH = 3.0
"""How far a log weight is drawn from equal weights before the best is known: a factor of e**3 either way."""

LENGTHS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
JITTER = 1e-8
_FIRST, _DRAWN, _AGAIN = 24, 256, 8


def narrowing(
    loss: Loss, size: int, *, seed: int, allowed: Filter, rounds: int = ROUNDS, per_round: int = PER_ROUND,
    keep: int = KEEP,
) -> Floats:  # fmt: skip
    """The best of random shapes that narrow around the best of each round (the cross-entropy method), (size,)."""
    rng = np.random.default_rng(seed)
    centre, spread = np.zeros(size), np.ones(size)
    best, least = np.ones(size), np.inf
    for _ in range(rounds):
        shapes = allowed(np.exp(rng.normal(centre, spread, (per_round, size))))
        if not len(shapes):
            continue
        found = loss(shapes)
        kept = shapes[np.argsort(found, kind="stable")[:keep]]
        if found.min() < least:
            best, least = shapes[int(np.argmin(found))], float(found.min())
        centre, spread = np.log(kept).mean(axis=0), np.log(kept).std(axis=0) + 0.05
    return best


def bayesian(
    loss: Loss, size: int, *, seed: int, allowed: Filter, budget: int = ROUNDS * PER_ROUND, tolerance: float = 0.0
) -> Floats:
    """The best shape, (size,), found one evaluation at a time by the largest expected improvement under a Gaussian
    process of the loss (Jones, Schonlau & Welch 1998; Snoek, Larochelle & Adams 2012).

    Searched are the logarithms of the weights less their mean, as a loss with a slope of its own does not change with
    the size of the weights. The process has a Matern 5/2 kernel; its length scale is the likeliest of `LENGTHS` (anew
    at every eighth evaluation), its variance the likeliest given that. It begins with equal weights and a Latin
    hypercube; candidates are drawn anew for every evaluation, half over the whole range, half around the best so far.
    At most `budget` evaluations; it ends before when no candidate promises an improvement of more than `tolerance`, in
    units of the loss.
    """
    rng = np.random.default_rng(seed)
    first = max(min(_FIRST, budget - 1), 0)
    cells = rng.permuted(np.tile(np.arange(first), (size, 1)), axis=1).T
    cube = ((cells + rng.random((first, size))) / max(first, 1) * 2 - 1) * REACH
    points = _level(np.vstack([np.zeros((1, size)), np.log(allowed(np.exp(cube)))]))
    values, length = loss(np.exp(points)), LENGTHS[0]
    for step in range(budget - len(values)):
        spread = float(values.std())
        if not spread > 0:
            break
        best = points[int(np.argmin(values))]
        near = best + rng.normal(size=(_DRAWN, size)) * np.exp(rng.uniform(-4.0, 0.0, (_DRAWN, 1)))
        wide = rng.uniform(-REACH, REACH, (_DRAWN, size))
        drawn = _level(np.log(allowed(np.exp(np.vstack([near, wide])))))
        if not len(drawn):
            continue
        scores = (values - values.mean()) / spread
        if step % _AGAIN == 0:
            length = max(LENGTHS, key=lambda one: likelihood(points, scores, one))
        promise = expected_improvement(*posterior(points, scores, drawn, length), float(scores.min()))
        chosen = int(np.argmax(promise))
        if promise[chosen] * spread <= tolerance:
            break
        points = np.vstack([points, drawn[chosen : chosen + 1]])
        values = np.append(values, loss(np.exp(drawn[chosen : chosen + 1])))
    return np.asarray(np.exp(points[int(np.argmin(values))]))


def posterior(points: Floats, values: Floats, at: Floats, length: float) -> tuple[Floats, Floats]:
    """Mean and standard deviation of the process at `at` (m, d), given its values (n,) at `points` (n, d)."""
    from scipy.linalg import solve_triangular

    lower, white, variance = _whitened(points, values, length)
    reach = solve_triangular(lower, _matern(points, at, length), lower=True, check_finite=False)
    return reach.T @ white, np.sqrt(variance * np.maximum(1.0 - (reach * reach).sum(axis=0), 0.0))


def likelihood(points: Floats, values: Floats, length: float) -> float:
    """Log marginal likelihood of the values at the likeliest variance."""
    lower, _, variance = _whitened(points, values, length)
    return float(-0.5 * len(values) * (np.log(2 * np.pi * variance) + 1.0) - np.log(np.diag(lower)).sum())


def expected_improvement(mean: Floats, deviation: Floats, best: float) -> Floats:
    """E max(best - Y, 0) for Y ~ N(mean, deviation**2), each."""
    gain = best - mean
    z = gain / np.where(deviation > 0, deviation, 1.0)
    density = np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi)
    return np.where(deviation > 0, gain * special.ndtr(z) + deviation * density, np.maximum(gain, 0.0))


def _level(logs: Floats) -> Floats:
    return np.asarray(logs - logs.mean(axis=1, keepdims=True))


def _matern(a: Floats, b: Floats, length: float) -> Floats:
    square = (a * a).sum(axis=1)[:, None] + (b * b).sum(axis=1)[None, :] - 2.0 * (a @ b.T)
    r = np.sqrt(5.0 * np.maximum(square, 0.0)) / length
    return np.asarray((1.0 + r + r * r / 3.0) * np.exp(-r))


def _whitened(points: Floats, values: Floats, length: float) -> tuple[Floats, Floats, float]:
    """Cholesky factor of the correlations, the values whitened by it, and the likeliest variance."""
    from scipy.linalg import solve_triangular  # a while to load, and only this search needs it

    correlation = _matern(points, points, length) + JITTER * np.eye(len(points))
    lower: Floats = np.asarray(np.linalg.cholesky(correlation), dtype=np.float64)
    white: Floats = np.asarray(solve_triangular(lower, values, lower=True, check_finite=False))
    return lower, white, float(white @ white) / len(values)
