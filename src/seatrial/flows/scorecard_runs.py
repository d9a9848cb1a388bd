"""Many runs for a scorecard: what they would take is estimated first, then they are made, resumed, and scored."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
from msgspec.structs import replace

from seatrial.dimensions.card import certifies
from seatrial.errors import UsageError
from seatrial.flows.attempts import runs, stored_run
from seatrial.flows.run import RunOptions, run_suite
from seatrial.flows.scorecard import ProgressFn, ScorecardOptions, Scored, score_sources
from seatrial.flows.suite import agent_of, open_suite
from seatrial.records import Attempt
from seatrial.store import Store
from seatrial.suites import Suite
from seatrial.suites.runner import Tally


class Outlook(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent's runs would take. `seconds` of wall time and `usd` for all of `attempts`, those made already
    included; None where nothing tells. `measured` counts the attempts that the estimate goes by, `unpriced` those of
    them without a price."""

    agent: str
    attempts: int
    seconds: float | None
    usd: float | None
    measured: int
    unpriced: int
    by: str


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """A planned scorecard: how many runs, what they would take by agent, what k of them can certify."""

    suite: str
    tasks: int
    k: int
    agents: tuple[Outlook, ...]
    certifies: tuple[str, ...]


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """What all runs together may be estimated to take; None: no bound."""

    hours: float | None = None
    usd: float | None = None


def planned(suite: str, agents: Sequence[str], running: RunOptions, options: ScorecardOptions) -> Plan:
    """What the runs would take, going by earlier attempts in the store; nothing is run.

    Raises:
        InputError, UsageError: suite or agent cannot be read.
    """
    opened = open_suite(suite)
    tasks = opened.select(running.tasks, running.part)
    return Plan(
        suite=opened.name,
        tasks=len(tasks),
        k=running.k,
        agents=tuple(_known(opened, spec, len(tasks), running, options) for spec in agents),
        certifies=certifies(running.k, len(tasks), {}, options.level),
    )


def _known(suite: Suite, spec: str, tasks: int, running: RunOptions, options: ScorecardOptions) -> Outlook:
    name = agent_of(spec, suite).name
    earlier = _earlier(options, suite.name, name)
    return outlook(name, tasks * running.k, earlier, running.concurrency, f"{len(earlier)} earlier attempts"
                   if earlier else "no earlier attempt: the first round will tell")  # fmt: skip


def _earlier(options: ScorecardOptions, suite: str, agent: str) -> list[Attempt]:
    if options.store is None or not options.store.is_dir():
        return []
    store = Store.open(options.store, create=False)
    found = runs(store).filter((runs(store)["suite"] == suite) & (runs(store)["agent"] == agent))
    for run in found["run"].to_list():
        judged = stored_run(store, run)
        if judged:
            return [a for a, _ in judged]
    return []


def outlook(agent: str, attempts: int, seen: Sequence[Attempt], concurrency: int, by: str) -> Outlook:
    """What `attempts` runs take, at the mean time and cost of those seen, `concurrency` at a time."""
    took = [a.latency_s for a in seen if a.latency_s is not None]
    paid = [a.cost_usd for a in seen if a.cost_usd is not None]
    return Outlook(
        agent=agent,
        attempts=attempts,
        seconds=sum(took) / len(took) * attempts / max(1, min(concurrency, attempts)) if took else None,
        usd=sum(paid) / len(paid) * attempts if paid else None,
        measured=len(seen),
        unpriced=len(seen) - len(paid),
        by=by,
    )


def run_and_score(
    suite: str,
    agents: Sequence[str],
    running: RunOptions,
    options: ScorecardOptions,
    *,
    bounds: Bounds = Bounds(),
    told: Callable[[Outlook], None] | None = None,
    progress: ProgressFn | None = None,
) -> Scored:
    """Let each agent try every task k times, and score the runs.

    An agent of which the store holds no attempt makes one round first, whose time and cost give the estimate; the
    round is part of the k. Runs that were cut short go on where they stopped.

    Raises:
        UsageError: the estimate is beyond `bounds`.
        InputError, EvidenceError, StoreError: as in `run_suite`.
    """
    if options.store is None:
        raise UsageError("a scorecard's runs need a store", hint="--store DIR")
    opened = open_suite(suite)
    tasks = len(opened.select(running.tasks, running.part))
    outlooks = []
    for n, spec in enumerate(agents):
        found = _known(opened, spec, tasks, running, options)
        if not found.measured:
            first = run_suite(suite, agent=spec, store=options.store, options=replace(running, k=1),
                              progress=_step(progress, n, len(agents), running.k))  # fmt: skip
            seen = [a for a, _ in stored_run(Store.open(options.store), first.run)]
            found = outlook(found.agent, found.attempts, seen, running.concurrency, f"a first round of {len(seen)}")
        outlooks.append(found)
        if told is not None:
            told(found)
    _within(outlooks, bounds)
    made = [
        run_suite(suite, agent=spec, store=options.store, options=running,
                  progress=_step(progress, n, len(agents), running.k))
        for n, spec in enumerate(agents)
    ]  # fmt: skip
    return score_sources([m.run for m in made], replace(options, suite=suite), progress)


def _within(outlooks: Sequence[Outlook], bounds: Bounds) -> None:
    hours = sum(o.seconds or 0.0 for o in outlooks) / 3600
    usd = sum(o.usd or 0.0 for o in outlooks)
    if bounds.hours is not None and hours > bounds.hours:
        raise UsageError(f"the runs would take about {hours:.2g} hours, more than {bounds.hours:g}",
                         hint="fewer attempts (-k), fewer tasks (--task), or a higher --max-hours")  # fmt: skip
    if bounds.usd is not None and any(o.usd is None for o in outlooks):
        raise UsageError("the price of an agent is not known, so its cost cannot be bounded",
                         hint="leave --max-cost out, or give prices")  # fmt: skip
    if bounds.usd is not None and usd > bounds.usd:
        raise UsageError(f"the runs would cost about {usd:.2f} USD, more than {bounds.usd:g}",
                         hint="fewer attempts (-k), fewer tasks (--task), or a higher --max-cost")  # fmt: skip


def _step(progress: ProgressFn | None, n: int, agents: int, k: int) -> Callable[[Tally], None]:
    def step(tally: Tally) -> None:
        if progress is not None:
            progress(tally.done, tally.total, f"attempts of agent {n + 1} of {agents}")

    return step
