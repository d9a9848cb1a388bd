"""Charts to inline SVG: points and intervals on one axis, drawn twice (wide and narrow) or as small multiples.

Colours and fonts come from the page's style sheet by class, so that light, dark and print share one drawing. Every
drawing is one image to a screen reader, with a title and a description; its data table stands beside it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from seatrial.report import numbers, xy
from seatrial.report.html import Markup, el
from seatrial.report.scale import Scale, ticks
from seatrial.report.section import Chart, Mark, Panel
from seatrial.report.text import clip, width

WIDE, NARROW = 880.0, 328.0
_ADVANCES = (("ijltfrI.,:;|!'()[]- ", 5.2), ("mwMW@%—…", 13.2), ("−+<>=~", 9.0), ("0123456789", 7.7))
_UPPER, _OTHER, _WIDE_LETTER = 9.9, 8.0, 14.0


def advance(text: str) -> float:
    """About how wide `text` is at the charts' 13 px bold, rather too much than too little: fonts differ by system."""
    return sum(_advance(character) for character in text)


def _advance(character: str) -> float:
    for group, points in _ADVANCES:
        if character in group:
            return points
    columns = width(character)
    return _WIDE_LETTER * columns / 2 if columns != 1 else _UPPER if character.isupper() else _OTHER


def fit(text: str, room: float) -> str:
    """`text` cut in its middle until it is at most `room` wide."""
    columns = width(text)
    while advance(text) > room and columns > 3:
        columns -= 1
        text = clip(text, columns)
    return text


def domain(panel: Panel) -> tuple[float, float]:
    """The axis of a panel: as fixed, else all finite numbers of its marks and its zero, with a margin."""
    if panel.domain is not None:
        return panel.domain
    found = [
        v
        for m in panel.marks
        for v in (m.value, m.low, m.high, m.band_low, m.band_high, m.other)
        if v is not None and math.isfinite(v)
    ]
    if panel.zero is not None:
        found.append(panel.zero)
    if not found:
        return (0.0, 1.0)
    low, high = min(found), max(found)
    if high - low <= 1e-12:
        half = abs(high) * 0.1 or (1.0 if panel.unit in ("units", "plain") else 0.01)
        return (low - half, high + half)
    margin = 0.06 * (high - low)
    return (low - (0.0 if panel.zero is not None and low == panel.zero else margin), high + margin)


def figure(chart: Chart, ident: str, heading: int = 3) -> list[Markup]:
    """The drawings of a chart: a wide and a narrow one of a single panel, or one small one per panel.

    `heading` is the level of the small ones' headings.
    """
    if chart.plot is not None:
        return [
            el("div", {"class": "wide"}, xy.drawing(chart, chart.plot, f"{ident}-w")),
            el("div", {"class": "narrow"}, xy.drawing(chart, chart.plot, f"{ident}-n", xy.NARROW)),
        ]
    if len(chart.panels) == 1:
        panel = chart.panels[0]
        return [
            el("div", {"class": "wide"}, _wide(chart, panel, f"{ident}-w")),
            el("div", {"class": "narrow"}, _narrow(chart, panel, f"{ident}-n", ranks=True)),
        ]
    return [
        el(
            "div",
            {"class": "multiples"},
            [
                el(
                    "div",
                    {"class": "multiple"},
                    el(f"h{heading}", None, panel.title),
                    _narrow(chart, panel, f"{ident}-{i}", ranks=False),
                )
                for i, panel in enumerate(chart.panels)
            ],
        )
    ]


def glyph(layer: str) -> Markup:
    """A layer's mark for the legend; the words stand beside it."""
    middle = 8.0
    drawn = {
        "value": [_dot(16, middle)],
        "interval": [_bar(4, 28, middle, "interval")],
        "band": list(_whisker(3, 29, middle)),
        "bar": [_range(4, 28, middle, 10)],
        "other": [_diamond(16, middle)],
        "hollow": [_dot(16, middle, "hollow")],
    }[layer]
    return el(
        "svg", {"class": "glyph", "viewBox": "0 0 32 16", "width": 32, "height": 16, "aria-hidden": "true"}, drawn
    )


