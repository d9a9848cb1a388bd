"""Stored runs of suites: attempts, pass rates by metric and pass^k, read off the tables (METHODS 6.3)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import polars as pl

from seatrial.records import SCORED, Estimate
from seatrial.records.tables import ATTEMPTS, VERDICTS
from seatrial.report import numbers
from seatrial.report.section import Chart, Column, Mark, Panel, Section, Table
from seatrial.report.text import name
from seatrial.stats import clustered_proportion, pass_hat_k
from seatrial.store import Permission, Store

_MOST_K = 10


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One run: how many attempts, how many of them are scored and passed; `rate` over tasks with its interval."""

    run: str
    suite: str | None
    agent: str | None
    model: str | None
    start: float | None
    tasks: int
    attempts: int
    scored: int
    passed: int
    excluded: dict[str, int]
    rate: Estimate | None
    pass_hat: dict[int, Estimate | None]


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt. `session` can be looked at when it left a trace."""

    session: str
    trial: int
    status: str
    score: float | None
    reason: str | None
    seen: bool


class TaskRow(msgspec.Struct, frozen=True, kw_only=True):
    """A task of a run with its attempts."""

    task: str
    passed: int
    scored: int
    must_pass: bool
    attempts: list[Attempt]


def runs(store: Store) -> list[Run]:
    """Every committed run, newest first."""
    columns = ["run", "suite", "agent", "model", "task", "trial", "status", "start"]
    rows = store.table(ATTEMPTS.name, ordered=False).select(columns).collect()
    out = [_run(part) for part in rows.partition_by("run", maintain_order=True)] if rows.height else []
    return sorted(out, key=lambda r: (-(r.start or 0.0), r.run))


def _run(rows: pl.DataFrame) -> Run:
    scored = rows.filter(pl.col("status").is_in(list(SCORED)))
    left = rows.filter(~pl.col("status").is_in(list(SCORED)))
    by_task = scored.group_by("task", maintain_order=True).agg(
        pl.len().alias("n"), (pl.col("status") == "passed").sum().alias("c")
    )
    passed = (scored["status"] == "passed").cast(pl.Float64).to_list()
    tasks, n, c = by_task["task"].to_list(), by_task["n"].to_list(), by_task["c"].to_list()
    most = min(max(n, default=0), _MOST_K)
    return Run(
        run=rows["run"][0],
        suite=rows["suite"][0],
        agent=rows["agent"][0],
        model=next((m for m in rows["model"] if m), None),
        start=rows["start"].min(),  # type: ignore[arg-type]
        tasks=rows["task"].n_unique(),
        attempts=rows.height,
        scored=scored.height,
        passed=int(sum(passed)),
        excluded=dict(left["status"].value_counts(sort=True).iter_rows()),
        rate=clustered_proportion(passed, scored["task"].to_list()) if tasks else None,
        pass_hat={k: pass_hat_k(n, c, k) for k in range(1, most + 1)},
    )


def tasks_of(store: Store, run: str, may: Permission) -> list[TaskRow]:
    """The tasks of a run, the worst first."""
    rows = store.table(ATTEMPTS.name, ordered=False).filter(pl.col("run") == run).collect()
    out = []
    for part in rows.sort("task", "trial").partition_by("task", maintain_order=True):
        attempts = [
            Attempt(session=r["session"], trial=r["trial"], status=r["status"], score=r["score"], reason=r["reason"],
                    seen=r["blob"] is not None and may.allows(r["session"]))
            for r in part.iter_rows(named=True)
        ]  # fmt: skip
        scored = [a for a in attempts if a.status in SCORED]
        out.append(
            TaskRow(
                task=part["task"][0],
                passed=sum(a.status == "passed" for a in scored),
                scored=len(scored),
                must_pass=bool(part["must_pass"].fill_null(False).any()),
                attempts=attempts,
            )
        )
    return sorted(out, key=lambda t: (t.passed / t.scored if t.scored else 2.0, t.task))


def metrics(store: Store, chosen: Sequence[Run]) -> Section | None:
    """Share of attempts that pass each metric, by run, with intervals over tasks."""
    names = [r.run for r in chosen]
    wanted = pl.Series(names, dtype=pl.String).implode()
    rows = store.table(VERDICTS.name, ordered=False).filter(pl.col("run").is_in(wanted)).collect()
    if not rows.height:
        return None
    cells = {}
    for (metric, run), part in rows.drop_nulls("passed").group_by("metric", "run"):
        cells[metric, run] = clustered_proportion(part["passed"].cast(pl.Float64).to_list(), part["task"].to_list())
    listed = sorted({metric for metric, _ in cells}, key=str)
    table = Table(
        caption="Share of attempts that pass, [95% interval over tasks]",
        columns=(Column(head="Metric", name=True), *(Column(head=name(n), right=True) for n in names)),
        rows=tuple((str(m), *(numbers.stacked(cells.get((m, n)), "percent") for n in names)) for m in listed),
    )
    return Section(heading="By metric", tables=(table,), key="metrics")


def curves(chosen: Sequence[Run]) -> Section | None:
    """pass^k: the chance that k fresh attempts at a task all pass."""
    panels = []
    for r in chosen:
        marks = tuple(
            Mark(label=f"k = {k}", value=e.value, low=e.low, high=e.high, text=numbers.number(e.value, "percent"))
            for k, e in r.pass_hat.items()
            if e is not None
        )
        if marks:
            panels.append(Panel(marks=marks, unit="percent", title=name(r.run), domain=(0.0, 1.0)))
    if not panels:
        return None
    ks = sorted({k for r in chosen for k in r.pass_hat})
    table = Table(
        caption="pass^k [95% interval over tasks]",
        columns=(Column(head="Run", name=True), *(Column(head=f"k = {k}", right=True) for k in ks)),
        rows=tuple((r.run, *(numbers.stacked(r.pass_hat.get(k), "percent") for k in ks)) for r in chosen),
    )
    chart = Chart(
        title="pass^k",
        description="One panel for each run, one row for each k.",
        panels=tuple(panels),
        legend=(("value", "share of tasks"), ("interval", "95% interval over tasks")),
    )
    several = any(len(panel.marks) > 1 for panel in panels)
    return Section(
        heading="pass^k",
        paragraphs=("The chance that k fresh attempts at a task all pass, averaged over tasks.",),
        charts=(chart,) if several else (),
        tables=(table,),
        key="curves",
    )
