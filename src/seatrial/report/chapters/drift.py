"""Drift as sections: what changed since the baseline, whether it could be chance, a board for any number of looks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from seatrial.records import Estimate
from seatrial.records.drift import Baseline, Change, DeployMark, Drift, ModelChange, Watched, Window
from seatrial.report import numbers
from seatrial.report.section import Chart, Column, Mark, Panel, Section, Table
from seatrial.report.text import clip, name

MOST_BINS = 4


def drift(d: Drift) -> Section:
    """The whole answer."""
    parts = [_changes(d.changes, d.level)]
    if d.models:
        parts.append(_models(d.models))
    if d.board:
        parts.append(_board(d.board))
    if d.marks:
        parts.append(_marks(d.marks))
    notes = [f"{x.n} {x.what} left out: {x.why}" for x in d.dropped]
    notes.append(
        "p is adjusted over all measures and the classifier (Holm); whole users move in the permutations, whole users "
        "are deleted"
    )
    return Section(
        key="drift",
        heading="What changed",
        paragraphs=(_summary(d), *(f"Note: {w}." for w in d.warnings)),
        items=tuple(f"The baseline counts as stale: {why}." for why in d.stale),
        parts=tuple(parts),
        notes=tuple(notes),
    )


def _summary(d: Drift) -> str:
    moved = [c for c in d.changes if c.changed]
    windows = f"{_window(d.before)} against {_window(d.now)}."
    # Results kept before the classifier's p was adjusted have only its own.
    p = d.separable_p if d.separable_p_holm is None else d.separable_p_holm
    apart = p is not None and p <= 1 - d.level
    if moved:
        named = numbers.some([f"{c.measure} ({c.said})" for c in moved])
        said = f"{len(moved)} of {len(d.changes)} measures changed: {named}."
    elif apart:
        said = "No single measure changed by more than chance would do."
    else:
        said = "Nothing changed by more than chance would do."
    if d.separable is not None:
        said += (
            f" A classifier {'can' if apart else 'cannot'} tell the windows apart (area under the curve "
            f"{d.separable:.2f}, p {numbers.p_value(p)})."
        )
    return f"{windows} {said}"


def _window(w: Window) -> str:
    return f"{minute(w.start)} to {minute(w.end)} ({w.n_sessions} sessions, {w.n_clusters} clusters)"


def minute(seconds: float) -> str:
    """``2026-11-30 14:00``, in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(sep=" ")[:16]


def _changes(changes: Sequence[Change], level: float) -> Section:
    head = (
        Column(head="measure"),
        Column(head="before", right=True),
        Column(head="now", right=True),
        Column(head=f"change [{numbers.level(level)}]", right=True),
        Column(head="p (Holm)", right=True),
        Column(head="reading"),
    )
    rows = tuple(_row(c) for c in changes)
    return Section(
        heading="Measures",
        tables=(Table(caption="Both windows", columns=head, rows=rows), *_shares(changes)),
    )


def _row(c: Change) -> tuple[str | None, ...]:
    reading = c.said if c.p_value is not None else (c.why or c.said)
    if c.marks:
        reading += f" ({numbers.some([name(m) for m in c.marks], 2)})"
    if c.kind == "mix":
        return (
            c.measure,
            "-",
            "-",
            f"PSI {c.psi:.3f}" if c.psi is not None else None,
            numbers.p_value(c.p_holm),
            reading,
        )
    return (
        c.measure, _amount(c.before), _amount(c.now), _spread(c.difference),
        numbers.p_value(c.p_holm) if c.p_holm is not None else None, reading,
    )  # fmt: skip


def _amount(x: float | None) -> str | None:
    """Large amounts without decimals: tokens and seconds stand in one column with shares."""
    if x is None:
        return None
    return f"{x:,.0f}".replace("-", "−") if abs(x) >= 1_000 else numbers.number(x)


def _spread(e: Estimate | None) -> str | None:
    if e is None or e.low is None or max(abs(e.low), abs(e.high or 0.0)) < 1_000:
        return numbers.stacked(e)
    return f"{_amount(e.value)}\n[{_amount(e.low)}, {_amount(e.high)}]"


def _shares(changes: Sequence[Change]) -> tuple[Table, ...]:
    """The bins of each mix that moved most."""
    rows = []
    for change in changes:
        largest = sorted(change.shares.items(), key=lambda item: -abs(item[1][1] - item[1][0]))[:MOST_BINS]
        rows += [(change.measure, clip(name(b), 40), f"{x:.0%}", f"{y:.0%}") for b, (x, y) in largest]
    if not rows:
        return ()
    head = (
        Column(head="mix"), Column(head="part", name=True), Column(head="before", right=True),
        Column(head="now", right=True),
    )  # fmt: skip
    return (Table(caption="Parts that moved most", columns=head, rows=tuple(rows), grouped=True),)


