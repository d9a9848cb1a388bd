"""Scorecards as sections: seven bars with intervals, the worst evidence, why attempts failed, side by side by agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from seatrial.records import DimensionResult, DimensionValue, Estimate, Scorecard
from seatrial.report import numbers, words
from seatrial.report.chapters import scorecard_actions as actions
from seatrial.report.chapters import scorecard_more as more
from seatrial.report.chapters.relevance import relevance
from seatrial.report.chapters.scorecard_more import level, names_of
from seatrial.report.chapters.suite import counted
from seatrial.report.section import Chart, Column, Mark, Panel, Section, Table
from seatrial.report.text import clean, clip, name

WIDE = 24
"""Columns of a bar in a terminal."""
SHOWN = 12
ASKS = {
    "D1": "does it finish?",
    "D2": "did it do what was asked, and only that?",
    "D3": "would it come out the same again?",
    "D4": "what does a failed run cost to put right?",
    "D5": "do the logged actions lead there again?",
    "D6": "does it stop where a person must decide?",
    "D7": "does it leave a complete, untampered record?",
}


def scorecards(
    cards: Sequence[Scorecard],
    *,
    correlations: Mapping[str, float | None] | None = None,
    profiles: Mapping[str, Mapping[str, more.Weighed]] | None = None,
    separated: Mapping[str, Sequence[Any]] | None = None,
) -> tuple[Section, ...]:
    """All sections of one or several agents' scorecards, in reading order."""
    found = (
        overview(cards),
        separation(cards, separated or {}),
        evidence(cards),
        relevance(cards),
        actions.relevance(cards),
        causes(cards),
        repository(cards),
        more.beside(cards),
        more.rubric(cards),
        more.unmeasured(cards),
        more.weighing(profiles or {}),
        more.dependence(correlations if correlations is not None else cards[0].correlations),
        more.reading(cards),
    )
    return tuple(s for s in found if s is not None)


def overview(cards: Sequence[Scorecard]) -> Section:
    """Seven bars with intervals, one column per agent."""
    names = names_of(cards)
    about = [f"{name(c.agent)}: {c.tasks} tasks, {_runs(c)} each. {counted(c.counts)}" for c in cards]
    return Section(
        heading="Scorecard" if len(cards) == 1 else "Scorecards, side by side",
        paragraphs=(
            *about,
            "Seven measurements, each from 0 to 1 with its interval over tasks, never blended. What could not be "
            "measured has no value, and the reason stands in its place.",
        ),
        charts=(_chart(cards, names),),
        tables=(_bars(cards[0], names), _plain_bars(cards[0], names)) if len(cards) == 1 else _side(cards, names),
        items=tuple(dict.fromkeys(words.sentence(clean(w)) for c in cards for w in c.warnings)),
        key="scorecard",
    )


def _runs(c: Scorecard) -> str:
    more_than = "" if c.k * c.tasks == c.counts.n_scored else " or more"
    return f"{c.k}{more_than} scored run{'' if c.k == 1 and not more_than else 's'}"


def _label(cards: Sequence[Scorecard], dimension: str) -> str:
    found = next(c.dimensions[dimension] for c in cards if dimension in c.dimensions)
    return f"{dimension} {clean(found.name)}"


def _chart(cards: Sequence[Scorecard], names: Sequence[str]) -> Chart:
    panels = []
    for card in cards:
        marks = []
        for d in names:
            found = card.dimensions.get(d)
            e = found.estimate if found is not None else None
            marks.append(
                Mark(
                    label=_label(cards, d), value=e.value if e else None, low=e.low if e else None,
                    high=e.high if e else None, text=numbers.estimate(e) if e else "",
                    why="not measured",
                )
            )  # fmt: skip
        panels.append(Panel(marks=tuple(marks), unit="plain", title=name(card.agent), domain=(0.0, 1.0)))
    return Chart(
        title="Seven dimensions",
        description="Each dimension's value from 0 to 1 with its interval over tasks; the table below has all values.",
        panels=tuple(panels),
        legend=(("value", "estimate"), ("interval", "interval")),
        less="worse",
        more="better",
    )


