"""Repeated attempts: pass^k and pass@k by model, with what was excluded."""

from __future__ import annotations

from seatrial.records import Estimate, Ranking
from seatrial.report import numbers
from seatrial.report.section import Column, Section, Table
from seatrial.report.text import name


def repeats(r: Ranking) -> Section | None:
    """None where no attempt has a recorded status."""
    if not r.repeats:
        return None
    most = max(len(row.pass_hat) for row in r.repeats)
    ks = [str(k) for k in range(1, most + 1)]
    notes = [
        f"{name(row.model)}: {n} tasks with fewer than {k} scored attempts are left out of k = {k}"
        for row in r.repeats
        for k, n in row.short.items()
    ]
    notes += [
        f"{name(row.model)}: {sum(row.counts.excluded.values())} of {row.counts.n_planned} attempts excluded "
        f"({', '.join(f'{n} {s}' for s, n in row.counts.excluded.items())}); the pass rate would lie between "
        f"{numbers.number(row.counts.worst, 'percent')} and {numbers.number(row.counts.best, 'percent')} "
        "had all failed or passed"
        for row in r.repeats
        if row.counts.excluded
    ]
    tables = [_table("pass^k: all of k attempts at a task pass", "^", ks, r, hat=True)]
    if most > 1:
        tables.append(_table("pass@k: at least one of k attempts passes", "@", ks, r, hat=False))
    return Section(
        heading="Recorded results",
        paragraphs=("Estimates are means over tasks, intervals over tasks: repeated attempts share their task.",),
        tables=tuple(tables),
        notes=tuple(notes),
    )


def _table(caption: str, sign: str, ks: list[str], r: Ranking, *, hat: bool) -> Table:
    head = (
        Column(head="Model", name=True),
        Column(head="Tasks", right=True),
        Column(head="Scored", right=True),
        *(Column(head=f"pass{sign}{k}", right=True) for k in ks),
    )
    rows = []
    for row in r.repeats:
        values = row.pass_hat if hat else row.pass_at
        cells = tuple(_cell(values.get(k)) for k in ks)
        rows.append((name(row.model), numbers.count(row.n_tasks), numbers.count(row.counts.n_scored), *cells))
    return Table(caption=caption, columns=head, rows=tuple(rows))


def _cell(estimate: Estimate | None) -> str | None:
    if estimate is None:
        return None
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:.3f}"
    return f"{estimate.value:.3f}\n[{estimate.low:.3f}, {estimate.high:.3f}]"
