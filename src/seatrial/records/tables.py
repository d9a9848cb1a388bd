"""Arrow schemas of everything that is stored or passed between rooms by column (DESIGN 3, 4).

Types are those that survive Delta Lake: no nulls-only, categorical or unsigned columns. Times are float64
seconds since the epoch, UTC. JSON columns (`*_json`) hold canonical JSON text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    import polars as pl

ColumnType = Literal["string", "int64", "float64", "bool", "list<string>"]


class Column(msgspec.Struct, frozen=True):
    """A column: name, type, whether null is allowed (and what it then means), and the least value it can have."""

    name: str
    type: ColumnType
    nullable: bool = True
    about: str = ""
    least: float | None = None


class Table(msgspec.Struct, frozen=True):
    """A stored table. `key` identifies a row; `personal` columns are kept out of the log's statistics.

    `by` is the column whose values a commit replaces or removes whole: all rows of a session, say.
    """

    name: str
    version: int
    key: tuple[str, ...]
    columns: tuple[Column, ...]
    personal: tuple[str, ...] = ()
    by: str = "session"

    @property
    def names(self) -> tuple[str, ...]:
        """Column names, in order."""
        return tuple(c.name for c in self.columns)

    def schema(self) -> pl.Schema:
        """The table's Arrow-compatible Polars schema."""
        import polars as pl

        types = {
            "string": pl.String(),
            "int64": pl.Int64(),
            "float64": pl.Float64(),
            "bool": pl.Boolean(),
            "list<string>": pl.List(pl.String()),
        }
        return pl.Schema({c.name: types[c.type] for c in self.columns})


def _c(name: str, type: ColumnType, about: str = "", *, nullable: bool = True, least: float | None = None) -> Column:
    return Column(name, type, nullable, about, least)


SESSIONS = Table(
    "sessions",
    1,
    ("session",),
    (
        _c("session", "string", "trace id", nullable=False),
        _c("blob", "string", "sha256 of the canonical redacted trace", nullable=False),
        _c("agent", "string", "harness name"),
        _c("agent_version", "string"),
        _c("arm", "string", "model of the first agent turn (METHODS 3.1); null when no agent turn names one"),
        _c("models", "list<string>", "every model that spoke"),
        _c("mixed", "bool", "more than one model spoke"),
        _c("task", "string"),
        _c("task_type", "string", "as recorded; null where the source has none"),
        _c("difficulty", "string", "as recorded; null where the source has none"),
        _c("suite", "string"),
        _c("attempt", "int64"),
        _c("user", "string", "pseudonym"),
        _c("parent", "string", "set for sub-agents"),
        _c("start", "float64"),
        _c("end", "float64"),
        _c("steps", "int64"),
        _c("human_turns", "int64"),
        _c("agent_turns", "int64"),
        _c("tool_calls", "int64"),
        _c("tool_errors", "int64"),
        _c("input_tokens", "int64", least=0),
        _c("output_tokens", "int64", least=0),
        _c("cost_usd", "float64", least=0),
        _c("wall_s", "float64", least=0),
        _c("outcome_status", "string"),
        _c("outcome_score", "float64"),
        _c("outcome_by", "string"),
        _c("assigned_arm", "string"),
        _c("probability", "float64"),
        _c("probabilities_json", "string"),
        _c("assigned_stratum", "string"),
        _c("epoch", "string"),
        _c("unit", "string"),
        _c("format", "string"),
        _c("file", "string", "path as given, home folder masked"),
        _c("source_hash", "string"),
        _c("source_bytes", "int64"),
        _c("reader", "string"),
        _c("reader_version", "string"),
        _c("trace_ids", "list<string>", "ids of the traces that its spans belong to; null where it is not of spans"),
    ),
    personal=("user", "unit", "file"),
)

STEPS = Table(
    "steps",
    1,
    ("session", "index"),
    (
        _c("session", "string", nullable=False),
        _c("index", "int64", nullable=False),
        _c("event_class", "string", nullable=False),
        _c("kind", "string"),
        _c("time", "float64"),
        _c("model", "string"),
        _c("chars", "int64"),
        _c("tool_calls", "int64"),
        _c("errors", "int64"),
        _c("copied", "bool"),
        _c("source_ids", "list<string>", "the source's record ids: a record counts once across files"),
    ),
)

