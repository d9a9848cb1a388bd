"""Traces that others made, or a stored run, to verdicts and a table of what differs between systems."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from seatrial import grading, ingest, signals
from seatrial.errors import EvidenceError, InputError
from seatrial.flows import attempts as rows
from seatrial.flows.attempts import Judged
from seatrial.flows.judging import place
from seatrial.flows.pricing import priced
from seatrial.grading import TaskCheck
from seatrial.records import Attempt, Status, Task, Trace, Verdict
from seatrial.records.price import Prices
from seatrial.records.tables import ATTEMPTS, VERDICTS
from seatrial.store import Store
from seatrial.suites import Suite
from seatrial.suites.results import SuiteResult, results

By = Literal["model", "agent", "suite", "file"]


class SystemResult(msgspec.Struct, frozen=True, kw_only=True):
    """One system's numbers."""

    system: str
    result: SuiteResult


class Graded(msgspec.Struct, frozen=True, kw_only=True):
    """Trajectories graded mechanically, system by system. `skipped` counts by reason what could not be graded."""

    systems: tuple[SystemResult, ...]
    attempts: int
    skipped: dict[str, int]


def grade_paths(
    paths: Sequence[Path],
    *,
    suite: Suite | None = None,
    by: By = "model",
    format: str | None = None,
    max_turns: int | None = None,
    max_tool_calls: int | None = None,
    max_cost_usd: float | None = None,
    max_seconds: float | None = None,
    prices: Prices | None = None,
    level: float = 0.95,
    progress: Callable[[int, int | None, str], None] | None = None,
) -> Graded:
    """Grade recorded trajectories. With a suite, a trace's task is looked up there by its id; without, the checks
    that need no task apply, and the budgets given; a budget of the task's own wins. `prices` tell what traces cost
    whose source recorded tokens alone.

    Raises:
        EvidenceError: there is nothing to grade.
    """
    skipped: dict[str, int] = {}
    tasks = {t.id: t for t in suite.tasks} if suite is not None else None
    limits = {
        "max_turns": max_turns,
        "max_tool_calls": max_tool_calls,
        "max_cost_usd": max_cost_usd,
        "max_seconds": max_seconds,
    }
    systems: dict[str, Judged] = {}
    n = 0
    for path, trace in _traces(paths, format, progress):
        task = _task(trace, tasks, limits)
        why = None if task is not None else f"the suite has no task {trace.task.id!r}"
        if trace.parent is not None:
            why = "a sub-agent's trace"
        elif not any(s.event_class == "agent" for s in trace.steps):
            why = "no turn of an agent"
        if why is not None or task is None:
            skipped[why or ""] = skipped.get(why or "", 0) + 1
            continue
        trace = priced(trace, prices or {})
        verdicts = grade_trace(task, trace, _without_task(task) if suite is None else None)
        systems.setdefault(_system(trace, path, by), []).append((_attempt(trace, task, verdicts), verdicts))
        n += 1
    if not n:
        listed = "; ".join(f"{v} times {k}" for k, v in skipped.items())
        raise EvidenceError("there is no trajectory to grade" + (f": {listed}" if listed else ""))
    found = [SystemResult(system=name, result=results(judged, level=level)) for name, judged in systems.items()]
    return Graded(systems=tuple(sorted(found, key=lambda s: s.system)), attempts=n, skipped=skipped)


def grade_trace(task: Task, trace: Trace, using: Sequence[TaskCheck] | None = None) -> tuple[Verdict, ...]:
    """Every check (or those given) on one recorded trace.

    What the log does not say about a result is judged as the signals judge it: output that is an error counts as one,
    and a fault of the environment may pass by itself. The signals are handed to the checks of production.
    """
    found = signals.extract(trace)
    return grading.grade(task, grading.of_trace(judged_results(trace, found), signals=found.signals), using)


def _without_task(task: Task) -> tuple[TaskCheck, ...]:
    """The checks that mean something where nobody wrote down what the task asks for."""
    idle = {"world_state", "final_answer", "required_present", "forbidden_absent", "ordered"}
    if task.reference is None:
        idle.add("matches_reference")
    return tuple(c for c in grading.checks() if c.name not in idle)


def judged_results(trace: Trace, found: signals.Extraction | None = None) -> Trace:
    """The trace with the cause of every error, and with errors where the log left the outcome open. `found` is what
    the signals found in it (None: found here)."""
    facts = {(f.step, f.call_id): f for f in (found or signals.extract(trace)).calls}
    steps = []
    for step in trace.steps:
        changed = []
        for result in step.results:
            fact = facts.get((step.index, result.call_id))
            if fact is None or "cause" in result.extra:
                changed.append(result)
                continue
            failed = fact.cause in ("model", "environment", "unknown") or fact.abnormal
            outcome = result.outcome
            if outcome == "unknown":
                outcome = "error" if failed else "ok" if result.text else "unknown"
            elif outcome == "error" and fact.cause == "benign":
                outcome = "ok"
            extra = {**result.extra, "cause": fact.cause} if failed and fact.cause else result.extra
            if fact.hallucinated:
                extra = {**extra, "refused": "unknown_tool"}
            changed.append(msgspec.structs.replace(result, outcome=outcome, extra=extra))
        steps.append(msgspec.structs.replace(step, results=tuple(changed)))
    return msgspec.structs.replace(trace, steps=tuple(steps))