def _frame(chart: Chart, panel: Panel, ident: str, size: tuple[float, float], drawn: list[Markup]) -> Markup:
    title = chart.title if not panel.title else f"{chart.title}: {panel.title}"
    described = chart.description
    if len(chart.panels) > 1:
        described = "; ".join(f"{m.label}: {m.text or m.why or numbers.NA}" for m in panel.marks) + "."
    return el(
        "svg",
        {
            "class": "chart",
            "viewBox": f"0 0 {size[0]:g} {size[1]:g}",
            "role": "img",
            "aria-labelledby": f"{ident}-t",
            "aria-describedby": f"{ident}-d",
            "focusable": "false",
        },
        el("title", {"id": f"{ident}-t"}, title),
        el("desc", {"id": f"{ident}-d"}, described),
        drawn,
    )


def _wide(chart: Chart, panel: Panel, ident: str) -> Markup:
    row = 36.0 if len(panel.marks) <= 12 else 29.0
    ranks = chart.n_ranks is not None and any(m.rank for m in panel.marks)
    text_width = max((advance(m.text) for m in panel.marks), default=30.0) + 16
    labels = min(max((advance(m.label) for m in panel.marks), default=60.0) + 16, 290.0)
    rank_width = 150.0 if ranks else 0.0
    low, high = domain(panel)
    scale = Scale(low, high, labels + 8, WIDE - text_width - rank_width - 12)
    top, bottom = 30.0, 30.0 + row * len(panel.marks)
    drawn = [*_axis(chart, panel, scale, top, bottom, most=8)]
    if ranks:
        rank_scale = Scale(1.0, float(max(chart.n_ranks or 1, 2)), WIDE - rank_width + 22, WIDE - 14)
        drawn.extend(_rank_axis(rank_scale, chart.n_ranks or 1, top, bottom))
    for i, m in enumerate(panel.marks):
        y = top + row * (i + 0.5)
        if i % 2 == 0:
            drawn.insert(0, el("rect", {"class": "stripe", "x": 0, "y": y - row / 2, "width": WIDE, "height": row}))
        name = fit(m.label, labels - 8)
        drawn.append(el("text", {"class": "label", "x": 8, "y": y + 4.5}, name))
        drawn.extend(_marks(m, scale, y, chart.bar))
        drawn.append(
            el("text", {"class": "value", "x": scale.x1 + text_width, "y": y + 4.5, "text-anchor": "end"}, m.text)
        )
        if ranks and m.rank is not None:
            drawn.extend(_rank_marks(m, rank_scale, y))
        elif ranks:
            drawn.append(el("text", {"class": "quiet", "x": rank_scale.x0 - 6, "y": y + 4.5}, "not ranked"))
    return _frame(chart, panel, ident, (WIDE, bottom + (44 if chart.less or chart.more else 26)), drawn)


def _narrow(chart: Chart, panel: Panel, ident: str, *, ranks: bool) -> Markup:
    ranked = ranks and any(m.rank for m in panel.marks)
    row = 62.0 if ranked else 42.0
    low, high = domain(panel)
    scale = Scale(low, high, 10.0, NARROW - 10.0)
    top, bottom = 6.0, 6.0 + row * len(panel.marks)
    drawn = [*_axis(chart, panel, scale, top, bottom, most=5, head=False)]
    for i, m in enumerate(panel.marks):
        y0 = top + row * i
        if i % 2 == 0:
            drawn.insert(0, el("rect", {"class": "stripe", "x": 0, "y": y0, "width": NARROW, "height": row}))
        if ranked:
            drawn.append(el("text", {"class": "label", "x": 10, "y": y0 + 17}, fit(m.label, NARROW - 20)))
            drawn.append(el("text", {"class": "value", "x": 10, "y": y0 + 35}, m.text))
            place = "not ranked" if m.rank is None else f"rank {numbers.rank(m.rank)}"
            drawn.append(el("text", {"class": "value", "x": NARROW - 10, "y": y0 + 35, "text-anchor": "end"}, place))
        else:
            label = fit(m.label, NARROW - 32 - advance(m.text))
            drawn.append(el("text", {"class": "label", "x": 10, "y": y0 + 17}, label))
            drawn.append(el("text", {"class": "value", "x": NARROW - 10, "y": y0 + 17, "text-anchor": "end"}, m.text))
        drawn.extend(_marks(m, scale, y0 + row - 13, chart.bar))
    return _frame(chart, panel, ident, (NARROW, bottom + (44 if chart.less or chart.more else 26)), drawn)


