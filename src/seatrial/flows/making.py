"""One planned attempt to a finished one: tried, graded, sealed, and its trace put by; here or on a cluster's worker."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec

from seatrial import privacy
from seatrial.canon import content_hash
from seatrial.dimensions.audit_record import sealed, task_spec
from seatrial.errors import SeatrialError
from seatrial.flows.judging import judge, place
from seatrial.flows.tapes import Mode, Taping
from seatrial.records import AgentUnderTest, Attempt, Trace
from seatrial.records.price import Price
from seatrial.suites import Episode, Limits, Suite, run_attempt, unfinished
from seatrial.suites.fingerprint import about, fingerprint
from seatrial.suites.runner import Done, Planned


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


class Keeper(Protocol):
    """Where the traces of attempts are put: a store, or what carries them to one."""

    def put(self, trace: Trace, *, durable: bool = True) -> str:
        """Keep a trace; the hash of its content."""
        ...


class Maker:
    """Makes and grades one attempt; called from several threads."""

    def __init__(self, keeper: Keeper, suite: Suite, agent: AgentUnderTest, run: str, options: RunOptions) -> None:
        self._keeper = keeper
        self._suite = suite
        self._agent = agent
        self._run = run
        self._options = options
        self._about = about(agent)

    def make(self, planned: Planned) -> Done:
        """One attempt, made again while infrastructure fails and retries are left.

        What nobody thought of spoils this attempt, and no other: it is kept as one that could not be judged.
        """
        try:
            return self._make(planned)
        except SeatrialError:
            raise
        except Exception as error:
            return self.spoilt(planned, error, 1)

    def spoilt(self, planned: Planned, error: BaseException, tries: int) -> Done:
        """The attempt that something broke which is neither the agent's nor the world's."""
        ended = unfinished(self._suite, planned.task, self._agent, planned.trial, self._name(planned), error)
        return self._done(planned, ended, tries)

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
            blob=self._keeper.put(kept, durable=False),
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


def identity(suite: Suite, agent: AgentUnderTest, options: RunOptions) -> str:
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


def turn_limit(options: RunOptions) -> float:
    """Seconds that one turn of an agent may take: never longer than the attempt that it belongs to."""
    return 600.0 if options.limits.seconds is None else min(600.0, options.limits.seconds)
