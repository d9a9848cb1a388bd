"""The site's own words: navigation, what became of a signal, and which way a number is good."""

from __future__ import annotations

from typing import Literal

import msgspec

from seatrial.server.access import Role

LONGEST_NAME = 30_000
"""The most characters that an id or a name in an address may have."""

LONGEST_HEAD = 9 * LONGEST_NAME + 32 * 1024
"""Bytes that a request may have before its body: such a name, percent-encoded, and the rest."""


class Link(msgspec.Struct, frozen=True):
    """A place in the navigation; shown to those whose role covers `needs`."""

    path: str
    text: str
    needs: Role = "viewer"


NAVIGATION: tuple[tuple[str, tuple[Link, ...]], ...] = (
    ("Results", (
        Link("/", "Leaderboard"), Link("/scorecard", "Scorecard"), Link("/recovery", "Recovery"),
        Link("/suites", "Suites and gate"), Link("/judges", "Judges"), Link("/drift", "Drift"),
    )),
    ("Sessions", (Link("/sessions", "Browse"), Link("/triage", "Triage"), Link("/label", "Label", "labeller"))),
    ("This site", (Link("/jobs", "Jobs"), Link("/audit", "Audit log", "admin"), Link("/api", "API"))),
)  # fmt: skip

RANKINGS = ("auto", "outcome", "signals", "confirmed_success", "praise_over_complaint", "steerability",
            "command_recovery", "no_tool_hallucination")  # fmt: skip
"""Outcomes that a person can have models ranked by."""

Fate = Literal["kept", "merged", "dropped"]

_DROPPED = {
    "environment_fault": "the environment failed, not the agent",
    "benign_exit": "this exit code means no, it is not a failure",
    "interrupted": "the call was stopped before it could succeed or fail",
}

KINDS: dict[str, str] = {
    "confirmation": "Confirmation",
    "accept_implicit": "Implicit acceptance",
    "praise": "Praise",
    "complaint": "Complaint",
    "correction": "Correction",
    "execution_error": "Execution error",
    "abnormal_output": "Abnormal output",
    "escalation": "Escalation",
    "retry_request": "Retry request",
    "abandonment": "Abandonment",
    "explicit_feedback": "Explicit feedback",
}
"""Signal kinds in plain words."""


def fate(dropped_by: str | None) -> tuple[Fate, str]:
    """What became of a signal and why: kept, merged or dropped."""
    if dropped_by is None:
        return "kept", "counts"
    reason, _, rest = dropped_by.partition(": ")
    if reason == "merged_into":
        return "merged", f"the same as the one in step {rest}, counted once"
    if reason == "below_threshold":
        return "dropped", f"too uncertain: confidence {rest}"
    return "dropped", _DROPPED.get(reason, rest or reason.replace("_", " "))
