"""Attempts at a benchmark whose environment is one of our worlds, by our own runner."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.records import AgentUnderTest, RecordedOutcome, Task, Trace, World
from seatrial.suites import Limits, Suite, run_attempt, runner


def attempts(
    name: str, task: Task, agent: object, reset: Callable[[Task, int], World], *, k: int, seed: int, limits: Limits
) -> Iterator[Trace]:
    """`k` attempts in fresh worlds; the trace of one that broke carries its status as its outcome.

    Raises:
        UsageError: the agent cannot act in a world.
    """
    if not isinstance(agent, AgentUnderTest):
        raise UsageError(f"{type(agent).__name__} is no agent that can act in {name}", hint="a name and `begin`")
    suite = Suite(name, (task,), world=lambda number: reset(task, number))
    for planned in runner.plan((task,), suite.hashes, k, seed):
        episode = run_attempt(
            suite, task, agent, trial=planned.trial, seed=planned.seed, limits=limits,
            name=f"{name}~{agent.name}~{task.id}~{planned.trial}",
        )  # fmt: skip
        trace = replace(episode.trace, extra={**episode.trace.extra, "seed": planned.seed})
        if episode.status is not None:
            settled = RecordedOutcome(status=episode.status, by=name, extra={"reason": episode.reason})
            trace = replace(trace, outcome=settled)
        yield trace


def settled(trace: Trace) -> RecordedOutcome | None:
    """The status that an attempt had before anybody judged it; None where it came to its end."""
    return trace.outcome
