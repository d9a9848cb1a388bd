"""Attempts to verdicts: checks of the end and of the way there, each reported by itself (METHODS 6.2)."""

from seatrial.grading.catalogue import BUILT_IN, SIX, checks, versions
from seatrial.grading.events import Call, Timeline, timeline
from seatrial.grading.evidence import Evidence, TaskCheck, final_answer, of_events, of_trace
from seatrial.grading.grade import grade, grade_trajectory, outcome, quadrant, trajectory_passed

__all__ = [
    "BUILT_IN",
    "SIX",
    "Call",
    "Evidence",
    "TaskCheck",
    "Timeline",
    "checks",
    "final_answer",
    "grade",
    "grade_trajectory",
    "of_events",
    "of_trace",
    "outcome",
    "quadrant",
    "timeline",
    "trajectory_passed",
    "versions",
]
