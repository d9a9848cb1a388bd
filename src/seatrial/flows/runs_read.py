"""Where runs come from: a committed baseline, a results table, trace files, or a store."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from seatrial.errors import EvidenceError, InputError, StoreError, UsageError
from seatrial.flows.attempts import resolve, stored_run
from seatrial.flows.pricing import priced
from seatrial.gate.baseline import Entry, is_baseline, loads
from seatrial.gate.runs import Run, run_of
from seatrial.gate.traces import attempts_of
from seatrial.ingest import Log, Memory, read_file, scan
from seatrial.ingest.catalogue import recognise
from seatrial.ingest.reading import HEAD
from seatrial.ingest.results import LostRow, read_table
from seatrial.records import Attempt, FileReport, RecordedOutcome, Trace
from seatrial.records.price import Prices
from seatrial.store import Store


class Source(NamedTuple):
    """A run, the history of its baseline (empty for others), what was noticed in reading, and its traces by need.

    `lost` tells what could not be read of the run's attempts; where it names a task, the run counts it as excluded.
    `unplaced` is the part whose task is not known: evidence that is missing.
    """

    run: Run
    history: tuple[Entry, ...]
    warnings: tuple[str, ...]
    traces: Callable[[], Iterator[Trace]] | None
    lost: tuple[str, ...] = ()
    unplaced: tuple[str, ...] = ()

    def traces_of(self, tasks: Collection[str] | None) -> dict[str, list[Trace]]:
        """The traces of these tasks (None: all), read again: no run is held in memory for the few that got worse."""
        out: dict[str, list[Trace]] = {}
        for trace in self.traces() if self.traces is not None else ():
            if trace.task.id is not None and trace.parent is None and (tasks is None or trace.task.id in tasks):
                out.setdefault(trace.task.id, []).append(trace)
        return out


def read_source(
    path: Path, *, model: str | None = None, format: str | None = None, store: Path | None = None,
    every_model: bool = False, prices: Prices | None = None,
) -> Source:  # fmt: skip
    """The run at `path`. `prices` tell what traces cost whose source recorded tokens alone.

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
    return _traces(path, model, format, every_model, prices or {})


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
    rows: list[LostRow] = []
    attempts = read_table(path, log, rows)
    told = [f"{path.name}: {len(rows)} rows cannot be used, the first in line {rows[0].line}: {rows[0].why}"
            ] if rows else []  # fmt: skip
    if rows and not attempts:
        raise EvidenceError(f"{path}: no attempts, so there is nothing to compare; {told[0]}",
                            hint="correct the rows")  # fmt: skip
    lost = [s for s in log.skips if not s.noted]
    warnings = [f"{path.name}: {len(lost)} rows or cells cannot be used, the first in line {lost[0].line}: "
                f"{lost[0].why}"] if lost else []  # fmt: skip
    kept = attempts if every_model else _of_model(attempts, model, path)
    # A row that names no model may be of any.
    rows = [r for r in rows if every_model or model is None or r.model in (model, None)]
    nowhere = [r for r in rows if r.task is None]
    unplaced = [f"{path.name}: {len(nowhere)} rows that name no task cannot be used, the first in line "
                f"{nowhere[0].line}: {nowhere[0].why}"] if nowhere else []  # fmt: skip
    run = run_of([*kept, *_excluded(kept, rows)], label=str(path))
    return Source(run, (), tuple(warnings), None, tuple(told) if rows else (), tuple(unplaced))


def _excluded(kept: list[Attempt], rows: list[LostRow]) -> list[Attempt]:
    """An attempt without a score for every lost row that names its task; one of each metric where it names none."""
    metrics = sorted({str(a.extra.get("metric") or "") for a in kept})
    taken = {(a.task, str(a.extra.get("metric") or ""), a.trial) for a in kept}
    out = []
    for row in rows:
        for metric in [row.metric] if row.metric else metrics:
            if row.task is None:
                continue
            trial = row.trial or 0
            while (row.task, metric, trial) in taken:
                trial += 1
            taken.add((row.task, metric, trial))
            out.append(Attempt(task=row.task, trial=trial, status="unscored", model=row.model,
                               extra={"lost": True, **({"metric": metric} if metric else {})}))  # fmt: skip
    return out


def _traces(path: Path, model: str | None, format: str | None, every_model: bool, prices: Prices) -> Source:
    reports: list[FileReport] = []

    def traces() -> Iterator[Trace]:
        seen = Memory()
        for file in scan([path]):
            reading = read_file(file, format=format, seen=seen)
            for trace in reading:
                if every_model or model is None or trace.model == model:
                    yield priced(trace, prices)
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
    rows = [s for r in reports if r.format == "results" for s in r.skipped
            if not s.noted and not s.why.endswith("the cell is left out")]  # fmt: skip
    unplaced = [f"{path.name}: {len(rows)} rows of results tables cannot be used, the first in line {rows[0].line} of "
                f"{Path(rows[0].file).name}: {rows[0].why}"] if rows else []  # fmt: skip
    if not every_model:
        _of_model(recorded.attempts, model, path)
    run = run_of(recorded.attempts, label=str(path))
    return Source(run, (), tuple(warnings), traces, tuple(unplaced), tuple(unplaced))


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
