"""How a suite grows, as sections: triage, drafts, tasks, health."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from seatrial.records import Task
from seatrial.report import numbers
from seatrial.report.section import Column, Section, Table
from seatrial.report.text import clean, clip, name


def triage(items: Sequence[Any], counts: Mapping[str, int], limit: int) -> Section:
    """Failing sessions and incidents; items are `flows.triage.Item`."""
    head = (
        Column(head="session", name=True),
        Column(head="state"),
        Column(head="date (UTC)"),
        Column(head="model", name=True),
        Column(head="against it", name=True),
        Column(head="reason or task", name=True),
    )
    rows = tuple(
        (
            name(i.session)[:18],
            i.state,
            None if i.time is None else datetime.fromtimestamp(i.time, UTC).strftime("%Y-%m-%d"),
            clip(name(i.model), 20) if i.model else "-",
            ", ".join(f"{n} {k.replace('_', ' ')}" for k, n in i.why.items()) or "-",
            clip(clean(i.task or i.reason or "-"), 40),
        )
        for i in items[:limit]
    )
    more = (f"{len(items) - limit} more; --limit shows more",) if len(items) > limit else ()
    said = ", ".join(f"{n} {state}" for state, n in counts.items())
    return Section(
        heading="Triage",
        paragraphs=(f"Failing sessions and incidents: {said}.",),
        tables=(Table(caption=f"{len(items)} listed", columns=head, rows=rows),),
        notes=(*more, "'seatrial task from-session ID' drafts a task; --dismiss ID --reason TEXT sets one aside"),
    )


def draft(task: Task) -> Section:
    """A draft, or any task: what it asks, and what is still open."""
    facts = {
        "expected tools": ", ".join(task.expected_tools) or "none",
        "forbidden tools": ", ".join(task.forbidden_tools) or "none",
        "order": task.order or "none",
        "budget": f"{task.max_turns} turns" if task.max_turns else "none",
        "source": task.source or "not named",
    }
    why = task.extra.get("why") or []
    items = [f"went wrong: {clean(_said(w))}" for w in why if isinstance(w, dict)]
    items += [f"to complete: {clean(str(o))}" for o in task.extra.get("open") or []]
    return Section(
        heading=f"Task {name(task.id)}",
        paragraphs=(clip(clean(task.input), 600),),
        tables=(
            Table(
                caption="What it asks",
                columns=(Column(head="field"), Column(head="value", name=True)),
                rows=tuple((k, clean(v)) for k, v in facts.items()),
            ),
        ),
        items=tuple(items),
    )


def _said(w: Mapping[str, Any]) -> str:
    if w.get("kind") == "failed_calls":
        return f"{w.get('n')} failed {'call' if w.get('n') == 1 else 'calls'} of {w.get('tool')}"
    return f"step {w.get('step')}, {w.get('kind')}: {w.get('said')} (proposed: {w.get('propose')})"


def tasks(suite: str, rows: Sequence[Mapping[str, Any]], drafts: Sequence[str]) -> Section:
    """The tasks of a suite."""
    return Section(
        heading=f"Suite {name(suite)}",
        tables=(
            Table(
                caption=f"{len(rows)} tasks",
                columns=(
                    Column(head="task", name=True),
                    Column(head="source"),
                    Column(head="part"),
                    Column(head="must pass"),
                    Column(head="content"),
                ),
                rows=tuple(
                    (
                        clip(name(r["task"]), 40), r["source"] or "not named", r["part"],
                        "yes" if r["must_pass"] else "", r["hash"][:12],
                    )
                    for r in rows
                ),
            ),
        ),
        notes=(f"drafts, not run: {', '.join(name(d) for d in drafts)}",) if drafts else (),
    )  # fmt: skip


def health(suite: str, found: Any) -> Section:
    """How a suite stands; `found` is `suites.health.Health`."""
    share = ", ".join(f"{numbers.number(v, 'percent', 0)} {k.replace('_', ' ')}" for k, v in found.share.items())
    lists = (
        ("every attempt passes (they tell nothing apart)", found.saturated),
        ("no attempt passes (too hard, or broken)", found.never_passed),
        ("nothing judges the end", found.without_final_check),
    )
    return Section(
        heading=f"Health of {clean(suite)}",
        paragraphs=(
            f"{found.tasks} tasks ({found.holdout} held out), {found.drafts} drafts. By source: {share}"
            + (f"; {found.unsourced} name none." if found.unsourced else "."),
        ),
        checks=found.checks,
        items=tuple(f"{what}: {clean(numbers.some(list(ids)))}" for what, ids in lists if ids),
    )
