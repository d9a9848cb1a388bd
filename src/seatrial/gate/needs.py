"""What an undecided metric needs: the detectable drop, runs per task, or tasks (METHODS 6.5; Miller 2024)."""

from __future__ import annotations

import math
from typing import NamedTuple

from seatrial.gate.noninferiority import exact_attempts
from seatrial.gate.samples import Sample
from seatrial.stats import attempts_needed, mde, sample_size


class Needs(NamedTuple):
    """`mde` is the drop seen with 80% power; `runs` the runs per task that would decide, None where only more
    `tasks` would; `why` says it in words."""

    mde: float | None
    runs: int | None
    tasks: int | None
    why: str | None


def needs(sample: Sample, margin: float, *, binary: bool, floor: float, alpha: float) -> Needs:
    """For one metric. `floor` is the standard error that the bound used; one-sided, power 80%.

    Runs are those of the candidate, total per task and not on top. With one run per task the flakiness of a task and
    the differences between tasks cannot be told apart: only the number of tasks is given.
    """
    level = 1.0 - alpha
    tasks = len(sample.tasks)
    if tasks < 2:
        return Needs(None, None, None, "one task cannot be generalised: add tasks")
    seen = mde(floor, level=level, two_sided=False) if floor > 0 else None
    variance = float(sample.difference.var(ddof=1))
    exact = exact_attempts(margin, alpha) if binary and margin < 1 else None
    if not sample.changed.any() and exact is not None:
        if sample.n_candidate >= exact:
            return Needs(seen, None, None, None)
        runs = math.ceil(exact / tasks)
        return Needs(seen, runs, None, f"no task differs, but {sample.n_candidate} attempts cannot rule out a drop of "
                     f"the margin: {exact} can, {runs} runs of each task")  # fmt: skip
    least = exact or 0
    if sample.within is None:
        more = max(sample_size(margin, variance, level=level, two_sided=False), tasks + 1, least)
        return Needs(seen, None, more, f"one run per task: about {more} tasks like these would decide it, or several "
                     "runs of each")  # fmt: skip
    a, b = sample.within
    omega = max(0.0, variance - a - b)
    runs_or_none = attempts_needed(margin, omega, a, 1, sample.spread or 0.0, tasks, level=level, two_sided=False)
    if runs_or_none is not None:
        # Fewer runs than it had did not decide it: the answer can only be more.
        runs = max(runs_or_none, sample.runs + 1, math.ceil(least / tasks))
        return Needs(seen, runs, None, f"{runs} runs of each task would decide it, {sample.runs} were made")
    more = max(sample_size(margin, omega + a + b, level=level, two_sided=False), tasks + 1)
    return Needs(seen, None, more, f"more runs alone would not decide it: about {more} tasks like these would")
