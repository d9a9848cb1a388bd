"""Text to time: seconds since the epoch, UTC, rounded to the microsecond."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST = 253_402_300_800.0
"""The year 10000: numbers beyond it are milliseconds or no time at all."""


def moment(value: Any) -> float | None:
    """Seconds since the epoch of ISO 8601 text or of a number; None for what is no time.

    Text without a zone is read as UTC. A number is seconds; one that would lie beyond the year 10000 is
    milliseconds.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return _number(value)
    if not isinstance(value, str):
        return None
    try:
        when = datetime.fromisoformat(value.strip())
    except ValueError:
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    try:
        return when.timestamp()
    except OverflowError:
        return None


def iso(seconds: float) -> str | None:
    """ISO 8601 text that `moment` reads back as the same number; None where there is none."""
    if not math.isfinite(seconds) or round(seconds, 6) != seconds:
        return None
    try:
        when = _EPOCH + timedelta(microseconds=round(seconds * 1e6))
    except OverflowError:
        return None
    text = when.isoformat().replace("+00:00", "Z")
    return text if moment(text) == seconds else None


def _number(value: float) -> float | None:
    try:
        seconds = float(value)
    except OverflowError:
        return None
    if not math.isfinite(seconds) or seconds < 0:
        return None
    if seconds >= _LATEST:
        seconds /= 1000.0
    return round(seconds, 6) if seconds < _LATEST else None
