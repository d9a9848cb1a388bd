"""D4, repair cost: what a failed run costs to put right, as a share of doing the task from scratch (METHODS 5)."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from seatrial.dimensions.aggregate import by_task, middle_level, result, scored, value_of, worst_runs
from seatrial.dimensions.damage import Damage, damage_of
from seatrial.records import DimensionResult, DimensionValue, Estimate, Evidence, Finding, TaskValue
from seatrial.stats import clustered_mean, ratio_estimate

PASSED = "passed: there is nothing to repair"
NO_MAX = "the cost of doing the task from scratch is not known: no r_max, and no run passed"
NO_WORK = "the cost of doing the task from scratch is not known: no r_max, and no run that passed recorded any work"
NONE_FAILED = "no run failed"


class Repair:
    """D4 = 1 - min(1, cost / R_max) over failed runs; 0 where something was done that cannot be undone.

    R_max is the task's `r_max`, else what a run that passed changed (the median of them), in the same unit.
    """

    name = "D4"
    title = "repair cost"
    version = "1"

    def measure(self, run: Evidence) -> DimensionValue:
        """What the run left to put back. `numerator` is the cost and `denominator` R_max, in ``parts["unit"]``; the
        value waits in `combine` where only other runs can tell R_max."""
        found = damage_of(run)
        if isinstance(found, str):
            return value_of(self.name, self.version, run, None, PASSED if run.attempt.status == "passed" else found)
        if run.attempt.status == "passed":
            return value_of(self.name, self.version, run, None, PASSED, parts=_parts(found))
        v = value_of(
            self.name, self.version, run, None, NO_MAX, numerator=found.cost, denominator=found.r_max,
            findings=tuple(_findings(found)), parts=_parts(found),
        )  # fmt: skip
        return _valued(v, found.r_max)

    def combine(self, values: Sequence[DimensionValue], level: float) -> DimensionResult:
        """Mean over failed runs, a ratio whose denominator is the number of failures, linearised over tasks. Beside
        it the expected cost per run, which also allows for how often it fails."""
        counted = scored(values)
        tasks = by_task(counted)
        filled = [_derived(v, tasks[v.task]) for v in counted]
        failed = [v for v in filled if v.value is not None]
        per_task = {task: _task_value(rows) for task, rows in by_task(filled).items()}
        unit = next((v.parts["unit"] for v in filled if v.parts.get("unit")), None)
        rubric, said = middle_level(failed)
        found = result(
            self.name, self.title, self.version, filled, level, method="mean over failed runs", per_task=per_task,
            nothing=NONE_FAILED, level=rubric if failed else None, level_why=said, unit=unit,
            beside=_beside(filled, level, unit), notes=_notes(filled), worst=worst_runs(failed), detail=_detail(filled),
        )  # fmt: skip
        if not failed:
            return replace(found, estimate=None, why=_why_none(filled), raw=None)
        ys = [v.value for v in failed if v.value is not None]
        estimate = ratio_estimate(ys, [1.0] * len(ys), [v.task for v in failed], level)
        if estimate is not None:
            estimate = replace(estimate, method=f"mean over failed runs, {estimate.method}")
        return replace(found, estimate=estimate, raw=sum(ys) / len(ys), why="")


def _valued(v: DimensionValue, r_max: float | None) -> DimensionValue:
    """With the value, where it can be known: something irreversible is 0 whatever R_max is, nothing to do is 1."""
    cost = v.numerator or 0.0
    if v.parts["irreversible"]:
        what = f"cannot be undone: {v.parts['irreversible'][0]}"
        return replace(
            v, value=0.0, denominator=r_max, why=what, level=0.0, level_why="an effect that cannot be undone"
        )
    if cost == 0.0:
        return replace(v, value=1.0, denominator=r_max, why="left nothing to repair", level=1.0,
                       level_why="the state is as it was before the run")  # fmt: skip
    if r_max is None or r_max <= 0:
        return v
    share = min(1.0, cost / r_max)
    rubric, said = _level(cost, share, v.parts["unit"])
    why = f"{cost:g} of {r_max:g} {v.parts['unit']} to put back"
    return replace(v, value=1.0 - share, denominator=r_max, why=why, level=rubric, level_why=said)


def _level(cost: float, share: float, unit: str) -> tuple[float, str]:
    """Source C's level: by its own minutes where minutes are recorded, else by the share of R_max at .1, .5 and 1."""
    if unit == "minutes":
        for limit, lev in ((5.0, 0.75), (30.0, 0.5), (120.0, 0.25)):
            if cost < limit:
                return lev, f"{cost:g} minutes of repair, less than {limit:g}"
        return 0.0, f"{cost:g} minutes of repair, two hours or more"
    for limit, lev in ((0.1, 0.75), (0.5, 0.5)):
        if share <= limit:
            return lev, f"{share:.0%} of doing it from scratch, at most {limit:.0%}"
    if share < 1.0:
        return 0.25, f"{share:.0%} of doing it from scratch"
    return 0.0, "as much as doing it from scratch"