def bar(e: Estimate | None, columns: int = WIDE) -> str:
    """A bar for a fixed-width font: thick up to the value, thin on to the end of the interval."""
    if e is None:
        return ""
    filled = round(e.value * columns)
    upto = round((e.high if e.high is not None else e.value) * columns)
    start = round((e.low if e.low is not None else e.value) * columns)
    cells = ["━" if i < filled else "╌" if i < upto else " " for i in range(columns)]
    if e.low is not None and start < filled:
        cells[start:filled] = ["─"] * (filled - start)
    if 0 < filled <= columns:
        cells[filled - 1] = "●"
    return "".join(cells).rstrip() or "●"


def _bars(card: Scorecard, names: Sequence[str]) -> Table:
    rows = []
    for d in names:
        found = card.dimensions[d]
        e = found.estimate
        value = numbers.estimate(e) if e else None
        said = bar(e) if e else clip(clean(found.why), 48)
        rows.append((_label([card], d), said, value, level(found.level)))
    return Table(
        caption=f"{name(card.agent)}: a point at the value, thin and dashed lines to the ends of its interval",
        columns=(
            Column(head="dimension"),
            Column(head="0 to 1"),
            Column(head="value", right=True),
            Column(head="level", right=True),
        ),
        rows=tuple(rows),
        only="terminal",
    )


def _plain_bars(card: Scorecard, names: Sequence[str]) -> Table:
    rows = []
    for d in names:
        found = card.dimensions[d]
        told = clip(clean(found.why), 90) if found.estimate is None else ASKS.get(d, "")
        rows.append((_label([card], d), numbers.stacked(found.estimate), level(found.level), str(found.n_runs), told))
    return Table(
        caption="Values, with the rubric level of the published source",
        columns=(
            Column(head="dimension"),
            Column(head="value", right=True),
            Column(head="level", right=True),
            Column(head="runs", right=True),
            Column(head="asks, or why there is no value"),
        ),
        rows=tuple(rows),
        only="page",
    )


def _side(cards: Sequence[Scorecard], names: Sequence[str]) -> tuple[Table, ...]:
    rows = []
    for d in names:
        cells = [_cell(c.dimensions.get(d)) for c in cards]
        rows.append((f"{_label(cards, d)}\n{ASKS.get(d, '')}".rstrip(), *cells))
    return (
        Table(
            caption="By dimension and agent: the value, its interval over tasks, a bar from 0 to 1",
            columns=(Column(head="dimension"), *(Column(head=clip(name(c.agent), 28), right=True) for c in cards)),
            rows=tuple(rows),
        ),
    )


def _cell(found: DimensionResult | None) -> str | None:
    if found is None:
        return None
    if found.estimate is None:
        return f"n/a\n{clip(clean(found.why), 40)}"
    return f"{numbers.stacked(found.estimate)}\n{bar(found.estimate, 16)}"


def separation(cards: Sequence[Scorecard], found: Mapping[str, Sequence[Any]]) -> Section | None:
    """Which dimensions tell the first agent from the others, at the tasks that both have."""
    if not found:
        return None
    first = name(cards[0].agent)
    says, rows = [], []
    for other, dimensions in found.items():
        apart = [d.dimension for d in dimensions if d.separated]
        says.append(f"{first} and {name(other)} are told apart by {numbers.join(apart) if apart else 'nothing here'}.")
        for d in dimensions:
            said = "yes" if d.separated else clean(d.why) or "no"
            rows.append((name(other), _label(cards, d.dimension), numbers.number(d.difference, "units"),
                         numbers.p_value(d.p_holm), str(d.tasks), said))  # fmt: skip
    return Section(
        heading="What separates them",
        paragraphs=(
            *says,
            f"Difference: {first} minus the other. Runs are exchanged inside each task to see what chance gives, so "
            "the answer is about these tasks; p is adjusted over the dimensions (Holm).",
        ),
        tables=(
            Table(
                caption="Dimension by dimension",
                columns=(
                    Column(head="against", name=True),
                    Column(head="dimension"),
                    Column(head="difference", right=True),
                    Column(head="p", right=True),
                    Column(head="tasks", right=True),
                    Column(head="separated"),
                ),
                rows=tuple(rows),
                grouped=True,
            ),
        ),
        key="scorecard-separation",
    )