def _models(models: Sequence[ModelChange]) -> Section:
    marks = tuple(
        Mark(
            label=m.model,
            value=m.change.value if m.change else None,
            low=m.change.low if m.change else None,
            high=m.change.high if m.change else None,
            why=m.why,
        )
        for m in models
    )
    chart = Chart(
        title="Change of net improvement",
        description="Net improvement now minus net improvement then, over the models that are in both windows.",
        panels=(Panel(marks=marks, unit="points", zero=0.0),),
        legend=(("value", "change"), ("interval", "interval")),
        less="worse than then",
        more="better than then",
    )
    head = (
        Column(head="model", name=True), Column(head="then", right=True), Column(head="now", right=True),
        Column(head="change", right=True),
    )  # fmt: skip
    rows = tuple(
        (
            name(m.model), numbers.stacked(m.before, "points"), numbers.stacked(m.now, "points"),
            numbers.stacked(m.change, "points") if m.change else m.why,
        )
        for m in models
    )  # fmt: skip
    charts = (chart,) if any(m.change for m in models) else ()
    return Section(heading="Models", charts=charts, tables=(Table(caption="Net improvement", columns=head, rows=rows),))


def _board(board: Sequence[Watched]) -> Section:
    ordered = sorted(board, key=lambda w: -w.value)
    head = (
        Column(head="model", name=True),
        Column(head="net improvement", right=True),
        Column(head="limits", right=True),
    )
    rows = tuple(
        (
            name(w.model), numbers.number(w.value, "points"),
            numbers.interval(w.low, w.high, "points") if w.low is not None else w.why,
        )
        for w in ordered
    )  # fmt: skip
    return Section(
        heading="A board for any number of looks",
        paragraphs=("These limits hold at every look together, for all models, however often you look.",),
        tables=(Table(caption="Limits", columns=head, rows=rows),),
        notes=("a user enters once, when the window in which they are followed has closed",),
    )


def _marks(marks: Sequence[DeployMark]) -> Section:
    head = (Column(head="time (UTC)"), Column(head="deploy", name=True), Column(head="known from"))
    rows = tuple((minute(m.time), clip(name(m.text), 50), m.by) for m in marks)
    return Section(heading="Deploys in these windows", tables=(Table(caption="Deploys", columns=head, rows=rows),))


def baseline(old: Baseline | None, new: Baseline, sample: Sequence[Mapping[str, Any]]) -> Section:
    """An old and a new baseline side by side."""
    names = sorted({*new.models, *(old.models if old else ())})
    head = (
        Column(head="model", name=True), Column(head="baseline before", right=True),
        Column(head="baseline now", right=True),
    )  # fmt: skip
    rows = tuple(
        (
            name(m), numbers.stacked(old.models.get(m), "points") if old else None,
            numbers.stacked(new.models.get(m), "points"),
        )
        for m in names
    )  # fmt: skip
    about = [
        f"{which}: {minute(b.start)} to {minute(b.end)}, {b.n_sessions} sessions, data version {b.data_version}, "
        f"evaluation set of {b.n_sampled} (seed {b.seed})"
        for which, b in (("before", old), ("now", new))
        if b is not None
    ]
    return Section(
        heading="Baseline",
        paragraphs=(
            "The first baseline." if old is None else "The old baseline is kept; both stand below.",
            f"An evaluation set of {len(sample)} sessions was drawn evenly over {numbers.join(list(new.strata))}.",
        ),
        items=tuple(about),
        tables=(Table(caption=f"Net improvement ({new.outcome})", columns=head, rows=rows),),
    )


def baselines(kept: Sequence[Baseline]) -> Section:
    """Every baseline, newest first; the first is in force."""
    head = (
        Column(head="made (UTC)"), Column(head="window (UTC)"), Column(head="sessions", right=True),
        Column(head="evaluation set", right=True), Column(head="data version"),
    )  # fmt: skip
    rows = tuple(
        (
            minute(b.made), f"{minute(b.start)} to {minute(b.end)}", str(b.n_sessions), str(b.n_sampled),
            b.data_version,
        )
        for b in kept
    )  # fmt: skip
    said = "The first is in force." if kept else "There is none; 'seatrial baseline refresh' makes one."
    return Section(heading="Baselines", paragraphs=(said,), tables=(Table(caption="Kept", columns=head, rows=rows),))
