"""Values to places on an axis, and the round values that are written along it."""

from __future__ import annotations

import math

import msgspec

from seatrial.report import numbers
from seatrial.report.numbers import Unit


class Scale(msgspec.Struct, frozen=True):
    """Values to x: [low, high] of the axis drawn from x0 to x1."""

    low: float
    high: float
    x0: float
    x1: float

    def at(self, value: float) -> float:
        """The x of a value; values outside the axis are held at its ends."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return self.x0 + share * (self.x1 - self.x0)


def ticks(low: float, high: float, unit: Unit, most: int) -> list[tuple[float, str]]:
    """At most about `most` round values between low and high with their labels."""
    factor = 1.0 if unit in ("units", "plain") else 100.0
    span = (high - low) * factor
    raw = span / max(most, 1)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(s * power for s in (1, 2, 2.5, 5, 10) if s * power >= raw * 0.999)
    decimals = max(0, -math.floor(math.log10(step))) + (
        1 if (step / 10.0 ** math.floor(math.log10(step))) == 2.5 else 0
    )
    first = math.ceil(low * factor / step - 1e-9)
    last = math.floor(high * factor / step + 1e-9)
    if last - first > 100:
        return []
    return [
        (k * step / factor, numbers.number(k * step / factor, unit, decimals).removesuffix("%"))
        for k in range(first, last + 1)
    ]
