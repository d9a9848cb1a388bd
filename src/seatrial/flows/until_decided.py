"""Two agents on one suite until the gate has decided: adaptive trials over stored, resumable runs (METHODS 6.5)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from seatrial.flows.attempts import stored_run
from seatrial.flows.check import with_differences
from seatrial.flows.run import RunOptions, run_suite
from seatrial.flows.runs_read import read_source
from seatrial.flows.stamps import refused_judges
from seatrial.gate.adaptive import Plan, Step, plan, until_decided
from seatrial.gate.runs import Run, run_of
from seatrial.gate.settings import GateSettings
from seatrial.records import AgentUnderTest
from seatrial.store import Store
from seatrial.suites import Suite
from seatrial.suites.runner import Tally


class Decided(NamedTuple):
    """The last look, the plan of all looks, the runs' names in the store, and runs per task and arm at the end."""

    step: Step
    plan: Plan
    baseline: str
    candidate: str
    runs: int


def run_until_decided(
    suite: str | Path | Suite, *, baseline: str | AgentUnderTest, candidate: str | AgentUnderTest, store: Path,
    budget: int, settings: GateSettings,
    options: RunOptions | None = None, progress: Callable[[Tally], None] | None = None,
) -> Decided:  # fmt: skip
    """Run both agents `options.k` times, then look; while a metric is undecided, add the same attempts to every task
    in both arms. `budget` is the number of further attempts, both arms together.

    Raises:
        UsageError: the budget does not pay for one more run of every task in both arms.
        EvidenceError: nothing was scored on a side.
    """
    options = options or RunOptions()
    names: dict[str, str] = {}
    judged: dict[str, str | None] = {}

    def arm(side: str, agent: str | AgentUnderTest, k: int) -> Run:
        made = run_suite(suite, agent=agent, store=store, options=replace(options, k=k), progress=progress)
        names[side] = made.run
        rows = [(a, v) for a, v in stored_run(Store.open(store, create=False), made.run) if a.trial < k]
        run = run_of([a for a, _ in rows], label=made.run, verdicts={(a.task, a.trial): v for a, v in rows})
        judged.update({n: m.version for n, m in run.metrics.items() if m.judged})
        return run

    runs = options.k
    first, second = arm("baseline", baseline, runs), arm("candidate", candidate, runs)
    looks = plan(runs, len(set(first.tasks) & set(second.tasks)), budget, settings.looks)

    def more(add: int, tasks: tuple[str, ...]) -> tuple[Run, Run]:
        nonlocal runs
        runs += add
        return arm("baseline", baseline, runs), arm("candidate", candidate, runs)

    step = until_decided(first, second, looks, more, settings, refused=refused_judges(settings, judged))
    sides = [read_source(Path(names[side]), store=store) for side in ("baseline", "candidate")]
    step = replace(step, comparison=with_differences(step.comparison, *sides))
    return Decided(step, looks, names["baseline"], names["candidate"], runs)
