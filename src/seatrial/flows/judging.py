"""A finished episode to its verdicts, its status and its place in the table of answer and trajectory."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial import grading
from seatrial.records import Status, Task, Verdict
from seatrial.suites import Episode


def judge(task: Task, episode: Episode) -> tuple[tuple[Verdict, ...], Status, float | None, str]:
    """Verdicts of every check, and the attempt's status, score and reason.

    An attempt whose status the runner settled (it crashed, or ran out of time) is graded all the same: what it did
    until then is evidence, and its final checks say how it left the world. Where the world or its surroundings broke,
    nothing is graded.
    """
    if episode.status in ("error_infra", "skipped", "missing"):
        return (), episode.status, None, episode.reason
    seen = grading.of_trace(
        episode.trace,
        tools=episode.tools,
        start=episode.start,
        final=episode.final,
        changes=episode.changes,
        stopped=episode.stopped,
    )
    verdicts = grading.grade(task, seen, grading.checks(reactions=False))
    if episode.status is not None:
        return verdicts, episode.status, None, episode.reason
    status, score, reason = grading.outcome(verdicts)
    return verdicts, status, score, reason


def place(status: Status, verdicts: Sequence[Verdict]) -> str | None:
    """sound, lucky, unlucky or failed; None where answer or trajectory is not judged. An attempt that crashed or ran
    out of time has no right answer."""
    answer = {"passed": True, "failed": False, "error_agent": False, "timeout": False}.get(status)
    return grading.quadrant(answer, grading.trajectory_passed(verdicts))