SIGNALS = Table(
    "signals",
    1,
    ("session", "step", "kind", "detector", "span_field", "span_start", "call_id"),
    (
        _c("session", "string", nullable=False),
        _c("step", "int64", nullable=False),
        _c("kind", "string", nullable=False),
        _c("detector", "string", nullable=False),
        _c("version", "string", nullable=False),
        _c("confidence", "float64", nullable=False),
        _c("span_start", "int64"),
        _c("span_end", "int64"),
        _c("span_field", "string"),
        _c("quote", "string"),
        _c("time", "float64"),
        _c("model", "string"),
        _c("judges_step", "int64"),
        _c("cause", "string"),
        _c("tool", "string"),
        _c("command", "string"),
        _c("call_id", "string"),
        _c("value", "float64"),
        _c("dropped_by", "string"),
        _c("why", "string"),
    ),
    personal=("quote",),
)

CALLS = Table(
    "calls",
    1,
    ("session", "step", "call"),
    (
        _c("session", "string", nullable=False),
        _c("step", "int64", nullable=False),
        _c("call", "int64", "position within the step", nullable=False),
        _c("call_id", "string"),
        _c("model", "string"),
        _c("tool", "string"),
        _c("command", "string", "head of a shell command"),
        _c("outcome", "string", "ok | error | rejected | interrupted | unknown"),
        _c("cause", "string", "METHODS 1.3, for outcome error"),
        _c("exit_code", "int64"),
        _c("abnormal", "bool", "exit 0 but the output is an error"),
        _c("hallucinated", "bool", "the tool does not exist"),
    ),
)

CORRECTIONS = Table(
    "corrections",
    1,
    ("session", "step"),
    (
        _c("session", "string", nullable=False),
        _c("step", "int64", nullable=False),
        _c("model", "string"),
        _c("turns", "int64", "agent turns from the correction to acceptance; null: never accepted"),
        _c("ended", "string", "accepted | ended | censored"),
        _c("follow_up", "int64", "agent turns observed after the correction"),
    ),
)

OUTCOMES_TABLE = Table(
    "outcomes",
    1,
    ("session",),
    (
        _c("session", "string", nullable=False),
        _c("parent", "string", "set for sub-agents, which are not rows of a ranking"),
        _c("agent", "string", "harness name"),
        _c("simulator", "string", "model that played the user, in benchmarks"),
        _c("arm", "string", "the assigned arm, else the model of the first agent turn"),
        _c("served", "string", "the model of the first agent turn"),
        _c("user", "string", "cluster; null where the user is unknown"),
        _c("task", "string"),
        _c("attempt", "int64"),
        _c("task_type", "string", "as recorded, else by the documented classifier"),
        _c("task_type_by", "string", "recorded | classifier and version"),
        _c("difficulty", "string", "as recorded, else from what precedes the first agent turn; else 'unknown'"),
        _c("difficulty_by", "string", "recorded | classifier and version"),
        _c("epoch", "string"),
        _c("unit", "string", "assignment unit"),
        _c("assigned_stratum", "string"),
        _c("probability", "float64"),
        _c("probabilities_json", "string"),
        _c("mixed", "bool"),
        _c("start", "float64"),
        _c("outcome", "float64", "the source's recorded reward or success"),
        _c("status", "string", "METHODS 0.1; null for sessions without a recorded outcome"),
        _c("confirmed_success", "float64"),
        _c("praise_over_complaint", "float64"),
        _c("steerability", "float64"),
        _c("command_recovery", "float64"),
        _c("no_tool_hallucination", "float64"),
        _c("signals_mean", "float64", "mean of the outcomes above that rest on kinds of signal that may head a report"),
        _c("score", "float64", "the count score; never the headline"),
        _c("n_confirmation", "int64"),
        _c("n_accept_implicit", "int64"),
        _c("n_praise", "int64"),
        _c("n_complaint", "int64"),
        _c("n_correction", "int64"),
        _c("n_execution_error", "int64"),
        _c("calls_counted", "int64", "calls with a result, minus environment faults, rejections, interrupts"),
        _c("calls_ok", "int64", "successes among them; benign exits are successes"),
        _c("calls_environment", "int64", "excluded as environment faults"),
        _c("calls_rejected", "int64"),
        _c("calls_interrupted", "int64"),
        _c("prompt_chars", "int64", "length of the first human turn: a pre-treatment covariate"),
        _c("cost_usd", "float64", least=0),
        _c("latency_s", "float64", least=0),
        _c("tokens", "int64", least=0),
        _c("extraction", "string", "fingerprint of detectors, scoring and weights (METHODS 0.6)"),
        _c("blob", "string", "the stored trace that this row was computed from"),
    ),
    personal=("user", "unit"),
)

