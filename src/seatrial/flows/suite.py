"""A word on the command line to a suite, and another to the agent that is to try it."""

from __future__ import annotations

from pathlib import Path

from seatrial import suites
from seatrial.errors import UsageError
from seatrial.grading.valid import validate
from seatrial.records import AgentUnderTest
from seatrial.records.price import Prices
from seatrial.suites import Suite
from seatrial.suites.load import suite_of

EXAMPLE = "example:"


def open_suite(spec: str | Path) -> Suite:
    """A suite from a file, from ``module:name``, or a worked domain by ``example:NAME``; its tasks are checked.

    Raises:
        InputError: the suite or one of its tasks cannot be read.
        UsageError: `spec` names nothing.
    """
    text = str(spec)
    suite = _example(text.removeprefix(EXAMPLE)) if text.startswith(EXAMPLE) else suites.load(text)
    for task in suite.tasks:
        validate(task, suite.file, suite.lines.get(task.id))
    return suite


def _example(name: str) -> Suite:
    from seatrial.examples import domains

    found = {d.name: d for d in domains()}
    if name not in found:
        raise UsageError(f"there is no example {name!r}", hint=f"one of: {', '.join(found)}")
    return suite_of(found[name])


def agent_of(spec: str, suite: Suite, seconds: float = 600.0, prices: Prices | None = None) -> AgentUnderTest:
    """The agent that a SPEC names: one of the suite's own by name, else as `world.agents.parse_agent` reads it.

    `seconds` bounds each of its turns, where it is not an object of the suite's; `prices` are of chat models.

    Raises:
        UsageError: it names nothing.
    """
    own = suite.agents.get(spec)
    if own is not None and not isinstance(own, str):
        agent: AgentUnderTest = own
        return agent
    from seatrial.world import agents

    try:
        return agents.parse_agent(own or spec, seconds=seconds, prices=prices)
    except UsageError as error:
        names = ", ".join(suite.agents)
        hint = f"{error.hint}; or one of the suite's own: {names}" if names else error.hint
        raise UsageError(error.message, hint=hint) from error


__all__ = ["agent_of", "open_suite"]
