"""What pairs say beyond the four cells, and what a router is made of (METHODS 4)."""

from __future__ import annotations

from typing import Any

import msgspec

from seatrial.records.estimate import Dropped, Estimate
from seatrial.records.pair import Certificate, ContrastRow, PolicyRow


class Interaction(msgspec.Struct, frozen=True, kw_only=True):
    """Effect under `condition` minus effect under clean observations, paired by task."""

    operation: str
    delay: int
    condition: str
    difference: Estimate
    p_value: float | None
    cohort: str | None = None
    agent: str | None = None


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """Effect at `delay` minus effect at the earliest delay `since`, paired by task."""

    operation: str
    condition: str
    delay: int
    since: int
    difference: Estimate
    cohort: str | None = None
    agent: str | None = None


class Overlap(msgspec.Struct, frozen=True, kw_only=True):
    """Two operations against the same continuations without recovery, on the tasks that have both.

    Cells are counts of tasks (shares of replays add up to fractions). `first_only` and `second_only` hold ``R`` and
    ``H``: tasks that this operation alone rescues or harms. `agree` tasks come out alike under both.
    """

    first: str
    second: str
    condition: str
    delay: int
    n: int
    stable_success: float
    stable_failure: float
    shared_rescues: float
    shared_harms: float
    first_only: dict[str, float]
    second_only: dict[str, float]
    agree: float
    net_first: float
    net_second: float
    difference: Estimate
    cohort: str | None = None
    agent: str | None = None


class Decomposition(msgspec.Struct, frozen=True, kw_only=True):
    """A refresh taken apart: `act` is the effect of the query with its content hidden, `content` what the content
    adds; they sum to `total` on the `n` tasks that have both."""

    operation: str
    ablated: str
    condition: str
    delay: int
    n: int
    total: Estimate
    act: Estimate
    content: Estimate
    cohort: str | None = None
    agent: str | None = None


class Contrast(msgspec.Struct, frozen=True, kw_only=True):
    """What a pairs table says: rows first, then what compares them. `dropped` and `warnings` are in plain words."""

    rows: tuple[ContrastRow, ...]
    interactions: tuple[Interaction, ...] = ()
    timing: tuple[Timing, ...] = ()
    overlaps: tuple[Overlap, ...] = ()
    decompositions: tuple[Decomposition, ...] = ()
    tasks: int = 0
    pairs: int = 0
    level: float = 0.95
    dropped: tuple[Dropped, ...] = ()
    warnings: tuple[str, ...] = ()


class Frontier(msgspec.Struct, frozen=True, kw_only=True):
    """One rule of a router's grid on the fitting tasks, out of fold: what it gains, harms and how often it acts.

    `p_value` is the evidence against "harm exceeds the limit" on the certify tasks, None where it was not tested.
    """

    threshold: float
    gain: float
    harm: float
    rate: float
    p_value: float | None = None
    certify_harms: float | None = None
    certified: bool = False
    chosen: bool = False


class RouterFit(msgspec.Struct, frozen=True, kw_only=True):
    """A fitted router and how it came about. `router` is the deployable object as plain JSON.

    `gain` and `harm` are out-of-fold on the fitting tasks: net gain on erroneous observations, harm on clean ones.
    `certificate` None: the limit was tuned on the fitting tasks and is certified by nothing.
    """

    learner: str
    operation: str
    delays: tuple[int, ...]
    features: tuple[str, ...]
    thresholds: dict[str, float | None]
    folds: int
    n_fit: int
    n_certify: int
    gain: float
    harm: float
    rate: float
    limit: float
    certificate: Certificate | None
    router: dict[str, Any]
    frontier: tuple[Frontier, ...] = ()
    candidates: dict[str, float] = {}
    warnings: tuple[str, ...] = ()


class Evaluation(msgspec.Struct, frozen=True, kw_only=True):
    """Policies on held-out tasks: `rows` by policy and condition; `fits` are the routers that were tried."""

    rows: tuple[PolicyRow, ...]
    operation: str
    delays: tuple[int, ...]
    n_fit: int
    n_test: int
    mixes: dict[str, dict[str, float]]
    fits: tuple[RouterFit, ...] = ()
    level: float = 0.95
    answer: str = ""
    warnings: tuple[str, ...] = ()