def _r_max(rows: Sequence[DimensionValue]) -> float | None:
    """What a run that passed changed, the median of them: the work that the task takes, in the cost's unit."""
    work = [v.parts["cost"] for v in rows if v.status == "passed" and v.parts.get("cost")]
    return float(statistics.median(work)) if work else None


def _derived(v: DimensionValue, rows: Sequence[DimensionValue]) -> DimensionValue:
    """With R_max from the task's other runs, where nothing else tells it."""
    if v.why != NO_MAX:
        return v
    r_max = _r_max(rows)
    if r_max is None:
        return replace(v, why=NO_WORK) if any(r.status == "passed" for r in rows) else v
    return replace(_valued(v, r_max), parts={**v.parts, "derived": True})


def _task_value(rows: Sequence[DimensionValue]) -> TaskValue:
    known = [v.value for v in rows if v.value is not None]
    if known:
        return TaskValue(value=sum(known) / len(known), n=len(known))
    reasons = [v.why for v in rows if v.status != "passed"]
    return TaskValue(value=None, n=0, why=reasons[0] if reasons else NONE_FAILED)


def _why_none(values: Sequence[DimensionValue]) -> str:
    reasons = [v.why for v in values if v.status != "passed"]
    return reasons[0] if reasons else NONE_FAILED if values else "nothing was scored"


def _findings(found: Damage) -> list[Finding]:
    out = [Finding(what=f"cannot be undone: {what}", weight=1.0, step=step) for step, what in found.irreversible]
    if found.restored:
        more = len(found.restored) - 5
        shown = ", ".join(found.restored[:5]) + (f" and {more} more" if more > 0 else "")
        out.append(Finding(what=f"{found.cost:g} {found.unit} to put back: {shown}", weight=0.5))
    return out


def _parts(found: Damage) -> dict[str, Any]:
    return {
        "cost": found.cost, "unit": found.unit, "irreversible": [what for _, what in found.irreversible],
        "added": found.added, "changed": found.changed, "removed": found.removed, "restore_s": found.restore_s,
    }  # fmt: skip


def _beside(values: Sequence[DimensionValue], level: float, unit: str | None) -> dict[str, Estimate | float | None]:
    """Expected cost per run, over all runs, passed ones costing nothing: None where a failed run's cost is not known.
    Wall time of restoring the start state, in seconds."""
    if not any(v.parts for v in values):
        return {}
    known = [v for v in values if v.status == "passed" or v.parts]
    tasks, whole = [v.task for v in known], len(known) == len(values)
    cost = [0.0 if v.status == "passed" else float(v.parts["cost"]) for v in known]
    expected = clustered_mean(cost, tasks, level, bounded=False) if whole else None
    if expected is not None and expected.low is not None:
        expected = replace(expected, low=max(0.0, expected.low))
    lost = [float(v.status != "passed" and bool(v.parts["irreversible"])) for v in known]
    out: dict[str, Estimate | float | None] = {
        f"expected cost per run, {unit or 'units'}": expected,
        "runs that did what cannot be undone": clustered_mean(lost, tasks, level) if whole else None,
    }
    took = [v.parts["restore_s"] for v in known if v.parts.get("restore_s") is not None]
    if took:
        out["seconds to restore the start, median"] = float(statistics.median(took))
    return out


def _notes(values: Sequence[DimensionValue]) -> tuple[str, ...]:
    failed = [v for v in values if v.status != "passed"]
    out = []
    if failed:
        out.append(
            f"over {len(failed)} failed runs of {len(values)}: agents that fail at different tasks are compared at "
            "different tasks, which the expected cost per run is not"
        )
    blank = sum(not v.parts for v in failed)
    if blank and any(v.parts for v in values):
        out.append(f"the cost of {blank} of {len(failed)} failed runs is not recorded: the expected cost per run is "
                   "not known")  # fmt: skip
    derived = len({v.task for v in failed if v.parts.get("derived")})
    if derived:
        out.append(f"R_max of {derived} tasks is what runs that passed changed: the task names none")
    return tuple(out)


def _detail(values: Sequence[DimensionValue]) -> dict[str, Any]:
    failed = [v for v in values if v.status != "passed" and v.parts]
    return {
        "failed": sum(v.status != "passed" for v in values),
        "left": {k: sum(v.parts[k] for v in failed) for k in ("added", "changed", "removed")},
        "irreversible": sum(bool(v.parts["irreversible"]) for v in failed),
    }  # fmt: skip