def evidence(cards: Sequence[Scorecard]) -> Section | None:
    """What lowered each dimension: the worst runs, with the trace to look at."""
    rows = []
    for card in cards:
        for d in names_of([card]):
            rows += [
                ((name(card.agent), d, *_row(v)) if len(cards) > 1 else (d, *_row(v)))
                for v in card.dimensions[d].worst[: 2 if len(cards) > 1 else 3]
            ]
    if not rows:
        return None
    heads = ("agent", "", "task", "run", "what") if len(cards) > 1 else ("", "task", "run", "what")
    traces = [v.trace for c in cards for d in names_of([c]) for v in c.dimensions[d].worst[:1] if v.trace]
    return Section(
        heading="The worst evidence",
        tables=(
            Table(
                caption="Of each dimension the runs that lowered it most",
                columns=tuple(Column(head=h, right=h == "run", name=h in ("agent", "task")) for h in heads),
                rows=tuple(rows),
            ),
        ),
        notes=(f"look at one: seatrial sessions show {clean(traces[0])}",) if traces else (),
        key="scorecard-evidence",
    )


def _row(v: DimensionValue) -> tuple[str, str, str]:
    worst = max(v.findings, key=lambda f: f.weight)
    at = "" if worst.step is None else f" (step {worst.step})"
    return clip(name(v.task), 28), str(v.trial), clip(clean(worst.what), 110) + at


def causes(cards: Sequence[Scorecard]) -> Section | None:
    """Why attempts failed, and how many failed before a success."""
    if not any(c.causes for c in cards):
        return None
    kinds = ("intent", "execution", "environment", "gate", "budget", "unknown")
    table = Table(
        caption="Failed attempts by cause: the first rule that finds evidence decides",
        columns=(Column(head="agent", name=True), *(Column(head=k, right=True) for k in kinds),
                 Column(head="failed", right=True)),
        rows=tuple(
            (name(c.agent), *(str(c.cause_counts.get(k, 0)) for k in kinds), str(len(c.causes))) for c in cards
        ),
    )  # fmt: skip
    shown = [(c, f) for c in cards for f in _one_each(c)]
    told = Table(
        caption="One of each cause",
        columns=(Column(head="agent", name=True), Column(head="cause"), Column(head="task", name=True),
                 Column(head="run", right=True), Column(head="evidence")),
        rows=tuple(
            (clip(name(c.agent), 24), f.cause, clip(name(f.task), 28), str(f.trial), clip(clean(f.why), 90))
            for c, f in shown[:SHOWN]
        ),
    )  # fmt: skip
    return Section(heading="Why attempts failed", tables=(table, told), items=tuple(_before(c) for c in cards),
                   key="scorecard-causes")  # fmt: skip


def _one_each(card: Scorecard) -> list[Any]:
    first: dict[str, Any] = {}
    for f in card.causes:
        first.setdefault(f.cause, f)
    return list(first.values())


def _before(card: Scorecard) -> str:
    told = [
        f"{n} tasks never passed" if k == "never" else f"{n} after {k} failed attempts" if k != "0" else f"{n} at once"
        for k, n in card.attempts_before_success.items()
    ]
    return f"{name(card.agent)}: first success of a task came {', '.join(told)}." if told else ""


def repository(cards: Sequence[Scorecard]) -> Section | None:
    """Files that nobody asked about, and tests that fail since."""
    rows = [(c, c.repository) for c in cards if c.repository]
    if not rows:
        return None
    return Section(
        heading="What was done to the repository",
        tables=(
            Table(
                caption="Runs that touched files outside their task, or broke tests that passed before",
                columns=(
                    Column(head="agent", name=True),
                    Column(head="runs", right=True),
                    Column(head="touched unrelated files", right=True),
                    Column(head="tests newly failing", right=True),
                    Column(head="which", name=True),
                ),
                rows=tuple(
                    (
                        name(c.agent), str(r["runs"]), str(r["touched_unrelated"]), str(r["broke_tests"]),
                        clip(clean(numbers.some([*r["unrelated_files"], *r["newly_failing"]], 4)), 60),
                    )
                    for c, r in rows
                ),
            ),
        ),
        key="scorecard-repository",
    )  # fmt: skip
