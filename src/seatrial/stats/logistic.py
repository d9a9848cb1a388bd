"""Ridge-penalised logistic regression with known signs and orders of its weights (METHODS 2, 4.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from seatrial.errors import EvidenceError, UsageError
from seatrial.stats.inputs import Floats, floats, same_length


@dataclass(frozen=True, slots=True, eq=False)
class LogisticFit:
    """A fitted model. `standardised` (p,) are weights on (x - mean)/scale, `weights` (p,) on x itself.

    `intercept` belongs to the raw scale: ``P(y = 1) = expit(intercept + x @ weights)``. `objective` is the penalised
    loss at the minimum; `converged` False: the optimiser stopped early, `message` says why.
    """

    weights: Floats
    intercept: float
    standardised: Floats
    mean: Floats
    scale: Floats
    objective: float
    converged: bool
    message: str

    def probability(self, x: ArrayLike) -> Floats:
        """P(y = 1), shape (n,), for rows `x` (n, p)."""
        return np.asarray(special.expit(self.intercept + _matrix(x) @ self.weights), dtype=np.float64)


def _matrix(x: ArrayLike) -> Floats:
    matrix = np.asarray(x, dtype=np.float64)
    if matrix.ndim != 2 or not np.isfinite(matrix).all():
        raise UsageError(f"x: expected a finite (n, p) matrix, got shape {matrix.shape}")
    return matrix


def _magnitudes(signs: NDArray[np.int64], order: Sequence[tuple[int, int]]) -> Floats:
    """T with weights = T theta and theta >= 0 wherever a sign is set: a stronger weight is a weaker one plus a step."""
    p = signs.size
    weaker: dict[int, int] = {}
    for strong, weak in order:
        if not (0 <= strong < p and 0 <= weak < p) or strong == weak or strong in weaker:
            raise UsageError(f"order: ({strong}, {weak}) is out of range or repeats a stronger weight")
        if signs[strong] == 0 or signs[strong] != signs[weak]:
            raise UsageError(f"order: weights {strong} and {weak} need the same sign to be ordered")
        weaker[strong] = weak
    out = np.diag(np.where(signs == 0, 1, signs).astype(np.float64))
    for j in range(p):
        at, seen = j, {j}
        while at in weaker:
            at = weaker[at]
            if at in seen:
                raise UsageError("order: the constraints form a circle")
            seen.add(at)
            out[j, at] = signs[j]
    return out


def fit_logistic(
    x: ArrayLike, y: ArrayLike, *, penalty: float = 1.0, signs: Sequence[int] | None = None,
    order: Sequence[tuple[int, int]] = (), sample_weight: ArrayLike | None = None, standardise: bool = True,
) -> LogisticFit:  # fmt: skip
    """Minimise ``sum_i w_i loss_i + penalty/2 |beta|^2`` by L-BFGS-B; the intercept is free.

    `x` (n, p), `y` (n,) in [0, 1]. `penalty` is 1/C of scikit-learn and acts on the standardised weights (population
    standard deviation; a constant column gets weight 0). `signs` (p,) of +1, -1 or 0 (free) bound the weights;
    `order` holds pairs (stronger, weaker) of equal sign whose weights *per unit of x* keep
    ``|stronger| >= |weaker|``, by writing the stronger as the weaker plus a step >= 0.

    Raises:
        UsageError: shapes disagree, a value is out of range, or the constraints contradict themselves.
        EvidenceError: only one outcome occurs, so a free intercept has no finite value.
    """
    matrix, target = _matrix(x), floats(y, "y")
    n, p = matrix.shape
    if target.size != n or (n and (target.min() < 0 or target.max() > 1)):
        raise UsageError(f"y: expected {n} values between 0 and 1")
    weight = np.ones(n) if sample_weight is None else floats(sample_weight, "sample_weight")
    same_length({"y": target, "sample_weight": weight})
    sign = np.zeros(p, dtype=np.int64) if signs is None else np.asarray(signs, dtype=np.int64)
    if sign.shape != (p,) or not np.isin(sign, (-1, 0, 1)).all() or penalty < 0 or (n and weight.min() < 0):
        raise UsageError("signs must be +1, -1 or 0 for every column; penalty and sample_weight at least 0")
    share = float(weight @ target / weight.sum()) if n and weight.sum() > 0 else 0.0
    if not 0.0 < share < 1.0:
        raise EvidenceError("both outcomes must occur to fit a logistic model")
    mean = np.average(matrix, axis=0, weights=weight) if standardise else np.zeros(p)
    scale = np.sqrt(np.average((matrix - mean) ** 2, axis=0, weights=weight)) if standardise else np.ones(p)
    flat = scale <= 1e-12 * np.maximum(1.0, np.abs(mean))
    scale = np.where(flat, 1.0, scale)
    z = np.where(flat & standardise, 0.0, (matrix - mean) / scale)
    to_beta = scale[:, None] * _magnitudes(sign, order) / scale[None, :]

    def loss(theta: Floats) -> tuple[float, Floats]:
        beta = to_beta @ theta[1:]
        eta = theta[0] + z @ beta
        residual = weight * (special.expit(eta) - target)
        value = float(weight @ (np.logaddexp(0.0, eta) - target * eta)) + penalty / 2.0 * float(beta @ beta)
        return value, np.concatenate([[residual.sum()], to_beta.T @ (z.T @ residual + penalty * beta)])

    start = np.concatenate([[special.logit(share)], np.zeros(p)])
    bounds = [(None, None)] + [(None if s == 0 else 0.0, None) for s in sign.tolist()]
    from scipy.optimize import minimize  # half a second to load, and only this needs it

    found = minimize(
        loss, start, jac=True, method="L-BFGS-B", bounds=bounds,
        options={"maxiter": 5000, "maxfun": 20_000, "ftol": 1e-14, "gtol": 1e-8},
    )  # fmt: skip
    beta = np.asarray(to_beta @ found.x[1:], dtype=np.float64)
    beta[flat] = 0.0
    raw = beta / scale
    return LogisticFit(
        weights=raw, intercept=float(found.x[0] - raw @ mean), standardised=beta, mean=mean, scale=scale,
        objective=float(found.fun), converged=bool(found.success), message=str(found.message),
    )  # fmt: skip


def auc(scores: ArrayLike, y: ArrayLike) -> float | None:
    """Chance that a random positive scores above a random negative, ties one half; None when a class is empty.

    Raises:
        UsageError: lengths differ or y is not 0/1.
    """
    s, target = floats(scores, "scores"), floats(y, "y")
    same_length({"scores": s, "y": target})
    if not np.isin(target, (0.0, 1.0)).all():
        raise UsageError("y: expected 0 or 1")
    positive = int(target.sum())
    negative = target.size - positive
    if positive == 0 or negative == 0:
        return None
    from scipy.stats import rankdata  # seconds to load, and only this needs it

    ranks = rankdata(s)
    return float((ranks[target == 1].sum() - positive * (positive + 1) / 2.0) / (positive * negative))


def log_loss(probability: ArrayLike, y: ArrayLike) -> float | None:
    """Mean negative log-likelihood in nats, probabilities kept 1e-12 away from 0 and 1; None without rows.

    Raises:
        UsageError: lengths differ or a value lies outside [0, 1].
    """
    p, target = floats(probability, "probability"), floats(y, "y")
    same_length({"probability": p, "y": target})
    if p.size == 0:
        return None
    if min(p.min(), target.min()) < 0 or max(p.max(), target.max()) > 1:
        raise UsageError("probability and y: expected values between 0 and 1")
    p = np.clip(p, 1e-12, 1.0 - 1e-12)
    return float(-(target * np.log(p) + (1.0 - target) * np.log1p(-p)).mean())
