"""What is behind the answer: the sub-dimensions of METHODS 3.8."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from seatrial.records import ModelRow, Ranking
from seatrial.report import numbers, words
from seatrial.report.chapters import answer
from seatrial.report.section import Chart, Column, Mark, Panel, Section, Table
from seatrial.report.text import clean, name

MODEL = Column(head="Model", name=True)


def keys(maps: Iterable[dict[str, Any]], first: Iterable[str] = ()) -> list[str]:
    """The union of the maps' keys: `first` in its order, then the others by name, however they were stored."""
    met = {key for m in maps for key in m}
    known = [key for key in first if key in met]
    return known + sorted(met.difference(known))


def listed(found: dict[str, list[str]]) -> tuple[str, ...]:
    """Reasons with who they concern, equal reasons once."""
    return tuple(f"{why[:1].upper() + why[1:]}: {numbers.some(who)}" for why, who in found.items())


def dimensions(r: Ranking) -> Section | None:
    """Sub-dimensions (METHODS 3.8), with the composite beside them, never part of the ranking."""
    rows = answer.ordered(r)
    names = keys((m.dimensions for m in rows), words.DIMENSIONS)
    if not names:
        return None
    missing: dict[str, list[str]] = {}
    for m in rows:
        for key in names:
            d = m.dimensions.get(key)
            if d is not None and d.estimate is None and d.why:
                missing.setdefault(clean(d.why), []).append(f"{name(m.model)} ({words.dimension(key)[0].lower()})")
    meanings = [f"{label}: {means}" for key in names for label, _, means in (words.dimension(key),) if means]
    composite = _composite(rows)
    return Section(
        key="dimensions",
        heading="Sub-dimensions",
        paragraphs=("; ".join(meanings) + ".",) if meanings else (),
        charts=(_dimension_chart(rows, names),),
        tables=(
            Table(
                caption="Sub-dimensions by model: value, [interval], rank [low–high]",
                columns=(MODEL, *(Column(head=words.dimension(key)[0], right=True) for key in names)),
                rows=tuple((name(m.model), *(_dimension_cell(m, key) for key in names)) for m in rows),
            ),
            *composite,
            *_details(rows, names),
        ),
        notes=listed(missing)
        + (
            ("The composite is shown beside the ranking and never used for it: it contains the net improvement.",)
            if composite
            else ()
        ),
    )


def _dimension_cell(m: ModelRow, key: str) -> str | None:
    d = m.dimensions.get(key)
    if d is None or d.estimate is None:
        return None
    place = "" if d.rank is None else f"\nrank {numbers.rank(d.rank)}"
    return f"{numbers.stacked(d.estimate, words.dimension(key)[1])}{place}"


def _dimension_chart(rows: list[ModelRow], names: list[str]) -> Chart:
    panels = []
    for key in names:
        label, unit, _ = words.dimension(key)
        marks = []
        for m in rows:
            d = m.dimensions.get(key)
            e = d.estimate if d else None
            marks.append(
                Mark(
                    label=name(m.model),
                    value=e.value if e else None,
                    low=e.low if e else None,
                    high=e.high if e else None,
                    rank=d.rank if d else None,
                    text=numbers.number(e.value, unit) if e else "",
                    why="n/a",
                )
            )
        panels.append(
            Panel(
                marks=tuple(marks),
                unit=unit,
                title=label,
                zero=0.0 if unit == "points" else None,
                domain=(0.0, 1.0) if key in words.DIMENSIONS and unit != "points" else None,
            )
        )
    return Chart(
        title="Sub-dimensions by model",
        description="One small chart per sub-dimension, one row per model; the table below has all values.",
        panels=tuple(panels),
        legend=(("value", "estimate"), ("interval", "interval")),
    )


def _composite(rows: list[ModelRow]) -> tuple[Table, ...]:
    found = [(m, m.composite) for m in rows if m.composite]
    if not found:
        return ()
    parts = keys((c.get("parts", {}) for _, c in found), words.DIMENSIONS)
    weights = found[0][1].get("weights", {})
    heads = [f"{words.dimension(key)[0]}" + (f" × {weights[key]:.2f}" if key in weights else "") for key in parts]
    return (
        Table(
            caption="Composite of the sub-dimensions: beside the ranking, never used for it",
            columns=(MODEL, Column(head="Composite", right=True), *(Column(head=head, right=True) for head in heads)),
            rows=tuple(
                (
                    name(m.model),
                    numbers.number(c.get("value")),
                    *(numbers.number(c.get("parts", {}).get(key), words.dimension(key)[1]) for key in parts),
                )
                for m, c in found
            ),
        ),
    )


def _details(rows: list[ModelRow], names: list[str]) -> tuple[Table, ...]:
    """Per dimension, the plain facts that came with it, such as counts of excluded calls."""
    tables = []
    for key in names:
        facts = [m.dimensions[key].detail if key in m.dimensions else {} for m in rows]
        columns = [
            k for k in keys(facts) if any(not isinstance(f.get(k), dict | list | tuple) for f in facts if k in f)
        ]
        if columns:
            tables.append(
                Table(
                    caption=_counted_caption(key),
                    only=None if key == "command_reliability" else "page",
                    columns=(MODEL, *(Column(head=clean(words.fact_name(k)), right=True) for k in columns)),
                    rows=tuple(
                        (name(m.model), *(clean(words.fact(k, f[k])) if k in f else None for k in columns))
                        for m, f in zip(rows, facts, strict=True)
                    ),
                )
            )
        tables.extend(_worst(rows, key))
    return tuple(tables)


def _counted_caption(key: str) -> str:
    left_out = "; environment faults, refusals and interrupts do not count" if key == "command_reliability" else ""
    return f"{words.dimension(key)[0]}: what was counted{left_out}"


def _worst(rows: list[ModelRow], key: str) -> tuple[Table, ...]:
    """Lists of records inside a dimension's detail, such as the least reliable commands."""
    tables = []
    for field in keys(m.dimensions[key].detail for m in rows if key in m.dimensions):
        entries = [
            (m, entry) for m in rows if key in m.dimensions for entry in _records(m.dimensions[key].detail.get(field))
        ]
        if not entries:
            continue
        columns = keys(entry for _, entry in entries)
        tables.append(
            Table(
                caption=f"{words.dimension(key)[0]}: {words.plain_name(clean(field)).lower()}",
                only="page",
                grouped=True,
                columns=(MODEL, *(Column(head=clean(words.fact_name(c)), name=True) for c in columns)),
                rows=tuple(
                    (name(m.model), *(name(words.fact(c, entry[c])) if c in entry else None for c in columns))
                    for m, entry in entries
                ),
            )
        )
    return tuple(tables)


def _records(value: object) -> list[dict[str, Any]]:
    if isinstance(value, list | tuple):
        return [item for item in value if isinstance(item, dict)]
    if isinstance(value, dict) and value and all(isinstance(item, dict) for item in value.values()):
        return [{"name": key, **item} for key, item in value.items()]
    return []
