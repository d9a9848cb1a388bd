"""Stored sessions to files of other formats: ATIF, OTLP JSON, Parquet, Inspect; each says what it could not hold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

from seatrial.canon import canonical
from seatrial.errors import EvidenceError, InputError
from seatrial.flows.look import safe_name
from seatrial.ingest import atif_write, inspect_write, otlp_write, parquet_write
from seatrial.records import Trace
from seatrial.settings import load
from seatrial.store import Store, permission

Format = Literal["atif", "otlp", "parquet", "inspect"]
Fields = list[tuple[str, ...]]
"""What could not be held, by place."""

NAMES: dict[str, str] = {"atif": "ATIF", "otlp": "OTLP", "parquet": "The step table", "inspect": "Inspect"}


def export(
    out: Path, *, sessions: Sequence[str], store: str | None, format: Format = "atif"
) -> tuple[dict[str, Any], str]:
    """Write stored sessions into the folder `out`; what was written, what the format could not hold natively, and who
    did not consent.

    ATIF: one file a session. OTLP: one request for a session with its sub-agents. Parquet: one table of all steps.
    Inspect: one log for each suite and model.

    Raises:
        EvidenceError: there is no session to export. InputError: the folder cannot be written.
    """
    opened = Store.open(store or load().store)
    named = [opened.resolve(s) for s in sessions] or opened.session_ids()
    ids, refused = permission(opened, "export").among(named)
    if not ids:
        why = "; ".join(f"{d.n} {d.what}: {d.why}" for d in refused)
        raise EvidenceError("the store holds no session to export" + (f" ({why})" if why else ""))
    traces = (opened.trace(session) for session in ids)
    try:
        out.mkdir(parents=True, exist_ok=True)
        files, losses = _WRITERS[format](out, traces)
    except OSError as error:
        raise InputError(f"cannot write there: {error.strerror}", file=str(out)) from error
    not_held: dict[str, int] = {}
    for loss in losses:
        for field in loss:
            not_held[field] = not_held.get(field, 0) + 1
    result = {"written": len(ids), "files": files, "not_held": not_held, "left_out": refused, "format": format}
    return result, opened.data_version


def _atif(out: Path, traces: Iterable[Trace]) -> tuple[list[str], Fields]:
    files: list[str] = []
    losses: Fields = []
    for trace in traces:
        written = atif_write.write(trace)
        target = out / f"{safe_name(trace.id)}.json"
        target.write_bytes(canonical(written.document))
        files.append(target.name)
        losses.extend(loss.fields for loss in written.losses)
    return files, losses


def _otlp(out: Path, traces: Iterable[Trace]) -> tuple[list[str], Fields]:
    held = {trace.id: trace for trace in traces}
    below: dict[str, list[Trace]] = {}
    for trace in held.values():
        if (root := _root(trace, held)) != trace.id:
            below.setdefault(root, []).append(trace)
    files: list[str] = []
    losses: Fields = []
    for trace in held.values():
        if _root(trace, held) != trace.id:
            continue
        target = out / f"{safe_name(trace.id)}.otlp.json"
        losses.extend(loss.fields for loss in otlp_write.write_file(target, trace, below.get(trace.id, [])))
        files.append(target.name)
    return files, losses


def _root(trace: Trace, held: dict[str, Trace]) -> str:
    """The session that began it all, among those that are written; a circle of parents begins at itself."""
    seen = {trace.id}
    while trace.parent is not None and trace.parent in held and trace.parent not in seen:
        trace = held[trace.parent]
        seen.add(trace.id)
    return trace.id


def _parquet(out: Path, traces: Iterable[Trace]) -> tuple[list[str], Fields]:
    target = out / "steps.parquet"
    return [target.name], [loss.fields for loss in parquet_write.write(target, traces)]


def _inspect(out: Path, traces: Iterable[Trace]) -> tuple[list[str], Fields]:
    groups: dict[tuple[str, str], list[Trace]] = {}
    for trace in traces:
        if trace.parent is None:
            groups.setdefault((trace.task.suite or "seatrial", trace.model or "unknown"), []).append(trace)
    files: list[str] = []
    losses: Fields = []
    for (suite, model), part in sorted(groups.items()):
        target = out / f"{safe_name(f'{suite}-{model}')}.inspect.json"
        losses.extend(loss.fields for loss in inspect_write.write_file(target, part, task=suite))
        files.append(target.name)
    return files, losses


_WRITERS = {"atif": _atif, "otlp": _otlp, "parquet": _parquet, "inspect": _inspect}