def _traces(
    paths: Sequence[Path], format: str | None, progress: Callable[[int, int | None, str], None] | None
) -> Iterator[tuple[Path, Trace]]:
    files = list(itertools.chain.from_iterable(ingest.scan([p]) for p in paths))
    for done, file in enumerate(files, 1):
        try:
            for trace in ingest.read_file(file, format=format):
                yield file, trace
        except InputError:
            if file in paths:
                raise
        if progress is not None:
            progress(done, len(files), "files")


def _task(trace: Trace, tasks: dict[str, Task] | None, limits: Mapping[str, float | None]) -> Task | None:
    if tasks is not None:
        found = tasks.get(trace.task.id or "")
    else:
        found = Task(id=trace.task.id or trace.id, input="", reference=_tau2_reference(trace))
    if found is None:
        return None
    given = {name: limit for name, limit in limits.items() if limit is not None and getattr(found, name) is None}
    return msgspec.structs.replace(found, **given)


def _tau2_reference(trace: Trace) -> dict[str, Any] | None:
    """The actions that tau2 expects of the agent, as reference calls: made, in any order, others allowed.

    Those that its evaluator compared win over those of the task's description: in one published file every run names
    another task than the one that it was.
    """
    if trace.provenance.format != "tau2":
        return None
    recorded = trace.outcome.extra.get("reward_info", {}) if trace.outcome is not None else {}
    checked = [c["action"] for c in recorded.get("action_checks") or [] if isinstance(c.get("action"), dict)]
    criteria = (trace.extra.get("task") or {}).get("evaluation_criteria") or {}
    actions = checked or [a for a in criteria.get("actions") or [] if isinstance(a, dict)]
    calls = [
        {"tool": a["name"], "arguments": a.get("arguments") or {}}
        for a in actions
        if isinstance(a.get("name"), str) and a.get("requestor", "assistant") == "assistant"
    ]
    return {"calls": calls, "mode": "superset", "arguments": "superset"} if calls else None


def _attempt(trace: Trace, task: Task, verdicts: Sequence[Verdict]) -> Attempt:
    recorded = trace.outcome
    status: Status
    if recorded is not None:
        status, score, reason = recorded.status, recorded.score, f"recorded by {recorded.by or 'the source'}"
    else:
        status, score, reason = grading.outcome(verdicts) if verdicts else ("unscored", None, "no check applies")
    usage = trace.totals.usage
    counted = [n for n in (usage.input_tokens, usage.output_tokens) if n is not None]
    spot = place(status, verdicts)
    return Attempt(
        task=task.id,
        trial=trace.attempt or 0,
        status=status,
        score=score,
        model=trace.model,
        agent=trace.agent.name,
        trace=trace.id,
        reason=reason,
        cost_usd=usage.cost_usd,
        latency_s=trace.totals.wall,
        tokens=sum(counted) if counted else None,
        extra={"quadrant": spot} if spot else {},
    )


def _system(trace: Trace, path: Path, by: By) -> str:
    name = {"model": trace.model, "agent": trace.agent.name, "suite": trace.task.suite, "file": path.stem}[by]
    return name or "not named"


def regrade(store: Store, run: str, suite: Suite) -> tuple[str, list[str]]:
    """Grade a stored run with the checks of today; the new data version, and tasks left as they were graded because
    their content changed since.

    Raises:
        EvidenceError: no attempt of the run is of a task as it now stands.
    """
    judged = rows.stored_run(store, run)
    tasks = {t.id: t for t in suite.tasks}
    changed = sorted({a.task for a, _ in judged if suite.hashes.get(a.task) != a.task_hash})
    fresh: list[tuple[Attempt, tuple[Verdict, ...]]] = []
    for attempt, _ in judged:
        blob = attempt.extra.get("blob")
        if attempt.task in changed or blob is None or attempt.status in ("error_infra", "skipped", "missing"):
            continue
        seen = grading.of_trace(store.trace_of(blob))
        verdicts = grading.grade(tasks[attempt.task], seen, grading.checks(reactions=False))
        fresh.append((_restated(attempt, verdicts), verdicts))
    if not fresh:
        raise EvidenceError(f"no attempt of {run} is of a task as this suite now has it")
    return _commit(store, run, fresh), changed


def _restated(attempt: Attempt, verdicts: Sequence[Verdict]) -> Attempt:
    if attempt.status not in ("passed", "failed", "unscored"):
        return attempt
    status, score, reason = grading.outcome(verdicts)
    return msgspec.structs.replace(attempt, status=status, score=score, reason=reason)


def _commit(store: Store, run: str, fresh: Iterable[tuple[Attempt, tuple[Verdict, ...]]]) -> str:
    import polars as pl

    by_session = {a.extra["session"]: (a, v) for a, v in fresh}
    table = store.table(ATTEMPTS.name, ordered=False).filter(pl.col("run") == run).collect()
    listed = []
    said = []
    for row in table.iter_rows(named=True):
        if row["session"] not in by_session:
            continue
        attempt, verdicts = by_session[row["session"]]
        listed.append({**row, "status": attempt.status, "score": attempt.score, "reason": attempt.reason})
        said += rows.verdict_rows(row["session"], run, attempt, verdicts)
    return store.commit(
        {
            ATTEMPTS.name: pl.DataFrame(listed, schema=ATTEMPTS.schema()),
            VERDICTS.name: pl.DataFrame(said, schema=VERDICTS.schema()),
        },
        replace_sessions=list(by_session),
    )
