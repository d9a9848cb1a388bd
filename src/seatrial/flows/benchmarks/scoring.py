"""A benchmark's runs as evidence for the seven dimensions, and agents side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from seatrial.dimensions.card import of_gathered
from seatrial.errors import UsageError
from seatrial.flows.agents_again import agent_again
from seatrial.flows.scorecard import ProgressFn, ScorecardOptions, Scored, gather, side_by_side
from seatrial.records import Attempt, Benchmark, Evidence, Task, Trace
from seatrial.suites import Suite, task_hash


def evidence(
    benchmark: Benchmark, agent: object, *, k: int, seed: int = 0, tasks: Sequence[str] = ()
) -> Iterator[Evidence]:
    """`k` attempts at every task (or those named), one after another, as evidence; nothing of the tasks is changed.

    Raises:
        UsageError: k is below 1, or a task is unknown.
        SeatrialError: what the benchmark cannot do.
    """
    if k < 1:
        raise UsageError(f"k must be at least 1, got {k}")
    known = {t.id: t for t in benchmark.tasks()}
    strange = [name for name in tasks if name not in known]
    if strange:
        raise UsageError(f"the benchmark {benchmark.name} has no task {strange[0]!r}",
                         hint=f"it has {', '.join(list(known)[:5])}")  # fmt: skip
    for task in [known[name] for name in tasks] or list(known.values()):
        for trial, trace in enumerate(benchmark.attempts(task, agent, k=k, seed=seed)):
            yield of_trace(benchmark, task, trial, trace, agent)


def of_trace(benchmark: Benchmark, task: Task, trial: int, trace: Trace, agent: object = None) -> Evidence:
    """One attempt, judged by the benchmark's own criterion."""
    outcome = benchmark.success(task, trace)
    number = trace.extra.get("seed", 0)
    usage = trace.totals.usage
    counted = [n for n in (usage.input_tokens, usage.output_tokens) if n is not None]
    attempt = Attempt(
        task=task.id, trial=trial, status=outcome.status, score=outcome.score if outcome.bounded else None,
        model=trace.model, agent=trace.agent.name, task_hash=task_hash(task), suite=benchmark.name, trace=trace.id,
        reason=outcome.extra.get("reason"), cost_usd=usage.cost_usd, latency_s=trace.totals.wall,
        tokens=sum(counted) if counted else None,
    )  # fmt: skip
    own = trace.provenance.format == "seatrial-attempt"
    lives = own and benchmark.reset(task, number) is not None
    agents = {trace.agent.name: agent} if own else {}
    return Evidence(
        attempt=attempt, task=task, trace=trace, own=own,
        world=(lambda: benchmark.reset(task, number)) if lives else None,
        agent=agent_again(Suite(benchmark.name, (task,), agents=agents), task, trace) if own else None,
    )  # fmt: skip


def score_benchmark(
    benchmark: Benchmark,
    agents: Mapping[str, object],
    *,
    k: int = 10,
    seed: int = 0,
    tasks: Sequence[str] = (),
    options: ScorecardOptions = ScorecardOptions(),
    progress: ProgressFn | None = None,
) -> Scored:
    """Run each agent k times at every task and set the agents' scorecards side by side.

    Raises:
        UsageError: no agent, k below 1, an unknown task.
        SeatrialError: what the benchmark cannot do.
    """
    if not agents:
        raise UsageError("name at least one agent")
    cards, gathered = [], []
    n = len(tasks or benchmark.tasks()) * k
    for name, agent in agents.items():
        one = gather(evidence(benchmark, agent, k=k, seed=seed, tasks=tasks), options, progress, n)
        model = next((a.model for a in one.attempts if a.model), None)
        cards.append(
            of_gathered(one, agent=name, model=model, suite=benchmark.name, level=options.level, warnings=[],
                        keep_values=options.values, basis={"benchmark": benchmark.name, "version": benchmark.version,
                                                           "seed": seed})
        )  # fmt: skip
        gathered.append(one)
    return side_by_side(cards, options.profiles, None, gathered)
