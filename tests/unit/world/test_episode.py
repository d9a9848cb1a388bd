"""An episode: turns, results, limits, approvals and time."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from seatrial.errors import UsageError
from seatrial.records import AgentTurn, Approval, Gate, ToolCall, ToolResult, ToolSpec, UserMessage, WorldStart
from seatrial.world import (
    Approve,
    Limits,
    MemoryWorld,
    Output,
    Script,
    ScriptedAgent,
    SimulatedClock,
    Tool,
    Transcript,
    run_episode,
)

SPEC = ToolSpec(name="put", description="Put.", parameters={"type": "object"})


def _put(state: dict[str, Any], arguments: dict[str, Any], draws: random.Random) -> Output:
    state["value"] = arguments.get("value")
    return Output(text="put", seconds=2.0)


def _gate(state: dict[str, Any], arguments: dict[str, Any]) -> Gate | None:
    return Gate(name="large", severity="low", why="large") if arguments.get("value", 0) > 9 else None


def _world() -> MemoryWorld:
    world = MemoryWorld("box", "1", (Tool(SPEC, _put, _gate),))
    world.reset(WorldStart(state={"value": None}))
    return world


def _script(value: int) -> ScriptedAgent:
    def script(first: UserMessage, tools: Sequence[ToolSpec], draws: random.Random) -> Script:
        message = first
        while True:
            call = ToolCall(id=f"c{draws.random()}", name=tools[0].name, arguments={"value": value})
            results = yield AgentTurn(calls=(call,), seconds=1.0)
            assert isinstance(results, tuple)
            incoming = yield AgentTurn(text=f"{message.text}: {results[0].outcome}", seconds=1.0)
            assert isinstance(incoming, UserMessage)
            message = incoming

    return ScriptedAgent("scripted", "1", script)


class _User:
    """Says its words one after another and remembers what it saw."""

    def __init__(self, *words: str) -> None:
        self.words = list(words)
        self.saw: list[tuple[str, Any]] = []

    def open(self, state: dict[str, Any]) -> UserMessage:
        return UserMessage(text=self.words.pop(0), meaning={"first": True})

    def reply(self, said: str, state: dict[str, Any]) -> UserMessage | None:
        self.saw.append((said, state["value"]))
        return UserMessage(text=self.words.pop(0), delay=10.0) if self.words else None


def _run(value: int, user: _User, **options: Any) -> Transcript:
    world = _world()
    return run_episode(world, _script(value).begin(world.tools, 0), user, clock=SimulatedClock(100.0), **options)


def test_a_transcript_tells_everything_in_order() -> None:
    user = _User("one", "two")
    t = _run(4, user)
    assert [(s.index, s.event_class) for s in t.steps] == list(
        enumerate(["human", "agent", "agent", "human", "agent", "agent"])
    )
    assert [s.time for s in t.steps] == [100.0, 101.0, 104.0, 114.0, 115.0, 118.0]
    assert t.steps[1].results[0].time == 103.0
    assert t.steps[1].results[0].call_id == t.steps[1].tool_calls[0].id
    assert user.saw == [("one: ok", 4), ("two: ok", 4)]
    assert [(h.step, h.meaning) for h in t.heard] == [(0, {"first": True}), (3, {})]
    assert (t.start, t.final, t.stopped) == ({"value": None}, {"value": 4}, "user_left")
    assert t.final_hash == _after(4)


def _after(value: int) -> str:
    world = _world()
    world.call(ToolCall(id="x", name="put", arguments={"value": value}))
    return world.state_hash()


@pytest.mark.parametrize(
    ("limits", "stopped", "n_steps"),
    [
        (Limits(turns=3), "turn_limit", 5),
        (Limits(calls=1), "call_limit", 5),
        (Limits(seconds=3.0), "time_limit", 4),
    ],
)
def test_limits_stop_the_episode_and_say_so(limits: Limits, stopped: str, n_steps: int) -> None:
    t = _run(4, _User("one", "two"), limits=limits)
    assert t.stopped == stopped
    assert len(t.steps) == n_steps


def test_without_an_approver_a_gated_call_is_rejected() -> None:
    t = _run(10, _User("one"))
    assert t.steps[1].results[0].outcome == "rejected"
    assert t.final == {"value": None}
    assert [a.decision for a in t.approvals.values()] == ["deny"]


def test_an_approved_call_runs() -> None:
    assert _run(10, _User("one"), approver=Approve()).final == {"value": 10}


def test_an_amended_call_runs_as_amended() -> None:
    class Amend:
        def decide(self, call: ToolCall, gate: Gate, state: dict[str, Any]) -> Approval:
            return Approval(decision="amend", by="test", arguments={"value": 1})

    t = _run(10, _User("one"), approver=Amend())
    assert t.final == {"value": 1}
    assert t.steps[1].tool_calls[0].arguments == {"value": 10}


def test_a_script_is_deterministic_by_seed() -> None:
    def ids(seed: int) -> list[str]:
        world = _world()
        conversation = _script(1).begin(world.tools, seed)
        t = run_episode(world, conversation, _User("a", "b"), clock=SimulatedClock(0.0))
        return [c.id for s in t.steps for c in s.tool_calls]

    assert ids(1) == ids(1)
    assert ids(1) != ids(2)


def test_a_session_begins_with_words_and_a_script_that_ended_says_so() -> None:
    with pytest.raises(UsageError, match="begins with a message"):
        _script(1).begin((), 0).send((ToolResult(),))

    def once(first: UserMessage, tools: Sequence[ToolSpec], draws: random.Random) -> Script:
        yield AgentTurn(text="bye")

    conversation = ScriptedAgent("once", "1", once).begin((), 0)
    conversation.send(UserMessage(text="hello"))
    with pytest.raises(UsageError, match="ended"):
        conversation.send(UserMessage(text="more"))
