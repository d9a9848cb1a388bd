"""Do the calls match the task's reference calls? (METHODS 6.2)"""

from __future__ import annotations

from seatrial.grading import match
from seatrial.grading.evidence import Evidence
from seatrial.records import Layer, Task, Verdict


class MatchesReference:
    """Successful calls against `task.reference`, paired as well as can be."""

    name = "matches_reference"
    version = "1"
    layer: Layer = "trajectory"

    def check(self, task: Task, evidence: Evidence) -> Verdict:
        """`value` is the share that the mode asks for.

        Raises:
            InputError: the reference cannot be read.
        """
        if task.reference is None:
            return Verdict(
                metric=self.name, passed=None, reason="the task has no reference calls", by=self.name,
                version=self.version, layer=self.layer,
            )  # fmt: skip
        reference, mode, arguments = match.parse(task.reference)
        done = evidence.timeline.successes
        found = match.match(reference, [(c.tool, c.arguments) for c in done], mode, arguments)
        missing = [reference[i].tool for i in found.missing]
        extra = [done[j].tool for j in found.extra]
        said = [f"{len(found.pairs)} of {len(reference)} reference calls matched ({mode}, arguments {arguments})"]
        if missing and mode != "subset":
            said.append("missing: " + ", ".join(missing))
        if extra and mode in ("strict", "unordered", "subset"):
            said.append("beyond it: " + ", ".join(extra))
        return Verdict(
            metric=self.name,
            passed=found.passed,
            reason="; ".join(said),
            by=self.name,
            version=self.version,
            layer=self.layer,
            value=found.value,
            steps=tuple(done[j].step for _, j in found.pairs),
            evidence={"missing": missing, "extra": extra, "recall": found.recall, "precision": found.precision},
        )


CHECK = MatchesReference()
