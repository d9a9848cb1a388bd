"""Adaptive trials: look, and run every task again in both arms while a metric is undecided (METHODS 6.5).

A look adds the same number of attempts to *every* common task in *both* arms: extra runs only where tasks dropped gave
99% false PASS. The looks are fixed in advance, and alpha is spent over them by Lan-DeMets with the O'Brien-Fleming
shape on information 1/Var(difference), separately for the test of a drop and for the bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import msgspec
import numpy as np
from scipy import special

from seatrial.errors import UsageError
from seatrial.gate.decision import Look, Measured, decide
from seatrial.gate.noninferiority import FEW_DISCORDANT
from seatrial.gate.runs import Run
from seatrial.gate.samples import Sample
from seatrial.gate.settings import GateSettings
from seatrial.gate.spending import boundaries, repeated_p
from seatrial.records import Comparison


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Fixed before the first look: cumulative runs per task and arm at every look, the last the most there will be."""

    runs: tuple[int, ...]


class Numbers(msgspec.Struct, frozen=True, kw_only=True):
    """One metric at one look: information fractions and statistics of both tests; `passes`: its bound cleared."""

    fraction_drop: float
    fraction_pass: float
    z_drop: float
    passes: bool


class Looked(msgspec.Struct, frozen=True, kw_only=True):
    """One look, as it is kept for the next: runs per task and arm, and the metrics' numbers."""

    runs: int
    metrics: dict[str, Numbers]


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """What a look says: the comparison so far, the looks until now, and whether to go on.

    `add` is the number of attempts to add to every common task in both arms; 0 when `done`.
    """

    comparison: Comparison
    looks: tuple[Looked, ...]
    done: bool
    add: int
    why: str


def plan(start: int, tasks: int, budget: int, looks: int) -> Plan:
    """At most `looks` looks that use a `budget` of further attempts, both arms together, after `start` runs per task.

    Raises:
        UsageError: the budget does not pay for one more run of every task in both arms.
    """
    extra = budget // (2 * tasks) if tasks else 0
    if extra < 1:
        raise UsageError(
            f"a budget of {budget} attempts is less than one run of {tasks} tasks in both arms",
            hint=f"give at least {2 * max(tasks, 1)}",
        )
    n = min(looks, extra + 1)
    ends = {start + round(extra * i / (n - 1)) for i in range(n)} if n > 1 else {start + extra}
    return Plan(runs=tuple(sorted(ends)))


def look(
    baseline: Run, candidate: Run, plan: Plan, past: Sequence[Looked] = (), settings: GateSettings | None = None,
    *, refused: Mapping[str, str] | None = None,
) -> Step:  # fmt: skip
    """Decide at the next look of the plan.

    Raises:
        UsageError: all looks of the plan were used.
    """
    settings = settings or GateSettings()
    index = len(past)
    if index >= len(plan.runs):
        raise UsageError(f"all {len(plan.runs)} looks of the plan were used", hint="looks are fixed in advance")
    now: dict[str, Numbers] = {}
    seen: dict[str, Look] = {}
    last = index == len(plan.runs) - 1

    def spend(metric: str, m: Measured) -> Look:
        numbers, found = _numbers(metric, m, plan, past, last, settings.alpha)
        now[metric], seen[metric] = numbers, found
        return found

    comparison = decide(baseline, candidate, settings, spend=spend, refused=refused)
    looks = (*past, Looked(runs=plan.runs[index], metrics=now))
    open_ = [r.metric for r in comparison.metrics if r.verdict == "INCONCLUSIVE" and r.metric in now
             and (r.kind == "quality" or r.metric in settings.metrics)]  # fmt: skip
    if comparison.verdict == "REGRESSION":
        done, why = True, "a regression is decided"
    elif comparison.missing_evidence:
        done, why = True, "evidence is missing that more runs would not bring"
    elif not open_:
        done, why = True, "every metric is decided"
    elif last:
        done, why = True, f"the plan's {len(plan.runs)} looks are used; not decided: {', '.join(open_)}"
    else:
        done, why = False, f"not decided: {', '.join(open_)}"
    add = 0 if done else plan.runs[index + 1] - plan.runs[index]
    return Step(comparison=comparison, looks=looks, done=done, add=add, why=why)


