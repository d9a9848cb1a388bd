"""What an agent did: trace, step, tool call, tool result (DESIGN 3, METHODS 1.1).

Aligned with the Agent Trajectory Interchange Format (ATIF) 1.8. Times are seconds since the epoch, UTC,
rounded to the microsecond. Fields that a source has and this model lacks are kept in `extra`.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from seatrial.records.run import RecordedOutcome

EventClass = Literal["human", "simulated_user", "agent", "harness", "interrupted"]
"""Who spoke. Only `human` (and, in benchmarks, `simulated_user`) text can carry a human signal."""

ResultOutcome = Literal["ok", "error", "rejected", "interrupted", "unknown"]
"""What the log says about a tool result. The *cause* of an error is a judgement and lives in signals."""

Validity = Literal["valid", "invalid", "unknown_tool", "unknown"]
"""Whether the call fitted its tool: `invalid` arguments, a tool that does not exist, or not known."""


class Usage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Tokens and money of one model response, or their totals. None means not recorded, never zero.

    `input_tokens` counts everything read, cached or not; `cached_tokens` is the part of it served from a
    cache; `output_tokens` is what was generated; `cost_usd` is money as recorded by the source.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    cost_usd: float | None = None
    extra: dict[str, Any] = {}


class ToolCall(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tool invocation that the agent asked for.

    `arguments` is the parsed object; when the source holds text that is not a JSON object, `arguments` is
    empty, `raw_arguments` holds the text and `validity` is `invalid`.
    """

    id: str
    name: str
    arguments: dict[str, Any] = {}
    raw_arguments: str | None = None
    validity: Validity = "unknown"
    extra: dict[str, Any] = {}


class ToolResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What came back. `call_id` names the ToolCall of the same step; None for an observation without a call.

    `exit_code` is None where the source has none. `subagents` are ids of the traces that this call started.
    """

    call_id: str | None = None
    outcome: ResultOutcome = "unknown"
    exit_code: int | None = None
    text: str = ""
    truncated: bool = False
    time: float | None = None
    subagents: tuple[str, ...] = ()
    extra: dict[str, Any] = {}


class Step(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One turn of a trace. Tool calls and their results belong to the agent step that made the calls.

    `index` counts from 0. `kind` refines the event class in the source's terms (`compact_summary`, `meta`,
    `hook`, `system_prompt`, `task_notification`, `command`, `api_error`, ...); None where there is nothing to
    add. `copied` marks context copied from an earlier trace or file (a branch, a continuation): it is kept
    and shown, never counted. `source_ids` are the source's record ids that were merged into this step.
    """

    index: int
    event_class: EventClass
    text: str = ""
    time: float | None = None
    reasoning: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    results: tuple[ToolResult, ...] = ()
    model: str | None = None
    usage: Usage | None = None
    kind: str | None = None
    copied: bool = False
    source_ids: tuple[str, ...] = ()
    extra: dict[str, Any] = {}


class Agent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The harness that drove the model, e.g. name `claude-code`, version `2.1.0`."""

    name: str
    version: str | None = None
    tools: tuple[dict[str, Any], ...] | None = None
    extra: dict[str, Any] = {}


class TaskRef(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The task that a trace worked on, as far as the source knows it."""

    id: str | None = None
    type: str | None = None
    difficulty: str | None = None
    suite: str | None = None
    source: str | None = None


class Assignment(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How the arm was chosen, written before the session began (METHODS 3.6b).

    `probability` is that of the drawn arm; `probabilities` holds every arm's. `unit` is the randomised unit
    (a session, task or user id), `stratum` the block inside which it was drawn, `epoch` the roster's period.
    """

    arm: str
    probability: float
    probabilities: dict[str, float] = {}
    stratum: str | None = None
    epoch: str | None = None
    unit: str | None = None
    time: float | None = None


class Totals(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Sums over the trace's own steps (copied steps and sub-agents excluded). `wall` is in seconds."""

    usage: Usage = Usage()
    wall: float | None = None
    extra: dict[str, Any] = {}


class Provenance(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where a trace came from. `content_hash` is the sha256 of the source bytes [byte_start, byte_end)."""

    format: str
    reader: str
    reader_version: str
    file: str | None = None
    byte_start: int = 0
    byte_end: int | None = None
    content_hash: str | None = None
    extra: dict[str, Any] = {}


class Consent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A subject's agreement: `purposes` among rank, label, judge, export, serve; times in seconds UTC."""

    subject: str
    purposes: tuple[str, ...] = ()
    basis: str | None = None
    time: float | None = None
    withdrawn: float | None = None


class Trace(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One agent, one conversation or task attempt, from first step to last (DESIGN 3).

    `model` is the default; a step's own model wins. `user` is a pseudonym once stored. `parent` is the id of
    the trace that started this sub-agent, `parent_call` the tool call that did. `outcome` is a success or
    reward that the source recorded, None when it recorded none.
    """

    id: str
    agent: Agent
    provenance: Provenance
    model: str | None = None
    task: TaskRef = TaskRef()
    attempt: int | None = None
    assignment: Assignment | None = None
    user: str | None = None
    steps: tuple[Step, ...] = ()
    totals: Totals = Totals()
    outcome: RecordedOutcome | None = None
    consent: Consent | None = None
    parent: str | None = None
    parent_call: str | None = None
    continues: str | None = None
    extra: dict[str, Any] = {}
