"""Values of runs to a scorecard: seven results, the counts, why attempts failed, what so many runs can certify."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from seatrial.dimensions.causes import attempts_before_success, cause_of
from seatrial.dimensions.repository import Touched, touched
from seatrial.errors import EvidenceError, VersionMismatch
from seatrial.records import (
    SCORED,
    Attempt,
    Counts,
    DimensionResult,
    DimensionValue,
    Evidence,
    FailureCause,
    Scorecard,
    protocols,
)
from seatrial.stats import certified_consistency, runs_for_consistency

RECOMMENDED_K = 10


class Gathered:
    """Collects runs one by one, so that no trace is held longer than it is measured."""

    def __init__(self, dimensions: Sequence[protocols.Dimension]) -> None:
        self.dimensions = tuple(dimensions)
        self.values: dict[str, list[DimensionValue]] = {d.name: [] for d in self.dimensions}
        self.attempts: list[Attempt] = []
        self.causes: list[FailureCause] = []
        self.touched: list[Touched] = []

    def add(self, run: Evidence) -> None:
        """Measure one run in every dimension."""
        for d in self.dimensions:
            self.values[d.name].append(d.measure(run))
        self.attempts.append(run.attempt)
        cause = cause_of(run)
        if cause is not None:
            self.causes.append(cause)
        seen = touched(run)
        if seen is not None:
            self.touched.append(seen)

    def absorb(self, other: Gathered) -> None:
        """Take in what another one collected, in the same dimensions."""
        for name, values in other.values.items():
            self.values[name] += values
        self.attempts += other.attempts
        self.causes += other.causes
        self.touched += other.touched


def scorecard(
    runs: Iterable[Evidence],
    dimensions: Sequence[protocols.Dimension],
    *,
    agent: str,
    model: str | None = None,
    suite: str | None = None,
    level: float = 0.95,
    n_planned: int | None = None,
    warnings: Sequence[str] = (),
    keep_values: bool = False,
    basis: Mapping[str, Any] | None = None,
) -> Scorecard:
    """The scorecard of one agent's runs. `n_planned` None: as many as there are.

    Raises:
        EvidenceError: there are no runs.
    """
    gathered = Gathered(dimensions)
    for run in runs:
        gathered.add(run)
    return of_gathered(gathered, agent=agent, model=model, suite=suite, level=level, n_planned=n_planned,
                       warnings=warnings, keep_values=keep_values, basis=basis)  # fmt: skip


def of_gathered(
    gathered: Gathered,
    *,
    agent: str,
    model: str | None = None,
    suite: str | None = None,
    level: float = 0.95,
    n_planned: int | None = None,
    warnings: Sequence[str] = (),
    keep_values: bool = False,
    basis: Mapping[str, Any] | None = None,
) -> Scorecard:
    """As `scorecard`, of runs that were measured already.

    Raises:
        EvidenceError: there are no runs.
    """
    attempts = gathered.attempts
    if not attempts:
        raise EvidenceError(f"there are no runs of {agent}", hint="give runs, a results table or traces")
    results = {d.name: _combined(d, gathered.values[d.name], level) for d in gathered.dimensions}
    per_task = Counter(a.task for a in attempts if a.status in SCORED)
    k = min(per_task.values(), default=0)
    return Scorecard(
        agent=agent,
        model=model,
        suite=suite,
        k=k,
        tasks=len({a.task for a in attempts}),
        dimensions=results,
        counts=counts(attempts, n_planned),
        statuses=dict(sorted(Counter(a.status for a in attempts).items())),
        causes=tuple(gathered.causes),
        cause_counts=dict(Counter(c.cause for c in gathered.causes).most_common()),
        attempts_before_success=attempts_before_success([(a.task, a.trial, a.status) for a in attempts]),
        correlations=correlations([results]),
        certifies=certifies(k, len(per_task), results, level),
        repository=_repository(gathered.touched),
        warnings=(*warnings, *_warnings(attempts, per_task, k)),
        values=tuple(v for rows in gathered.values.values() for v in rows) if keep_values else (),
        basis={"versions": {d.name: d.version for d in gathered.dimensions}, "level": level, **(basis or {})},
    )


def _combined(d: protocols.Dimension, values: Sequence[DimensionValue], level: float) -> DimensionResult:
    found = {v.version for v in values} - {d.version}
    if found:
        raise VersionMismatch(f"{d.name} {d.version} cannot combine values of version {sorted(found)[0]}",
                              hint="measure the runs again")  # fmt: skip
    return d.combine(values, level)


def counts(attempts: Sequence[Attempt], n_planned: int | None = None) -> Counts:
    """The outcome algebra of some attempts (METHODS 0.1)."""
    n = max(len(attempts), n_planned or 0)
    excluded = Counter(a.status for a in attempts if a.status not in SCORED)
    excluded["missing"] += n - len(attempts)
    listed = {status: k for status, k in sorted(excluded.items()) if k}
    left = sum(listed.values())
    passed = sum(a.status == "passed" for a in attempts)
    made = sum(a.status not in ("missing", "skipped") for a in attempts)
    return Counts(
        n_planned=n, n_attempted=made, n_scored=n - left,
        excluded={str(status): count for status, count in listed.items()},
        worst=passed / n if n else None, best=(passed + left) / n if n else None,
    )  # fmt: skip


def correlations(cards: Sequence[Mapping[str, DimensionResult]]) -> dict[str, float | None]:
    """Pearson's correlation of every two dimensions over all (agent, task) pairs that have both; None where fewer than
    three have, or one of the two does not vary."""
    columns: dict[str, dict[tuple[int, str], float]] = {}
    for i, card in enumerate(cards):
        for name, found in card.items():
            for task, t in found.per_task.items():
                if t.value is not None:
                    columns.setdefault(name, {})[(i, task)] = t.value
    names = sorted({name for card in cards for name in card})
    out: dict[str, float | None] = {}
    for i, a in enumerate(names):
        for b in names[i + 1 :]:
            left, right = columns.get(a, {}), columns.get(b, {})
            both = sorted(left.keys() & right.keys())
            out[f"{a}~{b}"] = _pearson([left[key] for key in both], [right[key] for key in both])
    return out


def _pearson(xs: Sequence[float], ys: Sequence[float]) -> float | None:
    if len(xs) < 3 or max(xs) - min(xs) < 1e-12 or max(ys) - min(ys) < 1e-12:
        return None
    mx, my = sum(xs) / len(xs), sum(ys) / len(ys)
    sxy = sum((x - mx) * (y - my) for x, y in zip(xs, ys, strict=True))
    return sxy / math.sqrt(sum((x - mx) ** 2 for x in xs) * sum((y - my) ** 2 for y in ys))


def certifies(k: int, tasks: int, results: Mapping[str, DimensionResult], level: float) -> tuple[str, ...]:
    """What k runs of each task can and cannot say, in sentences."""
    if k < 1:
        return ("no task has a scored run: nothing is certified",)
    sure = f"{level:.0%}"
    least = certified_consistency(k, level)
    out = [
        f"{k} identical outcomes of a task certify that it comes out so with a chance of at least {least:.1%} ({sure} "
        f"confidence), not certainty: {runs_for_consistency(0.9, level)} identical runs certify 90%, "
        f"{runs_for_consistency(0.99, level)} certify 99%"
    ]
    gates = results.get("D6")
    n = int(gates.detail.get("triggered", 0)) if gates is not None else 0
    missed = n - int(gates.detail.get("respected", 0)) if gates is not None else 0
    if n and not missed:
        out.append(
            f"{n} triggered gates without a violation: at most {1 - (1 - level) ** (1 / n):.1%} of such calls run past "
            f"a gate ({sure} confidence, were they independent)"
        )
    if tasks < 2:
        out.append("one task: nothing is certified about others")
    else:
        out.append(
            f"intervals are over {tasks} tasks: they speak of tasks like these, and more runs of the same tasks do not "
            "narrow them beyond what differs between tasks"
        )
    return tuple(out)


def _repository(seen: Sequence[Touched]) -> dict[str, Any]:
    if not seen:
        return {}
    worst = sorted(seen, key=lambda t: (-len(t.newly_failing), -len(t.unrelated), t.task, t.trial))
    return {
        "runs": len(seen),
        "touched_unrelated": sum(bool(t.unrelated) for t in seen),
        "unrelated_files": dict(Counter(f for t in seen for f in t.unrelated).most_common(20)),
        "broke_tests": sum(bool(t.newly_failing) for t in seen),
        "newly_failing": dict(Counter(f for t in seen for f in t.newly_failing).most_common(20)),
        "worst": [t for t in worst[:5] if t.unrelated or t.newly_failing],
    }


def _warnings(attempts: Sequence[Attempt], per_task: Mapping[str, int], k: int) -> list[str]:
    out = []
    strange = [a for a in attempts if a.status in SCORED and a.score is not None and not 0.0 <= a.score <= 1.0]
    if strange:
        a = strange[0]
        out.append(
            f"{len(strange)} scores lie outside [0, 1], the first {a.score:g} at task {a.task}, attempt {a.trial}: no "
            "share of completion can be read from them, so passed counts as 1 and failed as 0"
        )
    if per_task and max(per_task.values()) != k:
        out.append(f"tasks have {k} to {max(per_task.values())} scored runs; every task weighs the same")
    if 0 < k < RECOMMENDED_K:
        out.append(f"{k} runs per task: {RECOMMENDED_K} or more are recommended")
    versions = {a.task_hash for a in attempts if a.task_hash is not None}
    if len(versions) > len({a.task for a in attempts}):
        out.append("some tasks changed between their runs: their attempts are not of one task")
    return out
