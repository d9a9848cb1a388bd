"""D1, task completion: the mean over runs of what the benchmark's own criterion said (METHODS 5)."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.dimensions.aggregate import by_task, middle_level, result, scored, value_of
from seatrial.records import SCORED, DimensionResult, DimensionValue, Estimate, Evidence, Finding
from seatrial.stats import pass_hat_k


def outcome(run: Evidence) -> float | None:
    """C of one run in [0, 1]: the recorded score, else whether it passed; None where it is not scored.

    An attempt that crashed or ran out of time did not complete, whatever partial score it holds. A score in units of
    its own, outside [0, 1], is no share of completion: then passing counts.
    """
    a = run.attempt
    if a.status not in SCORED:
        return None
    if a.status in ("error_agent", "timeout"):
        return 0.0
    graded = a.score is not None and 0.0 <= a.score <= 1.0
    return a.score if graded else float(a.status == "passed")


class Completion:
    """D1. A graded outcome in [0, 1] counts as it is."""

    name = "D1"
    title = "completion"
    version = "1"

    def measure(self, run: Evidence) -> DimensionValue:
        """What the task's criterion said of this run."""
        c = outcome(run)
        a = run.attempt
        if c is None:
            return value_of(self.name, self.version, run, None, f"not scored ({a.status})")
        said = a.reason or a.status
        return value_of(
            self.name, self.version, run, c, said, numerator=c, denominator=1.0, level=float(c >= 1.0),
            level_why="the criterion is met" if c >= 1.0 else "the criterion is not met",
            findings=() if c >= 1.0 else (Finding(what=f"{a.status.replace('_', ' ')}: {said}", weight=1.0 - c),),
        )  # fmt: skip

    def combine(self, values: Sequence[DimensionValue], level: float) -> DimensionResult:
        """Mean over tasks of their share of completed runs; pass^k beside it where every outcome is 0 or 1."""
        counted = scored(values)
        rubric, why = middle_level(counted)
        return result(
            self.name, self.title, self.version, values, level, method="mean of task means", level=rubric,
            level_why=f"1 if the criterion is met, else 0; {why}", beside=_every(counted, level),
        )  # fmt: skip


def _every(values: Sequence[DimensionValue], level: float) -> dict[str, Estimate | float | None]:
    tasks = by_task(v for v in values if v.value is not None)
    if not tasks or any(v.value not in (0.0, 1.0) for rows in tasks.values() for v in rows):
        return {}
    n = [len(rows) for rows in tasks.values()]
    k = min(n)
    if k < 2:
        return {}
    c = [int(sum(v.value or 0.0 for v in rows)) for rows in tasks.values()]
    return {f"pass^{k}": pass_hat_k(n, c, k, level)}
