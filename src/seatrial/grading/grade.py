"""One attempt to its verdicts, and verdicts to the attempt's place in the table of answer and trajectory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from seatrial.errors import SeatrialError
from seatrial.grading import evidence as _evidence
from seatrial.grading.catalogue import SIX, checks
from seatrial.grading.evidence import Evidence, TaskCheck
from seatrial.records import Status, Task, Trace, Verdict

Quadrant = Literal["sound", "lucky", "unlucky", "failed"]
"""Answer right and the way sensible; right by a way that was not; wrong by a sensible way; neither."""


def grade(task: Task, evidence: Evidence, using: Sequence[TaskCheck] | None = None) -> tuple[Verdict, ...]:
    """The verdict of every check. A check that breaks is a verdict without a result, and says what broke."""
    return tuple(_guarded(check, task, evidence) for check in (checks() if using is None else using))


def grade_trajectory(task: Task, trace: Trace | Sequence[Mapping[str, Any]]) -> dict[str, Verdict]:
    """Six checks of the way an agent went, by name; each is true in a condition exactly when it passed.

    `trace` is a trace, or a list of events ``{"event": "executed" | "refused", "tool", "args", "ok"}``; a refusal
    may carry ``reason``, ``schema`` (the default) or ``policy``. Names: ``required_present``, ``forbidden_absent``,
    ``ordered``, ``within_budget``, ``no_verbatim_retries``, ``no_invalid_args`` (METHODS 6.2). `ordered` is not
    applicable, and so false in a condition, unless `task.order` asks for an order.

    Raises:
        InputError: an event cannot be read, or `task.order` is none of the known ones.
    """
    seen = _evidence.of_trace(trace) if isinstance(trace, Trace) else _evidence.of_events(trace)
    return {check.name: check.check(task, seen) for check in SIX}


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
