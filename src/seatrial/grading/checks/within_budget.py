"""Did the agent stay within its turns? (METHODS 6.2)"""

from __future__ import annotations

from seatrial.grading.evidence import Evidence
from seatrial.records import Layer, Task, Verdict


class WithinBudget:
    """Agent turns against `max_turns`. An event list without turns counts executed calls instead, and says so."""

    name = "within_budget"
    version = "1"
    layer: Layer = "trajectory"

    def check(self, task: Task, evidence: Evidence) -> Verdict:
        """`value` is the number of turns (or calls)."""
        turns, unit = evidence.timeline.turns, "turns"
        if turns is None:
            turns, unit = len(evidence.timeline.executed), "calls (turns are not recorded)"
        if task.max_turns is None:
            passed, reason = None, f"the task sets no budget; {turns} {unit}"
        else:
            passed = turns <= task.max_turns
            reason = f"{turns} {unit}, budget {task.max_turns}"
        return Verdict(
            metric=self.name,
            passed=passed,
            reason=reason,
            by=self.name,
            version=self.version,
            layer=self.layer,
            value=float(turns),
        )


CHECK = WithinBudget()
