"""Runs for the gate's tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from seatrial.gate import Run, run_of
from seatrial.records import Attempt, Status

Outcome = bool | int | Status


def attempts(tasks: Mapping[str, Sequence[Outcome]], **fields: object) -> list[Attempt]:
    made = []
    for task, outcomes in tasks.items():
        for trial, outcome in enumerate(outcomes):
            status = outcome if isinstance(outcome, str) else "passed" if outcome else "failed"
            made.append(Attempt(task=task, trial=trial, status=status, **fields))  # type: ignore[arg-type]
    return made


def run(tasks: Mapping[str, Sequence[Outcome]], label: str = "run", **fields: object) -> Run:
    return run_of(attempts(tasks, **fields), label=label)


def suite(n: int, good: int, runs: int = 5) -> dict[str, list[int]]:
    """`n` tasks; the first `good` always pass and the others never."""
    return {f"t{i:03d}": [int(i < good)] * runs for i in range(n)}
