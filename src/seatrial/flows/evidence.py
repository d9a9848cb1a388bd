"""Runs to evidence: attempts of a store, of results tables and of foreign logs, with whatever is known beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from seatrial import grading
from seatrial.errors import EvidenceError, InputError, StoreError, UsageError
from seatrial.flows.agents_again import agent_again
from seatrial.flows.attempts import Judged
from seatrial.flows.suite import EXAMPLE, open_suite
from seatrial.flows.worlds import BUILD
from seatrial.gate.traces import attempts_of
from seatrial.grading import assertions
from seatrial.ingest import Log, Memory, read_file, scan
from seatrial.ingest.catalogue import recognise
from seatrial.ingest.reading import HEAD
from seatrial.ingest.results import LostRow, read_table
from seatrial.records import Agent, Attempt, Evidence, Provenance, Step, Task, Trace, Verdict
from seatrial.store import Store
from seatrial.suites import Suite
from seatrial.suites.attempt import prepared

UNNAMED = "unnamed"


class Setting:
    """The suite that runs were made in, as far as it is still the same; worlds come from it."""

    def __init__(self, suite: Suite | None, spec: str | None) -> None:
        self.suite = suite
        self.spec = spec
        self._tasks = {t.id: t for t in suite.tasks} if suite is not None else {}
        self.changed: set[str] = set()

    def task(self, attempt: Attempt) -> Task | None:
        """The suite's task, unless its content is no longer that of the attempt."""
        task = self._tasks.get(attempt.task)
        if task is None or self.suite is None:
            return None
        if attempt.task_hash is not None and attempt.task_hash != self.suite.hashes[task.id]:
            self.changed.add(task.id)
            return None
        return task


def setting(spec: str | None, name: str | None = None) -> Setting:
    """The suite that `spec` names; without one, the worked example of this name, if there is one.

    Raises:
        InputError, UsageError: `spec` cannot be read.
    """
    if spec is not None:
        return Setting(open_suite(spec), spec)
    if name is not None:
        from seatrial.examples import domains

        if any(d.name == name for d in domains()):
            return Setting(open_suite(EXAMPLE + name), EXAMPLE + name)
    return Setting(None, None)


def of_judged(judged: Judged, store: Store, where: Setting) -> Iterator[Evidence]:
    """The runs of a store, one after another, each with its trace while it is looked at."""
    for attempt, verdicts in judged:
        blob = attempt.extra.get("blob")
        trace = None
        if blob:
            try:
                trace = store.trace_of(blob)
            except StoreError:
                trace = None  # erased since
        yield of_own(attempt, verdicts, trace, where)


def of_own(attempt: Attempt, verdicts: tuple[Verdict, ...], trace: Trace | None, where: Setting) -> Evidence:
    """One run that our runner recorded."""
    task = where.task(attempt)
    if task is None:
        task = task_in(trace)
        return Evidence(attempt=attempt, task=task, trace=trace, verdicts=verdicts, own=True)
    suite = where.suite
    assert suite is not None
    seed = trace.extra.get("seed", 0) if trace is not None else 0
    origin = None
    if where.spec is not None:
        origin = {"build": BUILD, "suite": _absolute(where.spec), "task": task.id, "seed": seed}
    return Evidence(
        attempt=attempt, task=task, trace=trace, verdicts=verdicts, own=True, origin=origin,
        world=(lambda: prepared(suite, task, seed)) if suite.world is not None else None,
        succeeds=_succeeds(task, trace), required=_required(task, trace), agent=agent_again(suite, task, trace),
    )  # fmt: skip


def _absolute(spec: str) -> str:
    path = Path(spec)
    return str(path.resolve()) if path.is_file() else spec


class _Held(msgspec.Struct):
    """What a log says of its task, without the fields that may name code."""

    id: str
    input: str = ""
    expected_tools: list[str] = []
    forbidden_tools: list[str] = []
    max_turns: int | None = None
    max_tool_calls: int | None = None
    gates: list[dict[str, Any]] = []
    intent: dict[str, Any] | None = None
    r_max: float | None = None
    type: str | None = None
    difficulty: str | None = None
    must_pass: bool = False
    extra: dict[str, Any] = {}


