"""A suite and an agent to attempts, verdicts and numbers: k attempts at every task, resumable at any moment."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from seatrial.engine.ledger import Ledger
from seatrial.errors import EvidenceError, StoreError, UsageError
from seatrial.flows import attempts as rows
from seatrial.flows.elsewhere import elsewhere
from seatrial.flows.making import Maker, RunOptions, identity, turn_limit
from seatrial.flows.suite import agent_of, open_suite
from seatrial.records import AgentUnderTest
from seatrial.store import Store, temporary_store
from seatrial.store.lock import Lock
from seatrial.suites import Suite, runner
from seatrial.suites.results import SuiteResult, results
from seatrial.suites.runner import Done, Tally
from seatrial.world import approver_of

TallyFn = Callable[[Tally], None]


class SuiteRun(msgspec.Struct, frozen=True, kw_only=True):
    """A finished run. `resumed` attempts were there already; `drafts` were left out, as nobody has approved them;
    `worker_ids` are the processes of a cluster that made attempts now (empty: this one did)."""

    run: str
    suite: str
    suite_version: str
    agent: str
    k: int
    result: SuiteResult
    resumed: int
    drafts: tuple[str, ...]
    warnings: tuple[str, ...]
    data_version: str
    worker_ids: tuple[int, ...] = ()


def run_suite(
    suite: str | Path | Suite,
    *,
    agent: str | AgentUnderTest,
    store: Path | None = None,
    options: RunOptions = RunOptions(),
    progress: TallyFn | None = None,
    engine: str = "local",
) -> SuiteRun:
    """Let an agent try every task of a suite k times, and grade what it did.

    With `store` None everything happens in a temporary store that is gone afterwards. In a store, a run that was cut
    short goes on where it stopped, and one that is complete is only reported: suite, agent, seed and limits name the
    run, each with the code and files that it is made of, so a change of any of them is another run. A warning says how
    many attempts were made before. `engine` says where attempts are made (`engine.choice.engine_at`): on a cluster
    by the same seeds, graded alike, kept once, by this process.

    Raises:
        EvidenceError: the suite has no task to run.
        InfrastructureError: the cluster cannot be reached, or a machine of it cannot make these attempts.
        InputError, UsageError: suite, agent or options cannot be read.
        StoreError: another process is working on this very run.
    """
    approver_of(options.approver)  # a mistake in a word is told before anything runs
    _fits(options)
    opened = suite if isinstance(suite, Suite) else open_suite(suite)
    tried = agent_of(agent, opened, turn_limit(options), options.prices) if isinstance(agent, str) else agent
    chosen = opened.select(options.tasks, options.part)
    if not chosen:
        left = f"; {len(opened.drafts)} drafts wait for approval" if opened.drafts else ""
        raise EvidenceError(f"the suite {opened.name} has no task to run{left}", hint="see: seatrial task approve")
    with ExitStack() as stack:
        where = Store.open(store, create=True) if store is not None else stack.enter_context(temporary_store())
        run = options.name or identity(opened, tried, options)
        planned = runner.plan(chosen, opened.hashes, options.k, options.seed)
        folder = where.path / "runs"
        folder.mkdir(exist_ok=True)
        stack.enter_context(_alone(folder / f"{_safe(run)}.lock", run))
        ledger = stack.enter_context(Ledger(folder / f"{_safe(run)}.jsonl"))
        maker = Maker(where, opened, tried, run, options)
        again = partial(_lost, where)
        before = sum(p.key in ledger and not again(msgspec.convert(ledger.get(p.key), Done)) for p in planned)
        cluster = None
        if engine != "local" and before < len(planned):
            same = identity(opened, tried, options)
            cluster = elsewhere(engine, suite, agent, where, maker, same, run, options)
        done = runner.run(
            planned, maker.make, ledger, concurrency=options.concurrency, again=again, progress=progress,
            elsewhere=None if cluster is None else cluster.make,
        )  # fmt: skip
        version = where.commit(rows.frames(done), replace_sessions=[d.row["session"] for d in done])
        result = results([(d.attempt, d.verdicts) for d in done], n_planned=len(planned), level=options.level)
    return SuiteRun(
        run=run,
        suite=opened.name,
        suite_version=opened.version,
        agent=tried.name,
        k=options.k,
        result=result,
        resumed=before,
        drafts=opened.drafts,
        warnings=(
            *_reused(before, len(planned), run, options.name),
            *([] if cluster is None else _begun_again(cluster.begun_again)),
            *_warnings(opened, options, result),
        ),
        data_version=version,
        worker_ids=() if cluster is None else cluster.worker_ids(),
    )


def _lost(store: Store, done: Done) -> bool:
    """Whether a recorded attempt has to be made again: its trace is gone, or it never could run."""
    if done.attempt.status == "error_infra":
        return True
    return done.blob is not None and not store.blobs.has(done.blob)


def _safe(run: str) -> str:
    from seatrial.flows.look import safe_name

    return safe_name(run)


def _alone(path: Path, run: str) -> Any:
    lock = Lock(path, 0.2)
    held = lock.held()
    try:
        held.__enter__()
    except StoreError as error:
        raise StoreError(f"another process is working on the run {run}", hint="wait for it, or end it") from error
    stack = ExitStack()
    stack.push(held.__exit__)
    return stack


LONGEST_S = 1e9


def _fits(options: RunOptions) -> None:
    """What an option cannot mean is told before anything runs.

    Raises:
        UsageError: a limit is no number, or the cassette's place is no folder.
    """
    seconds, cost = options.limits.seconds, options.limits.cost_usd
    if seconds is not None and not 0 < seconds <= LONGEST_S:
        raise UsageError(f"an attempt may take more than 0 and at most {LONGEST_S:.0f} seconds, not {seconds}",
                         hint="--timeout SECONDS")  # fmt: skip
    if cost is not None and not 0 <= cost < math.inf:
        raise UsageError(f"an attempt may cost 0 USD or more, not {cost}", hint="leave --max-cost out for no limit")
    if options.cassette is not None:
        try:
            options.cassette.mkdir(parents=True, exist_ok=True)
        except (OSError, ValueError) as error:
            said = getattr(error, "strerror", None) or error
            raise UsageError(f"--cassette {options.cassette} can be no folder: {said}", hint="name a folder") from error


def _reused(before: int, planned: int, run: str, name: str | None) -> tuple[str, ...]:
    """What is shown again must not pass for what was made now."""
    if not before:
        return ()
    why = "" if name is None else "; a run that is named is continued whatever has changed since"
    return (f"{before} of the {planned} attempts were made before, by an earlier start of the run {run}{why}",)


def _begun_again(n: int) -> list[str]:
    told = "1 attempt was" if n == 1 else f"{n} attempts were"
    return [f"{told} begun again, for the worker process died; each counts once"] if n else []


def _warnings(suite: Suite, options: RunOptions, result: SuiteResult) -> list[str]:
    out = []
    n = result.counts
    if suite.drafts:
        out.append(f"{len(suite.drafts)} drafts were left out: nobody has approved them")
    if n.excluded:
        listed = ", ".join(f"{v} {k}" for k, v in n.excluded.items())
        out.append(
            f"{sum(n.excluded.values())} of {n.n_planned} attempts are not scored ({listed}): between {n.worst:.1%} "
            f"and {n.best:.1%} would have passed"
        )
    if options.k == 1:
        out.append("one attempt per task: nothing is known about how reliably a task is passed")
    if result.cost_usd.unknown:
        out.append(f"the cost of {result.cost_usd.unknown} attempts is not known, and not counted as zero")
    if options.limits.cost_usd is not None and result.cost_usd.unknown:
        out.append("the cost limit cannot stop an agent whose price is not known")
    return out


def stored(store: Store, run: str | None, level: float = 0.95) -> tuple[str, rows.Judged, SuiteResult]:
    """A run that is in a store: its name, its attempts with verdicts, its numbers."""
    name = rows.resolve(store, run)
    judged = rows.stored_run(store, name)
    return name, judged, results(judged, level=level)


def again(store: Store, run: str | None, suite: Suite) -> tuple[str, Sequence[str]]:
    """Grade a stored run once more with the checks of today; the run's name and the tasks that changed since.

    A task whose content is no longer what was attempted is left as it was graded.
    """
    from seatrial.flows.grade import regrade

    return regrade(store, rows.resolve(store, run), suite)


__all__ = ["RunOptions", "SuiteRun", "again", "run_suite", "stored"]
