"""What production says of an answer: how people took it, and what it cost them to get it (METHODS 1.2, 6.7).

The signals are found elsewhere and handed over as records: a check reads them and looks for none itself.
"""

from __future__ import annotations

from seatrial.grading.evidence import Evidence
from seatrial.records import Layer, Signal, SignalKind, Task, Verdict

LAYER: Layer = "production"
NOTHING = "no signals of production were handed over"
CLIPPED = 60


class Without:
    """No signal of one kind came after the agent's first turn. Only signals that count are looked at (METHODS 1.4);
    where nobody said anything after that turn there is no reaction to judge."""

    version = "1"
    layer: Layer = LAYER

    def __init__(self, name: str, kind: SignalKind, said: str) -> None:
        self.name = name
        self._kind = kind
        self._said = said

    def check(self, task: Task, evidence: Evidence) -> Verdict:
        """`value` is the number of such signals."""
        if evidence.signals is None:
            return _verdict(self, None, NOTHING)
        if not evidence.replies:
            return _verdict(self, None, "nobody answered the agent, so nobody's reaction is known")
        found = [s for s in evidence.signals if s.kind == self._kind and s.dropped_by is None]
        if not found:
            return _verdict(self, True, f"none in {_replies(evidence.replies)}", 0.0)
        quoted = next((q for s in found if (q := s.quote.strip())), "")
        clipped = quoted if len(quoted) <= CLIPPED else quoted[: CLIPPED - 3] + "..."
        reason = f"{self._said} {len(found)} times" if len(found) > 1 else self._said
        return _verdict(
            self, False, f"{reason}: {clipped!r}" if clipped else reason, float(len(found)),
            tuple(sorted({s.step for s in found})),
        )  # fmt: skip


class Rated:
    """People's ratings are good: their mean, in [0, 1], is at least the middle of the scale."""

    name = "rated_well"
    version = "1"
    layer: Layer = LAYER

    def check(self, task: Task, evidence: Evidence) -> Verdict:
        """`value` is the mean rating."""
        if evidence.signals is None:
            return _verdict(self, None, NOTHING)
        rated: list[tuple[Signal, float]] = [
            (s, s.value) for s in evidence.signals
            if s.kind == "explicit_feedback" and s.dropped_by is None and s.value is not None
        ]  # fmt: skip
        if not rated:
            return _verdict(self, None, "nobody rated it")
        mean = sum(value for _, value in rated) / len(rated)
        steps = tuple(sorted({s.step for s, _ in rated}))
        return _verdict(self, mean >= 0.5, f"{len(rated)} ratings, mean {mean:.2f} of 1", mean, steps)


class WithinCost:
    """The attempt cost no more than the task allows. A price that is not known is no price of zero."""

    name = "within_cost"
    version = "1"
    layer: Layer = LAYER

    def check(self, task: Task, evidence: Evidence) -> Verdict:
        """`value` is the cost in USD, where there is a limit."""
        limit, cost = task.max_cost_usd, evidence.cost_usd
        if limit is None:
            return _verdict(self, None, "the task sets no limit")
        if cost is None:
            return _verdict(self, None, f"the cost is not known, limit {limit:g} USD")
        return _verdict(self, cost <= limit, f"{cost:.4g} USD, limit {limit:g}", cost)


class WithinTime:
    """The attempt took no longer than the task allows, by the clock."""

    name = "within_time"
    version = "1"
    layer: Layer = LAYER

    def check(self, task: Task, evidence: Evidence) -> Verdict:
        """`value` is the time in seconds, where there is a limit: it differs between equal attempts."""
        limit, seconds = task.max_seconds, evidence.seconds
        if limit is None:
            return _verdict(self, None, "the task sets no limit")
        if seconds is None:
            return _verdict(self, None, f"the time is not known, limit {limit:g} s")
        return _verdict(self, seconds <= limit, f"{seconds:.3g} s, limit {limit:g}", seconds)


def _replies(n: int) -> str:
    return "the one reply to the agent" if n == 1 else f"{n} replies to the agent"


def _verdict(
    check: Without | Rated | WithinCost | WithinTime, passed: bool | None, reason: str, value: float | None = None,
    steps: tuple[int, ...] = (),
) -> Verdict:  # fmt: skip
    return Verdict(
        metric=check.name,
        passed=passed,
        reason=reason,
        by=check.name,
        version=check.version,
        layer=check.layer,
        value=value,
        steps=steps,
    )


REACTIONS = (
    Without("no_complaint", "complaint", "the user complained"),
    Without("no_correction", "correction", "the user corrected the agent"),
    Without("no_retry_request", "retry_request", "the user asked the same again"),
    Without("no_escalation", "escalation", "it went on to somebody else"),
    Without("not_abandoned", "abandonment", "the user went away with the request open"),
    Rated(),
)
"""How people took an answer."""

CHECKS = (*REACTIONS, WithinCost(), WithinTime())
