"""What an undecided metric needs: the detectable drop, runs per task, or tasks (METHODS 6.5; Miller 2024)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy import special

from seatrial.gate.noninferiority import FEW_DISCORDANT, TOLERANCE, exact_attempts
from seatrial.gate.samples import Sample
from seatrial.stats import mde, sample_size
from seatrial.stats.quantiles import normal

MOST_RUNS = 10_000
"""More runs of a task than this are no advice."""
POWER = 0.80


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
        if runs > MOST_RUNS:
            return Needs(seen, None, math.ceil(exact * tasks / sample.n_candidate), f"no task differs, but a drop of "
                         f"the margin takes {exact} attempts to rule out")  # fmt: skip
        return Needs(seen, runs, None, f"no task differs, but {sample.n_candidate} attempts cannot rule out a drop of "
                     f"the margin: {exact} can, {runs} runs of each task")  # fmt: skip
    least = exact or 0
    if sample.within is None:
        more = max(sample_size(margin, variance, level=level, two_sided=False), tasks + 1, least)
        return Needs(seen, None, more, f"one run per task: about {more} tasks like these would decide it, or several "
                     "runs of each")  # fmt: skip
    a, b = sample.within
    omega = max(0.0, variance - a - b)
    # Fewer runs than it had did not decide it: the answer can only be more.
    runs_or_none = _runs(sample, margin, omega + a, max(sample.runs + 1, math.ceil(least / tasks)), binary, alpha)
    if runs_or_none is not None:
        runs = runs_or_none
        return Needs(seen, runs, None, f"{runs} runs of each task would decide it, {sample.runs} were made")
    more = max(sample_size(margin, omega + a + b, level=level, two_sided=False), tasks + 1, least)
    return Needs(seen, None, more, f"more runs alone would not decide it: about {more} tasks like these would")


def _runs(sample: Sample, margin: float, fixed: float, start: int, binary: bool, alpha: float) -> int | None:
    """The least runs per task, from `start` to `MOST_RUNS`, at which the bound that the gate uses clears the margin
    with 80% power where nothing was lost; None where no number does.

    `fixed` is the variance of a task's difference that the candidate's runs leave as it is. The power is over the
    sampling error; the bound is at the standard error or its floor, and wider where few tasks differ. Without any
    noise within tasks the difference stays the one that was seen, and more runs lower the floor alone.
    """
    tasks = len(sample.tasks)
    runs = np.arange(start, MOST_RUNS + 1, dtype=np.float64)
    se = np.sqrt((fixed + (sample.spread or 0.0) / runs) / tasks)
    bound = np.maximum(se, np.sqrt(margin * (1.0 - margin) / (runs * tasks))) if binary else se
    few = int(sample.changed.sum()) <= FEW_DISCORDANT
    factor = float(special.stdtrit(tasks - 1, 1.0 - (alpha / 2.0 if few else alpha)))
    noisy = sample.within is not None and sum(sample.within) > 0
    reach = factor * bound + normal(POWER) * se if noisy else factor * bound - float(sample.difference.mean())
    clears = np.flatnonzero(reach < margin - TOLERANCE)
    return int(runs[clears[0]]) if clears.size else None
