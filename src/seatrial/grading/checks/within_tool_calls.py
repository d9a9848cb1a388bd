"""Did the agent stay within its tool calls? (METHODS 6.2)"""

from __future__ import annotations

from seatrial.grading.evidence import Evidence
from seatrial.records import Layer, Task, Verdict


class WithinToolCalls:
    """Every proposed call counts, refused ones included."""

    name = "within_tool_calls"
    version = "1"
    layer: Layer = "trajectory"

    def check(self, task: Task, evidence: Evidence) -> Verdict:
        """`value` is the number of calls."""
        n = len(evidence.timeline.calls)
        limit = task.max_tool_calls
        return Verdict(
            metric=self.name,
            passed=None if limit is None else n <= limit,
            reason=f"{n} calls, " + ("the task sets no limit" if limit is None else f"limit {limit}"),
            by=self.name,
            version=self.version,
            layer=self.layer,
            value=float(n),
        )


CHECK = WithinToolCalls()
