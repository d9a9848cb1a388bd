"""A run's numbers as sections: by metric, answer against trajectory, pass^k, by task (METHODS 6.2, 6.3, 6.7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from seatrial.records import Counts, Estimate
from seatrial.report import numbers
from seatrial.report.section import Column, Section, Table
from seatrial.report.text import clean, clip, name

SHOWN_TASKS = 60
SHOWN_REASONS = 5


class _Metric(Protocol):
    @property
    def metric(self) -> str: ...
    @property
    def layer(self) -> str: ...
    @property
    def n(self) -> int: ...
    @property
    def passed(self) -> int: ...
    @property
    def not_applicable(self) -> int: ...
    @property
    def estimate(self) -> Estimate | None: ...
    @property
    def why(self) -> str | None: ...


class _Result(Protocol):
    @property
    def counts(self) -> Counts: ...
    @property
    def metrics(self) -> Sequence[Any]: ...
    @property
    def tasks(self) -> Sequence[Any]: ...
    @property
    def curve(self) -> Sequence[Any]: ...
    @property
    def crossing(self) -> Any: ...
    @property
    def cost_usd(self) -> Any: ...
    @property
    def latency_s(self) -> Any: ...
    @property
    def k(self) -> int: ...
    @property
    def short(self) -> Sequence[str]: ...


def run(heading: str, result: _Result, warnings: Sequence[str] = ()) -> tuple[Section, ...]:
    """The sections of one run, in reading order."""
    return (
        Section(
            heading=heading,
            paragraphs=(counted(result.counts), _money(result)),
            tables=(metrics(result.metrics, short(result)), crossing(result.crossing, short(result))),
            items=tuple(clean(w) for w in warnings),
        ),
        Section(heading="How reliably", tables=(curve(result.curve, short(result)),)),
        Section(heading="By task", tables=(by_task(result.tasks, short(result)),), items=broken(result.tasks)),
    )


def short(result: _Result) -> str:
    """What a table's caption adds where tasks have fewer attempts than the run has per task."""
    n = len(result.short)
    if not n:
        return ""
    have = "task has" if n == 1 else "tasks have"
    return f". {n} {have} fewer than {result.k} attempts"


def counted(n: Counts) -> str:
    """The outcome algebra in one sentence."""
    out = ", ".join(f"{v} {k.replace('_', ' ')}" for k, v in n.excluded.items())
    left = f" Not scored: {out}; so between {numbers.number(n.worst, 'percent')} and " + (
        f"{numbers.number(n.best, 'percent')} of all would have passed." if out else ""
    )
    return f"{n.n_scored} of {n.n_planned} planned attempts are scored." + (left if out else "")


def _money(result: _Result) -> str:
    cost, time = result.cost_usd, result.latency_s
    price = (f"cost per attempt p50 {cost.p50:.4f}, p95 {cost.p95:.4f} USD" if cost.n else "cost not known") + (
        f" (not known for {cost.unknown})" if cost.n and cost.unknown else ""
    )
    took = f"time per attempt p50 {_seconds(time.p50)}, p95 {_seconds(time.p95)}" if time.n else "time not known"
    return f"{price[0].upper()}{price[1:]}; {took}."


def _seconds(value: float | None) -> str:
    if value is None:
        return numbers.NA
    return f"{value * 1000:.0f} ms" if value < 1 else f"{value:.1f} s"


def metrics(rows: Sequence[_Metric], note: str = "") -> Table:
    """One row per metric, never blended. A check of production that nothing was there for has no row: outside
    production that is all of them."""
    return Table(
        caption=f"Share of attempts that pass each check, intervals by task{note}",
        columns=(
            Column(head="layer"),
            Column(head="metric", name=True),
            Column(head="passed", right=True),
            Column(head="share", right=True),
            Column(head="n/a", right=True),
            Column(head="most frequent reason of a failure", name=True),
        ),
        rows=tuple(
            (
                m.layer,
                m.metric,
                f"{m.passed}/{m.n}",
                numbers.estimate(m.estimate, "percent") if m.estimate else None,
                str(m.not_applicable),
                clip(clean(m.why), 60) if m.why else "-",
            )
            for m in rows
            if m.n or m.layer != "production"
        ),
        grouped=True,
    )


def crossing(c: Any, note: str = "") -> Table:
    """Answer against trajectory."""
    return Table(
        caption="Answer against trajectory"
        + (f" ({c.unjudged} attempts not judged on both)" if c.unjudged else "")
        + note,
        columns=(
            Column(head="answer"),
            Column(head="way sensible", right=True),
            Column(head="way not sensible", right=True),
        ),
        rows=(
            ("right", f"{c.sound} sound", f"{c.lucky} lucky"),
            ("wrong", f"{c.unlucky} unlucky", f"{c.failed} failed"),
        ),
    )


