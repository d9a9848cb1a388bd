"""Two measures against each other to inline SVG: lines and single points, such as gain against harm.

Colours come from the page's style sheet by class. The data table stands beside the drawing.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.report.html import Markup, el
from seatrial.report.scale import Scale, ticks
from seatrial.report.section import Chart, Plot
from seatrial.report.text import clean

WIDE, NARROW = (760.0, 380.0), (352.0, 300.0)
"""Width and height of a drawing, for wide screens and for a phone: text keeps its size."""

_LEFT, _RIGHT, _TOP, _BOTTOM = 44.0, 16.0, 34.0, 52.0


def drawing(chart: Chart, plot: Plot, ident: str, size: tuple[float, float] = WIDE) -> Markup:
    """The plot as one image."""
    width, height = size
    xs = [x for c in plot.curves for x, _ in c.points] + [d[1] for d in plot.dots] + [0.0]
    ys = [y for c in plot.curves for _, y in c.points] + [d[2] for d in plot.dots] + [0.0]
    across = Scale(min(xs), _above(xs, plot.limit), _LEFT, width - _RIGHT)
    # Upwards is smaller in SVG: the scale runs from the bottom to the top.
    upward = Scale(min(ys), _above(ys, None), height - _BOTTOM, _TOP)
    return el(
        "svg",
        {
            "class": "chart",
            "viewBox": f"0 0 {width:g} {height:g}",
            "role": "img",
            "aria-labelledby": f"{ident}-t",
            "aria-describedby": f"{ident}-d",
            "focusable": "false",
        },
        el("title", {"id": f"{ident}-t"}, clean(chart.title)),
        el("desc", {"id": f"{ident}-d"}, clean(chart.description)),
        [*_axes(plot, across, upward, 8 if size == WIDE else 5), *_lines(plot, across, upward)],
    )


def _above(values: list[float], limit: float | None) -> float:
    top = max([*values, limit or 0.0])
    return top + 0.06 * (top - min(values)) if top > min(values) else top + 1.0


def _axes(plot: Plot, across: Scale, upward: Scale, most: int) -> Iterator[Markup]:
    for value, text in ticks(across.low, across.high, "plain", most):
        x = across.at(value)
        yield el("line", {"class": "grid", "x1": x, "x2": x, "y1": _TOP, "y2": upward.x0})
        yield el("text", {"class": "tick", "x": x, "y": upward.x0 + 16, "text-anchor": "middle"}, text)
    for value, text in ticks(upward.low, upward.high, "plain", 6):
        y = upward.at(value)
        yield el("line", {"class": "grid", "x1": across.x0, "x2": across.x1, "y1": y, "y2": y})
        yield el("text", {"class": "tick", "x": across.x0 - 8, "y": y + 4, "text-anchor": "end"}, text)
    yield el("text", {"class": "tick", "x": across.x1, "y": upward.x0 + 38, "text-anchor": "end"}, f"{clean(plot.x)} →")
    yield el("text", {"class": "tick", "x": across.x0 - 36, "y": _TOP - 16}, f"↑ {clean(plot.y)}")
    if plot.limit is not None:
        x = across.at(plot.limit)
        yield el("line", {"class": "zero", "x1": x, "x2": x, "y1": _TOP, "y2": upward.x0})
        yield el("text", {"class": "tick", "x": x - 6, "y": upward.x0 - 8, "text-anchor": "end"}, "limit")


def _lines(plot: Plot, across: Scale, upward: Scale) -> Iterator[Markup]:
    for curve in plot.curves:
        path = "".join(f"{'M' if i == 0 else 'L'}{across.at(x):.1f} {upward.at(y):.1f}"
                       for i, (x, y) in enumerate(curve.points))  # fmt: skip
        yield el("path", {"class": "curve", "d": path})
    for label, x, y in plot.dots:
        yield el("circle", {"class": "dot", "cx": across.at(x), "cy": upward.at(y), "r": 6})
        near_end = across.at(x) > (across.x0 + across.x1) / 2
        side = {"x": across.at(x) + (-10 if near_end else 10), "text-anchor": "end" if near_end else "start"}
        yield el("text", {"class": "value", "y": upward.at(y) + 16, **side}, clean(label))
