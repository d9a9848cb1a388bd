"""Evidence found in a trace (METHODS 1)."""

from __future__ import annotations

from typing import Literal

import msgspec

SignalKind = Literal[
    "confirmation",
    "accept_implicit",
    "praise",
    "complaint",
    "correction",
    "execution_error",
    "abnormal_output",
    "escalation",
    "retry_request",
    "abandonment",
    "explicit_feedback",
]
SIGNAL_KINDS: tuple[SignalKind, ...] = (
    "confirmation",
    "accept_implicit",
    "praise",
    "complaint",
    "correction",
    "execution_error",
    "abnormal_output",
    "escalation",
    "retry_request",
    "abandonment",
    "explicit_feedback",
)

ErrorCause = Literal["model", "environment", "rejected", "benign", "interrupted", "unknown"]
"""Why a tool result is an error: a judgement, versioned with its detector (METHODS 1.3)."""


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """Characters [start, end) of `field` of a step: `text`, or `results.<i>.text` for a tool result."""

    start: int
    end: int
    field: str = "text"


class Signal(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One piece of evidence, kept or dropped.

    `step` is the index of the step that holds the evidence; `judges_step` and `model` name the agent turn
    that it judges (the last agent turn before it). `confidence` is in [0, 1]. `dropped_by` says why it does
    not count (`environment_fault`, `below_threshold: ...`, `merged_into: <step>`); None means that it counts.
    `value` is a rating's value in [0, 1] for explicit_feedback, else None. `quote` is the evidence itself,
    clipped, from the redacted trace. `tool` and `command` are set for command errors (command = its head).
    """

    kind: SignalKind
    session: str
    step: int
    detector: str
    version: str
    confidence: float
    span: Span | None = None
    quote: str = ""
    time: float | None = None
    model: str | None = None
    judges_step: int | None = None
    cause: ErrorCause | None = None
    tool: str | None = None
    command: str | None = None
    call_id: str | None = None
    value: float | None = None
    dropped_by: str | None = None
    why: str | None = None


class Episode(msgspec.Struct, frozen=True, kw_only=True):
    """A task inside a session: steps [start, end). A new request starts one (METHODS 2)."""

    session: str
    index: int
    start: int
    end: int
    task_type: str | None = None


class CallFact(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of one tool call (a row of the calls table; METHODS 1.3, 3.8).

    `call` is the position inside the step. `command` is the head of a shell command (``git push``, ``grep``),
    None for other tools. `cause` is set when the result is an error or a non-zero exit. `abnormal` marks an
    ordinary result whose own output is an error. `intent` names what the call was for (tool, command head,
    target file): a later call of the same intent can recover from this one.
    """

    session: str
    step: int
    call: int
    tool: str
    outcome: str
    intent: str
    call_id: str | None = None
    model: str | None = None
    command: str | None = None
    cause: ErrorCause | None = None
    exit_code: int | None = None
    abnormal: bool = False
    hallucinated: bool = False


class CorrectionFact(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One correction episode (a row of the corrections table; METHODS 3.8).

    `turns` counts agent turns from the correction to the acceptance; None: never accepted. `ended` is
    accepted, ended (the task or session was over first) or censored (the log was cut while live).
    `follow_up` counts agent turns observed after the correction.
    """

    session: str
    step: int
    ended: str
    follow_up: int
    turns: int | None = None
    model: str | None = None
