"""Deploy marks that the user put on record: listed, and taken back."""

from __future__ import annotations

from datetime import UTC, datetime

from seatrial.errors import InputError, UsageError
from seatrial.flows.watch import marks
from seatrial.records.drift import DeployMark
from seatrial.store import Store


def remove(store: Store, text: str, at: float | None = None) -> DeployMark:
    """Take a mark back; `at` tells which where several have that name.

    Raises:
        InputError: there is none of that name (and time), or it comes from the traces.
        UsageError: there are several.
    """
    name = " ".join(text.split())
    all_ = marks(store)
    found = [m for m in all_ if m.text == name and m.by == "user" and (at is None or _is_at(m.time, at))]
    if not found:
        if any(m.text == name and m.by == "traces" for m in all_):
            raise InputError(f"{name!r} is known from the traces, where it cannot be taken back")
        when = "" if at is None else " at that time"
        raise InputError(f"there is no mark {name!r}{when}", hint="see: seatrial mark --list")
    if len(found) > 1:
        times = ", ".join(_iso(m.time) for m in found)
        raise UsageError(f"there are {len(found)} marks {name!r}: at {times}", hint="say which with --at")
    for head in store.results("mark"):
        result = store.result(head.id).envelope["result"]
        if result["text"] == name and result["time"] == found[0].time:
            store.remove_result(head.id)
    return found[0]


def _is_at(time: float, at: float) -> bool:
    """Whether a time is meant: to the microsecond, or by its minute, as the list shows it."""
    return abs(time - at) < 2e-6 or (at % 60 == 0 and at <= time < at + 60)


def _iso(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).isoformat(timespec="microseconds").removesuffix("+00:00")


__all__ = ["remove"]
