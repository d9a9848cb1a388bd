"""Did the agent stay within its turns? (METHODS 6.2)"""

from __future__ import annotations

from seatrial.grading.evidence import Evidence
from seatrial.records import Layer, Task, Verdict


class WithinBudget:
    """Agent turns against `max_turns`. An event list that does not give every turn counts executed calls
    instead, and says so."""

    name = "within_budget"
    version = "2"
    layer: Layer = "trajectory"

    def check(self, task: Task, evidence: Evidence) -> Verdict:
        """`value` is the number of turns (or calls)."""
        turns, unit = evidence.timeline.turns, "turns"
        if turns is None:
            given, calls = evidence.timeline.turned, len(evidence.timeline.calls)
            why = f"only {given} of {calls} events carry a turn" if given else "turns are not recorded"
            turns, unit = len(evidence.timeline.executed), f"calls ({why})"
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
