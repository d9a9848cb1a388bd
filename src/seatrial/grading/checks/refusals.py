"""Was every call one that the tools, and the rules, accept? Three checks, one for each way to be refused (METHODS
6.2)."""

from __future__ import annotations

from collections import Counter

from seatrial.grading.events import Refusal
from seatrial.grading.evidence import Evidence
from seatrial.records import Layer, Task, Verdict


class NoRefusals:
    """Counts the calls that were refused for one reason, by tool and, where known, by the failing field."""

    version = "1"
    layer: Layer = "trajectory"

    def __init__(self, name: str, why: Refusal, what: str) -> None:
        self.name = name
        self._why = why
        self._what = what

    def check(self, task: Task, evidence: Evidence) -> Verdict:
        """`value` counts the refused calls."""
        hits = [c for c in evidence.timeline.calls if c.refused == self._why]
        counted = Counter(f"{c.tool}.{c.field}" if c.field else c.tool for c in hits)
        listed = ", ".join(what if n == 1 else f"{what} ({n} times)" for what, n in counted.items())
        return Verdict(
            metric=self.name,
            passed=not hits,
            reason=f"{self._what}: {listed}" if hits else f"no call was refused ({self._what})",
            by=self.name,
            version=self.version,
            layer=self.layer,
            value=float(len(hits)),
            steps=tuple(c.step for c in hits),
            evidence={"by_tool_and_field": dict(counted)} if hits else {},
        )


NO_INVALID_ARGS = NoRefusals("no_invalid_args", "schema", "arguments that do not fit the tool's schema")
NO_UNKNOWN_TOOLS = NoRefusals("no_unknown_tools", "unknown_tool", "a tool that does not exist")
NO_POLICY_REFUSALS = NoRefusals("no_policy_refusals", "policy", "against a rule")
