"""The `[gate]` table of the settings: margins and policies, committed beside the suite (METHODS 6.5)."""

from __future__ import annotations

from typing import Literal

import msgspec

from seatrial.errors import SettingsError

MARGIN = 0.02
"""Two points: the drop that counts, where the settings name no other."""
COST_MARGIN = 0.20
"""Cost and latency may grow by a fifth of the baseline's mean, where the settings name no other."""
ALPHA = 0.05
LOOKS = 10

Policy = Literal["stop", "inconclusive", "note"]
"""What a finding does: `stop` is missing evidence (exit 3), `inconclusive` withholds PASS, `note` is shown only."""


class MetricSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One metric that is declared before the run.

    `margin` is the worsening that counts, in the metric's unit; for cost and latency a share of the baseline's mean.
    None: the default of its kind. `better` says which direction is good; None: higher, and lower for cost, latency
    and tokens. `range` is the least and the greatest value that a quality metric can have; None: 0 and 1. `judge` names
    the judge's file where a judge gives this metric, `stamp` its stamp.
    """

    margin: float | None = None
    better: Literal["higher", "lower"] | None = None
    range: tuple[float, float] | None = None
    judge: str | None = None
    stamp: str | None = None


class GateSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Margins and policies of the gate.

    `metrics` declares metrics with their own margins; every quality metric of the baseline is declared anyway.
    `missing`, `changed`, `new_failing`, `new_passing` are the policies for cases without a partner, or whose content
    differs. `looks` is the largest number of looks of adaptive trials.
    """

    margin: float = MARGIN
    cost_margin: float = COST_MARGIN
    alpha: float = ALPHA
    rule: Literal["noninferiority", "point"] = "noninferiority"
    on_inconclusive: Literal["pass", "fail"] = "pass"
    must_pass: tuple[str, ...] = ()
    missing: Policy = "stop"
    changed: Policy = "stop"
    new_failing: Policy = "inconclusive"
    new_passing: Policy = "note"
    looks: int = LOOKS
    baseline: str | None = None
    history: str | None = None
    metrics: dict[str, MetricSettings] = {}

    def margin_of(self, metric: str, kind: str) -> float:
        """The margin in force for a metric of this kind."""
        own = self.metrics.get(metric)
        if own is not None and own.margin is not None:
            return own.margin
        return self.margin if kind == "quality" else self.cost_margin

    def range_of(self, metric: str) -> tuple[float, float]:
        """The least and the greatest value that a quality metric can have."""
        own = self.metrics.get(metric)
        return own.range if own is not None and own.range is not None else (0.0, 1.0)


def checked(settings: GateSettings) -> GateSettings:
    """The settings, if their numbers can mean something.

    Raises:
        SettingsError: a margin, alpha or the number of looks is out of range.
    """
    margins = {"margin": settings.margin, "cost_margin": settings.cost_margin}
    margins |= {f"metrics.{n}.margin": m.margin for n, m in settings.metrics.items() if m.margin is not None}
    for name, value in margins.items():
        if not 0.0 < value < 1e9 or (name == "margin" and value >= 1.0):
            raise SettingsError(
                f"setting 'gate.{name}' is {value}; a margin is above 0",
                hint="0.02 is two points; a margin of 0 could never be passed",
            )
    for name, metric in settings.metrics.items():
        if metric.range is not None and not -1e9 < metric.range[0] < metric.range[1] < 1e9:
            raise SettingsError(f"setting 'gate.metrics.{name}.range' is {list(metric.range)}",
                                hint="give the least and the greatest value: [0, 10]")  # fmt: skip
    if not 0.0 < settings.alpha < 0.5:
        raise SettingsError(f"setting 'gate.alpha' is {settings.alpha}, not between 0 and 0.5")
    if not 1 <= settings.looks <= 50:
        raise SettingsError(f"setting 'gate.looks' is {settings.looks}, not between 1 and 50")
    return settings
