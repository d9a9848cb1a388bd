"""D3, reproducibility: would it come out the same again? ``1 - 4p(1 - p)``, unbiased (METHODS 5).

The published formula says that ``1 - Var`` "simplifies to 4p(1 - p)". That is inverted: it is 0 for an agent that is
perfectly consistent. What is computed here is its complement.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from seatrial.dimensions.aggregate import WORST, by_task, mean_over_tasks, result, scored, value_of
from seatrial.dimensions.completion import outcome
from seatrial.records import DimensionResult, DimensionValue, Estimate, Evidence, Finding, TaskValue
from seatrial.stats import certified_consistency

LEVELS = ((1.0, "the same outcome on all runs"), (0.9, "rarely inconsistent"), (0.75, "moderately consistent"))
DEPENDS = (
    "D3 is no evidence of quality: an agent that always fails is perfectly reproducible. A task's D3 is a function of "
    "its chance p of success, 1 - 4p(1 - p), and 0 where p is one half: read it beside D1"
)


class Reproducibility:
    """D3. A property of a task's runs together: one run alone has an outcome, and no value."""

    name = "D3"
    title = "reproducibility"
    version = "1"

    def measure(self, run: Evidence) -> DimensionValue:
        """The run's outcome as `numerator`; the value belongs to the task."""
        c = outcome(run)
        why = f"not scored ({run.attempt.status})" if c is None else "one run alone is neither consistent nor not"
        return value_of(self.name, self.version, run, None, why, numerator=c)

    def combine(self, values: Sequence[DimensionValue], level: float) -> DimensionResult:
        """Mean over tasks of ``1 - 4 s^2``, s^2 the unbiased variance of the outcomes: ``1 - 4c(k - c)/(k(k - 1))``
        where they are 0 or 1. Tasks with fewer than two scored runs have no value."""
        tasks = {t: _outcomes(rows) for t, rows in by_task(scored(values)).items()}
        per_task = {task: consistency_of(ys) for task, ys in tasks.items()}
        used = {task: ys for task, ys in tasks.items() if len(ys) >= 2}
        modal, _ = mean_over_tasks({t: TaskValue(value=_modal(ys), n=len(ys)) for t, ys in used.items()}, level,
                                   "mean over tasks of max(p, 1 - p)")  # fmt: skip
        rubric, why = _level(modal)
        return result(
            self.name, self.title, self.version, values, level, method="mean over tasks of 1 - 4s²",
            per_task=per_task, nothing="reproducibility needs at least two scored runs of a task", level=rubric,
            level_why=why, beside={"max(p, 1 - p)": modal}, notes=_notes(used, level),
            worst=_unsteady(values, per_task), n_runs=sum(len(ys) for ys in used.values()), unmeasured=_short(tasks),
        )  # fmt: skip


def consistency_of(outcomes: Sequence[float]) -> TaskValue:
    """One task's value from its outcomes in [0, 1]; may be negative, and is not clipped before it is averaged."""
    k = len(outcomes)
    if k < 2:
        return TaskValue(value=None, n=k, why="reproducibility needs at least two scored runs of a task")
    mean = sum(outcomes) / k
    return TaskValue(value=1.0 - 4.0 * sum((y - mean) ** 2 for y in outcomes) / (k - 1), n=k)


def _outcomes(rows: Sequence[DimensionValue]) -> list[float]:
    return [v.numerator for v in rows if v.numerator is not None]


def _modal(outcomes: Sequence[float]) -> float:
    """Share of the commoner of passed (1) and not passed."""
    p = sum(y >= 1.0 for y in outcomes) / len(outcomes)
    return max(p, 1.0 - p)


def _level(modal: Estimate | None) -> tuple[float | None, str]:
    if modal is None:
        return None, "no task has two scored runs"
    for least, said in LEVELS:
        if modal.value >= least:
            return least, f"{said}: max(p, 1 - p) is {modal.value:.3f} on average"
    return 0.5, f"highly stochastic: max(p, 1 - p) is {modal.value:.3f} on average, below 0.75"


def _notes(used: dict[str, list[float]], level: float) -> tuple[str, ...]:
    out = [DEPENDS]
    same = [len(ys) for ys in used.values() if len(set(ys)) == 1]
    if same:
        k = min(same)
        out.append(
            f"{len(same)} of {len(used)} tasks came out the same in all of their runs: {k} identical outcomes certify "
            f"a chance of at least {certified_consistency(k, level):.3f} of that outcome, not certainty"
        )
    if any(y not in (0.0, 1.0) for ys in used.values() for y in ys):
        out.append("outcomes are graded: s² is the variance of the scores")
    return tuple(out)


def _unsteady(values: Sequence[DimensionValue], per_task: dict[str, TaskValue]) -> tuple[DimensionValue, ...]:
    """Of the tasks that vary most, the first run that failed."""
    shown: list[DimensionValue] = []
    tasks = by_task(scored(values))
    varying = [(t.value, task) for task, t in per_task.items() if t.value is not None and t.value < 1.0]
    for value, task in sorted(varying)[:WORST]:
        rows = [v for v in tasks[task] if v.numerator is not None]
        low = min(rows, key=lambda v: (v.numerator, v.trial))
        passed = sum(v.numerator == 1.0 for v in rows)
        what = f"{passed} of {len(rows)} runs passed; run {low.trial} is one that did not"
        shown.append(_with(low, value, what))
    return tuple(shown)


def _with(row: DimensionValue, value: float, what: str) -> DimensionValue:
    return replace(row, value=max(0.0, value), why=what, findings=(Finding(what=what, weight=1.0 - max(0.0, value)),))


def _short(tasks: dict[str, list[float]]) -> dict[str, int]:
    n = sum(len(ys) for ys in tasks.values() if len(ys) < 2)
    return {"fewer than two scored runs of the task": n} if n else {}
