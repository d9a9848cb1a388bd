"""Where runs come from: a committed baseline, a results table, trace files, or a store."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from seatrial.errors import EvidenceError, InputError, StoreError, UsageError
from seatrial.flows.attempts import resolve, stored_run
from seatrial.gate.baseline import Entry, is_baseline, loads
from seatrial.gate.runs import Run, run_of
from seatrial.gate.traces import attempts_of
from seatrial.ingest import Log, Memory, read_file, scan
from seatrial.ingest.catalogue import recognise
from seatrial.ingest.reading import HEAD
from seatrial.ingest.results import read_table
from seatrial.records import Attempt, FileReport, RecordedOutcome, Trace
from seatrial.store import Store


class Source(NamedTuple):
    """A run, the history of its baseline (empty for others), what was noticed in reading, and its traces by need."""

    run: Run
    history: tuple[Entry, ...]
    warnings: tuple[str, ...]
    traces: Callable[[], Iterator[Trace]] | None

    def traces_of(self, tasks: Collection[str] | None) -> dict[str, list[Trace]]:
        """The traces of these tasks (None: all), read again: no run is held in memory for the few that got worse."""
        out: dict[str, list[Trace]] = {}
        for trace in self.traces() if self.traces is not None else ():
            if trace.task.id is not None and trace.parent is None and (tasks is None or trace.task.id in tasks):
                out.setdefault(trace.task.id, []).append(trace)
        return out


def read_source(
    path: Path, *, model: str | None = None, format: str | None = None, store: Path | None = None,
    every_model: bool = False,
) -> Source:  # fmt: skip
    """The run at `path`.

    Raises:
        InputError: no such file, nothing readable in it, or an attempt that occurs twice.
        UsageError: it holds several models and none is chosen.
        EvidenceError: it holds no attempts.
    """
    if not path.exists():
        stored = _stored(str(path), store, model)
        if stored is not None:
            return stored
        raise InputError("no such file, folder or stored run", hint="give a results table, traces or a baseline",
                         file=str(path))  # fmt: skip
    if path.is_file() and is_baseline(path):
        committed = loads(path.read_bytes(), str(path))
        return Source(committed.run, committed.history, (), None)
    if path.is_file() and format in (None, "auto", "results") and _is_table(path):
        return _table(path, model, every_model)
    return _traces(path, model, format, every_model)


def _stored(name: str, store: Path | None, model: str | None) -> Source | None:
    """The stored run that `name` names or begins; None where there is no store or no such run."""
    if store is None or not store.is_dir():
        return None
    opened = Store.open(store, create=False)
    try:
        run = resolve(opened, name)
    except (InputError, EvidenceError):
        return None
    judged = stored_run(opened, run)
    chosen = _of_model([a for a, _ in judged], model, Path(name))
    verdicts = {(a.task, a.trial): v for a, v in judged}

    def traces() -> Iterator[Trace]:
        for a in chosen:
            if a.extra.get("blob"):
                try:
                    trace = opened.trace_of(a.extra["blob"])
                except StoreError:
                    continue  # erased since: its task is shown without a difference
                # The attempt's own verdict says which runs passed; a trace of ours records no outcome.
                outcome = RecordedOutcome(status=a.status, score=a.score, by="seatrial")
                yield msgspec.structs.replace(trace, outcome=outcome)

    return Source(run_of(chosen, label=run, verdicts=verdicts), (), (), traces)


def _is_table(path: Path) -> bool:
    try:
        with path.open("rb") as stream:
            return recognise(path, stream.read(HEAD)).name == "results"
    except InputError:
        return False


def _table(path: Path, model: str | None, every_model: bool) -> Source:
    log = Log(str(path))
    attempts = read_table(path, log)
    lost = [s for s in log.skips if not s.noted]
    warnings = [f"{path.name}: {len(lost)} rows or cells cannot be used, the first in line {lost[0].line}: "
                f"{lost[0].why}"] if lost else []  # fmt: skip
    kept = attempts if every_model else _of_model(attempts, model, path)
    return Source(run_of(kept, label=str(path)), (), tuple(warnings), None)


def _traces(path: Path, model: str | None, format: str | None, every_model: bool) -> Source:
    reports: list[FileReport] = []

    def traces() -> Iterator[Trace]:
        seen = Memory()
        for file in scan([path]):
            reading = read_file(file, format=format, seen=seen)
            for trace in reading:
                if every_model or model is None or trace.model == model:
                    yield trace
            reports.append(reading.report)
            if reading.refused is not None and file == path:
                raise reading.refused

    recorded = attempts_of(traces())
    if not recorded.attempts:
        raise EvidenceError(f"{path}: no trace of a task, so there is nothing to compare",
                            hint="the gate needs a task id and an outcome per trace")  # fmt: skip
    warnings = [f"{path.name}: left out {n} times: {why}" for why, n in recorded.left_out.items()]
    lost = [s for r in reports for s in r.skipped if not s.noted]
    if lost:
        warnings.append(f"{path.name}: {len(lost)} records cannot be read, the first: {lost[0].why}")
    if not every_model:
        _of_model(recorded.attempts, model, path)
    return Source(run_of(recorded.attempts, label=str(path)), (), tuple(warnings), traces)


def _of_model(attempts: list[Attempt], model: str | None, path: Path) -> list[Attempt]:
    """The attempts of `model`, or all when there is only one."""
    if not attempts:
        raise EvidenceError(f"{path}: no attempts, so there is nothing to compare")
    models = sorted({a.model for a in attempts if a.model is not None})
    if model is not None:
        if model not in models:
            raise UsageError(f"{path} has no model {model!r}", hint=f"it has {', '.join(models) or 'none'}")
        return [a for a in attempts if a.model == model]
    if len(models) > 1:
        raise UsageError(
            f"{path} holds {len(models)} models: {', '.join(models[:5])}",
            hint="choose with --baseline-model and --candidate-model",
        )
    return attempts
