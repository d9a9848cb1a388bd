"""Paired continuations from one saved state, and what a policy makes of them (METHODS 4)."""

from __future__ import annotations

from typing import Any

import msgspec

from seatrial.records.estimate import Estimate
from seatrial.records.trace import ToolResult
from seatrial.records.world import AgentTurn


class Exchange(msgspec.Struct, frozen=True, kw_only=True):
    """One agent turn and the results as the agent was shown them: what a harness knows before it decides."""

    turn: AgentTurn
    results: tuple[ToolResult, ...] = ()


class Pair(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One pair: `y0` without recovery, `y1` with; both in [0, 1]. `delay` counts environment actions after the
    altered observation. `placebo` True: both continuations are without recovery. `features` are known before the
    decision. `terminated`: the run had ended before the delay was over, and both outcomes are carried forward."""

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
    agent: str | None = None
    terminated: bool = False


class ContrastRow(msgspec.Struct, frozen=True, kw_only=True):
    """Four cells of one condition, operation and delay, as shares of tasks; `effect` = rescue - harm.

    `p_value` is the sign-flip test over tasks, `mcnemar` the exact test where every task has one pair of passes and
    failures. `harm_upper` bounds harm from above, one-sided 95%. `placebo` is the floor of noise: its `floor` is what
    two continuations without recovery rescue (and harm), `rescue_excess` and `harm_excess` what the operation adds.
    `n` of `n_cohort` tasks have this row; `n_terminated` of them had ended before the delay was over, and
    `without_terminated` is the effect without them, None where there are none.
    """

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
    agent: str | None = None
    n_pairs: int = 0
    n_cohort: int = 0
    mcnemar: float | None = None
    harm_upper: float | None = None
    n_terminated: int = 0
    without_terminated: Estimate | None = None


class PolicyRow(msgspec.Struct, frozen=True, kw_only=True):
    """What a recovery policy achieves; `condition` may be ``all`` (an equal mix) or a mix such as ``clean 90%``.

    `versus` holds paired differences in success to other policies, `harm_upper` the one-sided 95% bound on harm.
    `p_value` is the sign-flip test of the gain over tasks; `delays` the share of episodes by the delay of its action.
    `doubly_robust` is the gain when a model stands in for continuations that were not run; where all were run it
    equals `gain`. `n` counts episodes, a task under a condition.
    """

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
    p_value: float | None = None
    doubly_robust: Estimate | None = None
    delays: dict[str, float] = {}


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
