"""Judges' stories: judge recorded work, validate against people, lint a rubric (METHODS 6.4)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from seatrial.errors import EvidenceError, UsageError
from seatrial.gate.traces import attempts_of
from seatrial.grading.judge import Judge, added, cost, estimate, family, refuse_own_family, text_of
from seatrial.grading.judge_cache import Cache
from seatrial.grading.ratings import OVERALL, Columns, read_ratings
from seatrial.grading.validate import Standing, validate
from seatrial.ingest import Memory, read_file, scan
from seatrial.records import Attempt, Dropped, Trace, Usage, Verdict
from seatrial.records.judge import Complete, JudgeSpec
from seatrial.store import Store, permission_of

Progress = Callable[[int, int | None, str], None]


class Plan(NamedTuple):
    """What judging will take before anything is asked: outputs, those that are known already, and the cost of the
    others (`usage.cost_usd` None: the price is unknown)."""

    outputs: int
    cached: int
    usage: Usage


class JudgedRun(NamedTuple):
    """Verdicts by trace in reading order; `usage` is what was asked now, `cost_usd` None where unknown."""

    rows: tuple[tuple[Attempt, tuple[Verdict, ...]], ...]
    usage: Usage | None
    cost_usd: float | None
    asked: int
    unscored: int


class Work(NamedTuple):
    """Recorded work to judge: attempts with what the judge reads of each; `left_out` counts traces whose text may
    not leave the machine, by reason."""

    attempts: tuple[Attempt, ...]
    outputs: tuple[str, ...]
    models: tuple[str | None, ...]
    left_out: tuple[Dropped, ...] = ()


def read_work(
    paths: Sequence[Path],
    spec: JudgeSpec,
    *,
    format: str | None = None,
    limit: int | None = None,
    store: Store | None = None,
) -> Work:
    """The attempts of trace files, and what the judge reads of each.

    Traces without consent to ``judge`` are left out and counted: by the consent that they carry, those on record in
    `store`, and the setting ``consent`` where there is none.

    Raises:
        InputError: a named file cannot be read.
        EvidenceError: there is no trace of a task, or none that may be judged.
    """
    traces: list[Trace] = []
    for trace in _traces(paths, format):
        if trace.parent is None and trace.task.id is not None and trace.steps:
            traces.append(trace)
        if limit is not None and len(traces) >= limit:
            break
    if not traces:
        raise EvidenceError("no trace of a task with steps, so there is nothing to judge")
    allowed, refused = permission_of(traces, "judge", store=store).among([t.id for t in traces])
    if not allowed:
        why = "; ".join(f"{d.n} {d.what}: {d.why}" for d in refused)
        raise EvidenceError(f"no trace may be given to a judge ({why})")
    may = set(allowed)
    traces = [t for t in traces if t.id in may]
    pairs = {a.trace: a for a in attempts_of(traces).attempts}
    kept = [t for t in traces if t.id in pairs]
    return Work(
        tuple(pairs[t.id] for t in kept),
        tuple(text_of(t, spec.scope) for t in kept),
        tuple(t.model for t in kept),
        refused,
    )


def _traces(paths: Sequence[Path], format: str | None) -> Iterator[Trace]:
    seen = Memory()
    for path in paths:
        for file in scan([path]):
            reading = read_file(file, format=format, seen=seen)
            yield from reading
            if reading.refused is not None and file == path:
                raise reading.refused


def plan(spec: JudgeSpec, work: Work, cache: Cache | None) -> Plan:
    """What judging this work will take."""
    judge = Judge(spec, _nobody, cache)
    # With the task, as `run` asks: the same output of another task is another question.
    asked = zip(work.attempts, work.outputs, strict=True)
    new = [o for attempt, o in asked if not judge.is_cached(o, task=attempt.task)]
    return Plan(len(work.outputs), len(work.outputs) - len(new), estimate(spec, new))


def _nobody(messages: object) -> Any:
    raise UsageError("no endpoint was given", hint="--url, or url in the judge's file")


def may_judge(spec: JudgeSpec, work: Work, *, allow_own_family: bool = False) -> None:
    """Raises UsageError for a pairwise judge, and where judge and agent are of one family and that is not allowed."""
    if spec.kind != "criteria":
        raise UsageError(f"judge {spec.name} compares pairs, and these are single outputs", hint="kind = 'criteria'")
    refuse_own_family(spec, work.models, allowed=allow_own_family)


def run(
    spec: JudgeSpec, work: Work, complete: Complete, *, cache: Cache | None = None, allow_own_family: bool = False,
    max_cost_usd: float | None = None, progress: Progress | None = None,
) -> JudgedRun:  # fmt: skip
    """Judge every output once.

    Raises:
        UsageError: judge and agent are of one family and that is not allowed; a pairwise judge; or `max_cost_usd`
            is given and the price is unknown or the limit is reached.
    """
    may_judge(spec, work, allow_own_family=allow_own_family)
    judge = Judge(spec, complete, cache)
    usage: Usage | None = None
    spent: float | None = 0.0
    asked = 0
    rows = []
    for n, (attempt, output) in enumerate(zip(work.attempts, work.outputs, strict=True), 1):
        judged = judge.judge(output, task=attempt.task)
        if not judged.cached:
            asked += 1
            usage = added(usage, judged.usage) if usage is not None else judged.usage
            money = cost(spec, judged.usage)
            spent = None if spent is None or money is None else spent + money
            if max_cost_usd is not None and (spent is None or spent > max_cost_usd):
                what = "the price is unknown" if spent is None else f"{spent:.4f} USD are spent"
                hint = "give prices in the judge's file, or a higher --max-cost; answers are kept"
                raise UsageError(
                    f"stopped after {asked} questions: {what} and the limit is {max_cost_usd} USD", hint=hint
                )
        rows.append((attempt, judged.verdicts))
        if progress is not None:
            so_far = "" if spent is None else f", {spent:.4f} USD"
            progress(n, len(work.outputs), "judging" if not so_far or not spent else f"judging{so_far}")
    unscored = sum(any(v.passed is None for v in verdicts) for _, verdicts in rows)
    return JudgedRun(tuple(rows), usage, spent if asked else 0.0, asked, unscored)


def results_rows(judged: JudgedRun) -> list[dict[str, Any]]:
    """The verdicts as rows of a results table, which the gate reads: one metric per criterion, with the judge that
    gave it."""
    return [
        {"task": a.task, "trial": a.trial, "metric": v.metric, "passed": v.passed,
         "status": "unscored" if v.passed is None else "passed" if v.passed else "failed", "model": a.model,
         "by": v.by, "version": v.version, "reason": v.reason}
        for a, verdicts in judged.rows for v in verdicts
    ]  # fmt: skip


def results_text(judged: JudgedRun) -> str:
    """`results_rows` as JSON lines."""
    return "".join(json.dumps(r) + "\n" for r in results_rows(judged))


def validate_file(
    path: Path, columns: Columns | None = None, *, spec: JudgeSpec | None = None, level: float = 0.95, seed: int = 0
) -> tuple[Standing, ...]:
    """The judge's standing on every criterion of a file of ratings."""
    maker = (spec.family or family(spec.model)) if spec else None
    ratings = read_ratings(path, columns)
    return tuple(
        _of_judge(validate(r, level=level, seed=seed, judge_family=maker), spec, alone=len(ratings) == 1)
        for r in ratings
    )


def _of_judge(standing: Standing, spec: JudgeSpec | None, *, alone: bool) -> Standing:
    """The standing, refused where this judge cannot gate by it whatever the numbers say: a gate reads verdicts on one
    output, and only those that the judge gives."""
    if spec is None:
        return standing
    if spec.kind == "pairwise":
        why = "a pairwise judge prefers one of two outputs, and a gate reads verdicts on one"
    elif standing.criterion in {c.id for c in spec.criteria} or (
        alone and standing.criterion == OVERALL and len(spec.criteria) == 1
    ):
        return standing
    else:
        has = ", ".join(c.id for c in spec.criteria)
        why = f"judge {spec.name} has no criterion {standing.criterion!r}; it has {has}"
    return msgspec.structs.replace(standing, status="refused", why=why)
