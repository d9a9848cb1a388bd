"""Attempts and verdicts to a run's numbers: by metric, by task, pass^k and pass@k, answer against trajectory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from seatrial import stats
from seatrial.records import SCORED, STATUSES, Attempt, Counts, Estimate, Layer, Verdict

BROKEN = ("error_infra", "error_agent", "timeout")
"""Statuses of attempts that something ended which no check judged: why, has to be said."""


class MetricResult(msgspec.Struct, frozen=True, kw_only=True):
    """One metric over all scored attempts. `estimate`: share passed, clustered by task; None where it never applies.
    `n` attempts judged, `passed` of them, `not_applicable` without a result, `why` the most frequent reason of a
    failure, or how the check broke where it did."""

    metric: str
    layer: Layer
    by: str
    version: str
    n: int
    passed: int
    not_applicable: int
    estimate: Estimate | None
    why: str | None = None


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """Median and 95th percentile of what is known; `unknown` counts attempts without a value."""

    p50: float | None
    p95: float | None
    n: int
    unknown: int


class TaskResult(msgspec.Struct, frozen=True, kw_only=True):
    """One task: scored and passed attempts, statuses, and what an attempt costs and takes. `why` is the most frequent
    reason of the attempts that ended in an error or out of time; None where none did."""

    task: str
    n_scored: int
    passed: int
    statuses: dict[str, int]
    cost_usd: Spread
    latency_s: Spread
    tokens: Spread
    why: str | None = None


class CurvePoint(msgspec.Struct, frozen=True, kw_only=True):
    """pass^k and pass@k at one k, over tasks (METHODS 6.3). None: no task has so many scored attempts."""

    k: int
    pass_hat: Estimate | None
    pass_at: Estimate | None


class Crossing(msgspec.Struct, frozen=True, kw_only=True):
    """Answer against trajectory: `sound` both right, `lucky` the answer alone, `unlucky` the way alone, `failed`
    neither; `unjudged` are attempts where one of the two was not judged."""

    sound: int
    lucky: int
    unlucky: int
    failed: int
    unjudged: int


class SuiteResult(msgspec.Struct, frozen=True, kw_only=True):
    """All numbers of a run; never one blended score."""

    counts: Counts
    metrics: tuple[MetricResult, ...]
    tasks: tuple[TaskResult, ...]
    curve: tuple[CurvePoint, ...]
    crossing: Crossing
    cost_usd: Spread
    latency_s: Spread
    tokens: Spread
    k: int = 0
    """Attempts per task: planned, or as many as the task with the most has."""

    short: tuple[str, ...] = ()
    """Tasks with fewer attempts than `k`, sorted: the run was cut short, or some were erased."""


Judged = Sequence[tuple[Attempt, Sequence[Verdict]]]


def results(judged: Judged, *, n_planned: int | None = None, level: float = 0.95) -> SuiteResult:
    """The numbers of a run's attempts, each with its verdicts."""
    attempts = [a for a, _ in judged]
    made = {task: len({a.trial for a in group}) for task, group in _by_task(attempts).items()}
    k = max(made.values(), default=0)
    seen = [(a, v) for a, v in judged if a.status in SCORED or a.status == "unscored"]
    return SuiteResult(
        counts=counts(attempts, n_planned),
        metrics=_metrics(seen, level),
        tasks=_tasks(attempts),
        curve=_curve(attempts, level),
        crossing=_crossing(judged),
        cost_usd=spread([a.cost_usd for a in attempts]),
        latency_s=spread([a.latency_s for a in attempts]),
        tokens=spread([a.tokens for a in attempts]),
        k=k,
        short=tuple(sorted(task for task, n in made.items() if n < k)),
    )


def counts(attempts: Sequence[Attempt], n_planned: int | None = None) -> Counts:
    """The outcome algebra (METHODS 0.1): what was planned and never made is `missing`."""
    n = len(attempts) if n_planned is None else n_planned
    excluded = {s: sum(a.status == s for a in attempts) for s in STATUSES if s not in SCORED}
    absent = max(n - len(attempts), 0)
    excluded["missing"] += absent
    made = sum(a.status not in ("skipped", "missing") for a in attempts)
    n_scored = sum(a.status in SCORED for a in attempts)
    passed = sum(a.status == "passed" for a in attempts)
    out = sum(excluded.values())
    return Counts(
        n_planned=n,
        n_attempted=made,
        n_scored=n_scored,
        excluded={k: v for k, v in excluded.items() if v},
        worst=passed / n if n else None,
        best=(passed + out) / n if n else None,
    )


