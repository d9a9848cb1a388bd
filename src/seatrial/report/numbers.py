"""Numbers to text: one way to write points, shares, intervals and p-values, used by every renderer.

All functions take None, NaN and infinities: what is not a number is written `n/a`, never 0. The minus sign is the
typographic one; `plain_minus` gives the keyboard's for terminals and Markdown.
"""

from __future__ import annotations

import math
from typing import Literal

from seatrial.records import Estimate, RankInterval

NA = "n/a"
Unit = Literal["points", "percent", "units", "size", "plain"]
"""points: a difference of outcomes in [0, 1], times 100, signed. percent: a share. units: a signed difference in
the outcome's own unit. size: points without a sign. plain: a number as it is."""


def is_number(value: float | None) -> bool:
    """A finite number."""
    return value is not None and math.isfinite(value)


def number(value: float | None, unit: Unit = "plain", decimals: int | None = None) -> str:
    """`value` in `unit`: ``+12.3``, ``64.1%``, ``0.73``."""
    if value is None or math.isnan(value):
        return NA
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    factor = 1 if unit in ("units", "plain") else 100
    places = decimals if decimals is not None else 1 if factor == 100 else 2
    text = f"{value * factor:.{places}f}"
    if float(text) == 0:
        text = text.lstrip("-")
    elif unit in ("points", "units") and value > 0:
        text = "+" + text
    return text.replace("-", "−") + ("%" if unit == "percent" else "")


def interval(low: float | None, high: float | None, unit: Unit = "plain", decimals: int | None = None) -> str:
    """``[+4.1, +20.5]``; `n/a` where either end is None."""
    if low is None or high is None:
        return NA
    left, right = (number(end, unit, decimals).removesuffix("%") for end in (low, high))
    return f"[{left}, {right}]" + ("%" if unit == "percent" else "")


def estimate(e: Estimate | None, unit: Unit = "plain", decimals: int | None = None) -> str:
    """Value and interval: ``+12.3 [+4.1, +20.5]``; ``64.1% [58.0, 70.2]``; the value alone without an interval."""
    if e is None:
        return NA
    value = number(e.value, unit, decimals)
    if e.low is None or e.high is None:
        return f"{value} (no interval)"
    return f"{value} {interval(e.low, e.high, unit, decimals).removesuffix('%')}"


def stacked(e: Estimate | None, unit: Unit = "plain", decimals: int | None = None) -> str | None:
    """Value over interval on two lines, for table cells; None without an estimate."""
    if e is None:
        return None
    span = interval(e.low, e.high, unit, decimals).removesuffix("%")
    return f"{number(e.value, unit, decimals)}\n{'no interval' if span == NA else span}"


def rank(r: RankInterval | None) -> str:
    """``2 [1–3]``; `n/a` for an unranked model."""
    return NA if r is None else f"{r.value} [{r.low}–{r.high}]"


def rank_range(r: RankInterval | None) -> str:
    """``1–3``, or ``2`` where only one rank is possible."""
    return NA if r is None else str(r.low) if r.low == r.high else f"{r.low}–{r.high}"


def p_value(p: float | None) -> str:
    """``0.034``; ``<0.001``."""
    if p is None or not is_number(p):
        return NA
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def count(n: float | None) -> str:
    """``12,345``."""
    return f"{n:,.0f}" if n is not None and is_number(n) else NA


def effective(g: float | None) -> str:
    """An effective number of clusters: ``38.2``."""
    return f"{g:,.1f}" if g is not None and is_number(g) else NA


def level(value: float) -> str:
    """A confidence level: ``95%``, ``99.5%``."""
    return f"{value * 100:.10g}%"


def anything(value: object) -> str:
    """Any plain value as text, for details whose meaning the report does not know. Names stand in order, so that what
    was stored reads as what was computed."""
    if value is None:
        return NA
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}" if abs(value) < 10**9 else str(value)
    if isinstance(value, float):
        return number(value) if not is_number(value) else f"{value:.4g}".replace("-", "−")
    if isinstance(value, list | tuple | set | frozenset):
        return ", ".join(anything(item) for item in value) or "none"
    if isinstance(value, dict):
        return (
            ", ".join(f"{key} {anything(item)}" for key, item in sorted(value.items(), key=lambda pair: str(pair[0])))
            or "none"
        )
    return str(value)


def plain_minus(text: str) -> str:
    """The keyboard's minus, so that numbers copied from a terminal are numbers."""
    return text.replace("−", "-")


def join(words: list[str] | tuple[str, ...]) -> str:
    """``a, b and c``."""
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]])) if words else "none"


def some(words: list[str], most: int = 6) -> str:
    """``a, b and 9 more``: at most `most` words, and how many others."""
    return join(words) if len(words) <= most else ", ".join(words[:most]) + f" and {len(words) - most} more"
