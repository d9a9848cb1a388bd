"""Whatever one attempt does, the others are kept, and it has a status of its own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from seatrial.errors import StoreError
from seatrial.flows import making
from seatrial.flows import run as flow
from seatrial.flows.making import Maker
from seatrial.flows.run import RunOptions, run_suite
from seatrial.records import AgentTurn, Task, ToolCall, ToolSpec, Usage
from seatrial.store import Store
from seatrial.suites import Suite
from seatrial.world import MemoryWorld, Output, Tool


def look(state: dict[str, Any], arguments: dict[str, Any], draws: Any) -> Output:
    return Output(text="ok")


LOOK = Tool(ToolSpec(name="look", description="look", parameters={"type": "object"}), look)


def world(seed: int) -> MemoryWorld:
    return MemoryWorld("w", "1", [LOOK])


class Agent:
    """Does something odd at the first of its tasks; answers the others."""

    name, version = "odd", "1"

    def __init__(self, odd: Any) -> None:
        self.odd = odd

    def begin(self, tools: Sequence[ToolSpec], seed: int) -> Any:
        return _Talk(self.odd)


class _Talk:
    def __init__(self, odd: Any) -> None:
        self.odd = odd

    def send(self, incoming: Any) -> AgentTurn:
        if getattr(incoming, "text", "") != "odd":
            return AgentTurn(text="done")
        if isinstance(self.odd, BaseException):
            raise self.odd
        turn: AgentTurn = self.odd
        return turn


def calling(arguments: Any) -> AgentTurn:
    return AgentTurn(text="", calls=(ToolCall(id="c", name="look", arguments=arguments),))


def circle() -> dict[str, Any]:
    made: dict[str, Any] = {}
    made["me"] = made
    return made


TASKS = (Task(id="a", input="odd"), Task(id="b", input="even"), Task(id="c", input="even"))


@pytest.mark.parametrize(
    "odd",
    [
        calling({"x": object()}),
        calling({"x": {1, 2, object()}}),
        calling({("a", "b"): 1}),
        calling({"x": lambda: 1}),
        calling(circle()),
        AgentTurn(text=object()),  # type: ignore[arg-type]
        AgentTurn(text="", usage=Usage(input_tokens=-5)),
        AgentTurn(text="", usage=Usage(cost_usd=-1.0)),
        AgentTurn(text="", usage=Usage(cost_usd=math.nan)),
        SystemExit(3),
        RecursionError(),
        "no turn",
    ],
    ids=lambda odd: type(odd).__name__,  # its own words hold an address, which differs between processes
)
def test_what_cannot_be_kept_is_the_agents_error_and_no_other_attempt_is_lost(odd: Any, tmp_path: Path) -> None:
    made = run_suite(Suite("s", TASKS, world=world), agent=Agent(odd), store=tmp_path, options=RunOptions(k=2))
    _, judged, _ = flow.stored(Store.open(tmp_path), made.run)
    status = {(a.task, a.trial): a.status for a, _ in judged}
    assert {s for (task, _), s in status.items() if task == "a"} == {"error_agent"}
    assert {s for (task, _), s in status.items() if task != "a"} <= {"unscored", "passed"}
    assert len(status) == 6
    assert all(a.reason for a, _ in judged if a.task == "a")


def test_an_error_that_nobody_thought_of_spoils_one_attempt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from seatrial.flows.judging import judge as whole

    def judge(task: Task, episode: Any) -> Any:
        if task.id == "b" and episode.status is None:
            raise ZeroDivisionError("in a check")
        return whole(task, episode)

    monkeypatch.setattr(making, "judge", judge)
    made = run_suite(Suite("s", TASKS, world=world), agent=Agent(calling({})), store=tmp_path, options=RunOptions(k=1))
    assert made.result.counts.excluded["error_infra"] == 1
    assert made.result.counts.n_planned == 3


def test_where_the_store_fails_what_was_done_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    suite, options = Suite("s", TASKS, world=world), RunOptions(k=1, concurrency=1)
    whole = Maker._done

    def done(self: Any, planned: Any, *rest: Any) -> Any:
        if planned.task.id == "c":
            raise StoreError("the disk is full")
        return whole(self, planned, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(Maker, "_done", done)
        with pytest.raises(StoreError, match="full"):
            run_suite(suite, agent=Agent(AgentTurn(text="x")), store=tmp_path, options=options)
    again = run_suite(suite, agent=Agent(AgentTurn(text="x")), store=tmp_path, options=options)
    assert again.resumed == 2
