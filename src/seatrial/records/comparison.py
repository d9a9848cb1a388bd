"""The answer of a gate: baseline against candidate, metric by metric (METHODS 6.5; contract in DESIGN 5)."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from seatrial.records.estimate import Estimate

GateVerdict = Literal["PASS", "REVIEW", "REGRESSION", "INCONCLUSIVE"]


class Population(msgspec.Struct, frozen=True, kw_only=True):
    """Cases that are not in both runs, or whose content hash changed: findings, never dropped silently."""

    missing: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()


class MetricRow(msgspec.Struct, frozen=True, kw_only=True):
    """One metric, oriented higher = better. `difference` is candidate - baseline over common tasks.

    `p_value` tests a drop, `p_holm` adjusts it over every metric declared before the run. `mde` is the detectable
    drop at 80% power; `more_runs` the runs per task that would decide it, None when it is decided or when only
    more tasks would help (`more_tasks`).
    """

    metric: str
    baseline: float | None
    candidate: float | None
    difference: Estimate | None
    p_value: float | None
    p_holm: float | None
    verdict: GateVerdict
    mde: float | None
    more_runs: int | None
    margin: float
    more_tasks: int | None = None
    why: str | None = None
    kind: Literal["quality", "cost", "latency"] = "quality"
    lower: float | None = None
    n_tasks: int = 0
    excluded: dict[str, int] = {}


class RegressedTask(msgspec.Struct, frozen=True, kw_only=True):
    """A task that got worse, with the difference of its traces (None where no traces are stored)."""

    task: str
    metric: str
    baseline: float
    candidate: float
    diff: dict[str, Any] | None = None


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """The gate's answer. `changed` names the parts of the agent's fingerprint that differ; empty means that
    nothing changed and the run is an A/A check. `single_run` marks one run per task. `missing_evidence` names what
    the decision needed and did not get: it stops a build, whatever `--on-inconclusive` says."""

    verdict: GateVerdict
    single_run: bool
    changed: tuple[str, ...]
    rule: Literal["noninferiority", "point"]
    margin: float
    population: Population
    metrics: tuple[MetricRow, ...]
    regressed_tasks: tuple[RegressedTask, ...] = ()
    must_pass_failed: tuple[str, ...] = ()
    missing_evidence: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    why: str = ""
