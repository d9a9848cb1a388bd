"""Intent fidelity from close by: each action's verdict, its source, and how far the sources agree (METHODS 5, D2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seatrial.records import ActionVerdict, DimensionValue, Scorecard
from seatrial.report import numbers
from seatrial.report.section import Column, Section, Table
from seatrial.report.text import clean, clip, name

RUNS = 2
ACTIONS = 30
SAYS = {True: "relevant", False: "extraneous", None: "not known"}


def relevance(cards: Sequence[Scorecard]) -> Section | None:
    """Agreement of the sources for each agent, and the actions of its least faithful runs."""
    found = [(c, c.dimensions["D2"]) for c in cards if "D2" in c.dimensions]
    rows = [
        (name(card.agent), *_agreement(pair, held))
        for card, d2 in found for pair, held in (d2.detail.get("agreement") or {}).items()
    ]  # fmt: skip
    shown = [_actions(card, v) for card, d2 in found for v in d2.worst[:RUNS] if v.actions]
    if not rows and not shown:
        return None
    agreement = Table(
        caption="How far two sources agree on the same actions: share, and Cohen's kappa with its interval over tasks",
        columns=(
            Column(head="agent", name=True),
            Column(head="sources"),
            Column(head="actions", right=True),
            Column(head="agree", right=True),
            Column(head="kappa", right=True),
        ),
        rows=tuple(rows),
        grouped=True,
    )
    return Section(
        heading="Relevance of actions, by source",
        folded=True,
        paragraphs=(
            "Believed in this order: a person's annotation, the task's intent specification, ablation replay joined "
            "with data flow, a validated judge. What the others say stands beside it.",
        ),
        tables=(*((agreement,) if rows else ()), *shown),
        key="scorecard-actions",
    )


def _agreement(pair: str, held: dict[str, Any]) -> tuple[str | None, ...]:
    kappa, low, high = held.get("kappa"), held.get("low"), held.get("high")
    told = None if kappa is None else numbers.number(kappa)
    if told is not None and low is not None and high is not None:
        told = f"{told} {numbers.interval(low, high)}"
    agree = held.get("agree")
    shown = pair.replace("~", " and ").replace("_", " ")
    return shown, str(held.get("n", 0)), None if agree is None else numbers.number(agree, "percent"), told


def _actions(card: Scorecard, v: DimensionValue) -> Table:
    more = f"; {len(v.actions) - ACTIONS} more (--values --json lists all)" if len(v.actions) > ACTIONS else ""
    return Table(
        caption=f"{name(card.agent)}, {name(v.task)}, run {v.trial}: {clean(v.why)}{more}",
        columns=(
            Column(head="step", right=True),
            Column(head="tool", name=True),
            Column(head="verdict"),
            Column(head="by"),
            Column(head="because"),
        ),
        rows=tuple(_row(a) for a in v.actions[:ACTIONS]),
        only="page",
    )


def _row(a: ActionVerdict) -> tuple[str | None, ...]:
    others = ", ".join(f"{source.replace('_', ' ')} says {SAYS[said]}" for source, said in a.others.items())
    why = clip(clean(a.why), 90) + (f" ({others})" if others else "")
    source = a.source.replace("_", " ") if a.source else None
    return str(a.step), clip(name(a.tool), 28), SAYS[a.relevant], source, why
