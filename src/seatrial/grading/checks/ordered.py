"""Were the expected tools called in the order of the list? (METHODS 6.2)"""

from __future__ import annotations

import re

from seatrial.errors import InputError
from seatrial.grading.evidence import Evidence
from seatrial.records import Layer, Task, Verdict


class Ordered:
    """`subsequence`: all expected tools in order, others in between allowed; `prefix N`: the first N of the list in
    order, the rest anywhere. Only successful calls count. Without an order it is not applicable."""

    name = "ordered"
    version = "1"
    layer: Layer = "trajectory"

    def check(self, task: Task, evidence: Evidence) -> Verdict:
        """`value` is the share of the ordered list that was reached.

        Raises:
            InputError: `task.order` is none of the three.
        """
        wanted = wanted_order(task)
        if not wanted:
            why = "the task asks for no order" if wanted is None else "no tool is expected, so there is no order"
            return self._verdict(None, why, None, ())
        steps: list[int] = []
        for call in evidence.timeline.successes:
            if len(steps) < len(wanted) and call.tool == wanted[len(steps)]:
                steps.append(call.step)
        reached = len(steps)
        if reached == len(wanted):
            reason = "in order: " + ", ".join(wanted)
        else:
            after = f"after {wanted[reached - 1]}" if reached else "at all"
            reason = f"{wanted[reached]} did not succeed {after} ({reached} of {len(wanted)} in order)"
        return self._verdict(reached == len(wanted), reason, reached / len(wanted), tuple(steps))

    def _verdict(self, passed: bool | None, reason: str, value: float | None, steps: tuple[int, ...]) -> Verdict:
        return Verdict(
            metric=self.name,
            passed=passed,
            reason=reason,
            by=self.name,
            version=self.version,
            layer=self.layer,
            value=value,
            steps=steps,
        )


def wanted_order(task: Task) -> list[str] | None:
    """The tools whose order matters; None: no order is asked for.

    Raises:
        InputError: the task's order cannot be read.
    """
    if task.order is None or task.order == "none":
        return None
    if task.order == "subsequence":
        return task.expected_tools
    found = re.fullmatch(r"prefix (\d{1,6})", task.order)
    if found is None or not 0 < int(found.group(1)) <= len(task.expected_tools):
        raise InputError(
            f"task {task.id}: order is {task.order!r}",
            hint=f"none, subsequence, or prefix N with N from 1 to {len(task.expected_tools)}",
        )
    return task.expected_tools[: int(found.group(1))]


CHECK = Ordered()
