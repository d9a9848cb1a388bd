"""Results that people act on: the design verdict and the ranking (METHODS 3; contract in DESIGN 5)."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from seatrial.records.estimate import Check, Dropped, Estimate, RankInterval
from seatrial.records.run import Counts

DesignVerdict = Literal["randomised", "crossed", "observational", "not_identified"]


class Design(msgspec.Struct, frozen=True, kw_only=True):
    """May the word causal be used? `title` is the table's title, `caveats` plain sentences to print first."""

    verdict: DesignVerdict
    checks: tuple[Check, ...]
    title: str
    caveats: tuple[str, ...] = ()


class Dimension(msgspec.Struct, frozen=True, kw_only=True):
    """One sub-dimension of one model (METHODS 3.8). `estimate` None: not applicable, `why` says why."""

    estimate: Estimate | None
    rank: RankInterval | None = None
    why: str | None = None
    detail: dict[str, Any] = {}


class SignalRate(msgspec.Struct, frozen=True, kw_only=True):
    """One per-signal outcome of one model. `coverage` is the share of its sessions that have a value."""

    estimate: Estimate | None
    coverage: float
    why: str | None = None


class ModelRow(msgspec.Struct, frozen=True, kw_only=True):
    """One model of a ranking. Differences are in outcome units (points = 100 x for outcomes in [0, 1]).

    `net_improvement` is tau_m, the difference to the baseline policy's mean; `versus_others` is
    tau_m/(1 - q_m); `simultaneous` bounds all tau together; `rank` None: listed, unranked (see `why`). `raw` is the
    unadjusted difference: plain means of all sessions, no strata, weights or labels, against the same baseline.
    `ppi` is the prediction-powered estimate and `signals_only` the one without labels, where labels head the report;
    `rogan_gladen` corrects the signal outcome for its error rates, measured for each model by its labels.
    """

    model: str
    n_sessions: int
    n_clusters: int
    g_effective: float
    mean: Estimate | None
    net_improvement: Estimate | None
    versus_others: Estimate | None = None
    simultaneous: tuple[float, float] | None = None
    p_value: float | None = None
    rank: RankInterval | None = None
    raw: Estimate | None = None
    ppi: Estimate | None = None
    rogan_gladen: Estimate | None = None
    signals_only: Estimate | None = None
    net_benefit: Estimate | None = None
    sensitivity: dict[str, Any] | None = None
    composite: dict[str, Any] | None = None
    dimensions: dict[str, Dimension] = {}
    signals: dict[str, SignalRate] = {}
    mixed_share: float | None = None
    why: str | None = None


class CoverageRow(msgspec.Struct, frozen=True, kw_only=True):
    """Share of a model's sessions in which a signal outcome exists; `p_value` tests equality over models."""

    signal: str
    by_model: dict[str, float]
    p_value: float | None


class NullDistribution(msgspec.Struct, frozen=True, kw_only=True):
    """Effects under permuted labels (METHODS 3.2): printed as a check, never a result.

    `observed` is the same statistic under the real labels, which is the net improvement unless a regression or labels
    adjust that further. `centred`: the mean is zero by construction; False where the statistic pools groups inside
    which labels were permuted, so that it is zero only nearly. The p-value counts draws as they are, uncentred.
    """

    draws: int
    mean: dict[str, float]
    percentiles: dict[str, dict[str, float]] = {}
    method: str = ""
    observed: dict[str, float] = {}
    centred: bool = True


class Power(msgspec.Struct, frozen=True, kw_only=True):
    """What this much data can see (METHODS 3.11). `mde` is the detectable effect at 80% power, by model;
    `sessions_for` maps points (1, 2, 5) to sessions per model at the observed cluster correlation."""

    mde: dict[str, float | None]
    sessions_for: dict[str, int | None]
    level: float
    why: str | None = None


class RepeatRow(msgspec.Struct, frozen=True, kw_only=True):
    """Repeated attempts of one model (METHODS 6.3). Keys of `pass_hat` and `pass_at` are k; `short` counts, by k,
    the tasks left out because fewer than k of their attempts were scored."""

    model: str
    n_tasks: int
    counts: Counts
    pass_hat: dict[str, Estimate | None]
    pass_at: dict[str, Estimate | None]
    short: dict[str, int] = {}


class KindUse(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a kind of signal counts in a headline that is made of signals, and why (METHODS 2).

    `part` False: no outcome hears the kind anyway. `precision` is what is known of it, `n_labelled` how many true cases
    it was measured with; None: nothing was found, or it was not measured.
    """

    kind: str
    counts: bool
    why: str
    part: bool = True
    precision: Estimate | None = None
    n_labelled: int = 0


class Ranking(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `rank` (``rank --json`` result)."""

    design: Design
    basis: dict[str, Any]
    outcome: str
    baseline: dict[str, float]
    estimator: str
    weights: str
    g_effective: float
    largest_cluster_share: float
    coverage_table: tuple[CoverageRow, ...]
    models: tuple[ModelRow, ...]
    null: NullDistribution | None
    power: Power | None
    by: dict[str, dict[str, Ranking]] = {}
    dropped: tuple[Dropped, ...] = ()
    warnings: tuple[str, ...] = ()
    robustness: dict[str, Any] = {}
    repeats: tuple[RepeatRow, ...] = ()
    kinds: tuple[KindUse, ...] = ()