def task_in(trace: Trace | None) -> Task | None:
    """The task as the trace holds it (``extra["task_spec"]``), without anything that names code."""
    held = trace.extra.get("task_spec") if trace is not None else None
    if not isinstance(held, dict):
        return None
    try:
        return Task(**msgspec.structs.asdict(msgspec.convert(held, _Held)))
    except msgspec.ValidationError:
        return None


def _succeeds(task: Task, trace: Trace | None) -> Callable[[str, dict[str, Any]], bool | None] | None:
    """Judges another end of this run as the task's own final checks do."""
    if task.check_final is None or trace is None:
        return None
    start = trace.extra.get("start")
    finals = [c for c in grading.checks() if c.name in ("world_state", "final_answer")]

    def judge(answer: str, state: dict[str, Any]) -> bool | None:
        from seatrial.world.difference import differences

        made = Trace(
            id="end", agent=Agent(name="end"), provenance=Provenance(format="", reader="", reader_version=""),
            steps=(Step(index=0, event_class="agent", text=answer),),
        )  # fmt: skip
        volatile = _volatile(trace)
        changes = differences(start, state, volatile) if isinstance(start, dict) else None
        seen = grading.of_trace(made, start=start, final=state, changes=changes)
        status, _, _ = grading.outcome(grading.grade(task, seen, finals))
        return {"passed": True, "failed": False}.get(status)

    return judge


def _volatile(trace: Trace) -> tuple[tuple[str, ...], ...]:
    world = trace.extra.get("world")
    raw = world.get("volatile", []) if isinstance(world, dict) else []
    return tuple(tuple(str(p) for p in path) for path in raw if path)


def _required(task: Task, trace: Trace | None) -> Callable[[dict[str, Any]], tuple[bool, ...]] | None:
    raw = task.intent.get("required") if task.intent else None
    if not raw:
        return None
    try:
        parsed = assertions.parse(raw)
    except InputError:
        return None
    start = trace.extra.get("start") if trace is not None else None

    def judge(state: dict[str, Any]) -> tuple[bool, ...]:
        return tuple(assertions.judge(a, answer=None, state=state, start=start).ok is True for a in parsed)

    return judge


class Foreign:
    """Runs of a results table or of logs that other programs wrote, with what was noticed in reading them."""

    def __init__(self, path: Path, *, format: str | None = None, model: str | None = None) -> None:
        self.path = path
        self.format = format
        self.model = model
        self.warnings: list[str] = []
        self.models: set[str] = set()

    def runs(self) -> Iterator[tuple[str, Evidence]]:
        """Each run with the name of its agent: the model, else the harness.

        Raises:
            InputError: the path is not there or cannot be read.
            EvidenceError: it holds no runs.
            UsageError: `model` is none of those found.
        """
        if not self.path.exists():
            raise InputError("no such file, folder or stored run", file=str(self.path),
                             hint="give a results table, traces, or a run of the store")  # fmt: skip
        found = 0
        for label, run in self._table() if self._is_table() else self._traces():
            self.models.add(label)
            if self.model in (None, label):
                found += 1
                yield label, run
        if self.model is not None and not found and self.models:
            raise UsageError(
                f"{self.path} has no model {self.model!r}", hint=f"it has {', '.join(sorted(self.models))}"
            )
        if not found:
            raise EvidenceError(f"{self.path}: no runs of tasks, so there is nothing to score; {self._why()}",
                                hint="a scorecard needs a task per run, and its outcome")  # fmt: skip

    def _why(self) -> str:
        return self.warnings[0] if self.warnings else "it is empty"

    def _is_table(self) -> bool:
        if not self.path.is_file() or self.format not in (None, "auto", "results"):
            return False
        try:
            with self.path.open("rb") as stream:
                return recognise(self.path, stream.read(HEAD)).name == "results"
        except InputError:
            return False

    def _table(self) -> Iterator[tuple[str, Evidence]]:
        log, lost = Log(str(self.path)), list[LostRow]()
        attempts = read_table(self.path, log, lost)
        skips = [s for s in log.skips if not s.noted]
        if skips:
            self.warnings.append(f"{self.path.name}: {len(skips)} rows or cells cannot be used, the first in line "
                                 f"{skips[0].line}: {skips[0].why}")  # fmt: skip
        metrics = list(dict.fromkeys(str(a.extra["metric"]) for a in attempts if "metric" in a.extra))
        if len(metrics) > 1:
            chosen = "passed" if "passed" in metrics else metrics[0]
            attempts = [a for a in attempts if a.extra.get("metric") == chosen]
            self.warnings.append(f"{self.path.name} holds {len(metrics)} metrics: completion is {chosen}")
        apart = any(a.score is not None and (a.score >= 1.0) != (a.status == "passed")
                    for a in attempts if a.status in ("passed", "failed"))  # fmt: skip
        for a in [*attempts, *_unscored(attempts, lost)]:
            # Where passing is recorded apart from the score, passing is the criterion.
            yield a.model or UNNAMED, Evidence(attempt=replace(a, score=None) if apart else a)
        nowhere = sum(row.task is None for row in lost)
        if nowhere:
            self.warnings.append(f"{self.path.name}: {nowhere} rows name no task, and belong to no run")

    def _traces(self) -> Iterator[tuple[str, Evidence]]:
        seen, left, own = Memory(), dict[str, int](), 0
        read, twice = set[str](), 0
        numbers = _Numbers()
        for file in scan([self.path]):
            reading = read_file(file, format=self.format, seen=seen)
            for trace in reading:
                if trace.id in read:
                    twice += 1
                    continue
                read.add(trace.id)
                if trace.task.id is None and trace.parent is None:
                    own += 1
                    trace = replace(trace, task=replace(trace.task, id=trace.id))
                recorded = attempts_of([trace])
                for why, n in recorded.left_out.items():
                    left[why] = left.get(why, 0) + n
                if recorded.attempts:
                    label = trace.model or trace.agent.name
                    if self.model not in (None, label):
                        self.models.add(label)
                        continue
                    attempt = numbers.give(recorded.attempts[0], trace, label, file)
                    yield label, Evidence(attempt=attempt, task=task_in(trace), trace=trace)
            if reading.refused is not None and file == self.path:
                raise reading.refused
        self.warnings += [f"{self.path.name}: left out {n} times: {why}" for why, n in left.items()]
        if numbers.again:
            self.warnings.append(f"{self.path.name}: {numbers.again} runs bear no attempt number of their own, "
                                 f"and count as further attempts of their tasks, first {numbers.first}")  # fmt: skip
        if twice:
            self.warnings.append(f"{self.path.name}: {twice} runs are in more than one file, and counted once")
        if own:
            self.warnings.append(f"{self.path.name}: {own} traces name no task: each counts as a task of its own")


