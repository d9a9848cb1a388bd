"""What a caller of `rank` may choose, checked once."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from seatrial.causal.effect import Estimator, Overlap
from seatrial.causal.prepare import Floats
from seatrial.errors import UsageError

Baseline = Literal["uniform", "traffic"] | Mapping[str, float]
Interval = Literal["jackknife", "bootstrap-t"]


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """Checked options of one ranking; see `rank` for their meaning."""

    outcome: str
    baseline: Baseline = "uniform"
    estimator: Estimator = "auto"
    overlap: Overlap = "auto"
    interval: Interval = "jackknife"
    covariates: tuple[str, ...] = ("prompt_chars",)
    strata: tuple[str, ...] = ("task_type", "difficulty", "epoch")
    roster: tuple[str, ...] | None = None
    level: float = 0.95
    seed: int = 0
    draws: int = 9999
    weights: str = "unit"
    basis: dict[str, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 0.0 < self.level < 1.0:
            raise UsageError(f"level must lie between 0 and 1, got {self.level}", hint="0.95 is the usual choice")
        if self.draws < 999:
            raise UsageError(f"draws must be at least 999, got {self.draws}", hint="9999 is the default")
        if self.interval not in ("jackknife", "bootstrap-t"):
            raise UsageError(f"unknown interval {self.interval!r}", hint="jackknife or bootstrap-t")
        if self.estimator not in ("auto", "post-stratified", "hajek", "lin", "aipw"):
            raise UsageError(f"unknown estimator {self.estimator!r}", hint="auto, post-stratified, hajek, lin or aipw")
        if self.overlap not in ("auto", "common", "overlap_weights", "additive"):
            raise UsageError(f"unknown overlap {self.overlap!r}", hint="auto, common, overlap_weights or additive")
        unknown = set(self.strata) - {"task_type", "difficulty", "epoch"}
        if unknown:
            raise UsageError(f"unknown stratum {sorted(unknown)[0]!r}", hint="task_type, difficulty, epoch")


def policy(baseline: Baseline, arms: Sequence[str], sessions: Sequence[int]) -> Floats:
    """The baseline policy q over `arms`, (K,): uniform, traffic shares, or the caller's shares.

    Raises:
        UsageError: an unknown word, a model outside the roster, or shares that are negative or do not sum to 1.
    """
    k = len(arms)
    if isinstance(baseline, str):
        if baseline == "uniform":
            return np.full(k, 1.0 / k)
        if baseline == "traffic":
            counts = np.asarray(sessions, dtype=np.float64)
            shares: Floats = counts / counts.sum()
            return shares
        raise UsageError(f"unknown baseline {baseline!r}", hint="uniform, traffic, or shares by model")
    strangers = sorted(set(baseline) - set(arms))
    if strangers:
        raise UsageError(f"baseline names {strangers[0]!r}, which is not a participating model of this ranking")
    q = np.array([float(baseline.get(a, 0.0)) for a in arms])
    if not np.isfinite(q).all() or q.min() < 0 or abs(q.sum() - 1.0) > 1e-6:
        raise UsageError("baseline shares must be at least 0 and sum to 1")
    scaled: Floats = q / q.sum()
    return scaled
