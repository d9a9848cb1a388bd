"""Drift: what changed between a baseline window and now, and whether it could be chance (METHODS 3.10)."""

from __future__ import annotations

from typing import Literal

import msgspec

from seatrial.records.estimate import Dropped, Estimate

Said = Literal["after a deploy", "without a deploy: the inputs changed", "could be chance", "cannot be told"]


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """Sessions that began in [start, end), in seconds UTC; how many, and by how many clusters (users)."""

    start: float
    end: float
    n_sessions: int
    n_clusters: int


class DeployMark(msgspec.Struct, frozen=True, kw_only=True):
    """A deploy. `by` says who knows of it: ``user`` (`seatrial mark`) or ``traces`` (an agent version never seen
    before)."""

    text: str
    time: float
    by: Literal["user", "traces"]


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One measure in both windows.

    `kind` mix: `psi` is the population stability index of its bins, `shares` each bin's share before and now. `kind`
    rate: `before` and `now` are means and `difference` is now minus before. `p_holm` is adjusted over all measures
    of the report and the classifier; `changed` is p_holm <= 1 - level, None where there is no p. `marks` are the
    deploys in between.
    """

    measure: str
    kind: Literal["mix", "rate"]
    psi: float | None = None
    before: float | None = None
    now: float | None = None
    difference: Estimate | None = None
    shares: dict[str, tuple[float, float]] = {}
    p_value: float | None = None
    p_holm: float | None = None
    changed: bool | None = None
    said: Said = "cannot be told"
    marks: tuple[str, ...] = ()
    why: str | None = None


class ModelChange(msgspec.Struct, frozen=True, kw_only=True):
    """A model's net improvement in both windows, over the models that are in both, and the change with its interval."""

    model: str
    before: Estimate | None
    now: Estimate | None
    change: Estimate | None
    why: str | None = None


class Watched(msgspec.Struct, frozen=True, kw_only=True):
    """One model at one look: limits valid at all looks together, or None and why nothing may be claimed."""

    model: str
    value: float
    low: float | None
    high: float | None
    why: str | None = None


class Drift(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of ``drift`` and ``watch``.

    `separable` is the area under the curve of a classifier that tells the windows apart (.5: it cannot), with its
    p-value, and `separable_p_holm` that p adjusted in one family with those of all measures. `stale` says why the
    baseline should be refreshed; empty: it need not be. `board` holds limits that stand at every look (``watch`` only).
    """

    before: Window
    now: Window
    changes: tuple[Change, ...]
    models: tuple[ModelChange, ...]
    outcome: str
    separable: float | None = None
    separable_p: float | None = None
    separable_p_holm: float | None = None
    stale: tuple[str, ...] = ()
    marks: tuple[DeployMark, ...] = ()
    board: tuple[Watched, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    level: float = 0.95
    warnings: tuple[str, ...] = ()


class Baseline(msgspec.Struct, frozen=True, kw_only=True):
    """A baseline window as it was frozen: where it lies, the evaluation set drawn from it (its size and seed: the set
    can be drawn again from its data version), and each model's mean and net improvement then."""

    start: float
    end: float
    made: float
    data_version: str
    outcome: str
    n_sessions: int
    n_sampled: int
    seed: int
    strata: tuple[str, ...]
    models: dict[str, Estimate | None]
    means: dict[str, Estimate | None]