def _axis(
    chart: Chart, panel: Panel, scale: Scale, top: float, bottom: float, *, most: int, head: bool = True
) -> Iterator[Markup]:
    for value, text in ticks(scale.low, scale.high, panel.unit, most):
        x = scale.at(value)
        yield el("line", {"class": "grid", "x1": x, "x2": x, "y1": top, "y2": bottom})
        yield el("text", {"class": "tick", "x": x, "y": bottom + 16, "text-anchor": "middle"}, text)
    yield el("line", {"class": "axis", "x1": scale.x0, "x2": scale.x1, "y1": bottom, "y2": bottom})
    if panel.zero is not None and scale.low <= panel.zero <= scale.high:
        x = scale.at(panel.zero)
        yield el("line", {"class": "zero", "x1": x, "x2": x, "y1": top - (6 if head else 0), "y2": bottom})
        if head and chart.less:
            yield el("text", {"class": "tick", "x": x, "y": top - 12, "text-anchor": "middle"}, "baseline")
    if chart.less:
        yield el("text", {"class": "tick", "x": scale.x0, "y": bottom + 34}, f"← {chart.less}")
    if chart.more:
        yield el("text", {"class": "tick", "x": scale.x1, "y": bottom + 34, "text-anchor": "end"}, f"{chart.more} →")


def _marks(m: Mark, scale: Scale, y: float, bar: bool) -> Iterator[Markup]:
    if m.band_low is not None and m.band_high is not None:
        left, right = scale.at(m.band_low), scale.at(m.band_high)
        if bar:
            yield _range(left, right, y, 12)
        else:
            yield from _whisker(left, right, y)
    if m.low is not None and m.high is not None:
        yield _bar(scale.at(m.low), scale.at(m.high), y, "interval")
    if m.other is not None and math.isfinite(m.other):
        yield _diamond(scale.at(m.other), y)
    if m.value is not None and math.isfinite(m.value):
        yield _dot(scale.at(m.value), y, "dot" if m.low is not None or m.band_low is not None else "hollow")
    elif m.why:
        x, anchor = ((scale.x0 + scale.x1) / 2, "middle")
        why = fit(m.why, scale.x1 - scale.x0)
        yield el("text", {"class": "quiet", "x": x, "y": y + 4.5, "text-anchor": anchor}, why)


def _rank_axis(scale: Scale, n: int, top: float, bottom: float) -> Iterator[Markup]:
    x = (scale.x0 + scale.x1) / 2
    yield el("text", {"class": "tick", "x": x, "y": top - 12, "text-anchor": "middle"}, "rank")
    shown = range(1, n + 1) if n <= 8 else (1, *range(5, n - 1, 5), n)
    for place in shown:
        at = scale.at(float(place))
        yield el("line", {"class": "grid", "x1": at, "x2": at, "y1": top, "y2": bottom})
        yield el("text", {"class": "tick", "x": at, "y": bottom + 16, "text-anchor": "middle"}, str(place))
    yield el("line", {"class": "axis", "x1": scale.x0, "x2": scale.x1, "y1": bottom, "y2": bottom})


def _rank_marks(m: Mark, scale: Scale, y: float) -> Iterator[Markup]:
    assert m.rank is not None
    yield _bar(scale.at(float(m.rank.low)) - 3, scale.at(float(m.rank.high)) + 3, y, "ranks")
    yield _dot(scale.at(float(m.rank.value)), y)


def _bar(x1: float, x2: float, y: float, kind: str) -> Markup:
    return el("line", {"class": kind, "x1": x1, "x2": x2, "y1": y, "y2": y})


def _range(x1: float, x2: float, y: float, height: float) -> Markup:
    return el("rect", {"class": "range", "x": x1, "y": y - height / 2, "width": max(x2 - x1, 1.0), "height": height})


def _whisker(x1: float, x2: float, y: float) -> Iterator[Markup]:
    yield el("line", {"class": "band", "x1": x1, "x2": x2, "y1": y, "y2": y})
    for x in (x1, x2):
        yield el("line", {"class": "band", "x1": x, "x2": x, "y1": y - 4, "y2": y + 4})


def _dot(x: float, y: float, kind: str = "dot") -> Markup:
    return el("circle", {"class": kind, "cx": x, "cy": y, "r": 5})


def _diamond(x: float, y: float) -> Markup:
    return el("path", {"class": "diamond", "d": f"M{x:.2f} {y - 7:.2f}l7 7l-7 7l-7 -7z"})
