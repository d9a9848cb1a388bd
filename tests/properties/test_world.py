"""Snapshots, hashes and differences agree with each other on any state and any calls."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seatrial.errors import UsageError
from seatrial.examples import workspace
from seatrial.records import ToolCall, WorldStart
from seatrial.world import MemoryWorld, differences, mask
from seatrial.world.difference import Path

PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""Nested states take a while to draw on a loaded machine; that is no fault of theirs."""

SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-2, 2) | st.text("ab", max_size=3)
KEYS = st.text("abc", min_size=1, max_size=2)
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=8
)
STATES = st.dictionaries(KEYS, JSON, max_size=4)
PATHS = st.lists(st.lists(KEYS | st.just("*") | st.sampled_from("012"), min_size=1, max_size=3).map(tuple), max_size=3)

COMMANDS = st.sampled_from(
    [
        "desk list --status open",
        "desk set T-101 --priority high",
        "desk set T-103 --status closed",
        "desk note T-102 seen",
        "desk set T-999 --priority low",
        "svc scale api 4",
        "svc deploy worker 9.9.9",
        "svc reboot api",
        "git commit -am x",
        "git push",
        "pytest -q",
        "grep -rn load_rows src",
        "diff config/api.toml config/worker.toml",
        "unknown 'quote",
    ]
)
CALLS = st.one_of(
    COMMANDS.map(lambda c: ToolCall(id="c", name="Bash", arguments={"command": c})),
    st.sampled_from(["config/api.toml", "README.md", "no/such"]).map(
        lambda f: ToolCall(id="c", name="Write", arguments={"file_path": f, "content": "x\n"})
    ),
    st.just(ToolCall(id="c", name="Edit", arguments={"file_path": "README.md"})),
    st.just(ToolCall(id="c", name="Teleport", arguments={})),
)


def _memory(state: dict[str, Any], volatile: tuple[Path, ...] = ()) -> MemoryWorld:
    world = MemoryWorld("any", "1", (), volatile)
    world.reset(WorldStart(state=state))
    return world


@PATIENT
@given(STATES, STATES, PATHS)
def test_equal_hashes_exactly_when_nothing_differs(
    one: dict[str, Any], two: dict[str, Any], volatile: list[Path]
) -> None:
    masks = tuple(volatile)
    same = _memory(one, masks).state_hash() == _memory(two, masks).state_hash()
    assert same == (differences(one, two, masks) == ())


@PATIENT
@given(STATES, STATES, PATHS)
def test_masked_states_differ_where_the_states_do(
    one: dict[str, Any], two: dict[str, Any], volatile: list[Path]
) -> None:
    if not any(part.isdigit() or part == "*" for path in volatile for part in path):
        assert differences(one, two, volatile) == differences(mask(one, volatile), mask(two, volatile))


@PATIENT
@given(STATES, STATES)
def test_a_difference_read_backwards_is_its_mirror(one: dict[str, Any], two: dict[str, Any]) -> None:
    mirror = {"added": "removed", "removed": "added", "changed": "changed"}
    there = [(c.path, c.kind, c.before, c.after) for c in differences(one, two)]
    back = [(c.path, mirror[c.kind], c.after, c.before) for c in differences(two, one)]
    assert repr(there) == repr(back)


def test_the_whole_state_cannot_be_volatile() -> None:
    with pytest.raises(UsageError):
        mask({}, [()])
    with pytest.raises(UsageError):
        differences({}, {}, [()])


@settings(PATIENT, max_examples=60)
@given(st.lists(CALLS, max_size=6), st.lists(CALLS, min_size=1, max_size=6), st.integers(0, 5))
def test_a_restored_world_goes_on_as_the_first_one_did(
    before: list[ToolCall], after: list[ToolCall], seed: int
) -> None:
    world = workspace.world(seed, fault_rate=0.3)
    world.reset(workspace.start(seed))
    for call in before:
        world.call(call)
    snapshot, state = world.snapshot(), world.state()
    first = [world.call(call) for call in after]
    end = world.state()
    world.restore(snapshot)
    assert world.state_hash() == snapshot.state_hash
    assert world.difference(state, world.state()) == ()
    assert [world.call(call) for call in after] == first
    assert world.state() == end
    other = workspace.world(seed, fault_rate=0.3)
    other.restore(snapshot)
    assert [other.call(call) for call in after] == first


@settings(PATIENT, max_examples=40)
@given(st.lists(CALLS, max_size=8), st.integers(0, 5))
def test_the_same_start_and_calls_give_the_same_run(calls: list[ToolCall], seed: int) -> None:
    runs = []
    for _ in range(2):
        world = workspace.world(seed, fault_rate=0.3)
        world.reset(workspace.start(seed))
        runs.append(([world.call(call) for call in calls], world.state_hash()))
    assert runs[0] == runs[1]


@settings(PATIENT, max_examples=60)
@given(st.lists(CALLS, max_size=8))
def test_reads_and_refusals_change_nothing_that_is_not_volatile(calls: list[ToolCall]) -> None:
    world = workspace.world(0, fault_rate=0.3)
    world.reset(workspace.start(0))
    for call in calls:
        before = world.state()
        result = world.call(call)
        if result.outcome == "error":
            assert world.difference(before, world.state()) == ()