ATTEMPTS = Table(
    "attempts",
    1,
    ("session",),
    (
        _c("session", "string", "id of the attempt's trace", nullable=False),
        _c("run", "string", "the run that made it", nullable=False),
        _c("suite", "string"),
        _c("task", "string", nullable=False),
        _c("task_hash", "string", "content of the task: attempts compare only where it is equal"),
        _c("trial", "int64", nullable=False),
        _c("status", "string", "METHODS 0.1", nullable=False),
        _c("score", "float64", "[0, 1]; null unless graded"),
        _c("reason", "string"),
        _c("task_type", "string"),
        _c("difficulty", "string"),
        _c("source", "string", "where the task came from (METHODS 6.1)"),
        _c("must_pass", "bool"),
        _c("part", "string", "dev | holdout"),
        _c("model", "string", "as served"),
        _c("agent", "string"),
        _c("agent_version", "string"),
        _c("fingerprint_json", "string", "parts of the agent by content hash (METHODS 6.1)"),
        _c("world", "string"),
        _c("world_version", "string"),
        _c("seed", "int64"),
        _c("stopped", "string", "why the episode ended"),
        _c("agent_turns", "int64"),
        _c("tool_calls", "int64"),
        _c("tokens", "int64", least=0),
        _c("cost_usd", "float64", "null: the price is not known", least=0),
        _c("latency_s", "float64", least=0),
        _c("start", "float64"),
        _c("blob", "string", "the attempt's trace, arguments verbatim; null: it left none"),
    ),
)

VERDICTS = Table(
    "verdicts",
    1,
    ("session", "metric", "by"),
    (
        _c("session", "string", "the attempt", nullable=False),
        _c("run", "string", nullable=False),
        _c("task", "string", nullable=False),
        _c("task_hash", "string"),
        _c("trial", "int64", nullable=False),
        _c("metric", "string", nullable=False),
        _c("passed", "bool", "null: not applicable or not scored"),
        _c("value", "float64"),
        _c("layer", "string", "final | trajectory | production", nullable=False),
        _c("reason", "string"),
        _c("by", "string", "check or judge", nullable=False),
        _c("version", "string", nullable=False),
        _c("steps_json", "string"),
        _c("evidence_json", "string"),
    ),
)

TRIAGE = Table(
    "triage",
    1,
    ("session",),
    (
        _c("session", "string", "a session, an attempt, or the id of an incident", nullable=False),
        _c("state", "string", "new | task | dismissed", nullable=False),
        _c("reason", "string", "why it was dismissed, or what happened"),
        _c("task", "string", "the task that it became"),
        _c("kind", "string", "session | incident"),
        _c("by", "string"),
        _c("time", "float64"),
    ),
    personal=("by",),
)

CONSENTS = Table(
    "consents",
    1,
    ("subject",),
    (
        _c("subject", "string", "pseudonym of a person, or a session's id", nullable=False),
        _c("purposes", "list<string>", "rank | label | judge | export | serve; null: none"),
        _c("basis", "string", "why they may be used, such as a contract"),
        _c("time", "float64", "when it was given"),
        _c("withdrawn", "float64", "when it was withdrawn; null: it stands"),
    ),
    personal=("subject", "basis"),
    by="subject",
)

LABELS = Table(
    "labels",
    1,
    ("item", "annotator"),
    (
        _c("session", "string", "where it was said or done", nullable=False),
        _c("item", "string", "what was labelled, by the hash of its place and criterion", nullable=False),
        _c("annotator", "string", nullable=False),
        _c("unit", "string", "turn | action | output", nullable=False),
        _c("step", "int64", nullable=False),
        _c("call", "int64", "position of the call within the step, for actions"),
        _c("labels", "list<string>", "what the annotator said; null: skipped"),
        _c("label", "float64", "1 pass, 0 fail, for outputs"),
        _c("criterion", "string", "of the rubric; null: none"),
        _c("probability", "float64", "the chance with which the item was drawn"),
        _c("drawn", "string", "random | uncertain"),
        _c("turn", "string", "the labelled words of a turn"),
        _c("before", "string", "what was said before it"),
        _c("time", "float64"),
    ),
    personal=("annotator", "turn", "before"),
)

TABLES: tuple[Table, ...] = (
    SESSIONS,
    STEPS,
    SIGNALS,
    CALLS,
    CORRECTIONS,
    OUTCOMES_TABLE,
    ATTEMPTS,
    VERDICTS,
    TRIAGE,
    CONSENTS,
    LABELS,
)
"""The stored tables. A room that needs another adds it here."""
