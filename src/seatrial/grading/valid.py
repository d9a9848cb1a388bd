"""A task to what its checks could not read of it: found when the suite is loaded, not in the middle of a run."""

from __future__ import annotations

from seatrial.errors import InputError, UsageError
from seatrial.grading import assertions, match
from seatrial.grading.checks.ordered import wanted_order
from seatrial.records import Task
from seatrial.world import approver_of, rules


def validate(task: Task, file: str | None = None, line: int | None = None) -> None:
    """Raises InputError, with task and place named, when its order, reference, assertions, gates or approver cannot be
    read."""
    try:
        wanted_order(task)
        if task.reference is not None:
            match.parse(task.reference)
        if isinstance(task.check_final, list):
            assertions.parse(task.check_final)
        rules(task.gates)
        if "approver" in task.extra:
            approver_of(str(task.extra["approver"]))
    except (InputError, UsageError) as error:
        named = error.message if task.id in error.message else f"task {task.id}: {error.message}"
        raise InputError(named, file=file, line=line, hint=error.hint) from error
