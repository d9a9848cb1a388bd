"""A world in memory: refusals, gates, snapshots of other worlds."""

from __future__ import annotations

import random
from typing import Any

import pytest

from seatrial.errors import InputError, UsageError
from seatrial.records import Gate, Snapshot, ToolCall, ToolSpec, World, WorldStart
from seatrial.world import FaultPlan, FaultyWorld, MemoryWorld, Output, Tool

SPEC = ToolSpec(
    name="add",
    description="Add to the counter.",
    parameters={
        "type": "object",
        "properties": {"n": {"type": "integer", "minimum": 1}},
        "required": ["n"],
        "additionalProperties": False,
    },
)


def _add(state: dict[str, Any], arguments: dict[str, Any], draws: random.Random) -> Output:
    state["count"] += arguments["n"]
    state["clock"] = draws.random()
    return Output(text=str(state["count"]))


def _gate(state: dict[str, Any], arguments: dict[str, Any]) -> Gate | None:
    return Gate(name="large", severity="high", why="more than ten") if arguments["n"] > 10 else None


def _world(name: str = "counter", version: str = "1") -> MemoryWorld:
    world = MemoryWorld(name, version, (Tool(SPEC, _add, _gate),), (("clock",),))
    world.reset(WorldStart(state={"count": 0, "clock": 0.0}, seed=3))
    return world


def _call(n: object, name: str = "add") -> ToolCall:
    return ToolCall(id="c1", name=name, arguments={"n": n})


def test_it_is_a_world() -> None:
    assert isinstance(_world(), World)
    assert isinstance(FaultyWorld(_world(), FaultPlan(rate=0.0, seed=0, tools=())), World)


def test_a_call_changes_the_state_and_answers() -> None:
    world = _world()
    before = world.state()
    result = world.call(_call(2))
    assert (result.call_id, result.outcome, result.text) == ("c1", "ok", "2")
    assert [(c.path, c.before, c.after) for c in world.difference(before, world.state())] == [(("count",), 0, 2)]


@pytest.mark.parametrize(
    ("call", "refused", "field"),
    [
        (_call(1, "subtract"), "unknown_tool", None),
        (_call(0), "schema", "n"),
        (_call("two"), "schema", "n"),
        (ToolCall(id="c", name="add"), "schema", ""),
        (ToolCall(id="c", name="add", raw_arguments="{", validity="invalid"), "schema", ""),
    ],
)
def test_a_bad_call_is_refused_and_changes_nothing(call: ToolCall, refused: str, field: str | None) -> None:
    world = _world()
    before = world.state_hash()
    result = world.call(call)
    assert result.outcome == "error"
    assert result.extra["refused"] == refused
    assert result.extra.get("field") == field
    assert world.state_hash() == before


def test_the_start_state_is_not_shared() -> None:
    start = WorldStart(state={"count": 0, "clock": 0.0})
    world = _world()
    world.reset(start)
    world.call(_call(1))
    world.state()["count"] = 99
    assert start.state["count"] == 0
    assert world.state()["count"] == 1


def test_volatile_fields_do_not_count() -> None:
    one, two = _world(), _world()
    one.call(_call(2))
    two.call(_call(1))
    two.call(_call(1))
    assert one.state() != two.state()
    assert one.state_hash() == two.state_hash()


def test_gates_look_at_valid_proposed_calls_only() -> None:
    world = _world()
    assert world.gate(_call(11)) is not None
    assert world.gate(_call(10)) is None
    assert world.gate(_call("many")) is None
    assert world.gate(_call(11, "subtract")) is None
    assert world.state()["count"] == 0


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(UsageError, match="same name"):
        MemoryWorld("w", "1", (Tool(SPEC, _add), Tool(SPEC, _add)))


def test_a_snapshot_belongs_to_its_world_and_version() -> None:
    snapshot = _world().snapshot()
    for other in (_world(name="other"), _world(version="2")):
        with pytest.raises(InputError, match="cannot be restored"):
            other.restore(snapshot)
    damaged = Snapshot(world="counter", version="1", state_hash="", data=b"\xc1")
    with pytest.raises(InputError, match="damaged"):
        _world().restore(damaged)
    with pytest.raises(InputError, match="faults"):
        FaultyWorld(_world(), FaultPlan(rate=0.0, seed=0, tools=())).restore(snapshot)


def test_faults_strike_by_number_and_tool_and_never_reach_the_world() -> None:
    def run(seed: int, tools: tuple[str, ...]) -> list[str]:
        world = FaultyWorld(_world(), FaultPlan(rate=0.5, seed=seed, tools=tools))
        world.reset(WorldStart(state={"count": 0, "clock": 0.0}))
        results = [world.call(_call(1)) for _ in range(40)]
        ok = sum(r.outcome == "ok" for r in results)
        assert world.state()["count"] == ok
        assert all(r.extra["cause"] == "environment" and r.exit_code for r in results if r.outcome == "error")
        return [r.outcome for r in results]

    struck = run(1, ("add",))
    assert struck == run(1, ("add",))
    assert struck != run(2, ("add",))
    assert 8 < struck.count("error") < 32
    assert run(1, ("other",)).count("error") == 0
