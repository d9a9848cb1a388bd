"""Transcripts become traces, and episodes end when they must with everything kept."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from seatrial.canon import content_hash
from seatrial.errors import InfrastructureError, InputError
from seatrial.examples.ticketdesk import DOMAIN
from seatrial.records import (
    Agent,
    AgentTurn,
    GateEvent,
    Task,
    TaskRef,
    ToolCall,
    ToolResult,
    ToolSpec,
    Usage,
    UserMessage,
    WorldStart,
)
from seatrial.world import (
    Approve,
    FixedText,
    GateRule,
    Limits,
    Script,
    ScriptedAgent,
    SimulatedClock,
    Transcript,
    run_episode,
    start_of,
    trace_of,
)

CALL = ToolCall(id="c", name="read_ticket", arguments={"id": "T-101"})


def endless(costs: Sequence[float | None]) -> ScriptedAgent:
    def script(message: UserMessage, tools: Sequence[ToolSpec], draws: random.Random) -> Script:
        for cost in costs:
            usage = Usage(input_tokens=10, output_tokens=1, cost_usd=cost)
            yield AgentTurn(calls=(CALL,), usage=usage, seconds=10.0, model="m-2")
        yield AgentTurn(text="done")

    return ScriptedAgent("endless", "1", script)


def run(agent: ScriptedAgent, limits: Limits = Limits(), **options: Any) -> Transcript:
    world = DOMAIN.world(1)
    clock = SimulatedClock(100.0)
    return run_episode(world, agent.begin(world.tools, 1), FixedText("go"), limits=limits, clock=clock, **options)


@pytest.mark.parametrize(
    ("costs", "limits", "stopped", "turns"),
    [
        ([0.4] * 9, Limits(cost_usd=1.0), "cost_limit", 3),
        ([None] * 9, Limits(cost_usd=1.0), "user_left", 10),
        ([0.4] * 9, Limits(turns=4), "turn_limit", 4),
        ([0.4] * 9, Limits(calls=2), "call_limit", 3),
        ([0.4] * 9, Limits(seconds=25.0), "time_limit", 3),
    ],
)
def test_limits(costs: list[float | None], limits: Limits, stopped: str, turns: int) -> None:
    transcript = run(endless(costs), limits)
    assert transcript.stopped == stopped
    assert sum(s.event_class == "agent" for s in transcript.steps) == turns


def test_a_world_that_fails_ends_the_episode_and_keeps_what_was() -> None:
    class Broken:
        def __init__(self) -> None:
            self.inner = DOMAIN.world(1)
            self.n = 0

        def __getattr__(self, name: str) -> Any:
            return getattr(self.inner, name)

        def call(self, call: ToolCall) -> ToolResult:
            self.n += 1
            if self.n == 3:
                raise InfrastructureError("the disk is gone")
            return self.inner.call(call)

    world: Any = Broken()

    def script(message: UserMessage, tools: Sequence[ToolSpec], draws: random.Random) -> Script:
        yield AgentTurn(calls=(CALL,))
        yield AgentTurn(calls=(CALL, CALL))

    agent = ScriptedAgent("a", "1", script)
    transcript = run_episode(world, agent.begin(world.tools, 1), FixedText("go"))
    assert (transcript.stopped, transcript.failure) == ("infra_error", "the disk is gone")
    assert [len(s.results) for s in transcript.steps] == [0, 1, 1]
    assert len(transcript.steps[2].tool_calls) == 2


def test_a_trace_holds_what_checks_and_dimensions_need() -> None:
    gates = (GateRule(name="look", tool="read_ticket", severity="low", mode="advisory"),)
    transcript = run(endless([0.5, 0.25]), hashes=True, gates=gates, approver=Approve())
    world = DOMAIN.world(1)
    start = DOMAIN.start(1)
    trace = trace_of(
        transcript,
        id="a-1",
        agent=Agent(name="endless"),
        world=world,
        start=start,
        task=TaskRef(id="t"),
        attempt=2,
        extra={"mine": 1},
    )
    assert (trace.model, trace.attempt, trace.task.id) == ("m-2", 2, "t")
    assert (trace.totals.usage.input_tokens, trace.totals.usage.cost_usd) == (20, 0.75)
    assert trace.totals.wall == transcript.seconds
    assert (trace.totals.wall or 0) >= 20.0
    assert trace.provenance.content_hash == content_hash(transcript.steps)
    assert [r.extra["state_hash"] for s in trace.steps for r in s.results] == [world.state_hash()] * 2
    held = trace.extra
    assert held["start"] == held["final"] == world.state()
    assert (held["changes"], held["start_seed"], held["mine"]) == ([], 1, 1)
    assert [t["name"] for t in held["world"]["tools"]] == [t.name for t in world.tools]
    assert held["world"]["volatile"] == [["tickets", "*", "updated"]]
    assert len(held["gates"]) == 2
    assert {e["respected"] for e in held["gates"]} == {False}
    assert isinstance(transcript.gates[0], GateEvent)


def test_an_unknown_cost_leaves_the_total_unknown() -> None:
    trace = trace_of(run(endless([0.5, None])), id="a", agent=Agent(name="x"))
    assert trace.totals.usage.cost_usd is None
    assert "world" not in trace.extra


def whole(seed: int) -> WorldStart:
    return WorldStart(state={"seed": seed}, seed=seed)


def test_starts() -> None:
    def task(setup: Any) -> Task:
        return Task(id="t", input="x", setup=setup)

    assert start_of(task(None), 3) == WorldStart(state={}, seed=3)
    assert start_of(task(None), 3, DOMAIN.start) == DOMAIN.start(3)
    assert start_of(task({"a": 1}), 3) == WorldStart(state={"a": 1}, seed=3)
    assert start_of(task(whole), 4).state == {"seed": 4}
    assert start_of(task(lambda seed: {"b": seed}), 5) == WorldStart(state={"b": 5}, seed=5)
    assert start_of(task("seatrial.examples.coderepo.world:green"), 1).seed == 1
    for wrong, said in (
        ("nowhere", "not module:function"),
        ("no.such.module:f", "cannot be loaded"),
        ("seatrial.examples.ticketdesk:TASKS", "not callable"),
        (lambda seed: 7, "setup gave int"),
    ):
        with pytest.raises(InputError, match=said):
            start_of(task(wrong), 1)
