"""Every world: restoring gives the same hash and the same future; one seed gives one run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seatrial.examples import domains
from seatrial.records import ToolCall, World, WorldStart
from seatrial.world import FaultPlan, FaultyWorld
from seatrial.world.cassette import CassetteWorld, RecordingWorld
from seatrial.world.directory import DirectoryWorld
from seatrial.world.faults import EMPTY, ENVIRONMENT, INJECTIONS, SLOW, STALE
from seatrial.world.gym import GymWorld

PATIENT = settings(
    deadline=None,
    max_examples=25,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
DESK, REPO, ASSISTANT = domains()
ALL_FAULTS = (*ENVIRONMENT, EMPTY, STALE, SLOW, *INJECTIONS)

VALUES: dict[str, list[Any]] = {
    "id": ["T-101", "T-104", "T-201", "T-999", "E-1", "E-3", "M-3", "M-99"],
    "amount": [1, 40, 500, -1, "x"],
    "priority": ["low", "urgent", "wrong"],
    "path": ["README.md", "src/prices.py", "new/a.txt", "../out", "tests/cases.json"],
    "to": ["docs/x.md", "README.md", "bram@harbour.example"],
    "date": ["2026-03-02", "2026-03-09", "soon"],
    "begin": ["09:00", "17:00"],
    "end": ["10:00", "18:00"],
    "old": ["shop", "return", ""],
    "new": ["store", "yield"],
    "text": ["Weber", "def ", "x"],
    "action": [0, 1, 2],
    "people": [["Anna Berg"], ["Nobody"]],
}


def calls_of(world: World) -> st.SearchStrategy[list[ToolCall]]:
    """Calls of the world's own tools, right and wrong ones."""

    def of_tool(tool: Any) -> st.SearchStrategy[ToolCall]:
        fields = tool.parameters["properties"]
        given = st.fixed_dictionaries({k: st.sampled_from(VALUES.get(k, ["some words"])) for k in fields})
        return given.map(lambda arguments: ToolCall(id="c", name=tool.name, arguments=arguments))

    one = st.sampled_from(world.tools).flatmap(of_tool) | st.just(ToolCall(id="c", name="teleport"))
    return st.lists(one, max_size=5)


def faulty() -> World:
    plan = FaultPlan(rate=0.6, seed=3, tools=tuple(t.name for t in DESK.build().tools), faults=ALL_FAULTS)
    return FaultyWorld(DESK.build(), plan)


def cassette() -> World:
    recording = RecordingWorld(ASSISTANT.build())
    recording.reset(ASSISTANT.start(1))
    for name, arguments in (("list_events", {}), ("cancel_event", {"id": "E-1"}), ("read_mail", {"id": "M-3"})):
        recording.call(ToolCall(id="c", name=name, arguments=arguments))
    return CassetteWorld(recording.tape())


WORLDS: dict[str, tuple[Callable[[], World], Callable[[int], WorldStart]]] = {
    "sqlite": (DESK.build, DESK.start),
    "directory": (REPO.build, REPO.start),
    "memory": (ASSISTANT.build, ASSISTANT.start),
    "faulty": (faulty, DESK.start),
    "recording": (lambda: RecordingWorld(DESK.build()), DESK.start),
    "cassette": (cassette, lambda seed: ASSISTANT.start(1)),
    "gym": (lambda: GymWorld("CartPole-v1"), lambda seed: WorldStart(state={}, seed=seed)),
}


@pytest.fixture(params=list(WORLDS))
def kind(request: pytest.FixtureRequest) -> tuple[Callable[[], World], Callable[[int], WorldStart]]:
    if request.param == "gym":
        pytest.importorskip("gymnasium", reason="the extra [gym] is not installed")
    return WORLDS[request.param]


@PATIENT
@given(data=st.data())
def test_a_restored_world_has_the_same_hash_and_the_same_future(kind: Any, data: st.DataObject) -> None:
    build, start = kind
    world = build()
    world.reset(start(data.draw(st.integers(0, 3))))
    calls = calls_of(world)
    for call in data.draw(calls):
        world.call(call)
    saved, hashed, state = world.snapshot(), world.state_hash(), world.state()
    assert saved.state_hash == hashed
    future = data.draw(calls)
    first = [world.call(c) for c in future]
    ended = world.state_hash()
    world.restore(saved)
    assert (world.state_hash(), world.state()) == (hashed, state)
    assert [world.call(c) for c in future] == first
    assert world.state_hash() == ended
    other = build()
    other.restore(saved)
    assert other.state_hash() == hashed
    assert [other.call(c) for c in future] == first


@PATIENT
@given(data=st.data())
def test_one_seed_and_the_same_calls_give_one_run(kind: Any, data: st.DataObject) -> None:
    build, start = kind
    seed = data.draw(st.integers(0, 3))
    one, two = build(), build()
    one.reset(start(seed))
    two.reset(start(seed))
    calls = data.draw(calls_of(one))
    assert [one.call(c) for c in calls] == [two.call(c) for c in calls]
    assert one.state_hash() == two.state_hash()
    assert one.difference(one.state(), two.state()) == ()


@PATIENT
@given(data=st.data())
def test_hash_and_difference_agree_and_refused_calls_change_nothing(kind: Any, data: st.DataObject) -> None:
    build, start = kind
    world = build()
    world.reset(start(0))
    for call in data.draw(calls_of(world)):
        before, hashed = world.state(), world.state_hash()
        world.gate(call)
        assert world.state_hash() == hashed, "asking for a gate changes nothing"
        result = world.call(call)
        changed = world.difference(before, world.state())
        assert (world.state_hash() == hashed) == (not changed)
        if result.extra.get("refused") in ("schema", "unknown_tool", "policy", "cassette"):
            assert not changed


NAMES = st.sampled_from(["a", "b", "c"])
CONTENT = st.sampled_from(["", "x\n", {"text": "y", "executable": True}, {"base64": "/w==", "executable": False}])
LINKS = st.sampled_from([{"link": "a"}, {"link": "nowhere"}, {"link": "/etc"}])
TREES: st.SearchStrategy[Any] = st.recursive(
    CONTENT | LINKS, lambda inner: st.dictionaries(NAMES, inner, max_size=3).map(lambda d: ("folder", d)), max_leaves=6
)


def flat(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """A nested tree as the files of a directory world."""
    out: dict[str, Any] = {}
    for name, value in tree.items():
        if isinstance(value, tuple):
            out |= flat(value[1], f"{prefix}{name}/") or {f"{prefix}{name}/": {}}
        else:
            out[prefix + name] = value
    return out


@PATIENT
@given(trees=st.lists(st.dictionaries(NAMES, TREES, max_size=3).map(flat), min_size=2, max_size=4))
def test_a_folder_becomes_whatever_it_should_hold(trees: list[dict[str, Any]]) -> None:
    world = DirectoryWorld("any", "1", ())
    saved = []
    for tree in trees:
        world.reset(WorldStart(state={"files": tree}))
        assert world.state() == {"files": tree}
        saved.append(world.snapshot())
    for snapshot, tree in zip(saved, trees, strict=True):
        world.restore(snapshot)
        assert world.state() == {"files": tree}
