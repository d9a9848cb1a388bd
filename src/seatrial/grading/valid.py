"""A task to what its checks could not read of it: found when the suite is loaded, not in the middle of a run."""

from __future__ import annotations

from seatrial.errors import InputError
from seatrial.grading import assertions, match
from seatrial.grading.checks.ordered import wanted_order
from seatrial.records import Task


def validate(task: Task, file: str | None = None) -> None:
    """Raises InputError, with the task named, when its order, reference or assertions cannot be read."""
    try:
        wanted_order(task)
        if task.reference is not None:
            match.parse(task.reference)
        if isinstance(task.check_final, list):
            assertions.parse(task.check_final)
    except InputError as error:
        named = error.message if task.id in error.message else f"task {task.id}: {error.message}"
        raise InputError(named, file=file, hint=error.hint) from error
