"""One attempt to its verdicts, and verdicts to the attempt's place in the table of answer and trajectory."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec.structs import replace

from seatrial.errors import InputError, SeatrialError
from seatrial.grading import evidence as _evidence
from seatrial.grading.catalogue import SIX, checks
from seatrial.grading.evidence import Evidence, TaskCheck
from seatrial.records import Status, Task, Trace, Verdict

Quadrant = Literal["sound", "lucky", "unlucky", "failed"]
"""Answer right and the way sensible; right by a way that was not; wrong by a sensible way; neither."""


def grade(task: Task, evidence: Evidence, using: Sequence[TaskCheck] | None = None) -> tuple[Verdict, ...]:
    """The verdict of every check. A check that breaks is a verdict without a result, and says what broke."""
    return tuple(_noted(_guarded(check, task, evidence), evidence) for check in (checks() if using is None else using))


def grade_trajectory(task: Task, trace: Trace | Sequence[Mapping[str, Any]]) -> dict[str, Verdict]:
    """Six checks of the way an agent went, by name; each is true in a condition exactly when it passed.

    `trace` is a trace, or a list of events ``{"event": "executed" | "refused", "tool", "args", "ok"}``; a refusal
    may carry ``reason``, ``schema`` (the default) or ``policy``. Names: ``required_present``, ``forbidden_absent``,
    ``ordered``, ``within_budget``, ``no_verbatim_retries``, ``no_invalid_args`` (METHODS 6.2). `ordered` is not
    applicable, and so false in a condition, unless `task.order` asks for an order. Where some events are of no known
    kind, every verdict's evidence lists them, 1-based, as ``unrecognised_events``.

    Raises:
        InputError: `trace` is neither, an event cannot be read, none is of a known kind, a field of the task is of
            the wrong type, or `task.order` is none of the known ones.
    """
    _typed(task)
    seen = _evidence.of_trace(trace) if isinstance(trace, Trace) else _evidence.of_events(trace)
    return {check.name: _noted(check.check(task, seen), seen) for check in SIX}


def _typed(task: Task) -> None:
    """A task made in Python has whatever its fields were given."""
    if not isinstance(task, Task):
        raise InputError(f"expected a Task, found {type(task).__name__}")
    for name in ("expected_tools", "forbidden_tools"):
        tools = getattr(task, name)
        if not isinstance(tools, list | tuple) or not all(isinstance(t, str) for t in tools):
            raise InputError(f"the task's {name} is {reprlib.repr(tools)}", hint="a list of the names of tools")
    turns = task.max_turns
    if turns is not None and (not isinstance(turns, int) or isinstance(turns, bool)):
        raise InputError(f"the task's max_turns is {reprlib.repr(turns)}", hint="a whole number, or None")
    if task.order is not None and not isinstance(task.order, str):
        raise InputError(f"the task's order is {reprlib.repr(task.order)}", hint="none, subsequence or prefix N")


def _noted(verdict: Verdict, seen: Evidence) -> Verdict:
    """The verdict, with the events that nobody could read among its evidence."""
    unread = seen.timeline.unread
    if not unread:
        return verdict
    return replace(verdict, evidence={**verdict.evidence, "unrecognised_events": list(unread)})


def outcome(verdicts: Sequence[Verdict]) -> tuple[Status, float | None, str]:
    """Status, score and reason of an attempt that came to its end: its final checks alone decide (METHODS 0.1).

    The score is that of a function which grades, else None. `unscored` where no final check applies, or where one
    broke or lacks what it looks at and no other failed.
    """
    final = [v for v in verdicts if v.layer == "final"]
    judged = [v for v in final if v.passed is not None]
    if not judged:
        why = final[0].reason if final else "there is no final check"
        return "unscored", None, why
    wrong = [v for v in judged if not v.passed]
    blind = [v for v in final if v.passed is None and (v.evidence.get("broke") or v.evidence.get("not_recorded"))]
    if blind and not wrong:
        return "unscored", None, blind[0].reason
    graded = [v.value for v in judged if v.value is not None and v.evidence.get("graded")]
    score = sum(graded) / len(graded) if graded else None
    if wrong:
        return "failed", score, "; ".join(f"{v.metric}: {v.reason}" for v in wrong)
    return "passed", score, "; ".join(v.reason for v in judged)


def trajectory_passed(verdicts: Sequence[Verdict]) -> bool | None:
    """Every applicable check of the trajectory passed; None where none applies."""
    judged = [v.passed for v in verdicts if v.layer == "trajectory" and v.passed is not None]
    return all(judged) if judged else None


def quadrant(answer: bool | None, trajectory: bool | None) -> Quadrant | None:
    """Where an attempt stands in the table of answer and trajectory; None where either is not judged."""
    if answer is None or trajectory is None:
        return None
    if answer:
        return "sound" if trajectory else "lucky"
    return "unlucky" if trajectory else "failed"


def _guarded(check: TaskCheck, task: Task, evidence: Evidence) -> Verdict:
    try:
        return check.check(task, evidence)
    except Exception as error:  # a check that breaks is data, not the end of a run
        what = str(error) if isinstance(error, SeatrialError) else f"{type(error).__name__}: {error}"
        return Verdict(
            metric=check.name,
            passed=None,
            reason=f"the check broke: {what}",
            by=check.name,
            version=check.version,
            layer=check.layer,
            evidence={"broke": True},
        )
