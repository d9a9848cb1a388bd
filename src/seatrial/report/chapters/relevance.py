"""Where the relevance of actions comes from (D2): sources, how far they agree, what they said of the worst runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seatrial.records import ActionVerdict, Scorecard
from seatrial.report import numbers
from seatrial.report.section import Column, Section, Table
from seatrial.report.text import clean, clip, name

RUNS = 2
ACTIONS = 12
SOURCES = {
    "annotation": "a person's annotation",
    "intent": "the task's intent specification",
    "ablation": "ablation replay",
    "data_flow": "data flow of ablation replay",
    "judge": "a validated judge",
}


def relevance(cards: Sequence[Scorecard]) -> Section | None:
    """The section; None where no action was judged."""
    shown = [c for c in cards if "D2" in c.dimensions and c.dimensions["D2"].detail.get("sources")]
    if not shown:
        return None
    tables = [_sources(shown), _agreement(shown), _worst(shown)]
    return Section(
        heading="Which actions served the task, and who says so",
        folded=True,
        paragraphs=(
            "The first source that can tell decides: annotation, intent specification, ablation replay with its data "
            "flow, judge. The others are kept beside it.",
        ),
        tables=tuple(t for t in tables if t is not None),
        items=tuple(dict.fromkeys(_cost(c) for c in shown if c.dimensions["D2"].detail.get("cost"))),
        key="scorecard-relevance",
    )


def _cost(card: Scorecard) -> str:
    cost: dict[str, Any] = card.dimensions["D2"].detail["cost"]
    each = cost.get("calls_per_action")
    per = f", {each:.1f} each" if isinstance(each, float) else ""
    return (
        f"{name(card.agent)}: ablation replay executed {cost['calls']:,} calls for {cost['actions']:,} actions{per}, "
        f"from {cost['restores']:,} snapshots"
    )


def _sources(cards: Sequence[Scorecard]) -> Table:
    rows = [
        (name(c.agent), SOURCES.get(source, "no source can tell"), f"{n:,}")
        for c in cards for source, n in c.dimensions["D2"].detail["sources"].items()
    ]  # fmt: skip
    return Table(
        caption="Actions by the source that decided",
        columns=(Column(head="agent", name=True), Column(head="source"), Column(head="actions", right=True)),
        rows=tuple(rows),
        grouped=True,
    )


def _agreement(cards: Sequence[Scorecard]) -> Table | None:
    rows = []
    for c in cards:
        for pair, row in c.dimensions["D2"].detail.get("agreement", {}).items():
            kappa = row["kappa"]
            told = "n/a" if kappa is None else f"{kappa:.2f} {numbers.interval(row['low'], row['high'])}"
            rows.append((name(c.agent), pair.replace("~", " and "), f"{row['n']:,}", f"{row['agree']:.0%}", told))
    if not rows:
        return None
    return Table(
        caption="How far two sources agree on the same actions (Cohen's kappa, tasks as clusters)",
        columns=(Column(head="agent", name=True), Column(head="sources"), Column(head="actions", right=True),
                 Column(head="agree", right=True), Column(head="kappa")),
        rows=tuple(rows),
        grouped=True,
    )  # fmt: skip


def _worst(cards: Sequence[Scorecard]) -> Table | None:
    rows = []
    for c in cards:
        for run in c.dimensions["D2"].worst[:RUNS]:
            what = f"{name(c.agent)}: {name(run.task)}, run {run.trial}"
            rows += [(what, str(a.step), name(a.tool), *_said(a)) for a in run.actions[:ACTIONS]]
            if len(run.actions) > ACTIONS:
                rows.append((what, "", f"and {len(run.actions) - ACTIONS} more", "", ""))
    if not rows:
        return None
    return Table(
        caption="Every action of the runs with the most extraneous ones",
        columns=(Column(head="run", name=True), Column(head="step", right=True), Column(head="action", name=True),
                 Column(head="verdict, by"), Column(head="because")),
        rows=tuple(rows),
        grouped=True,
    )  # fmt: skip


def _said(a: ActionVerdict) -> tuple[str, str]:
    verdict = {True: "relevant", False: "extraneous", None: "not known"}[a.relevant]
    other = [s for s, r in a.others.items() if r != a.relevant]
    apart = f" (not: {', '.join(clean(s) for s in other)})" if other else ""
    return f"{verdict}, {a.source or 'nobody'}{apart}", clip(clean(a.why), 70)
