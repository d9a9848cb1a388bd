"""A suite and an agent to attempts, verdicts and numbers: k attempts at every task, resumable at any moment."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal

import msgspec

from seatrial import privacy
from seatrial.canon import content_hash
from seatrial.dimensions.audit_record import sealed, task_spec
from seatrial.engine.ledger import Ledger
from seatrial.errors import EvidenceError, SeatrialError, StoreError, UsageError
from seatrial.flows import attempts as rows
from seatrial.flows.judging import judge, place
from seatrial.flows.suite import agent_of, open_suite
from seatrial.flows.tapes import Mode, Taping
from seatrial.records import AgentUnderTest, Attempt
from seatrial.records.price import Price
from seatrial.store import Store, temporary_store
from seatrial.store.lock import Lock
from seatrial.suites import Episode, Limits, Suite, run_attempt, runner, unfinished
from seatrial.suites.fingerprint import about, fingerprint
from seatrial.suites.results import SuiteResult, results
from seatrial.suites.runner import Done, Planned, Tally
from seatrial.world import approver_of

TallyFn = Callable[[Tally], None]


class RunOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a run may be told.

    `k` attempts per task; `part` and `tasks` choose tasks; `retries` is how often an attempt is made again after
    infrastructure failed; `cassette` is a folder of tapes that tool calls are recorded on and replayed from;
    `approver` decides on gated calls where no task names another (`world.approver_of`); `prices` tell what tokens
    cost whose agent does not say so; `redact` replaces personal data in what is kept (then it cannot be replayed);
    `name` names the run instead of its content.
    """

    k: int = 5
    seed: int = 0
    concurrency: int = 4
    limits: Limits = Limits()
    part: Literal["dev", "holdout"] | None = None
    tasks: tuple[str, ...] = ()
    retries: int = 1
    cassette: Path | None = None
    cassette_mode: Mode = "auto"
    approver: str = "approve"
    prices: dict[str, Price] = {}
    redact: bool = False
    level: float = 0.95
    name: str | None = None


class SuiteRun(msgspec.Struct, frozen=True, kw_only=True):
    """A finished run. `resumed` attempts were there already; `drafts` were left out, as nobody has approved them."""

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


def run_suite(
    suite: str | Path | Suite,
    *,
    agent: str | AgentUnderTest,
    store: Path | None = None,
    options: RunOptions = RunOptions(),
    progress: TallyFn | None = None,
) -> SuiteRun:
    """Let an agent try every task of a suite k times, and grade what it did.

    With `store` None everything happens in a temporary store that is gone afterwards. In a store, a run that was cut
    short goes on where it stopped, and one that is complete is only reported: suite, agent, seed and limits name the
    run, each with the code and files that it is made of, so a change of any of them is another run. A warning says how
    many attempts were made before.

    Raises:
        EvidenceError: the suite has no task to run.
        InputError, UsageError: suite, agent or options cannot be read.
        StoreError: another process is working on this very run.
    """
    approver_of(options.approver)  # a mistake in a word is told before anything runs
    _fits(options)
    opened = suite if isinstance(suite, Suite) else open_suite(suite)
    # One turn never takes longer than the attempt that it belongs to.
    turn = 600.0 if options.limits.seconds is None else min(600.0, options.limits.seconds)
    tried = agent_of(agent, opened, turn, options.prices) if isinstance(agent, str) else agent
    chosen = opened.select(options.tasks, options.part)
    if not chosen:
        left = f"; {len(opened.drafts)} drafts wait for approval" if opened.drafts else ""
        raise EvidenceError(f"the suite {opened.name} has no task to run{left}", hint="see: seatrial task approve")
    with ExitStack() as stack:
        where = Store.open(store, create=True) if store is not None else stack.enter_context(temporary_store())
        run = options.name or _identity(opened, tried, options)
        planned = runner.plan(chosen, opened.hashes, options.k, options.seed)
        folder = where.path / "runs"
        folder.mkdir(exist_ok=True)
        stack.enter_context(_alone(folder / f"{_safe(run)}.lock", run))
        ledger = stack.enter_context(Ledger(folder / f"{_safe(run)}.jsonl"))
        maker = _Maker(where, opened, tried, run, options)
        before = sum(p.key in ledger and not maker.lost(msgspec.convert(ledger.get(p.key), Done)) for p in planned)
        done = runner.run(
            planned, maker.make, ledger, concurrency=options.concurrency, again=maker.lost, progress=progress
        )
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
        warnings=(*_reused(before, len(planned), run, options.name), *_warnings(opened, options, result)),
        data_version=version,
    )


