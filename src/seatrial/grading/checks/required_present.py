"""Were the expected tools called, as often as expected, and did the calls succeed? (METHODS 6.2)"""

from __future__ import annotations

from collections import Counter

from seatrial.grading.evidence import Evidence
from seatrial.records import Layer, Task, Verdict


class RequiredPresent:
    """Multiplicity counts: a tool expected twice must have succeeded twice. `value` is the share that was present."""

    name = "required_present"
    version = "1"
    layer: Layer = "trajectory"

    def check(self, task: Task, evidence: Evidence) -> Verdict:
        """Passed with no expected tool: then nothing is missing."""
        wanted = Counter(task.expected_tools)
        done = Counter(c.tool for c in evidence.timeline.successes)
        missing = wanted - done
        tried = Counter(c.tool for c in evidence.timeline.calls)
        total = sum(wanted.values())
        if missing:
            reason = "missing: " + ", ".join(_said(tool, wanted[tool], done[tool], tried[tool]) for tool in missing)
        else:
            reason = f"all {total} expected calls succeeded" if total else "no tool is expected"
        return Verdict(
            metric=self.name,
            passed=not missing,
            reason=reason,
            by=self.name,
            version=self.version,
            layer=self.layer,
            value=1.0 - sum(missing.values()) / total if total else None,
            steps=tuple(c.step for c in evidence.timeline.successes if c.tool in wanted),
            evidence={"missing": dict(missing)} if missing else {},
        )


def _said(tool: str, wanted: int, done: int, tried: int) -> str:
    if not tried:
        return f"{tool} (never called)"
    if tried > done:
        return f"{tool} ({done} of {wanted} succeeded in {tried} calls)"
    return f"{tool} ({done} of {wanted})"


CHECK = RequiredPresent()
