"""What seven dimensions say about runs, tasks and an agent, each with its evidence (METHODS 5; DESIGN 5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import msgspec

from seatrial.records.estimate import Estimate
from seatrial.records.run import Attempt, Counts, Status
from seatrial.records.task import Task
from seatrial.records.trace import Trace
from seatrial.records.verdict import Verdict

DIMENSIONS: tuple[str, ...] = ("D1", "D2", "D3", "D4", "D5", "D6", "D7")
"""Completion, intent fidelity, reproducibility, repair cost, replay integrity, safety gates, audit completeness."""

RelevanceSource = Literal["annotation", "intent", "ablation", "data_flow", "judge"]
"""Where the relevance of an action comes from, in order of trust (METHODS 5, D2)."""

FailureKind = Literal["intent", "execution", "environment", "gate", "budget", "unknown"]
"""Why an attempt failed."""


class ActionVerdict(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is known of one executed action of one run.

    `index` counts the run's executed actions from 0; `step` is the index of the trace's step and `call_id` the call.
    `relevant` None: the source cannot tell. `compliant` False: the action did something that the task forbids.
    `others` holds what further sources said of the same action, by source: how far they agree is reported.
    """

    index: int
    step: int
    call_id: str
    tool: str
    relevant: bool | None
    source: RelevanceSource | None
    why: str
    compliant: bool | None = None
    others: dict[str, bool] = {}
    evidence: dict[str, Any] = {}


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A fact of one run that lowered a dimension, or that a reader should see. `weight` in [0, 1] orders findings:
    1 is the worst there can be. `step` is the index of the trace's step, None where no step carries it."""

    what: str
    weight: float
    step: int | None = None
    call_id: str | None = None
    detail: dict[str, Any] = {}


class DimensionValue(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One dimension of one run.

    `value` is in [0, 1]; None: not applicable to this run, or its evidence is missing, and `why` says which.
    `numerator` and `denominator` are what the value is a ratio of, in the dimension's own units (actions, gates,
    steps, minutes); None where it is no ratio. `level` is source C's rubric level with the reason `level_why`.
    `parts` holds further numbers by name, plain JSON: whatever `Dimension.combine` needs beyond the ratio.
    """

    dimension: str
    version: str
    task: str
    trial: int
    status: Status
    value: float | None
    why: str
    numerator: float | None = None
    denominator: float | None = None
    level: float | None = None
    level_why: str = ""
    findings: tuple[Finding, ...] = ()
    actions: tuple[ActionVerdict, ...] = ()
    parts: dict[str, Any] = {}
    trace: str | None = None


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known of one run, for a dimension to look at. Whatever is None is not known, and never guessed.

    `trace` is the run's log; of our own runner its ``extra`` holds start and final states, changes, gates and the
    world (`world.trace_of`). `world` makes a fresh world in the recorded start, to re-execute in; `origin` says the
    same in plain values, for another process (``suite``, ``task``, ``seed``). `annotations` are a person's verdicts
    on this run's actions, `judged` those of a validated judge. `succeeds` judges an end as the task does: final
    answer and world state to passed, or None where it cannot. `own` marks a run that our runner recorded.
    `required` tells which of the effects that the task's intent requires hold in a state, in their order (None: it
    requires none, or none that can be looked at). `agent` begins the agent's session again with the model's recorded
    responses in place of the model; it must reach no model.
    `audit` is the run's audit record as a plain JSON value (`dimensions.audit`).
    """

    attempt: Attempt
    task: Task | None = None
    trace: Trace | None = None
    verdicts: tuple[Verdict, ...] = ()
    world: Callable[[], Any] | None = None
    origin: dict[str, Any] | None = None
    annotations: tuple[ActionVerdict, ...] = ()
    judged: tuple[ActionVerdict, ...] = ()
    succeeds: Callable[[str, dict[str, Any]], bool | None] | None = None
    required: Callable[[dict[str, Any]], tuple[bool, ...]] | None = None
    agent: Callable[[], Any] | None = None
    audit: dict[str, Any] | None = None
    own: bool = False


class TaskValue(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One dimension of one task, over its runs. `value` may leave [0, 1] where the estimator is unbiased (D3);
    None: `why`. `n` counts the runs that carry it."""

    value: float | None
    n: int
    why: str = ""
    low: float | None = None
    high: float | None = None


class DimensionResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One dimension of one agent over all tasks.

    `estimate` None: not measured, and `why` says what evidence is missing. `raw` is the mean before it is clipped to
    [0, 1] for display. `unmeasured` counts runs without a value, by reason. `beside` holds companions that are shown
    next to the estimate and never blended into it (D3's ``max(p, 1 - p)``, D6's precision). `worst` are the runs with
    the worst evidence, worst first. `unit` is the unit of cost (D4).
    """

    dimension: str
    name: str
    version: str
    estimate: Estimate | None
    why: str
    per_task: dict[str, TaskValue] = {}
    raw: float | None = None
    level: float | None = None
    level_why: str = ""
    n_runs: int = 0
    unmeasured: dict[str, int] = {}
    beside: dict[str, Estimate | float | None] = {}
    worst: tuple[DimensionValue, ...] = ()
    notes: tuple[str, ...] = ()
    unit: str | None = None
    detail: dict[str, Any] = {}


class FailureCause(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why one attempt failed, with the evidence that says so."""

    task: str
    trial: int
    cause: FailureKind
    why: str
    step: int | None = None
    evidence: dict[str, Any] = {}
    trace: str | None = None


class Scorecard(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Seven dimensions of one agent (``scorecard --json``), never blended.

    `k` is the number of runs per task, the smallest where tasks differ. `dimensions` has D1 to D7. `causes` are the
    failed attempts, `cause_counts` how many of each kind. `attempts_before_success` counts, over tasks, how many
    attempts failed before the first that passed (key ``never``: none passed). `correlations` maps pairs such as
    ``D1~D3`` to the correlation over tasks (None: it does not vary, or too few tasks). `certifies` says in plain
    sentences what k runs can and cannot certify. `values` holds every run's values where they were asked for.
    """

    agent: str
    model: str | None
    suite: str | None
    k: int
    tasks: int
    dimensions: dict[str, DimensionResult]
    counts: Counts
    statuses: dict[str, int] = {}
    causes: tuple[FailureCause, ...] = ()
    cause_counts: dict[str, int] = {}
    attempts_before_success: dict[str, int] = {}
    correlations: dict[str, float | None] = {}
    certifies: tuple[str, ...] = ()
    repository: dict[str, Any] = {}
    warnings: tuple[str, ...] = ()
    values: tuple[DimensionValue, ...] = ()
    basis: dict[str, Any] = {}