class _Numbers:
    """Attempt numbers by agent and task. `again` counts runs that got another number than the one that they came with,
    and `first` names the task of the first one."""

    def __init__(self) -> None:
        self._all: dict[tuple[str, str | None, str], set[int]] = {}
        self._file: dict[tuple[str, str | None, str], set[int]] = {}
        self._of: Path | None = None
        self.again = 0
        self.first: str | None = None

    def give(self, attempt: Attempt, trace: Trace, label: str, file: Path) -> Attempt:
        """The attempt with a number that no other of its agent, task and file has, and if the trace names none, no
        other of its agent and task. The same number in two files is left: those are kept apart (`flows.series`)."""
        if file != self._of:
            self._of, self._file = file, {}
        key = (label, trace.task.suite, attempt.task)
        everywhere, here = self._all.setdefault(key, set()), self._file.setdefault(key, set())
        made = _numbered(attempt, set(here if trace.attempt is not None else everywhere))
        here.add(made.trial)
        everywhere.add(made.trial)
        if made.trial != attempt.trial:
            self.again += 1
            self.first = self.first or attempt.task
        return made


def _numbered(attempt: Attempt, taken: set[int]) -> Attempt:
    trial = attempt.trial
    while trial in taken:
        trial += 1
    taken.add(trial)
    return attempt if trial == attempt.trial else replace(attempt, trial=trial)


def _unscored(attempts: list[Attempt], lost: list[LostRow]) -> list[Attempt]:
    """Rows that cannot be used but name their task: attempts without a score, which no denominator may lose."""
    taken: dict[str, set[int]] = {}
    for a in attempts:
        taken.setdefault(a.task, set()).add(a.trial)
    return [
        _numbered(Attempt(task=row.task, trial=row.trial or 0, status="unscored", model=row.model, reason=row.why),
                  taken.setdefault(row.task, set()))
        for row in lost if row.task is not None
    ]  # fmt: skip


__all__ = ["Foreign", "Setting", "of_judged", "of_own", "setting", "task_in"]
