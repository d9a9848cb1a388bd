"""Attempts to a run: every metric's values by task, with what was excluded (METHODS 0.1, 6.5)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from seatrial.errors import InputError
from seatrial.records import SCORED, Attempt, Verdict

Kind = Literal["quality", "cost", "latency"]
Better = Literal["higher", "lower"]

PASSED, SCORE = "passed", "score"
BOTH = "passed_and_score"
"""Key of an attempt's `extra`: its source recorded passing beside the score (`ingest.results`)."""

RESOURCES: dict[str, Kind] = {"cost_usd": "cost", "latency_s": "latency", "tokens": "cost"}
"""Measurements of every attempt that are no quality: less is better."""
_YES = frozenset({"true", "t", "yes", "y", "1", "1.0"})


class TaskRuns(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One task's values of one metric, in order of trial; `excluded` counts attempts without one, by status."""

    values: tuple[float, ...] = ()
    excluded: dict[str, int] = {}

    @property
    def n_excluded(self) -> int:
        """Attempts that have no value."""
        return sum(self.excluded.values())

    @property
    def n_made(self) -> int:
        """Attempts with and without a value."""
        return len(self.values) + self.n_excluded


class MetricRuns(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One metric over tasks. `version` is that of the check or judge behind it, several joined by ``+``; None where
    none is recorded. `judged` is True where a judge gave the values. `planned` is the number of trials that occur
    over all tasks, which is what every task should have; 0: not known."""

    kind: Kind = "quality"
    version: str | None = None
    judged: bool = False
    planned: int = 0
    tasks: dict[str, TaskRuns] = {}

    def missing(self, task: str, before: MetricRuns) -> int:
        """Attempts at a task that are simply not there (METHODS 0.1).

        Every task is due as many trials as the metric has anywhere in the run; where tasks have different numbers of
        attempts the run was cut, and each is due those of the baseline `before`, too. As many as the baseline has are
        enough. A run with the same number on every task was planned so, whatever the baseline has.
        """
        made, old = self.tasks[task].n_made, before.tasks[task].n_made if task in before.tasks else 0
        sizes = {t.n_made for t in self.tasks.values()}
        due = max(max(sizes), self.planned)
        uneven = len(sizes) > 1 or self.planned > max(sizes)
        return 0 if made == old else max(0, (max(due, old) if uneven else due) - made)

    @property
    def binary(self) -> bool:
        """Whether every value is 0 or 1."""
        return self.kind == "quality" and all(v in (0.0, 1.0) for t in self.tasks.values() for v in t.values)


class Run(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything that the gate compares of one side.

    `tasks` maps each task to its content hash (None: not known). `fingerprint` maps parts of the agent to the hashes
    that occurred, sorted. `must_pass` are the cases that the run itself marks so; `failing` are tasks with an attempt
    that did not pass. `label` is for people.
    """

    label: str
    metrics: dict[str, MetricRuns] = {}
    tasks: dict[str, str | None] = {}
    fingerprint: dict[str, tuple[str, ...]] = {}
    must_pass: tuple[str, ...] = ()
    failing: tuple[str, ...] = ()
    unscored: tuple[str, ...] = ()

    @property
    def single(self) -> bool:
        """Whether no task has more than one run."""
        return all(len(t.values) <= 1 for m in self.metrics.values() for t in m.tasks.values())


Verdicts = Mapping[tuple[str, int], Sequence[Verdict]]


def run_of(attempts: Iterable[Attempt], *, label: str, verdicts: Verdicts | None = None) -> Run:
    """The run that these attempts make, one metric per name in ``extra["metric"]`` and one per check's verdict.

    Attempts without a metric's name give `passed` where every score is 0 or 1, else `score`, and both where passing
    was recorded beside the score; with a name, passing beside the score is ``name:passed``. Attempts that end in an
    error of the agent or a timeout count as 0, others without a score are excluded and counted. `verdicts` by (task,
    trial): a check that says nothing about any attempt of a task does not apply to that task.

    Raises:
        InputError: the same trial of one task occurs twice for one metric.
    """
    rows = sorted(attempts, key=lambda a: (a.task, a.trial))
    builder = _Builder()
    named: dict[str, list[Attempt]] = {}
    seen: set[tuple[str, int, str]] = set()
    for a in rows:
        metric = str(a.extra.get("metric") or "")
        if (a.task, a.trial, metric) in seen:
            of = f" of metric {metric!r}" if metric else ""
            raise InputError(
                f"{label}: task {a.task!r} has trial {a.trial}{of} twice, so runs would count double",
                hint="give every attempt of a task its own trial number, or choose one model",
            )
        seen.add((a.task, a.trial, metric))
        named.setdefault(metric, []).append(a)
    for metric, group in named.items():
        for name, values in _quality(metric, group).items():
            for a, value in zip(group, values, strict=True):
                builder.add(name, "quality", a, value, a.status)
                by, version = a.extra.get("by"), a.extra.get("version")
                if version:
                    builder.made_by(name, f"{by or 'check'}/{version}", judged=str(by).startswith("judge:"))
    first = {(a.task, a.trial): a for a in reversed(rows)}
    attempts_once = [first[key] for key in sorted(first)]
    for name, kind in RESOURCES.items():
        if any(getattr(a, name) is not None for a in attempts_once):
            for a in attempts_once:
                amount = getattr(a, name)
                builder.add(name, kind, a, None if amount is None else float(amount), "unknown")
    _checks(builder, attempts_once, verdicts or {})
    return Run(
        label=label,
        metrics=builder.metrics(),
        tasks=_hashes(attempts_once),
        fingerprint=_fingerprint(attempts_once),
        must_pass=tuple(sorted({a.task for a in rows if _marked(a)})),
        failing=tuple(sorted({a.task for a in rows if a.status in SCORED and a.status != "passed"})),
        unscored=tuple(sorted({a.task for a in rows} - {a.task for a in rows if a.status in SCORED})),
    )


class _Builder:
    """Values by metric and task, in the order in which they come."""

    def __init__(self) -> None:
        self._values: dict[str, dict[str, list[float]]] = {}
        self._excluded: dict[str, dict[str, dict[str, int]]] = {}
        self._kind: dict[str, Kind] = {}
        self._versions: dict[str, set[str]] = {}
        self._judged: set[str] = set()
        self._trials: dict[str, set[int]] = {}

    def add(self, metric: str, kind: Kind, attempt: Attempt, value: float | None, status: str) -> None:
        task = attempt.task
        self._kind[metric] = kind
        planned = self._trials.setdefault(metric, set())
        if not attempt.extra.get("lost"):  # a row that cannot be read has a place of its own, and was no further trial
            planned.add(attempt.trial)
        values = self._values.setdefault(metric, {}).setdefault(task, [])
        if value is None:
            counts = self._excluded.setdefault(metric, {}).setdefault(task, {})
            counts[status] = counts.get(status, 0) + 1
        else:
            values.append(value)

    def made_by(self, metric: str, version: str, *, judged: bool) -> None:
        self._versions.setdefault(metric, set()).add(version)
        if judged:
            self._judged.add(metric)

    def _planned(self, metric: str) -> int:
        """Distinct trials; 0 where they are numbered through the whole run, or drawn, and so say nothing."""
        sizes = [
            len(values) + sum(self._excluded.get(metric, {}).get(task, {}).values())
            for task, values in self._values[metric].items()
        ]
        trials = len(self._trials[metric])
        return trials if trials <= 2 * max(sizes) else 0

    def metrics(self) -> dict[str, MetricRuns]:
        return {
            metric: MetricRuns(
                kind=self._kind[metric],
                version="+".join(sorted(self._versions.get(metric, ()))) or None,
                judged=metric in self._judged,
                planned=self._planned(metric),
                tasks={
                    task: TaskRuns(values=tuple(values), excluded=self._excluded.get(metric, {}).get(task, {}))
                    for task, values in tasks.items()
                },
            )
            for metric, tasks in self._values.items()
        }


def _quality(metric: str, group: Sequence[Attempt]) -> dict[str, list[float | None]]:
    """The quality metrics of attempts, each with a value per attempt."""
    passed: list[float | None] = [float(a.status == "passed") if a.status in SCORED else None for a in group]
    scores: list[float | None] = [_score(a) for a in group]
    graded = any(s not in (None, 0.0, 1.0) for s in scores)
    apart = any(a.score is not None and a.status in ("passed", "failed") and (a.score >= 1.0) != (a.status == "passed")
                for a in group)  # fmt: skip
    # A table that has both columns says two things, and the other side's may differ where these agree.
    both = apart or any(a.extra.get(BOTH) for a in group)
    if not graded and not both:
        return {metric or PASSED: passed}
    if metric:
        return {metric: scores, f"{metric}:{PASSED}": passed} if both else {metric: scores}
    return {PASSED: passed, SCORE: scores} if both else {SCORE: scores}


def _score(a: Attempt) -> float | None:
    if a.status not in SCORED:
        return None
    if a.score is not None:
        return a.score
    return float(a.status == "passed")


def _checks(builder: _Builder, attempts: Sequence[Attempt], verdicts: Verdicts) -> None:
    """One binary metric per check; a task about which a check never says anything is left out of it."""
    applies = {(v.metric, task) for (task, _), said in verdicts.items() for v in said if v.passed is not None}
    names = sorted({v.metric for said in verdicts.values() for v in said})
    for a in attempts:
        said = {v.metric: v for v in verdicts.get((a.task, a.trial), ())}
        for name in names:
            if (name, a.task) not in applies:
                continue
            v = said.get(name)
            if a.status not in SCORED:
                builder.add(name, "quality", a, None, a.status)
            elif v is None or v.passed is None:
                builder.add(name, "quality", a, None, "unscored")
            else:
                builder.add(name, "quality", a, float(v.passed), a.status)
            if v is not None:
                builder.made_by(name, f"{v.by}/{v.version}", judged=v.by.startswith("judge:"))


def _hashes(attempts: Sequence[Attempt]) -> dict[str, str | None]:
    found: dict[str, set[str]] = {}
    for a in attempts:
        known = a.task_hash or a.extra.get("task_hash")
        found.setdefault(a.task, set()).update([str(known)] if known else [])
    return {task: "+".join(sorted(hashes)) or None for task, hashes in sorted(found.items())}


def _fingerprint(attempts: Sequence[Attempt]) -> dict[str, tuple[str, ...]]:
    parts: dict[str, set[str]] = {}
    for a in attempts:
        known = dict(a.fingerprint)
        if "model" not in known and a.model is not None:
            known["model"] = a.model
        if "agent" not in known and a.agent is not None:
            known["agent"] = a.agent
        for part, value in known.items():
            parts.setdefault(part, set()).add(value)
    return {part: tuple(sorted(values)) for part, values in sorted(parts.items())}


def _marked(a: Attempt) -> bool:
    mark = a.extra.get("must_pass")
    return mark is True or (isinstance(mark, str | int) and str(mark).strip().lower() in _YES)
