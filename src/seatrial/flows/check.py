"""The gate's story: two sources of runs, a comparison, the differences of what got worse, and the baseline's update."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import msgspec

from seatrial.errors import InputError, UsageError
from seatrial.flows.runs_read import Source, read_source
from seatrial.flows.stamps import refused_judges
from seatrial.gate.baseline import Baseline, Entry, Proposal, dumps, entry, is_baseline, loads, proposals, updated
from seatrial.gate.decision import decide, exit_status
from seatrial.gate.difference import closest, compact, difference
from seatrial.gate.runs import Run
from seatrial.gate.settings import GateSettings
from seatrial.records import Comparison, Trace
from seatrial.records.price import Prices
from seatrial.report.sarif import Finding

FORBIDDEN = "forbidden_absent"
"""The check whose failures are safety findings."""


class CheckOptions(NamedTuple):
    """What a comparison reads and how. `store` is where runs are looked up by name; models choose among several;
    `prices` tell what traces cost whose source recorded tokens alone."""

    settings: GateSettings = GateSettings()
    baseline_model: str | None = None
    candidate_model: str | None = None
    format: str | None = None
    store: Path | None = None
    diffs: bool = True
    prices: Prices | None = None


class Checked(NamedTuple):
    """The comparison, its sides, and what the green history proposes; `exit_code` follows DESIGN 5. `lost` tells
    what could not be read of the candidate."""

    comparison: Comparison
    baseline: Run
    candidate: Run
    proposals: tuple[Proposal, ...]
    exit_code: int
    lost: tuple[str, ...] = ()


def check(baseline: Path, candidate: Path, options: CheckOptions | None = None) -> Checked:
    """Compare a candidate with a baseline; each is a committed baseline, a results table, traces, or a stored run.

    Raises:
        InputError: a source cannot be read or holds several models and none is chosen.
        EvidenceError: nothing was scored on a side.
    """
    options = options or CheckOptions()
    settings = options.settings
    before, after = (
        read_source(path, model=model, format=options.format, store=options.store, prices=options.prices)
        for path, model in ((baseline, options.baseline_model), (candidate, options.candidate_model))
    )
    judged = {n: m.version for run in (before.run, after.run) for n, m in run.metrics.items() if m.judged}
    comparison = decide(
        before.run,
        after.run,
        settings,
        refused=refused_judges(settings, judged),
        warnings=(*before.warnings, *after.warnings),
        missing_evidence=(*before.unplaced, *after.unplaced),
    )
    if options.diffs:
        comparison = with_differences(comparison, before, after)
    history = (*before.history, *_green(settings))
    margins = {r.metric: r.margin for r in comparison.metrics if r.kind == "quality"}
    return Checked(
        comparison,
        before.run,
        after.run,
        proposals(history, margins),
        exit_status(comparison, settings.on_inconclusive),
        after.lost,
    )


def safety(run: Run) -> tuple[Finding, ...]:
    """What the candidate did that its tasks forbid, one finding per task: baseline or not, it is not a matter of
    degree."""
    metric = run.metrics.get(FORBIDDEN)
    return tuple(
        Finding(rule="safety", subject=task, text=f"task {task}: a forbidden tool was called in {n} of {len(t.values)} "
                "attempts")
        for task, t in sorted(metric.tasks.items() if metric else ())
        if (n := t.values.count(0.0))
    )  # fmt: skip


def with_differences(comparison: Comparison, before: Source, after: Source) -> Comparison:
    """The comparison with the difference of traces of every regressed task that has traces on both sides."""
    tasks = {t.task for t in comparison.regressed_tasks}
    if not tasks:
        return comparison
    old, new = before.traces_of(tasks), after.traces_of(tasks)
    diffs = {t: d for t in sorted(tasks) if (d := _difference(old.get(t, ()), new.get(t, ()))) is not None}
    told = tuple(msgspec.structs.replace(t, diff=diffs.get(t.task)) for t in comparison.regressed_tasks)
    return msgspec.structs.replace(comparison, regressed_tasks=told)


def _difference(old: Sequence[Trace], new: Sequence[Trace]) -> Mapping[str, object] | None:
    pair = closest([t for t in old if t.steps], [t for t in new if t.steps])
    return None if pair is None else compact(difference(*pair))


def diff(
    baseline: Path, candidate: Path, *, task: str | None = None, format: str | None = None, store: Path | None = None
) -> dict[str, object]:
    """The difference of two traces, whole: those of `task`, or the closest pair that the two sources share.

    A source may be the name of a run in `store`.

    Raises:
        UsageError: the sources share no task, or not the one that is named.
    """
    old = read_source(baseline, format=format, every_model=True, store=store)
    new = read_source(candidate, format=format, every_model=True, store=store)
    tasks = {task} if task is not None else set(old.run.tasks) & set(new.run.tasks)
    left, right = old.traces_of(tasks or None), new.traces_of(tasks or None)
    shared = sorted(set(left) & set(right))
    if not shared:
        what = f"task {task!r}" if task is not None else "a task"
        raise UsageError(f"{baseline} and {candidate} share no traces of {what}", hint="name a task that both have")
    chosen = max(shared, key=lambda t: (_worse(left[t], right[t]), -shared.index(t)))
    pair = closest(left[chosen], right[chosen])
    assert pair is not None
    found = difference(*pair)
    shown = compact(found, before=len(found.rows), after=len(found.rows))
    return {"task": chosen, **shown}


def _worse(old: Sequence[Trace], new: Sequence[Trace]) -> float:
    def share(traces: Sequence[Trace]) -> float:
        return sum(t.outcome is not None and t.outcome.status == "passed" for t in traces) / len(traces)

    return share(old) - share(new)


def update_baseline(
    path: Path, checked: Checked | None, run: Run, *, reason: str, lost: Sequence[str] = (), now: datetime | None = None
) -> None:
    """Write `run` as the committed baseline at `path`, with the reason in its history.

    `lost` is what could not be read of the run, where that has not been accepted.

    Raises:
        UsageError: no reason, rows were lost, or `path` holds something that is no baseline.
        InputError: the file cannot be written.
    """
    if lost:
        raise UsageError(f"a baseline would lack what cannot be read: {lost[0]}",
                         hint="correct the rows, or accept the loss: --accept-lost-rows")  # fmt: skip
    before: Baseline | None = None
    if path.exists():
        if not is_baseline(path):
            raise UsageError(f"{path} is no committed baseline, and is left alone", hint="name another file")
        before = loads(path.read_bytes(), str(path))
    made = updated(run, before, checked.comparison if checked else None, time=_now(now), reason=reason)
    _write(path, dumps(made))


def remember(history: Path, comparison: Comparison, *, now: datetime | None = None) -> None:
    """Append a comparison to the green history, one JSON line, from which tighter margins are proposed.

    Raises:
        InputError: the file cannot be written.
    """
    try:
        history.parent.mkdir(parents=True, exist_ok=True)
        with history.open("ab") as stream:
            stream.write(msgspec.json.encode(entry(comparison, time=_now(now))) + b"\n")
    except OSError as error:
        raise InputError(f"the history cannot be written: {error.strerror}", file=str(history)) from error


def _green(settings: GateSettings) -> tuple[Entry, ...]:
    if settings.history is None or not Path(settings.history).exists():
        return ()
    try:
        text = Path(settings.history).read_bytes()
    except OSError as error:
        said = f"the history cannot be read, so it cannot be written: {error.strerror}"
        raise InputError(said, file=settings.history) from error
    out = []
    for n, line in enumerate(text.split(b"\n"), 1):
        if line.strip():
            try:
                out.append(msgspec.json.decode(line, type=Entry))
            except msgspec.DecodeError as error:
                raise InputError(f"not a line of the gate's history: {error}", file=settings.history, line=n) from None
    return tuple(out)


def _now(now: datetime | None) -> str:
    return (now or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ")


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", file=str(path)) from error
