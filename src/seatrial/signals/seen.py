"""What detectors, scores and outcome rows read of a stored trace: to decode nothing else is faster.

The forms have the fields of `records.trace` that are read, under the same names, and nothing under the others: whoever
reads one of those fails. Sessions of detectors that come from elsewhere (plugins) are decoded whole.
"""

from __future__ import annotations

from typing import Any, cast

import msgspec

from seatrial import plugins
from seatrial.records import Agent, Assignment, TaskRef, Totals, Trace
from seatrial.records.run import RecordedOutcome
from seatrial.records.trace import EventClass, ResultOutcome, Validity

# Traces hold no cycles: the collector need not know of what they are made of.


class SeenCall(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """`ToolCall` as far as it is read."""

    id: str
    name: str
    arguments: dict[str, Any] = {}
    raw_arguments: str | None = None
    validity: Validity = "unknown"


class SeenResult(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """`ToolResult` as far as it is read."""

    call_id: str | None = None
    outcome: ResultOutcome = "unknown"
    exit_code: int | None = None
    text: str = ""
    time: float | None = None


class SeenStep(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """`Step` as far as it is read."""

    index: int
    event_class: EventClass
    text: str = ""
    time: float | None = None
    tool_calls: tuple[SeenCall, ...] = ()
    results: tuple[SeenResult, ...] = ()
    model: str | None = None
    copied: bool = False
    extra: dict[str, Any] = {}


class SeenTrace(msgspec.Struct, frozen=True, kw_only=True):
    """`Trace` as far as it is read."""

    id: str
    agent: Agent
    model: str | None = None
    task: TaskRef = TaskRef()
    attempt: int | None = None
    assignment: Assignment | None = None
    user: str | None = None
    steps: tuple[SeenStep, ...] = ()
    totals: Totals = Totals()
    outcome: RecordedOutcome | None = None
    parent: str | None = None
    extra: dict[str, Any] = {}


def seen_form() -> type[Trace]:
    """The form in which stored traces are decoded to be extracted."""
    return Trace if plugins.plugins("seatrial.detectors").found else cast(type[Trace], SeenTrace)
