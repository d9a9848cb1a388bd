"""Paired continuations from one saved state, and what a policy makes of them (METHODS 4)."""

from __future__ import annotations

from typing import Any

import msgspec

from seatrial.records.estimate import Estimate


class Pair(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One pair: `y0` without recovery, `y1` with; both in [0, 1]. `delay` counts environment actions after the
    altered observation. `placebo` True: both continuations are without recovery. `features` are known before the
    decision."""

    task: str
    condition: str
    operation: str
    delay: int
    y0: float
    y1: float
    replay: int = 0
    placebo: bool = False
    cohort: str | None = None
    features: dict[str, float] = {}


class ContrastRow(msgspec.Struct, frozen=True, kw_only=True):
    """Four cells of one condition, operation and delay, as shares of tasks; `effect` = rescue - harm."""

    condition: str
    operation: str
    delay: int
    n: int
    stable_success: float
    rescue: float
    harm: float
    stable_failure: float
    effect: Estimate
    p_value: float | None
    placebo: dict[str, Any] | None = None
    cohort: str | None = None


class PolicyRow(msgspec.Struct, frozen=True, kw_only=True):
    """What a recovery policy achieves; `condition` may be ``all``. `versus` holds paired differences in success
    to other policies, `harm_upper` the one-sided 95% bound on harm."""

    policy: str
    condition: str
    n: int
    success: Estimate | None
    gain: Estimate | None
    rescue: float
    harm: float
    intervention_rate: float
    harm_upper: float
    versus: dict[str, Estimate | None] = {}


class Certificate(msgspec.Struct, frozen=True, kw_only=True):
    """A certified limit on clean harm: with the stated confidence, true harm is at most `limit` (METHODS 4.5).
    `need` is the number of clean tasks without harm that certification takes; `feasible` False says that there
    were too few, and then the policy is *never*."""

    limit: float
    confidence: float
    n_clean: int
    harms: float
    feasible: bool
    need: int
