"""The committed baseline: one run in one JSON file, a line per case, so that a pull request can review it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from seatrial.errors import FormatError, UsageError
from seatrial.gate.runs import Kind, MetricRuns, Run, TaskRuns
from seatrial.records import Comparison, GateVerdict

VERSION = 1
_MARK = "seatrial_baseline"


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One run of the gate, or one update of the baseline (then with its `reason`).

    `lower` maps metrics to the bound that PASS compares with -margin; None where there was none.
    """

    time: str
    verdict: GateVerdict | None = None
    reason: str | None = None
    changed: tuple[str, ...] = ()
    lower: dict[str, float | None] = {}
    difference: dict[str, float | None] = {}


class Baseline(msgspec.Struct, frozen=True, kw_only=True):
    """A committed run and the history of its updates, oldest first."""

    run: Run
    history: tuple[Entry, ...] = ()


def entry(comparison: Comparison | None, *, time: str, reason: str | None = None) -> Entry:
    """What is remembered of a comparison; None: there was nothing to compare with."""
    if comparison is None:
        return Entry(time=time, reason=reason)
    return Entry(
        time=time,
        verdict=comparison.verdict,
        reason=reason,
        changed=comparison.changed,
        lower={r.metric: _short(r.lower) for r in comparison.metrics},
        difference={r.metric: _short(r.difference.value if r.difference else None) for r in comparison.metrics},
    )


def updated(run: Run, before: Baseline | None, comparison: Comparison | None, *, time: str, reason: str) -> Baseline:
    """`run` as the new baseline.

    Raises:
        UsageError: no reason is given.
    """
    if not reason.strip():
        raise UsageError("a new baseline needs a reason", hint="--reason 'what changed, and why it is right'")
    history = before.history if before else ()
    return Baseline(run=run, history=(*history, entry(comparison, time=time, reason=" ".join(reason.split()))))


def is_baseline(path: Path) -> bool:
    """Whether a file says that it is a committed baseline."""
    try:
        with path.open("rb") as stream:
            return f'"{_MARK}"'.encode() in stream.read(200)
    except OSError:
        return False


def dumps(baseline: Baseline) -> str:
    """The file's text: the same baseline gives the same bytes, and one changed case changes one line."""
    run = baseline.run
    flags = {"failing": set(run.failing), "unscored": set(run.unscored), "must_pass": set(run.must_pass)}
    tasks = []
    for task, content in sorted(run.tasks.items()):
        body: dict[str, Any] = {"hash": content} if content else {}
        body |= {name: True for name, named in flags.items() if task in named}
        body["metrics"] = {
            name: msgspec.to_builtins(m.tasks[task]) for name, m in sorted(run.metrics.items()) if task in m.tasks
        }
        tasks.append(f"  {json.dumps(task)}: {_line(body)}")
    metrics = [
        f"  {json.dumps(n)}: {_line(msgspec.to_builtins(msgspec.structs.replace(m, tasks={})))}"
        for n, m in sorted(run.metrics.items())
    ]
    history = [f"  {_line(msgspec.to_builtins(e))}" for e in baseline.history]
    return "\n".join(
        [
            "{",
            f'"{_MARK}": {VERSION},',
            f'"label": {json.dumps(run.label)},',
            f'"fingerprint": {_line(msgspec.to_builtins(run.fingerprint))},',
            '"history": [',
            ",\n".join(history),
            "],",
            '"metrics": {',
            ",\n".join(metrics),
            "},",
            '"tasks": {',
            ",\n".join(tasks),
            "}",
            "}",
            "",
        ]
    )


class _Metric(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    kind: Kind = "quality"
    version: str | None = None
    judged: bool = False
    planned: int = 0


class _Task(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    hash: str | None = None
    failing: bool = False
    unscored: bool = False
    must_pass: bool = False
    metrics: dict[str, TaskRuns] = {}


class _Version(msgspec.Struct, frozen=True):
    seatrial_baseline: int


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    seatrial_baseline: int
    label: str
    fingerprint: dict[str, tuple[str, ...]]
    history: tuple[Entry, ...]
    metrics: dict[str, _Metric]
    tasks: dict[str, _Task]


def loads(text: str | bytes, file: str) -> Baseline:
    """The baseline of a file's text.

    Raises:
        FormatError: no baseline, of a later version, or a task names a metric that the file does not describe.
    """
    try:
        # The version first: what a later one may hold is no mistake of the file.
        version = msgspec.json.decode(text, type=_Version).seatrial_baseline
        if version != VERSION:
            raise FormatError(
                f"a baseline of version {version}; this seatrial reads version {VERSION}",
                hint="read it with the seatrial that wrote it, or make it again: seatrial gate --update-baseline",
                file=file,
            )
        read = msgspec.json.decode(text, type=_File)
    except msgspec.DecodeError as error:
        raise FormatError(
            f"not a committed baseline: {error}", hint="make it with seatrial gate --update-baseline", file=file
        ) from None
    unknown = {m for t in read.tasks.values() for m in t.metrics} - set(read.metrics)
    if unknown:
        raise FormatError(f"a case has values of {sorted(unknown)[0]!r}, which metrics does not describe", file=file)
    metrics = {
        name: MetricRuns(
            kind=m.kind,
            version=m.version,
            judged=m.judged,
            planned=m.planned,
            tasks={task: t.metrics[name] for task, t in read.tasks.items() if name in t.metrics},
        )
        for name, m in read.metrics.items()
    }
    run = Run(
        label=read.label,
        metrics=metrics,
        tasks={task: t.hash for task, t in read.tasks.items()},
        fingerprint=read.fingerprint,
        must_pass=tuple(t for t, b in read.tasks.items() if b.must_pass),
        failing=tuple(t for t, b in read.tasks.items() if b.failing),
        unscored=tuple(t for t, b in read.tasks.items() if b.unscored),
    )
    return Baseline(run=run, history=read.history)


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """A tighter margin that every green run of the history would have passed."""

    metric: str
    margin: float
    proposed: float
    n_runs: int


GREEN_NEEDED = 5
_STEP = 0.005


def proposals(history: Sequence[Entry], margins: dict[str, float]) -> tuple[Proposal, ...]:
    """Tighter margins from the last green runs, at least five per metric; margins change in the settings alone.

    The proposal is the least multiple of half a point above every green run's bound.
    """
    out = []
    for metric, margin in margins.items():
        bounds = [e.lower[metric] for e in history if e.verdict == "PASS" and e.lower.get(metric) is not None][-20:]
        if len(bounds) < GREEN_NEEDED:
            continue
        worst = max(0.0, max(-(b or 0.0) for b in bounds))
        proposed = round((int(worst / _STEP + 1e-9) + 1) * _STEP, 6)
        if proposed < margin - 1e-9:
            out.append(Proposal(metric=metric, margin=margin, proposed=proposed, n_runs=len(bounds)))
    return tuple(out)


def _line(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(", ", ": "))


def _short(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
