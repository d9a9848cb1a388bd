"""A contrast of pairs to sections: the four cells, the placebo floor, interaction, timing, and what a refresh is."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from seatrial.records import Contrast, ContrastRow, Overlap
from seatrial.report import numbers
from seatrial.report.section import Chart, Column, Mark, Panel, Section, Table
from seatrial.report.text import clean, name


def contrast(c: Contrast) -> tuple[Section, ...]:
    """All sections on a contrast, in reading order."""
    c, whose = _plain(c)
    found = (_answer(c, whose), _cells(c), _placebo(c), _compared(c), _overlaps(c), _reading())
    return tuple(s for s in found if s is not None)


def _plain(c: Contrast) -> tuple[Contrast, str]:
    """The contrast without the names of agent and cohort where there is only one, and those names in words."""
    same = {}
    for field in ("agent", "cohort"):
        values = {getattr(r, field) for r in c.rows}
        if len(values) == 1 and None not in values:
            same[field] = values.pop()
    if not same:
        return c, ""
    blank = dict.fromkeys(same)
    parts = {
        name: tuple(msgspec.structs.replace(one, **blank) for one in getattr(c, name))
        for name in ("rows", "interactions", "timing", "overlaps", "decompositions")
    }
    told = ", ".join(f"{field} {name(value)}" for field, value in same.items())
    return msgspec.structs.replace(c, **parts), f" All are of {told}."


def _label(r: ContrastRow) -> str:
    return " ".join(filter(None, (r.agent, r.cohort, r.operation)))


def _answer(c: Contrast, whose: str) -> Section:
    best = max(c.rows, key=lambda r: r.effect.value)
    worst = min(c.rows, key=lambda r: r.effect.value)
    dropped = [f"{d.what}: {d.why}" for d in c.dropped]
    return Section(
        heading="What does recovery rescue, and what does it harm?",
        paragraphs=(
            f"{_of(c.pairs, 'pair')} of {_of(c.tasks, 'task')}: each compares carrying on with an "
            f"operation and without it, from one saved state.{whose}",
            f"Effect: {_told(best)}."
            if len(c.rows) == 1
            else f"Highest effect: {_told(best)}. Lowest: {_told(worst)}.",
        ),
        items=tuple(clean(w) for w in (*c.warnings, *dropped)),
        place="answer",
        key="recovery",
    )


def _of(n: int, what: str) -> str:
    return f"{numbers.count(n)} {what}{'' if n == 1 else 's'}"


def _told(r: ContrastRow) -> str:
    return (
        f"{name(_label(r))} under {name(r.condition)} at delay {r.delay}, "
        f"{numbers.estimate(r.effect, 'points')} points (rescue {numbers.number(r.rescue, 'size')}, harm "
        f"{numbers.number(r.harm, 'size')})"
    )


def cells(c: Contrast) -> tuple[tuple[Table, ...], tuple[Chart, ...]]:
    """The four cells as tables and charts, for other reports."""
    section = _cells(_plain(c)[0])
    return section.tables, section.charts


def _cells(c: Contrast) -> Section:
    head = (
        Column(head="operation", name=True),
        Column(head="condition", name=True),
        Column(head="delay", right=True),
        Column(head="tasks", right=True),
        Column(head="stays ok", right=True),
        Column(head="rescue", right=True),
        Column(head="harm", right=True),
        Column(head="stays bad", right=True),
        Column(head=f"effect [{numbers.level(c.level)}]", right=True),
        Column(head="p", right=True),
    )
    rows = tuple(
        (
            _label(r),
            r.condition,
            str(r.delay),
            numbers.count(r.n),
            numbers.number(r.stable_success, "percent"),
            numbers.number(r.rescue, "percent"),
            numbers.number(r.harm, "percent"),
            numbers.number(r.stable_failure, "percent"),
            numbers.stacked(r.effect, "points"),
            numbers.p_value(r.p_value),
        )
        for r in c.rows
    )
    ended = [r for r in c.rows if r.without_terminated is not None]
    tables = [
        Table(
            caption="Four cells by operation, condition and delay, as shares of tasks",
            columns=head,
            rows=rows,
            grouped=True,
        )
    ]
    if ended:
        tables.append(_terminated(ended))
    return Section(heading="The four cells", charts=_curves(c), tables=tuple(tables), key="cells")


def _terminated(rows: Sequence[ContrastRow]) -> Table:
    head = (
        Column(head="operation", name=True),
        Column(head="condition", name=True),
        Column(head="delay", right=True),
        Column(head="carried forward", right=True),
        Column(head="left out", right=True),
    )
    return Table(
        caption="Runs that had ended before the delay was over: effect with them carried forward, and without them",
        columns=head,
        rows=tuple(
            (
                _label(r),
                r.condition,
                str(r.delay),
                f"{numbers.estimate(r.effect, 'points')}, n {r.n}",
                f"{numbers.estimate(r.without_terminated, 'points')}, n {r.n - r.n_terminated}",
            )
            for r in rows
        ),
    )


def _curves(c: Contrast) -> tuple[Chart, ...]:
    """Effect by delay with rescue and harm behind it, one panel per condition, one chart per operation."""
    out = []
    for label in dict.fromkeys(_label(r) for r in c.rows):
        rows = [r for r in c.rows if _label(r) == label]
        ends = [v for r in rows for v in (-r.harm, r.rescue, r.effect.low, r.effect.high) if v is not None]
        domain = (min(ends) - 0.01, max(ends) + 0.01)
        panels = tuple(
            Panel(
                title=name(condition),
                unit="points",
                zero=0.0,
                domain=domain,
                marks=tuple(
                    Mark(
                        label=f"delay {r.delay}",
                        value=r.effect.value,
                        low=r.effect.low,
                        high=r.effect.high,
                        band_low=-r.harm,
                        band_high=r.rescue,
                        text=numbers.number(r.effect.value, "points"),
                    )
                    for r in rows
                    if r.condition == condition
                ),
            )
            for condition in dict.fromkeys(r.condition for r in rows)
        )
        out.append(
            Chart(
                title=f"Rescue and harm by delay: {name(label)}",
                description="One panel per condition, one row per delay. The grey range reaches from harm on the "
                "left of zero to rescue on the right; the point is the effect with its interval, in points.",
                panels=panels,
                bar=True,
                legend=(("value", "effect"), ("interval", "its interval"), ("bar", "harm to rescue")),
                less="harm",
                more="rescue",
            )
        )
    return tuple(out)


def _placebo(c: Contrast) -> Section | None:
    rows = []
    for r in c.rows:
        if r.placebo is not None:
            p = r.placebo
            rows.append(
                (
                    _label(r),
                    r.condition,
                    str(r.delay),
                    numbers.count(p["n"]),
                    numbers.number(p["floor"], "percent"),
                    numbers.estimate(p["rescue_excess"], "points"),
                    numbers.estimate(p["harm_excess"], "points"),
                )
            )
    if not rows:
        return None
    sources = sorted({r.placebo["source"] for r in c.rows if r.placebo})
    head = (
        Column(head="operation", name=True),
        Column(head="condition", name=True),
        Column(head="delay", right=True),
        Column(head="tasks", right=True),
        Column(head="floor", right=True),
        Column(head="rescue above it", right=True),
        Column(head="harm above it", right=True),
    )
    return Section(
        heading="How much of it is noise?",
        paragraphs=(
            "The floor is what two continuations without recovery rescue (and harm) by chance alone; it was measured "
            f"with {numbers.join(sources)}. What the operation adds may be negative.",
        ),
        tables=(Table(caption="Rescue and harm above the placebo floor", columns=head, rows=tuple(rows)),),
        key="placebo",
    )


def _compared(c: Contrast) -> Section | None:
    head = (
        Column(head="operation", name=True),
        Column(head="condition", name=True),
        Column(head="delay", right=True),
        Column(head="tasks", right=True),
        Column(head="difference", right=True),
        Column(head="p", right=True),
    )
    tables = []
    if c.interactions:
        rows = tuple(
            (
                " ".join(filter(None, (i.agent, i.cohort, i.operation))),
                i.condition,
                str(i.delay),
                numbers.count(i.difference.n),
                numbers.estimate(i.difference, "points"),
                numbers.p_value(i.p_value),
            )
            for i in c.interactions
        )
        tables.append(
            Table(
                caption="Difference between the effect under a condition and on clean observations, paired by task",
                columns=head,
                rows=rows,
            )
        )
    if c.timing:
        since = tuple(
            (
                " ".join(filter(None, (t.agent, t.cohort, t.operation))),
                t.condition,
                f"{t.delay} - {t.since}",
                numbers.count(t.difference.n),
                numbers.estimate(t.difference, "points"),
            )
            for t in c.timing
        )
        tables.append(
            Table(
                caption="Difference between the effect at a delay and at the earliest one, paired by task",
                columns=head[:-1],
                rows=since,
            )
        )
    if not tables:
        return None
    return Section(heading="Does it depend on the observation and on timing?", tables=tuple(tables), key="interaction")


def _overlaps(c: Contrast) -> Section | None:
    if not c.overlaps:
        return None
    head = (
        Column(head="operations", name=True),
        Column(head="condition", name=True),
        Column(head="delay", right=True),
        Column(head="tasks", right=True),
        Column(head="agree", right=True),
        Column(head="both rescue", right=True),
        Column(head="only 1st R/H", right=True),
        Column(head="only 2nd R/H", right=True),
        Column(head="1st - 2nd", right=True),
    )
    rows = tuple(
        (
            f"{o.first} / {o.second}",
            o.condition,
            str(o.delay),
            numbers.count(o.n),
            _n(o.agree),
            _n(o.shared_rescues),
            _both(o, True),
            _both(o, False),
            numbers.stacked(o.difference, "points"),
        )
        for o in c.overlaps
    )
    tables = [
        Table(
            caption="Two operations on the same tasks: rescues (R) and harms (H) they share and do not",
            columns=head,
            rows=rows,
        )
    ]
    if c.decompositions:
        columns = (
            Column(head="operation", name=True),
            Column(head="condition", name=True),
            Column(head="delay", right=True),
            Column(head="tasks", right=True),
            Column(head="whole", right=True),
            Column(head="the act", right=True),
            Column(head="the content", right=True),
        )
        tables.append(
            Table(
                caption="A refresh taken apart: the act of looking, and what the look shows",
                columns=columns,
                rows=tuple(
                    (
                        d.operation,
                        d.condition,
                        str(d.delay),
                        numbers.count(d.n),
                        numbers.stacked(d.total, "points"),
                        numbers.stacked(d.act, "points"),
                        numbers.stacked(d.content, "points"),
                    )
                    for d in c.decompositions
                ),
            )
        )
    return Section(heading="Why does it help?", tables=tuple(tables), key="overlap")


def _n(value: float) -> str:
    return numbers.count(value) if value == round(value) else f"{value:.1f}"


def _both(o: Overlap, first: bool) -> str:
    found = o.first_only if first else o.second_only
    return f"{_n(found['R'])}/{_n(found['H'])}"


def _reading() -> Section:
    return Section(
        heading="How to read this",
        folded=True,
        items=(
            "rescue: fails without the operation and passes with it; harm: the reverse; effect: rescue minus harm",
            "the task is the unit: replays are averaged inside it; intervals are bootstraps over tasks, p-values flip "
            "signs over tasks; without any differing pair the interval is the exact one for zero events",
            "clean: nothing was altered; stale: an earlier observation was shown again; missing: it was withheld",
        ),
        only="page",
        key="reading",
    )
