"""Attempts and verdicts to rows of the store, and back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from seatrial.canon import canonical
from seatrial.errors import EvidenceError, InputError
from seatrial.records import Attempt, Verdict
from seatrial.records.fitting import fitting
from seatrial.records.tables import ATTEMPTS, VERDICTS, Table
from seatrial.store import Store
from seatrial.suites.runner import Done

Judged = list[tuple[Attempt, tuple[Verdict, ...]]]


def frames(done: Iterable[Done]) -> dict[str, pl.DataFrame]:
    """What `Store.commit` takes for finished attempts."""
    attempts, verdicts = [], []
    for one in done:
        a = one.attempt
        row = one.row
        attempts.append(
            {
                **row,
                "task": a.task,
                "trial": a.trial,
                "status": a.status,
                "score": a.score,
                "reason": a.reason,
                "model": a.model,
                "agent": a.agent,
                "suite": a.suite,
                "task_hash": a.task_hash,
                "cost_usd": a.cost_usd,
                "latency_s": a.latency_s,
                "tokens": a.tokens,
                "fingerprint_json": canonical(a.fingerprint).decode(),
                "blob": one.blob,
            }
        )
        verdicts += verdict_rows(row["session"], row["run"], a, one.verdicts)
    return {ATTEMPTS.name: _frame(ATTEMPTS, attempts), VERDICTS.name: _frame(VERDICTS, verdicts)}


def verdict_rows(session: str, run: str, a: Attempt, verdicts: Sequence[Verdict]) -> list[dict[str, Any]]:
    """One row of the verdicts table per verdict."""
    return [
        {
            "session": session,
            "run": run,
            "task": a.task,
            "task_hash": a.task_hash,
            "trial": a.trial,
            "metric": v.metric,
            "passed": v.passed,
            "value": v.value,
            "layer": v.layer,
            "reason": v.reason,
            "by": v.by,
            "version": v.version,
            "steps_json": canonical(v.steps).decode(),
            "evidence_json": canonical(v.evidence).decode(),
        }
        for v in verdicts
    ]


def _frame(table: Table, rows: Sequence[dict[str, Any]]) -> pl.DataFrame:
    held = [fitting(table, row)[0] for row in rows]
    return pl.DataFrame({c: [row.get(c) for row in held] for c in table.names}, schema=table.schema())


def runs(store: Store) -> pl.DataFrame:
    """The runs of a store, newest first: run, suite, agent, model, attempts, passed, start.

    A run that was cut short, or is still going on, has the attempts that its ledger holds so far.
    """
    whole = _committed(store)
    known = set(whole["run"].to_list())
    cut = [made for path in sorted((store.path / "runs").glob("*.jsonl")) for made in _cut_short(store, path, known)]
    if not cut:
        return whole
    listed = pl.concat([whole, pl.DataFrame(cut, schema=whole.schema)])
    return listed.sort("start", "run", descending=[True, False], nulls_last=True)


def _cut_short(store: Store, path: Path, known: set[str]) -> list[dict[str, Any]]:
    """The run of a ledger, unless it is known. Read without the ledger's own repairs: its run may be going on, and a
    line that is damaged is told by whoever resumes it."""
    latest: dict[str, Done] = {}
    for line in path.read_bytes().split(b"\n")[:-1]:
        try:
            entry = msgspec.json.decode(line, type=_Line)
        except msgspec.DecodeError:
            continue
        if entry.value.row.get("run") in known:
            return []
        latest[entry.key] = entry.value
    # Attempts whose traces were erased are not brought back by the ledger.
    done = [d for d in latest.values() if d.blob is not None and store.blobs.has(d.blob)]
    if not done:
        return []
    return [
        {
            "run": done[0].row.get("run"),
            "suite": done[0].attempt.suite,
            "agent": done[0].attempt.agent,
            "model": next((d.attempt.model for d in done if d.attempt.model), None),
            "attempts": len(done),
            "passed": sum(d.attempt.status == "passed" for d in done),
            "start": min((d.row["start"] for d in done if d.row.get("start") is not None), default=None),
        }
    ]


class _Line(msgspec.Struct):
    key: str
    value: Done


def _committed(store: Store) -> pl.DataFrame:
    return (
        store.table(ATTEMPTS.name, ordered=False)
        .group_by("run")
        .agg(
            pl.col("suite").first(),
            pl.col("agent").first(),
            pl.col("model").drop_nulls().first(),
            pl.len().alias("attempts"),
            (pl.col("status") == "passed").sum().alias("passed"),
            pl.col("start").min(),
        )
        .sort("start", "run", descending=[True, False], nulls_last=True)
        .collect()
    )


def resolve(store: Store, start: str | None) -> str:
    """The one run whose id begins with `start`; None: the newest.

    Raises:
        EvidenceError: the store holds no run, or the run is not finished.
        InputError: none or several runs begin so.
    """
    ids = _committed(store)["run"].to_list()
    if not any(i.startswith(start or "") for i in ids):
        for cut in runs(store)["run"].to_list():
            if cut not in ids and cut.startswith(start or ""):
                again = "give its command again: it goes on where it stopped"
                raise EvidenceError(f"the run {cut} is not finished", hint=again)
    if not ids:
        raise EvidenceError("the store holds no run", hint="make one with: seatrial run SUITE --agent SPEC")
    if start is None:
        return str(ids[0])
    hits = [i for i in ids if i == start] or [i for i in ids if start and i.startswith(start)]
    if len(hits) != 1:
        named = ", ".join(hits[:5]) or "no run"
        raise InputError(
            f"{named} begins with {start!r}", file=str(store.path), hint="'seatrial run --list' shows them"
        )
    return str(hits[0])


def stored_run(store: Store, run: str, version: int | str | None = None) -> Judged:
    """The attempts of a run with their verdicts, by task and trial. `Attempt.trace` is the id of the attempt's
    trace; ``extra`` has `blob`, `must_pass`, `part`, `quadrant` and `session`."""
    rows = store.table(ATTEMPTS.name, version, ordered=False).filter(pl.col("run") == run).collect()
    said = store.table(VERDICTS.name, version, ordered=False).filter(pl.col("run") == run).collect()
    by_session: dict[str, list[Verdict]] = {}
    for row in said.iter_rows(named=True):
        by_session.setdefault(row["session"], []).append(_verdict(row))
    order = [c.name for c in _checks()]
    out: Judged = []
    for row in rows.sort("task", "trial").iter_rows(named=True):
        verdicts = by_session.get(row["session"], [])
        verdicts.sort(key=lambda v: (order.index(v.metric) if v.metric in order else len(order), v.metric, v.by))
        out.append((_attempt(row, verdicts), tuple(verdicts)))
    return out


def _checks() -> Sequence[Any]:
    from seatrial import grading

    return grading.checks()


def _attempt(row: dict[str, Any], verdicts: Sequence[Verdict]) -> Attempt:
    from seatrial.flows.judging import place

    kept = {k: row[k] for k in ("session", "run", "blob", "part", "stopped", "world", "world_version") if row[k]}
    if row["must_pass"]:
        kept["must_pass"] = True
    spot = place(row["status"], verdicts)
    if spot:
        kept["quadrant"] = spot
    return Attempt(
        task=row["task"],
        trial=row["trial"],
        status=row["status"],
        score=row["score"],
        model=row["model"],
        agent=row["agent"],
        task_hash=row["task_hash"],
        suite=row["suite"],
        trace=row["session"],
        reason=row["reason"],
        cost_usd=row["cost_usd"],
        latency_s=row["latency_s"],
        tokens=row["tokens"],
        fingerprint=json.loads(row["fingerprint_json"] or "{}"),
        extra=kept,
    )


def _verdict(row: dict[str, Any]) -> Verdict:
    return msgspec.convert(
        {
            **{k: row[k] for k in ("metric", "passed", "value", "layer", "reason", "by", "version")},
            "steps": tuple(json.loads(row["steps_json"] or "[]")),
            "evidence": json.loads(row["evidence_json"] or "{}"),
        },
        Verdict,
    )
