"""Each task type's own ranking, compact (METHODS 3.9)."""

from __future__ import annotations

import re

import msgspec

from seatrial.records import ModelRow, Ranking
from seatrial.report import numbers, words
from seatrial.report.chapters import answer
from seatrial.report.chapters.measures import MODEL, listed
from seatrial.report.section import Chart, Column, Mark, Panel, Section, Table
from seatrial.report.text import clean, name

_COUNTED = re.compile(r"^[\d.,]+ effective clusters, (fewer than \d+)")


def by_type(r: Ranking) -> Section | None:
    """One section per grouping (task type, ...); None where there is none."""
    parts = [_grouping(r, field, groups) for field, groups in r.by.items() if groups]
    return None if not parts else parts[0] if len(parts) == 1 else Section(heading="By group", parts=tuple(parts))


def _grouping(r: Ranking, field: str, groups: dict[str, Ranking]) -> Section:
    title = words.plain_name(clean(field)).lower()
    holm = r.robustness.get(f"p_holm_by_{field}")
    adjusted = holm if isinstance(holm, dict) else {}
    rows = [
        _row(sub, value, m, adjusted.get(value, {}), bool(adjusted))
        for value, sub in groups.items()
        for m in answer.ordered(sub)
    ]
    panels = tuple(_panel(sub, value) for value, sub in groups.items() if any(m.net_improvement for m in sub.models))
    points = "Points" if words.outcome_unit(r) == "points" else "Net improvement"
    table = Table(
        caption=f"Net improvement by {title}",
        grouped=True,
        columns=(
            Column(head=words.plain_name(title), name=True),
            MODEL,
            Column(head="Rank", right=True),
            Column(head=points, right=True),
            *((Column(head="p (Holm)", right=True),) if adjusted else ()),
            Column(head="Mean", right=True),
            Column(head="Sessions", right=True),
            Column(head="G*", right=True),
        ),
        rows=tuple(rows),
    )
    remarks = _remarks(groups)
    return Section(
        key="by",
        heading=f"By {title}",
        paragraphs=(_multiplicity(r, title, len(groups), bool(adjusted)),),
        charts=(_chart(title, panels),) if panels else (),
        tables=(table,),
        notes=_reasons(r, groups),
        parts=(Section(heading=f"Remarks by {title}", items=remarks, folded=True, only="page"),) if remarks else (),
    )


def _multiplicity(r: Ranking, title: str, n: int, adjusted: bool) -> str:
    text = (
        f"{n} × {len(r.models)} comparisons: with so many, some look large by chance. Intervals and ranks hold within "
        f"one {title}, not over all of them"
    )
    return text + ("; p is adjusted over all of them." if adjusted else ".")


def _row(
    sub: Ranking, value: str, m: ModelRow, adjusted: dict[str, float | None], with_p: bool
) -> tuple[str | None, ...]:
    unit = words.outcome_unit(sub)
    return (
        name(value),
        name(m.model),
        None if m.rank is None else numbers.rank(m.rank),
        numbers.estimate(m.net_improvement, unit) if m.net_improvement else None,
        *((numbers.p_value(adjusted.get(m.model)),) if with_p else ()),
        numbers.number(m.mean.value, words.mean_unit(sub)) if m.mean else None,
        numbers.count(m.n_sessions),
        numbers.effective(m.g_effective),
    )


def _panel(sub: Ranking, value: str) -> Panel:
    rows = answer.ordered(sub)
    marks = []
    for m in rows:
        e = m.net_improvement
        text = numbers.number(e.value, words.outcome_unit(sub)) if e else ""
        marks.append(msgspec.structs.replace(answer.mark(sub, m), text=text, why="n/a"))
    sessions = numbers.count(sum(m.n_sessions for m in rows))
    kept: tuple[Mark, ...] = tuple(marks)
    return Panel(title=f"{name(value)} · {sessions} sessions", unit=words.outcome_unit(sub), zero=0.0, marks=kept)


def _chart(title: str, panels: tuple[Panel, ...]) -> Chart:
    return Chart(
        title=f"Net improvement by {title}",
        description=f"One small chart per {title}, one row per model; the table below has all values.",
        panels=panels,
        legend=(
            ("value", "estimate"),
            ("interval", "interval, this model and type alone"),
            ("band", f"all models of the {title} together"),
            ("hollow", "no defensible interval"),
        ),
    )


def _reasons(r: Ranking, groups: dict[str, Ranking]) -> tuple[str, ...]:
    """Why cells are empty, each reason once with the types that it concerns."""
    found: dict[str, list[str]] = {}
    for value, sub in groups.items():
        reasons = [w for m in sub.models for w in (m.why, m.net_improvement.why if m.net_improvement else None) if w]
        if sub.design.verdict != r.design.verdict:
            reasons.insert(0, f"design verdict {words.VERDICT_NAME[sub.design.verdict].lower()}")
        for why in dict.fromkeys(_COUNTED.sub(r"\1 effective clusters", clean(why)) for why in reasons):
            found.setdefault(why, []).append(name(value))
    return listed(found)


def _remarks(groups: dict[str, Ranking]) -> tuple[str, ...]:
    return tuple(f"{name(value)}: {clean(text)}" for value, sub in groups.items() for text in sub.warnings)
