"""Values of runs to one number: task means, then their equal-weight mean with a t interval over tasks (METHODS 5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from seatrial.records import (
    SCORED,
    ActionVerdict,
    DimensionResult,
    DimensionValue,
    Estimate,
    Evidence,
    Finding,
    TaskValue,
)
from seatrial.stats import clustered_mean

LEVELS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Source C's rubric levels."""
WORST = 5
"""How many of the worst runs a result names."""


def value_of(
    dimension: str,
    version: str,
    run: Evidence,
    value: float | None,
    why: str,
    *,
    numerator: float | None = None,
    denominator: float | None = None,
    level: float | None = None,
    level_why: str = "",
    findings: tuple[Finding, ...] = (),
    actions: tuple[ActionVerdict, ...] = (),
    parts: dict[str, Any] | None = None,
) -> DimensionValue:
    """A run's value with the names that it needs to be found again; the fields are those of `DimensionValue`."""
    a = run.attempt
    return DimensionValue(
        dimension=dimension, version=version, task=a.task, trial=a.trial, status=a.status, value=value, why=why,
        numerator=numerator, denominator=denominator, level=level, level_why=level_why, findings=findings,
        actions=actions, parts=parts or {}, trace=a.trace,
    )  # fmt: skip


def scored(values: Iterable[DimensionValue]) -> list[DimensionValue]:
    """The values of runs that count (METHODS 0.1)."""
    return [v for v in values if v.status in SCORED]


def recorded(values: Iterable[DimensionValue]) -> list[DimensionValue]:
    """The values of runs that took place, whether or not their outcome was scored: what a dimension looks at that needs
    no outcome."""
    return [v for v in values if v.status in SCORED or v.status == "unscored"]


def by_task(values: Iterable[DimensionValue]) -> dict[str, list[DimensionValue]]:
    """Values by task, tasks in order of their names."""
    out: dict[str, list[DimensionValue]] = {}
    for v in values:
        out.setdefault(v.task, []).append(v)
    return dict(sorted(out.items()))


def task_means(values: Iterable[DimensionValue]) -> dict[str, TaskValue]:
    """Each task's mean over the runs that have a value; None with the commonest reason where none has."""
    out = {}
    for task, rows in by_task(values).items():
        known = [v.value for v in rows if v.value is not None]
        if known:
            out[task] = TaskValue(value=sum(known) / len(known), n=len(known))
        else:
            out[task] = TaskValue(value=None, n=0, why=commonest(v.why for v in rows))
    return out


def mean_over_tasks(
    per_task: Mapping[str, TaskValue], confidence: float, method: str
) -> tuple[Estimate | None, float | None]:
    """The equal-weight mean of the tasks' values and its raw value.

    Values outside [0, 1], which unbiased estimators give, are averaged as they are; the estimate is clipped to [0, 1]
    for display and the raw mean stands beside it. Tasks that do not vary keep a width (METHODS 0.3); one task has no
    interval. None where no task has a value.
    """
    known = {task: t.value for task, t in per_task.items() if t.value is not None}
    if not known:
        return None, None
    values, names = list(known.values()), list(known)
    inside = min(values) >= 0.0 and max(values) <= 1.0
    found = clustered_mean(values, names, level=confidence, bounded=inside)
    assert found is not None
    if not inside and found.se == 0.0:
        # Equal values beyond the range: the width is that of the nearest value inside it.
        found = clustered_mean([_clip(v) for v in values], names, level=confidence)
        assert found is not None
    n = sum(per_task[task].n for task in known)
    made = replace(
        found,
        value=_clip(found.value),
        low=None if found.low is None else _clip(found.low),
        high=None if found.high is None else _clip(found.high),
        n=n,
        method=f"{method}, t over tasks" + (" (tasks do not vary: exact bound)" if found.se == 0.0 else ""),
    )
    return made, sum(values) / len(values)


def result(
    dimension: str,
    name: str,
    version: str,
    values: Sequence[DimensionValue],
    confidence: float,
    *,
    method: str,
    per_task: dict[str, TaskValue] | None = None,
    among: Sequence[DimensionValue] | None = None,
    nothing: str = "nothing was scored",
    level: float | None = None,
    level_why: str = "",
    n_runs: int | None = None,
    unmeasured: dict[str, int] | None = None,
    beside: dict[str, Estimate | float | None] | None = None,
    worst: tuple[DimensionValue, ...] | None = None,
    notes: tuple[str, ...] = (),
    unit: str | None = None,
    detail: dict[str, Any] | None = None,
) -> DimensionResult:
    """The result of a dimension whose task value is the mean over runs; `per_task` replaces that mean. `among` are the
    runs that count (None: those that are scored).

    `nothing` is the reason where no run has a value and none says why. The other fields are those of
    `DimensionResult`; `n_runs`, `unmeasured` and `worst` None: by the values.
    """
    counted = scored(values) if among is None else among
    tasks = task_means(counted) if per_task is None else per_task
    estimate, raw = mean_over_tasks(tasks, confidence, method)
    missing = Counter(v.why for v in counted if v.value is None)
    why = "" if estimate is not None else commonest(t.why for t in tasks.values()) or nothing
    return DimensionResult(
        dimension=dimension,
        name=name,
        version=version,
        estimate=estimate,
        why=why,
        per_task=tasks,
        raw=raw,
        level=level,
        level_why=level_why,
        n_runs=sum(v.value is not None for v in counted) if n_runs is None else n_runs,
        unmeasured=dict(missing.most_common()) if unmeasured is None else unmeasured,
        beside=beside or {},
        worst=worst_runs(counted) if worst is None else worst,
        notes=notes,
        unit=unit,
        detail=detail or {},
    )


def worst_runs(values: Iterable[DimensionValue], n: int = WORST) -> tuple[DimensionValue, ...]:
    """The runs with the worst evidence: lowest value first, then the gravest finding."""
    told = [v for v in values if v.value is not None and v.value < 1.0 and v.findings]
    told.sort(key=lambda v: (v.value, -max(f.weight for f in v.findings), v.task, v.trial))
    return tuple(told[:n])


def middle_level(values: Iterable[DimensionValue]) -> tuple[float | None, str]:
    """The rubric level of the middle run (the lower one of two), with the number of runs at each level."""
    levels = sorted(v.level for v in values if v.level is not None)
    if not levels:
        return None, "no run has a level"
    counts = Counter(levels)
    told = ", ".join(f"{n} at {lev:g}" for lev, n in sorted(counts.items(), reverse=True))
    return levels[(len(levels) - 1) // 2], f"level of the middle run: {told}"


def commonest(reasons: Iterable[str]) -> str:
    """The most frequent reason that is not empty; of equals the first in the alphabet."""
    counts = Counter(r for r in reasons if r)
    return min(counts, key=lambda r: (-counts[r], r)) if counts else ""


def _clip(value: float) -> float:
    return min(1.0, max(0.0, value))
