"""What dimension D2 is handed: which required effects hold in a state, by the room that judges assertions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from seatrial.grading import assertions
from seatrial.records import Task

Holds = Callable[[dict[str, Any]], tuple[bool, ...]]


def required_of(task: Task | None, start: dict[str, Any] | None = None) -> Holds | None:
    """A function from a state to which of the task's required effects hold; None where its intent requires none that a
    state can show.

    Raises:
        InputError: an assertion cannot be read.
    """
    raw = (task.intent or {}).get("required") if task is not None else None
    wanted = [a for a in assertions.parse(raw or []) if a.about == "state"]
    if not wanted:
        return None

    def holds(state: dict[str, Any]) -> tuple[bool, ...]:
        return tuple(assertions.judge(a, answer=None, state=state, start=start).ok is True for a in wanted)

    return holds