def spread(values: Sequence[float | None]) -> Spread:
    """Median and 95th percentile (linear interpolation) of the known values."""
    known = sorted(float(v) for v in values if v is not None)

    def at(q: float) -> float | None:
        if not known:
            return None
        place = q * (len(known) - 1)
        low = int(place)
        high = min(low + 1, len(known) - 1)
        return known[low] + (known[high] - known[low]) * (place - low)

    return Spread(p50=at(0.5), p95=at(0.95), n=len(known), unknown=len(values) - len(known))


def _metrics(made: Judged, level: float) -> tuple[MetricResult, ...]:
    """Passing, of scored attempts; every check, of the attempts that it judged. An attempt whose end nobody judged
    still went some way, and its way is judged."""
    ends = [(a.task, a.status == "passed", a.reason) for a, _ in made if a.status in SCORED]
    rows = [_metric("passed", "final", "status", "1", ends, len(made) - len(ends), level)]
    order: dict[tuple[str, str, str], Layer] = {}
    for _, verdicts in made:
        for v in verdicts:
            order.setdefault((v.metric, v.by, v.version), v.layer)
    for (metric, by, version), layer in order.items():
        seen = [(a.task, v) for a, vs in made for v in vs if (v.metric, v.by, v.version) == (metric, by, version)]
        judged = [(task, bool(v.passed), v.reason) for task, v in seen if v.passed is not None]
        broke = [v.reason for _, v in seen if v.evidence.get("broke")]
        rows.append(_metric(metric, layer, by, version, judged, len(seen) - len(judged), level, broke))
    return tuple(rows)


def _metric(
    metric: str,
    layer: Layer,
    by: str,
    version: str,
    judged: Sequence[tuple[str, bool, str | None]],
    not_applicable: int,
    level: float,
    broke: Sequence[str] = (),
) -> MetricResult:
    failures = [reason for _, ok, reason in judged if not ok and reason]
    estimate = stats.clustered_proportion([float(ok) for _, ok, _ in judged], [t for t, _, _ in judged], level)
    return MetricResult(
        metric=metric,
        layer=layer,
        by=by,
        version=version,
        n=len(judged),
        passed=sum(ok for _, ok, _ in judged),
        not_applicable=not_applicable,
        estimate=estimate if judged else None,
        why=_most(broke) or _most(failures),
    )


def _most(reasons: Sequence[str]) -> str | None:
    """The most frequent reason, the first of equals."""
    return max(dict.fromkeys(reasons), key=reasons.count) if reasons else None


def _by_task(attempts: Sequence[Attempt]) -> dict[str, list[Attempt]]:
    out: dict[str, list[Attempt]] = {}
    for a in attempts:
        out.setdefault(a.task, []).append(a)
    return out


def _tasks(attempts: Sequence[Attempt]) -> tuple[TaskResult, ...]:
    def one(task: str, group: list[Attempt]) -> TaskResult:
        return TaskResult(
            task=task,
            n_scored=sum(a.status in SCORED for a in group),
            passed=sum(a.status == "passed" for a in group),
            statuses={s: n for s in STATUSES if (n := sum(a.status == s for a in group))},
            cost_usd=spread([a.cost_usd for a in group]),
            latency_s=spread([a.latency_s for a in group]),
            tokens=spread([a.tokens for a in group]),
            why=_most([a.reason for a in group if a.status in BROKEN and a.reason]),
        )

    return tuple(one(task, group) for task, group in _by_task(attempts).items())


def _curve(attempts: Sequence[Attempt], level: float) -> tuple[CurvePoint, ...]:
    groups = _by_task(attempts).values()
    n = [sum(a.status in SCORED for a in g) for g in groups]
    c = [sum(a.status == "passed" for a in g) for g in groups]
    return tuple(
        CurvePoint(k=k, pass_hat=stats.pass_hat_k(n, c, k, level), pass_at=stats.pass_at_k(n, c, k, level))
        for k in range(1, max(n, default=0) + 1)
    )


def _crossing(judged: Judged) -> Crossing:
    found: dict[str, int] = {"sound": 0, "lucky": 0, "unlucky": 0, "failed": 0, "unjudged": 0}
    for attempt, _ in judged:
        found[str(attempt.extra.get("quadrant") or "unjudged")] += 1
    return Crossing(**found)


def saturated(groups: Mapping[str, Sequence[Attempt]], least: int = 5) -> list[str]:
    """Tasks that every one of at least `least` scored attempts passed: they no longer tell agents apart."""
    out = []
    for task, attempts in groups.items():
        scored = [a for a in attempts if a.status in SCORED]
        if len(scored) >= least and all(a.status == "passed" for a in scored):
            out.append(task)
    return sorted(out)


__all__ = [
    "Crossing", "CurvePoint", "MetricResult", "Spread", "SuiteResult", "TaskResult", "counts", "results", "saturated",
    "spread",
]  # fmt: skip
