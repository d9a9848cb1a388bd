"""Traces to a table of steps in Parquet, one row per step, and back; what the table has no column for is named.

Calls, results and other nested parts are columns of canonical JSON, so that the file is read by anything that reads
Parquet. A trace's own fields stand in each of its rows; a trace without steps has one row whose `index` is null.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from seatrial.canon import canonical
from seatrial.errors import InputError, SchemaError
from seatrial.ingest.losses import Loss
from seatrial.records import (
    Agent,
    Provenance,
    RecordedOutcome,
    Step,
    TaskRef,
    ToolCall,
    ToolResult,
    Trace,
    Usage,
)

COLUMNS: tuple[tuple[str, str], ...] = (
    *(("trace", "str"), ("parent", "str"), ("parent_call", "str"), ("continues", "str"), ("agent", "str")),
    *(("agent_version", "str"), ("trace_model", "str"), ("user", "str"), ("task", "str"), ("task_type", "str")),
    *(("task_difficulty", "str"), ("suite", "str"), ("task_source", "str"), ("attempt", "int"), ("status", "str")),
    *(("score", "float"), ("scored_by", "str"), ("index", "int"), ("event_class", "str"), ("kind", "str")),
    *(("time", "float"), ("text", "str"), ("reasoning", "str"), ("model", "str"), ("input_tokens", "int")),
    *(("output_tokens", "int"), ("cached_tokens", "int"), ("cost_usd", "float"), ("copied", "bool")),
    *(("tool_calls", "str"), ("results", "str"), ("source_ids", "str"), ("extra", "str")),
)
"""Column names and their types; `tool_calls`, `results`, `source_ids` and `extra` hold JSON."""

_UNHELD = ("assignment", "consent", "totals", "provenance", "extra")
_INT64 = 2**63 - 1


def write(path: Path, traces: Iterable[Trace]) -> tuple[Loss, ...]:
    """Write the table of these traces' steps; what it could not hold.

    Raises:
        OSError: the file cannot be written.
    """
    import polars as pl

    types = {"str": pl.String, "int": pl.Int64, "float": pl.Float64, "bool": pl.Boolean}
    columns: dict[str, list[Any]] = {name: [] for name, _ in COLUMNS}
    losses: list[Loss] = []
    for trace in traces:
        losses.extend(_unheld(trace))
        head = _head(trace)
        for row in [_row(step, trace, losses) for step in trace.steps] or [{}]:
            for name, _ in COLUMNS:
                columns[name].append(head.get(name, row.get(name)))
    frame = pl.DataFrame(columns, schema={name: types[kind] for name, kind in COLUMNS})
    frame.write_parquet(path)
    return tuple(losses)


def read(path: Path) -> list[Trace]:
    """The traces of a table that `write` wrote, as far as it holds them, in order.

    Raises:
        SchemaError: a column is missing.
        InputError: a cell does not hold what its column should.
        OSError: the file cannot be read.
    """
    import polars as pl

    try:
        frame = pl.read_parquet(path)
    except pl.exceptions.PolarsError as error:
        raise InputError(f"not a Parquet file: {str(error)[:200]}", file=str(path)) from None
    lacking = [name for name, _ in COLUMNS if name not in frame.columns]
    if lacking:
        hint = "write it with parquet_write.write"
        raise SchemaError(f"the table has no column {', '.join(lacking)}", hint=hint, file=str(path))
    origin = Provenance(format="parquet", reader="parquet", reader_version="1", file=str(path))
    out: list[Trace] = []
    steps: list[Step] = []
    for n, row in enumerate(frame.iter_rows(named=True), 1):
        try:
            if not out or out[-1].id != row["trace"] or row["index"] in (0, None):
                out.append(_trace(row, origin))
                steps = []
            if row["index"] is not None:
                steps.append(_step(row))
                out[-1] = msgspec.structs.replace(out[-1], steps=tuple(steps))
        except (msgspec.MsgspecError, TypeError) as error:
            raise InputError(f"row {n}: {error}", hint="write the table again", file=str(path), line=n) from None
    return out


def _head(trace: Trace) -> dict[str, Any]:
    outcome = trace.outcome
    head = {
        "trace": _text(trace.id),
        "parent": trace.parent,
        "parent_call": trace.parent_call,
        "continues": trace.continues,
        "agent": trace.agent.name,
        "agent_version": trace.agent.version,
        "trace_model": trace.model,
        "user": trace.user,
        "task": trace.task.id,
        "task_type": trace.task.type,
        "task_difficulty": trace.task.difficulty,
        "suite": trace.task.suite,
        "task_source": trace.task.source,
        "attempt": _whole(trace.attempt),
        "status": outcome.status if outcome is not None else None,
        "score": outcome.score if outcome is not None else None,
        "scored_by": outcome.by if outcome is not None else None,
    }
    return {name: _text(value) if isinstance(value, str) else value for name, value in head.items()}


def _row(step: Step, trace: Trace, losses: list[Loss]) -> dict[str, Any]:
    usage = step.usage if step.usage is not None else Usage()
    row = {
        "index": step.index,
        "event_class": step.event_class,
        "kind": step.kind,
        "time": step.time,
        "text": step.text,
        "reasoning": step.reasoning,
        "model": step.model,
        "input_tokens": _whole(usage.input_tokens),
        "output_tokens": _whole(usage.output_tokens),
        "cached_tokens": _whole(usage.cached_tokens),
        "cost_usd": usage.cost_usd,
        "copied": step.copied,
    }
    lost: list[str] = []
    for name in ("tool_calls", "results", "source_ids", "extra"):
        try:
            text = canonical(getattr(step, name)).decode()
        except (TypeError, UnicodeEncodeError, ValueError):
            text, lost = None, [*lost, name]
        row[name] = text
    row = {name: _text(value) if isinstance(value, str) else value for name, value in row.items()}
    again = _step(row | {"index": step.index})
    for name in Step.__struct_fields__:
        if name not in lost and getattr(again, name) != getattr(step, name):
            lost.append(name)
    if lost:
        why = "what is no JSON, no whole text or no 64-bit number has no cell; a usage has its four columns alone"
        losses.append(Loss(where=f"{trace.id} steps[{step.index}]", fields=tuple(lost), why=why))
    return row


def _trace(row: dict[str, Any], origin: Provenance) -> Trace:
    status = row["status"]
    score = row["score"]
    return Trace(
        id=row["trace"],
        agent=Agent(name=row["agent"], version=row["agent_version"]),
        provenance=origin,
        model=row["trace_model"],
        task=TaskRef(
            id=row["task"],
            type=row["task_type"],
            difficulty=row["task_difficulty"],
            suite=row["suite"],
            source=row["task_source"],
        ),
        attempt=row["attempt"],
        user=row["user"],
        outcome=None if status is None else _outcome(status, score, row["scored_by"]),
        parent=row["parent"],
        parent_call=row["parent_call"],
        continues=row["continues"],
    )


def _outcome(status: Any, score: float | None, by: str | None) -> RecordedOutcome:
    bounded = score is None or 0.0 <= score <= 1.0
    found = {"status": status, "score": score, "bounded": bounded, "by": by}
    return msgspec.convert(found, RecordedOutcome)


def _step(row: dict[str, Any]) -> Step:
    counts = {name: row[name] for name in ("input_tokens", "output_tokens", "cached_tokens", "cost_usd")}
    known = {name: value for name, value in counts.items() if value is not None}
    return msgspec.convert(
        {
            "index": row["index"],
            "event_class": row["event_class"],
            "text": row["text"] or "",
            "time": row["time"],
            "reasoning": row["reasoning"],
            "model": row["model"],
            "usage": Usage(**known) if known else None,
            "kind": row["kind"],
            "copied": bool(row["copied"]),
            "tool_calls": msgspec.json.decode(row["tool_calls"] or "[]", type=tuple[ToolCall, ...]),
            "results": msgspec.json.decode(row["results"] or "[]", type=tuple[ToolResult, ...]),
            "source_ids": msgspec.json.decode(row["source_ids"] or "[]", type=tuple[str, ...]),
            "extra": msgspec.json.decode(row["extra"] or "{}", type=dict[str, Any]),
        },
        Step,
    )


def _unheld(trace: Trace) -> list[Loss]:
    fields = [name for name in _UNHELD if name == "provenance" or getattr(trace, name) != _EMPTY[name]]
    if trace.agent.tools is not None or trace.agent.extra:
        fields.append("agent")
    outcome = trace.outcome
    if outcome is not None:
        again = _outcome(outcome.status, outcome.score, outcome.by)
        if again != outcome:
            fields.append("outcome")
    if trace.attempt is not None and _whole(trace.attempt) is None:
        fields.append("attempt")
    texts = {n: v for n, v in _head(trace).items() if isinstance(v, str)}
    if any("\N{REPLACEMENT CHARACTER}" in text for text in texts.values()):
        fields.append("texts")
    return [Loss(where=trace.id, fields=tuple(fields), why="the table of steps has no column for it")]


_EMPTY: dict[str, Any] = {
    name: getattr(
        Trace(id="", agent=Agent(name=""), provenance=Provenance(format="", reader="", reader_version="")), name
    )
    for name in _UNHELD
}


def _text(value: str) -> str:
    """Text without halves of surrogate pairs, which Parquet cannot hold."""
    return value.encode("utf-8", errors="replace").decode() if not value.isascii() else value


def _whole(value: int | None) -> int | None:
    return value if value is not None and -_INT64 <= value <= _INT64 else None