def until_decided(
    baseline: Run, candidate: Run, plan: Plan, more: Callable[[int, tuple[str, ...]], tuple[Run, Run]],
    settings: GateSettings | None = None, *, refused: Mapping[str, str] | None = None,
) -> Step:  # fmt: skip
    """Look until done. `more(n, tasks)` adds n attempts to each of `tasks` in both arms and returns both runs so far.

    Raises:
        UsageError: `more` did not add the same number to every common task in both arms.
    """
    common = tuple(sorted(set(baseline.tasks) & set(candidate.tasks)))
    step = look(baseline, candidate, plan, (), settings, refused=refused)
    while not step.done:
        before = (_attempts(baseline), _attempts(candidate))
        baseline, candidate = more(step.add, common)
        for name, was, run in zip(("baseline", "candidate"), before, (baseline, candidate), strict=True):
            uneven = [t for t in common if _attempts(run).get(t, 0) - was.get(t, 0) != step.add]
            if uneven:
                raise UsageError(
                    f"task {uneven[0]!r} of the {name} did not get the {step.add} runs that every task gets",
                    hint="runs where results dropped, and only there, make a gate pass what it should not",
                )
        step = look(baseline, candidate, plan, step.looks, settings, refused=refused)
    return step


def _attempts(run: Run) -> dict[str, int]:
    """Attempts per task, scored and excluded, by the metric that has the most."""
    out: dict[str, int] = {}
    for metric in run.metrics.values():
        for task, t in metric.tasks.items():
            out[task] = max(out.get(task, 0), len(t.values) + t.n_excluded)
    return out


def _numbers(
    metric: str, m: Measured, plan: Plan, past: Sequence[Looked], last: bool, alpha: float
) -> tuple[Numbers, Look]:
    assert m.sample is not None
    assert m.tested is not None
    assert m.worst is not None
    assert m.worst_sample is not None
    earlier = [p.metrics[metric] for p in past if metric in p.metrics]
    tasks = len(m.sample.tasks)
    share = plan.runs[len(past)] / plan.runs[-1]
    drop = _fraction(m.sample, float(m.tested.se), share, plan, len(past), last)
    clear = _fraction(m.sample, float(m.tested.floor), share, plan, len(past), last)
    drops = _increasing([e.fraction_drop for e in earlier], drop)
    clears = _increasing([e.fraction_pass for e in earlier], clear)
    z_drop = float(np.clip(-special.ndtri(float(m.tested.p)), -8.0, 8.0))
    p = repeated_p([*(e.z_drop for e in earlier), z_drop], drops)
    level = alpha / 2.0 if 0 < min(int(m.tested.discordant), int(m.worst.discordant)) <= FEW_DISCORDANT else alpha
    critical = boundaries(clears, level)[-1]
    passes = all(
        _clears(s, float(t.mean), float(t.floor), int(t.discordant), m.margin, m.binary, critical)
        for s, t in ((m.sample, m.tested), (m.worst_sample, m.worst))
    ) and tasks >= 2  # fmt: skip
    passes = passes or any(e.passes for e in earlier)
    numbers = Numbers(fraction_drop=drops[-1], fraction_pass=clears[-1], z_drop=z_drop, passes=passes)
    return numbers, Look(p=p, passes=passes)


def _clears(
    sample: Sample, mean: float, floor: float, discordant: int, margin: float, binary: bool, critical: float
) -> bool:
    """Whether the bound clears the margin at this look's critical value."""
    tasks = len(sample.tasks)
    if discordant == 0:
        nominal = float(special.ndtr(-critical))
        return margin >= 1.0 or sample.n_candidate * math.log1p(-margin) <= math.log(max(nominal, 1e-300))
    if floor <= 0:
        return mean > -margin
    t = (mean + margin) / floor
    z = float(special.ndtri(special.stdtr(tasks - 1, t)))
    return z >= critical


def _fraction(sample: Sample, se: float, share: float, plan: Plan, index: int, last: bool) -> float:
    """Information now as a share of what the plan's end will have; the share of runs where there is no estimate."""
    if last:
        return 1.0
    if sample.within is None or se <= 0:
        return share
    tasks = len(sample.tasks)
    variance = se * se * tasks
    inside = sum(sample.within)
    at_end = max(variance - inside, 0.0) + min(inside, variance) * plan.runs[index] / plan.runs[-1]
    return min(0.999, at_end / variance) if at_end > 0 else share


def _increasing(earlier: Sequence[float], now: float) -> list[float]:
    """Fractions so far: what was spent stays spent, and a look never has less information than the one before."""
    floor = earlier[-1] if earlier else 0.0
    return [*earlier, max(now, min(floor + 1e-4, 1.0 - 1e-9) if now < 1.0 else 1.0)]
