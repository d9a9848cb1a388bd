"""A small forest plot in text: two lines per model, the pointwise interval over the simultaneous one."""

from __future__ import annotations

import math

from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.text import Text

from seatrial.report.section import Mark

NARROWEST, WIDEST = 14, 30


class Forest:
    """One model's marks on the axis [low, high] that all rows share. Drawn as wide as its column is."""

    def __init__(self, mark: Mark | None, low: float, high: float, zero: float | None, factor: float = 100.0) -> None:
        self.mark, self.low, self.high, self.zero, self.factor = mark, low, high, zero, factor

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(min(NARROWEST, options.max_width), min(WIDEST, options.max_width))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        columns = options.max_width
        m = self.mark
        if m is None:
            yield Text(axis(self.low, self.high, self.zero, columns, self.factor))
            return
        yield Text(self._line(columns, m.low, m.high, m.value, "━"))
        if m.band_low is not None and m.band_high is not None:
            yield Text(self._line(columns, m.band_low, m.band_high, None, "─"))

    def _line(self, columns: int, low: float | None, high: float | None, value: float | None, stroke: str) -> str:
        cells = [" "] * columns
        if self.zero is not None:
            cells[place(self.zero, self.low, self.high, columns)] = "┊"
        if low is not None and high is not None:
            left, right = (place(v, self.low, self.high, columns) for v in (low, high))
            cells[left : right + 1] = [stroke] * (right + 1 - left)
        if value is not None and math.isfinite(value):
            cells[place(value, self.low, self.high, columns)] = "●" if low is not None else "◇"
        return "".join(cells)


def place(value: float, low: float, high: float, columns: int) -> int:
    """The column of a value on the axis; values outside are held at the ends."""
    share = (min(max(value, low), high) - low) / (high - low)
    return min(int(share * columns), columns - 1)


def axis(low: float, high: float, zero: float | None, columns: int, factor: float) -> str:
    """The axis' ends and zero, for a last line under the plots."""
    left, right = (f"{v * factor:+.0f}" for v in (low, high))
    cells = list(left.ljust(columns))
    cells[columns - len(right) :] = right
    if zero is not None:
        at = place(zero, low, high, columns)
        if len(left) < at < columns - len(right) - 1:
            cells[at] = "0"
    return "".join(cells)
