"""Results tables to attempts: one row is one attempt, in CSV, JSON, JSON lines or Parquet (DESIGN 5).

Columns: `task`, `trial` and `passed` or `score`; optional `status`, `model`, `metric`, `task_type`, `cost_usd`,
`latency_s`, `tokens`. Other columns are kept in `extra`. The reader makes a trace without steps of each attempt,
so that a table is ranked like anything else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from seatrial.canon import content_hash
from seatrial.errors import SchemaError
from seatrial.ingest.log import Log
from seatrial.ingest.results_cells import boolean, natural, number, outcome_status, words
from seatrial.ingest.results_rows import columns, names, rows
from seatrial.records import (
    Agent,
    Attempt,
    Provenance,
    ReadLog,
    RecordedOutcome,
    Status,
    TaskRef,
    Totals,
    Trace,
    Usage,
)

REQUIRED = ("task", "trial")
RESULTS = ("passed", "score")
OPTIONAL = ("status", "model", "metric", "task_type", "cost_usd", "latency_s", "tokens")
_KNOWN = frozenset((*REQUIRED, *RESULTS, *OPTIONAL))
_EXPECTED = (
    f"a results table has the columns {', '.join(REQUIRED)} and {' or '.join(RESULTS)}; optional: {', '.join(OPTIONAL)}"
)


class Results:
    """Reads results tables: one trace per attempt; rows that differ in their metric alone are one attempt."""

    name = "results"
    version = "1"
    verified = False

    def sniff(self, path: Path, head: bytes) -> float:
        """Sure when the columns are there; half sure at `task` and `trial` alone, so that the rest is asked for."""
        found = columns(path, head)
        if not set(REQUIRED) <= found:
            return 0.0
        return 0.95 if found & set(RESULTS) else 0.5

    def read(self, path: Path, log: ReadLog) -> Iterator[Trace]:
        """One trace per attempt, in file order.

        Raises:
            SchemaError: a column is missing.
            FormatError: the table cannot be parsed.
        """
        groups: dict[tuple[str, ...], list[_Read]] = {}
        for read in _once(path, log):
            a = read.attempt
            key: tuple[str, ...] = ("/".join(path.parts[-2:]), a.model or "", a.suite or "", a.task, str(a.trial), "")
            groups.setdefault(key, []).append(read)
        metrics = {str(r.attempt.extra["metric"]) for g in groups.values() for r in g if "metric" in r.attempt.extra}
        if len(metrics) > 1:
            log.note(None, f"the table holds {len(metrics)} metrics; an attempt's outcome is the first it lists")
        for key, group in groups.items():
            yield self._trace(path, key, group)

    def _trace(self, path: Path, key: tuple[str, ...], group: list[_Read]) -> Trace:
        first = group[0].attempt
        outcome = _outcome(first)
        if len(group) > 1:
            each = {str(r.attempt.extra.get("metric", "")): msgspec.to_builtins(_outcome(r.attempt)) for r in group}
            outcome = msgspec.structs.replace(outcome, extra=outcome.extra | {"metrics": each})
        return Trace(
            id=f"results~{content_hash(key)[:20]}",
            agent=Agent(name="results"),
            model=first.model,
            task=TaskRef(id=first.task, type=first.extra.get("task_type")),
            attempt=first.trial,
            totals=Totals(
                usage=Usage(cost_usd=first.cost_usd),
                wall=first.latency_s,
                extra={} if first.tokens is None else {"tokens": first.tokens},
            ),
            outcome=outcome,
            provenance=Provenance(
                format=self.name,
                reader=self.name,
                reader_version=self.version,
                file=str(path),
                content_hash=content_hash([msgspec.to_builtins(r.attempt) for r in group]),
                extra={"line": group[0].line},
            ),
            extra={name: v for name, v in first.extra.items() if name != "task_type"},
        )


class LostRow(NamedTuple):
    """A row that gave no attempt: its line, why, and what it names as far as that can be told."""

    line: int | None
    why: str
    task: str | None = None
    trial: int | None = None
    model: str | None = None
    metric: str | None = None


def read_table(path: str | Path, log: ReadLog | None = None, lost: list[LostRow] | None = None) -> list[Attempt]:
    """The attempts of a results table, one per row, in file order, repeated rows once; `metric` and
    `task_type` are in `extra`.

    A row without a usable task, trial or result is left out and listed in `log` with its line; an unusable
    optional cell is left out of its row and listed likewise. Rows left out are added to `lost`. A table without a
    `status` column: passed as `passed` says, else at a score of 1; a row with neither is `unscored`.

    Raises:
        SchemaError: a column is missing; names file, column and what is expected.
        FormatError: the table cannot be parsed.
        OSError: the file cannot be read.
    """
    where = Path(path)
    return [read.attempt for read in _once(where, log if log is not None else Log(str(where)), lost)]


class _Losing:
    """A log that also adds what it skips to `lost`: the rows that cannot even be parsed."""

    def __init__(self, log: ReadLog, lost: list[LostRow]) -> None:
        self._lost, self._skip = lost, log.skip
        self.kept, self.note, self.seen = log.kept, log.note, log.seen

    def skip(self, line: int | None, why: str, n_bytes: int = 0) -> None:
        self._lost.append(LostRow(line, why))
        self._skip(line, why, n_bytes)


class _Read(NamedTuple):
    line: int | None
    attempt: Attempt
    size: int


def _once(path: Path, log: ReadLog, lost: list[LostRow] | None = None) -> Iterator[_Read]:
    """The rows, each attempt's metric once: the first row that has it counts.

    A later row of the same task, trial, model and metric is noted where it says the same, and a skip where it
    contradicts the first.
    """
    first: dict[tuple[str, ...], _Read] = {}
    lost = [] if lost is None else lost
    for read in _read(path, log, lost):
        a = read.attempt
        key = (a.model or "", a.suite or "", a.task, str(a.trial), str(a.extra.get("metric", "")))
        before = first.setdefault(key, read)
        if before is read:
            log.kept(read.size, "row")
            yield read
            continue
        named = ", ".join(
            [f"task {a.task}", f"trial {a.trial}"]
            + [f"{what} {word}" for what, word in (("metric", a.extra.get("metric")), ("model", a.model)) if word]
        )
        where = "an earlier row" if before.line is None else f"line {before.line}"
        if before.attempt == a:
            log.kept(read.size, "repeated row")
            log.note(read.line, f"{where} says the same of {named}: it counts once")
        else:
            fields = ", ".join(_differing(before.attempt, a))
            why = f"{where} says otherwise ({fields}) of {named}: the first one counts"
            lost.append(LostRow(read.line, why, a.task, a.trial, a.model, a.extra.get("metric")))
            log.skip(read.line, why, read.size)


def _differing(one: Attempt, other: Attempt) -> list[str]:
    a, b = ({**msgspec.to_builtins(x), **x.extra, "extra": None} for x in (one, other))
    return sorted(name for name in a.keys() | b.keys() if a.get(name) != b.get(name))


def _read(path: Path, log: ReadLog, rows_lost: list[LostRow]) -> Iterator[_Read]:
    checked: set[str] | None = None
    for row in rows(path, _Losing(log, rows_lost)):
        if checked is None and row.fixed:
            _check(path, row.columns)
        checked = row.columns if row.fixed else (checked or set()) | row.columns
        if all(row.cells.get(name) == name for name in REQUIRED):
            log.kept(row.size, "repeated header")
            log.note(row.line, "the header again, as where tables were joined: it is no attempt")
            continue
        why, attempt, lost = _attempt(row.cells)
        if attempt is None:
            task, model, metric = (words(row.cells.get(name)) for name in ("task", "model", "metric"))
            rows_lost.append(LostRow(row.line, why, task, natural(row.cells.get("trial"))[0], model, metric))
            log.skip(row.line, why, row.size)
            continue
        gone = 0
        for reason, size in lost:
            size = min(size, row.size - gone)
            gone += size
            log.skip(row.line, reason, size)
        yield _Read(row.line, attempt, row.size - gone)
    _check(path, names(path) if checked is None else checked)


def _check(path: Path, found: set[str]) -> None:
    absent = [name for name in REQUIRED if name not in found]
    if not found & set(RESULTS):
        absent.append(" or ".join(RESULTS))
    if absent:
        near = ", ".join(sorted(found)[:20]) or "none"
        raise SchemaError(
            f"the table has no column {' and no column '.join(absent)}; its columns are: {near}",
            hint=f"{_EXPECTED}; rename the column",
            file=str(path),
            line=1,
        )


def _attempt(cells: Mapping[str, Any]) -> tuple[str, Attempt | None, list[tuple[str, int]]]:
    """The attempt of a row; None and why where a cell that it needs is unusable; and the optional cells left out."""
    lost: list[tuple[str, int]] = []
    task = words(cells.get("task"))
    if task is None:
        return "column task: expected a task's name, found nothing", None, lost
    trial, why = natural(cells.get("trial"))
    if trial is None:
        return f"column trial: {why or 'expected a number from 0 up, found nothing'}", None, lost
    passed, why = boolean(cells.get("passed"))
    if why:
        return f"column passed: {why}", None, lost
    score, why = number(cells.get("score"))
    if why:
        return f"column score: {why}", None, lost
    status, why = outcome_status(cells.get("status"))
    if why:
        return f"column status: {why}", None, lost
    status, why = _status(status, passed, score)
    if status is None:
        return why, None, lost
    optional: dict[str, Any] = {}
    for name, read in (("cost_usd", number), ("latency_s", number), ("tokens", natural)):
        value, why = read(cells.get(name))
        if not why and value is not None and value < 0:
            value, why = None, f"expected 0 or more, found {cells[name]}"
        if why:
            lost.append((f"column {name}: {why}; the cell is left out", len(str(cells[name]).encode())))
        optional[name] = value
    extra = {name: value for name, value in cells.items() if name not in _KNOWN and value not in (None, "")}
    for name in ("metric", "task_type"):
        if (text := words(cells.get(name))) is not None:
            extra[name] = text
    if passed is not None and score is not None:
        extra["passed_and_score"] = True
    attempt = Attempt(
        task=task,
        trial=trial,
        status=status,
        score=score if score is not None else None if passed is None else float(passed),
        model=words(cells.get("model")),
        extra=extra,
        **optional,
    )
    return "", attempt, lost


def _status(given: Status | None, passed: bool | None, score: float | None) -> tuple[Status | None, str]:
    """One status from the three columns (METHODS 0.1); None and why when they contradict each other."""
    if given is not None:
        if passed is not None and given in ("passed", "failed") and passed != (given == "passed"):
            return None, f"columns passed and status contradict each other: {passed} and {given}"
        return given, ""
    if passed is not None:
        return ("passed" if passed else "failed"), ""
    if score is None:
        return "unscored", ""
    return ("passed" if score >= 1.0 else "failed"), ""


def _outcome(attempt: Attempt) -> RecordedOutcome:
    score = attempt.score
    return RecordedOutcome(
        status=attempt.status,
        score=score,
        bounded=score is None or 0.0 <= score <= 1.0,
        by=str(attempt.extra.get("metric", "results")),
    )


READER = Results()