class _Maker:
    """Makes and grades one attempt; called from several threads."""

    def __init__(self, store: Store, suite: Suite, agent: AgentUnderTest, run: str, options: RunOptions) -> None:
        self._store = store
        self._suite = suite
        self._agent = agent
        self._run = run
        self._options = options
        self._about = about(agent)

    def lost(self, done: Done) -> bool:
        """Whether a recorded attempt has to be made again: its trace is gone, or it never could run."""
        if done.attempt.status == "error_infra":
            return True
        return done.blob is not None and not self._store.blobs.has(done.blob)

    def make(self, planned: Planned) -> Done:
        """One attempt, made again while infrastructure fails and retries are left.

        What nobody thought of spoils this attempt, and no other: it is kept as one that could not be judged.
        """
        try:
            return self._make(planned)
        except SeatrialError:
            raise
        except Exception as error:
            return self._done(planned, unfinished(self._suite, planned.task, self._agent, planned.trial,
                                                  self._name(planned), error), 1)  # fmt: skip

    def _name(self, planned: Planned) -> str:
        return f"{self._run}~{planned.task.id}~{planned.trial}"

    def _make(self, planned: Planned) -> Done:
        tries = 0
        while True:
            tries += 1
            tape = None
            if self._options.cassette is not None:
                tape = Taping(self._options.cassette, self._options.cassette_mode, planned)
            episode = run_attempt(
                self._suite,
                planned.task,
                self._agent,
                trial=planned.trial,
                seed=planned.seed,
                name=self._name(planned),
                limits=self._options.limits,
                approver=self._options.approver,
                wrap=tape.around if tape is not None else None,
                prices=self._options.prices,
            )
            if tape is not None:
                episode = tape.after(episode)
            if episode.status != "error_infra" or tries > self._options.retries:
                return self._done(planned, episode, tries)

    def _done(self, planned: Planned, episode: Episode, tries: int) -> Done:
        verdicts, status, score, reason = judge(planned.task, episode)
        task, trace = planned.task, episode.trace
        marks = fingerprint(self._about, episode.tools, trace.steps)
        extra: dict[str, Any] = {}
        spot = place(status, verdicts)
        if spot is not None:
            extra["quadrant"] = spot
        if task.must_pass:
            extra["must_pass"] = True
        known = {"fingerprint": marks, "seed": planned.seed, "task_spec": task_spec(task)}
        kept = msgspec.structs.replace(trace, extra={**trace.extra, **known})
        if self._options.redact:
            kept, _ = privacy.redact(kept)
        # Last of all: the chain covers what is kept, and the verdict that was given.
        kept = sealed(kept, {"status": status, "score": score, "reason": reason})
        usage = trace.totals.usage
        counted = [n for n in (usage.input_tokens, usage.output_tokens) if n is not None]
        return Done(
            attempt=Attempt(
                task=task.id,
                trial=planned.trial,
                status=status,
                score=score,
                model=trace.model,
                agent=self._agent.name,
                task_hash=planned.task_hash,
                suite=self._suite.name,
                trace=trace.id,
                reason=reason,
                cost_usd=episode.cost_usd,
                latency_s=round(episode.seconds, 6),
                tokens=sum(counted) if counted else None,
                fingerprint=marks,
                extra=extra,
            ),
            verdicts=verdicts,
            blob=self._store.put(kept, durable=False),
            row={
                "session": trace.id,
                "run": self._run,
                "task_type": task.type,
                "difficulty": task.difficulty,
                "source": task.source,
                "must_pass": task.must_pass,
                "part": self._suite.part(task),
                "agent_version": self._agent.version,
                "world": episode.world,
                "world_version": episode.world_version,
                "seed": planned.seed,
                "stopped": episode.stopped,
                "agent_turns": sum(s.event_class == "agent" for s in trace.steps),
                "tool_calls": sum(len(s.tool_calls) for s in trace.steps),
                "start": round(episode.began, 6),
                **({"tries": tries} if tries > 1 else {}),
            },
        )


def _identity(suite: Suite, agent: AgentUnderTest, options: RunOptions) -> str:
    """The run's name by its content; k is left out, so that more attempts can be added to a run."""
    tools = suite.world(0).tools if suite.world is not None else ()
    content = {
        "suite": [suite.version, suite.code],
        "agent": [agent.name, agent.version, fingerprint(about(agent), tools), getattr(agent, "address", None)],
        "seed": options.seed,
        "limits": msgspec.to_builtins(options.limits),
        "redact": options.redact,
        "approver": options.approver,
        "cassette": [str(options.cassette), options.cassette_mode] if options.cassette else None,
    }
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in f"{suite.name}-{agent.name}")
    return f"{plain[:48]}-{content_hash(content)[:10]}"


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
