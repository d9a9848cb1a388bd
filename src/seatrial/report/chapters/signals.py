"""Signal outcomes by model, their coverage, and how many sessions show a signal at all (METHODS 2, 3.7)."""

from __future__ import annotations

from seatrial.records import ModelRow, Ranking
from seatrial.report import numbers, words
from seatrial.report.chapters import answer
from seatrial.report.chapters.measures import MODEL, keys, listed
from seatrial.report.section import Chart, Column, Mark, Panel, Section, Table
from seatrial.report.text import clean, name


def signals(r: Ranking) -> Section | None:
    """Signal outcomes by model with their coverage, and how many sessions show a signal at all (METHODS 2, 3.7)."""
    rows = answer.ordered(r)
    found = keys((m.signals for m in rows), words.SIGNAL_MEANS)
    if not found:
        return None
    names = [key for key in found if not key.startswith("any_")]
    counts = [key for key in found if key.startswith("any_") and _occurs(rows, key)]
    never = [words.signal_name(key).lower() for key in found if key.startswith("any_") and not _occurs(rows, key)]
    missing: dict[str, list[str]] = {}
    for m in rows:
        for key in found:
            s = m.signals.get(key)
            if s is not None and s.estimate is None and s.why:
                missing.setdefault(clean(s.why), []).append(f"{name(m.model)} ({words.signal_name(key).lower()})")
    tables = [_signal_table(rows, key, _coverage_tests(r, key)) for key in (names, counts) if key]
    coverage = coverage_table(r, rows)
    return Section(
        key="signals",
        heading="Signals",
        paragraphs=(
            (
                "What people's words and the tools' results say, by model. Coverage is the share of sessions in which "
                "the outcome exists at all; where it differs, the rates compare different kinds of session."
            ),
        ),
        charts=tuple(_signal_chart(rows, group) for group in (names, counts) if group),
        tables=(*tables, coverage) if coverage else tuple(tables),
        items=tuple(f"{words.signal_name(k)}: {words.SIGNAL_MEANS[k]}." for k in names if k in words.SIGNAL_MEANS),
        notes=listed(missing) + ((f"In no session of any model: {numbers.join(never)}.",) if never else ()),
    )


def _occurs(rows: list[ModelRow], key: str) -> bool:
    found = [m.signals[key].estimate for m in rows if key in m.signals]
    return any(e is None or e.value > 0 for e in found)


def _signal_table(rows: list[ModelRow], names: list[str], tests: tuple[tuple[str, ...], ...]) -> Table:
    return Table(
        caption="Share of all sessions that show a signal [interval]"
        if names[0].startswith("any_")
        else "Signal outcomes by model: rate, [interval], and the share of sessions that have the outcome",
        columns=(MODEL, *(Column(head=words.signal_name(key), right=True) for key in names)),
        rows=(*((name(m.model), *(_signal_cell(m, key) for key in names)) for m in rows), *tests),
    )


def _signal_cell(m: ModelRow, key: str) -> str | None:
    s = m.signals.get(key)
    if s is None:
        return None
    seen = numbers.number(s.coverage, "percent", 0)
    if s.estimate is None:
        return f"{numbers.NA}\nin {seen}"
    covered = "" if key.startswith("any_") and s.coverage == 1 else f"\nin {seen}"
    return f"{numbers.stacked(s.estimate, 'percent')}{covered}"


def _signal_chart(rows: list[ModelRow], names: list[str]) -> Chart:
    every = names[0].startswith("any_")
    panels = tuple(
        Panel(
            title=words.signal_name(key),
            unit="percent",
            domain=(0.0, 1.0),
            marks=tuple(_signal_mark(m, key, every) for m in rows),
        )
        for key in names
    )
    title = "Share of all sessions that show a signal" if every else "Signal outcomes by model"
    value = (
        "share of all sessions"
        if every
        else "rate where the outcome exists; 'in 58%': the share of sessions it exists in"
    )
    return Chart(
        title=title,
        description="One small chart per signal, one row per model, from 0 to 100%. A table below has all values.",
        panels=panels,
        legend=(("value", value), ("interval", "interval")),
    )


def _signal_mark(m: ModelRow, key: str, every: bool) -> Mark:
    s = m.signals.get(key)
    e = s.estimate if s else None
    if s is None or e is None:
        return Mark(label=name(m.model), value=None, why="n/a")
    text = numbers.number(e.value, "percent")
    return Mark(
        label=name(m.model),
        value=e.value,
        low=e.low,
        high=e.high,
        text=text if every else f"{text}, in {numbers.number(s.coverage, 'percent', 0)}",
    )


def _coverage_tests(r: Ranking, names: list[str]) -> tuple[tuple[str, ...], ...]:
    tests = {c.signal: c.p_value for c in r.coverage_table}
    if not any(tests.get(key) is not None for key in names):
        return ()
    return (("equal coverage, p", *(numbers.p_value(tests.get(key)) for key in names)),)


def coverage_table(r: Ranking, rows: list[ModelRow]) -> Table | None:
    """Coverage by signal and model, with the test of equality."""
    if not r.coverage_table:
        return None
    order = [m.model for m in rows if any(m.model in c.by_model for c in r.coverage_table)]
    return Table(
        caption="Coverage: share of sessions that have the outcome",
        only="page",
        columns=(
            Column(head="Signal"),
            *(Column(head=name(m), right=True, name=True) for m in order),
            Column(head="p (equal)", right=True),
        ),
        rows=tuple(
            (
                words.signal_name(clean(c.signal)),
                *(numbers.number(c.by_model.get(m), "percent", 0) for m in order),
                numbers.p_value(c.p_value),
            )
            for c in r.coverage_table
        ),
        heat=tuple((None, *(c.by_model.get(m) for m in order), None) for c in r.coverage_table),
    )
