"""Attempts and the outcome algebra (METHODS 0.1)."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Status = Literal["passed", "failed", "error_agent", "error_infra", "timeout", "unscored", "skipped", "missing"]

STATUSES: tuple[Status, ...] = (
    "passed",
    "failed",
    "error_agent",
    "error_infra",
    "timeout",
    "unscored",
    "skipped",
    "missing",
)
SCORED: frozenset[Status] = frozenset({"passed", "failed", "error_agent", "timeout"})
"""Statuses that count; all but `passed` count as not passed. The others are excluded, and always listed."""


class RecordedOutcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A result that the source itself recorded: a benchmark's reward, an evaluator's verdict.

    `score` is in the source's units, [0, 1] where `bounded`; None when only a status was recorded.
    """

    status: Status
    score: float | None = None
    bounded: bool = True
    by: str | None = None
    extra: dict[str, Any] = {}


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """How many attempts were planned, made, scored and excluded (METHODS 0.1).

    `excluded` counts by status. `worst` and `best` are the mean outcome if every excluded attempt had failed
    or passed; None when nothing was planned.
    """

    n_planned: int
    n_attempted: int
    n_scored: int
    excluded: dict[str, int] = {}
    worst: float | None = None
    best: float | None = None


class Attempt(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One trial of one task by one agent.

    `score` is in [0, 1]; None unless graded. `fingerprint` maps parts of the agent (model as served, prompt,
    tools, harness, sampling) to content hashes (METHODS 6.1). Times are seconds; cost is money as recorded.
    """

    task: str
    trial: int
    status: Status
    score: float | None = None
    model: str | None = None
    agent: str | None = None
    task_hash: str | None = None
    suite: str | None = None
    trace: str | None = None
    reason: str | None = None
    cost_usd: float | None = None
    latency_s: float | None = None
    tokens: int | None = None
    fingerprint: dict[str, str] = {}
    extra: dict[str, Any] = {}