def curve(points: Sequence[Any], note: str = "") -> Table:
    """pass^k and pass@k."""
    return Table(
        caption=f"pass^k: all of k attempts pass. pass@k: at least one of k passes. Intervals by task{note}",
        columns=(Column(head="k", right=True), Column(head="pass^k", right=True), Column(head="pass@k", right=True)),
        rows=tuple(
            (
                str(p.k),
                numbers.estimate(p.pass_hat, "percent") if p.pass_hat else None,
                numbers.estimate(p.pass_at, "percent") if p.pass_at else None,
            )
            for p in points
        ),
    )


def by_task(rows: Sequence[Any], note: str = "") -> Table:
    """Tasks, the worst first."""
    order = sorted(rows, key=lambda t: (t.passed / t.n_scored if t.n_scored else 2.0, t.task))
    more = f"; {len(order) - SHOWN_TASKS} more (--json lists all)" if len(order) > SHOWN_TASKS else ""
    return Table(
        caption=f"{len(order)} {'task' if len(order) == 1 else 'tasks'}, the worst first{more}{note}",
        columns=(
            Column(head="task", name=True),
            Column(head="passed", right=True),
            Column(head="other statuses"),
            Column(head="time p50", right=True),
            Column(head="p95", right=True),
            Column(head="cost p50", right=True),
            Column(head="p95", right=True),
        ),
        rows=tuple(
            (
                clip(name(t.task), 40),
                f"{t.passed}/{t.n_scored}",
                ", ".join(f"{v} {k}" for k, v in t.statuses.items() if k not in ("passed", "failed")),
                _seconds(t.latency_s.p50),
                _seconds(t.latency_s.p95),
                _usd(t.cost_usd.p50),
                _usd(t.cost_usd.p95),
            )
            for t in order[:SHOWN_TASKS]
        ),
    )


def broken(rows: Sequence[Any]) -> tuple[str, ...]:
    """Why attempts ended in an error or out of time: each reason with its tasks, the most frequent first."""
    found: dict[str, list[str]] = {}
    for t in rows:
        if why := getattr(t, "why", None):
            found.setdefault(why, []).append(name(t.task))
    out = []
    for why, tasks in sorted(found.items(), key=lambda item: -len(item[1]))[:SHOWN_REASONS]:
        more = f" and {len(tasks) - 3} more tasks" if len(tasks) > 3 else ""
        out.append(f"{', '.join(tasks[:3])}{more}: {clean(why)}")
    if len(found) > SHOWN_REASONS:
        out.append(f"{len(found) - SHOWN_REASONS} more reasons (--json lists all)")
    return tuple(out)


def _usd(value: float | None) -> str | None:
    return None if value is None else f"{value:.4f}"


def systems(found: Sequence[tuple[str, _Result]], skipped: Mapping[str, int]) -> Section:
    """What differs between systems: one row per metric, one column per system."""
    order: dict[str, dict[str, _Metric]] = {}
    for system, result in found:
        for m in result.metrics:
            order.setdefault(m.metric, {})[system] = m
    rows = []
    for metric, cells in order.items():
        if not any(m.n for m in cells.values()):
            continue
        rows.append((metric, *(_cell(cells.get(system)) for system, _ in found)))
    left = tuple(f"left out {n} times: {clean(why)}" for why, n in skipped.items())
    left += tuple(f"{clean(system)}{said[1:]}" for system, result in found if (said := short(result)))
    return Section(
        heading="What differs between systems",
        paragraphs=("Share of attempts that pass each check; below it the interval by task and attempts judged.",),
        tables=(
            Table(
                caption="By metric and system",
                columns=(Column(head="metric"), *(Column(head=clip(name(s), 24), right=True) for s, _ in found)),
                rows=tuple(rows),
            ),
        ),
        notes=left,
    )


def _cell(m: _Metric | None) -> str | None:
    if m is None or m.estimate is None:
        return None
    return f"{numbers.stacked(m.estimate, 'percent')}\n{m.passed}/{m.n}"


def run_list(rows: Sequence[Mapping[str, Any]]) -> Section:
    """The runs of a store."""
    return Section(
        heading="Runs",
        tables=(
            Table(
                caption=f"{len(rows)} {'run' if len(rows) == 1 else 'runs'}, newest first",
                columns=(
                    Column(head="run", name=True),
                    Column(head="suite", name=True),
                    Column(head="agent", name=True),
                    Column(head="passed", right=True),
                ),
                rows=tuple(
                    (name(r["run"]), name(r["suite"] or "-"), name(r["agent"] or "-"), f"{r['passed']}/{r['attempts']}")
                    for r in rows
                ),
            ),
        ),
    )
