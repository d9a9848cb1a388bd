"""What a report is made of: sections with paragraphs, checks, charts and tables, meant for any renderer.

Text in these records is plain text. It may come from traces: renderers neutralise and escape all of it.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from seatrial.records import Check, RankInterval
from seatrial.report.numbers import Unit

Layer = Literal["value", "interval", "band", "other", "hollow", "bar"]
"""Marks of a chart: point; thick interval; thin outer interval; second point (diamond); a point without an interval;
a grey range from band_low to band_high."""


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """One row of a chart. Numbers are in outcome units; None: not drawn, and `why` is written in its place.

    `band_low` and `band_high` are an outer interval or a reference range. `other` is a second value to compare
    with, such as a planted truth. `text` is written beside the row.
    """

    label: str
    value: float | None
    low: float | None = None
    high: float | None = None
    band_low: float | None = None
    band_high: float | None = None
    other: float | None = None
    rank: RankInterval | None = None
    text: str = ""
    why: str | None = None


class Panel(msgspec.Struct, frozen=True, kw_only=True):
    """Marks on one axis. `zero` is the reference line; `domain` fixes the axis, else it follows the marks."""

    marks: tuple[Mark, ...]
    unit: Unit
    title: str = ""
    zero: float | None = None
    domain: tuple[float, float] | None = None


class Curve(msgspec.Struct, frozen=True, kw_only=True):
    """A line through `points` (x, y), in their order."""

    label: str
    points: tuple[tuple[float, float], ...]


class Plot(msgspec.Struct, frozen=True, kw_only=True):
    """Two measures against each other. `x` and `y` caption the axes; `dots` are (label, x, y); `limit` is an upright
    reference line."""

    x: str
    y: str
    curves: tuple[Curve, ...]
    dots: tuple[tuple[str, float, float], ...] = ()
    limit: float | None = None


class Chart(msgspec.Struct, frozen=True, kw_only=True):
    """A picture of marks: one wide panel, or several small ones; or a `plot`, and then no panels. `description` says in
    words what it shows.

    `legend` names the layers that occur; `less` and `more` caption the axis' two directions; `bar` draws the bands
    as grey ranges instead of thin intervals; `n_ranks` adds a panel of rank intervals out of so many.
    """

    title: str
    description: str
    panels: tuple[Panel, ...] = ()
    plot: Plot | None = None
    legend: tuple[tuple[Layer, str], ...] = ()
    less: str = ""
    more: str = ""
    bar: bool = False
    n_ranks: int | None = None


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """A column's heading; numbers are aligned right. `name` True: a name from a trace, kept apart from its
    neighbours whatever direction it is written in."""

    head: str
    right: bool = False
    name: bool = False


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """Rows of text, one cell per column; a None cell is `n/a`, a line break in a cell starts a new line.

    `heat` shades cells by a share in [0, 1]. `grouped`: equal cells of the first column that follow each other are
    one group. `only` keeps the table to one kind of renderer.
    """

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str | None, ...], ...]
    heat: tuple[tuple[float | None, ...], ...] | None = None
    grouped: bool = False
    only: Literal["page", "terminal"] | None = None


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a report.

    `paragraphs` come first, then checks, charts, tables, `items` (a list) and `notes` (small print). `parts` are
    sections below this one; `folded` True closes the section behind its heading on a page. `place` puts a section
    of another flow right after the answer or at the end. `only` keeps it to one kind of renderer.
    """

    heading: str
    paragraphs: tuple[str, ...] = ()
    checks: tuple[Check, ...] = ()
    charts: tuple[Chart, ...] = ()
    tables: tuple[Table, ...] = ()
    items: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    parts: tuple[Section, ...] = ()
    folded: bool = False
    place: Literal["answer", "end"] = "end"
    only: Literal["page", "terminal"] | None = None
    key: str = ""
