"""After a failed call, did the agent try something else? (METHODS 6.2)"""

from __future__ import annotations

from seatrial.grading.checks.no_verbatim_retries import unknown
from seatrial.grading.events import Call
from seatrial.grading.evidence import Evidence
from seatrial.records import Layer, Task, Verdict


class ErrorRecovery:
    """Of failed calls that another call follows, the share whose next call changes tool or arguments, or waits after
    a transient fault. The next call is the first of a later turn, where turns are known. A failed call that no call
    follows is counted apart: the agent stopped there."""

    name = "error_recovery"
    version = "1"
    layer: Layer = "trajectory"

    def check(self, task: Task, evidence: Evidence) -> Verdict:
        """`value` is the share; not applicable where nothing failed, or nothing followed."""
        line = evidence.timeline
        failed = [(i, c) for i, c in enumerate(line.calls) if c.failed and c.refused != "user"]
        followed: list[tuple[Call, bool]] = []
        for i, call in failed:
            at = _next(line.calls, i)
            if at is not None:
                waited = call.transient and at in line.waits
                followed.append((call, line.calls[at].key != call.key or waited))
        ended = len(failed) - len(followed)
        if not followed:
            if unknown(line):
                why = "the log does not say whether calls failed"
            else:
                why = "no call failed" if not failed else f"no call follows the {ended} failed"
            return self._verdict(None, why, None, (), ended)
        good = sum(ok for _, ok in followed)
        steps = tuple(c.step for c, ok in followed if not ok)
        reason = f"after {good} of {len(followed)} failed calls the next one was different"
        return self._verdict(good == len(followed), reason, good / len(followed), steps, ended)

    def _verdict(
        self, passed: bool | None, reason: str, value: float | None, steps: tuple[int, ...], ended: int
    ) -> Verdict:
        return Verdict(
            metric=self.name,
            passed=passed,
            reason=reason,
            by=self.name,
            version=self.version,
            layer=self.layer,
            value=value,
            steps=steps,
            evidence={"stopped_after_failure": ended} if ended else {},
        )


def _next(calls: tuple[Call, ...], i: int) -> int | None:
    for j in range(i + 1, len(calls)):
        if calls[i].turn is None or calls[j].turn != calls[i].turn:
            return j
    return None


CHECK = ErrorRecovery()
