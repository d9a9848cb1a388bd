"""Branches begin in one state, differ in the operation alone, and are counted as METHODS 4.1 and 4.2 say."""

from __future__ import annotations

import dataclasses
import importlib.util
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from seatrial.errors import CheckFailed, InfrastructureError, UsageError
from seatrial.records import AgentTurn, ToolCall, ToolResult, ToolSpec, UserMessage
from seatrial.recovery.branch import Design, branch
from seatrial.recovery.live import Run
from seatrial.recovery.operate import HIDDEN, OPERATIONS, REPLAN, Operated, operation
from seatrial.recovery.perturb import CONDITIONS, MISSING, Altered, Stale, condition
from seatrial.world import ScriptedAgent

_spec = importlib.util.spec_from_file_location("rooms", Path(__file__).resolve().parents[2] / "rooms.py")
assert _spec is not None
assert _spec.loader is not None
rooms: Any = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(rooms)

EVERYTHING = Design(operations=OPERATIONS[1:])


@pytest.mark.parametrize("replays", [1, 2])
def test_three_ways_to_come_back_give_the_same_pairs(replays: int) -> None:
    """Snapshot, replay and fork; with an agent that draws, too: its draws are named, not shared."""
    design = Design(conditions=CONDITIONS[:2], delays=(0, 2), replays=replays)
    case = rooms.case(3, agent=rooms.seeker(shuffled=True))
    found = [branch(case, dataclasses.replace(design, mode=mode)).pairs for mode in ("snapshot", "replay", "fork")]
    assert found[0] == found[1] == found[2]
    assert len(found[0]) == 2 * 2 * 2 * replays


def test_no_intervention_no_difference() -> None:
    """At least a hundred placebo branches of a deterministic agent, and not one pair differs."""
    made = [branch(rooms.case(seed), Design()) for seed in range(16)]
    placebo = [p for b in made for p in b.pairs if p.placebo and not p.terminated]
    assert len(placebo) >= 100
    assert [p for p in placebo if p.y0 != p.y1] == []
    assert sum(b.discordant for b in made) == 0


def test_an_agent_that_draws_has_a_placebo_floor() -> None:
    """Its continuations have draws of their own: two without recovery differ at times (METHODS 4.2)."""
    short = [rooms.case(seed, agent=rooms.seeker(shuffled=True), max_actions=6) for seed in range(12)]
    design = Design(conditions=CONDITIONS[:1], replays=3)
    made = [branch(case, design) for case in short]
    assert sum(b.discordant for b in made) > 0
    assert {p.replay for b in made for p in b.pairs} == {0, 1, 2}
    for b in made:
        for delay in design.delays:
            here = [p for p in b.pairs if p.delay == delay and not p.terminated]
            none = {p.replay: p.y0 for p in here if p.operation == "refresh"}
            assert all(p.y0 == none[p.replay] and p.y1 == none[(p.replay + 1) % 3] for p in here if p.placebo)


def test_rescue_and_harm_are_what_the_story_says() -> None:
    """The key is read of in room d. A stale reading hides it: lost for good without another look, saved by one at
    once. Unaltered, the look costs an action, and at the limit that loses the task."""
    case = rooms.case(rooms_with("d"), max_actions=10)
    at_d = Design(share=0.8, operations=OPERATIONS[1:])
    made = branch(case, at_d)
    assert (made.at, made.factual.actions, made.factual.outcome) == (4, 5, 1.0)
    cells = {(p.condition, p.operation, p.delay): (p.y0, p.y1) for p in made.pairs}
    for name in ("stale-1", "stale-2", "missing"):
        assert cells[name, "refresh", 0] == (0.0, 1.0)
        assert cells[name, "refresh", 1] == (0.0, 0.0)
        assert cells[name, "ablated-refresh", 0] == cells[name, "replan", 0] == (0.0, 0.0)
    assert cells["clean", "refresh", 0] == (1.0, 1.0)
    tight = branch(rooms.case(rooms_with("d"), max_actions=5), at_d)
    assert {
        (p.y0, p.y1) for p in tight.pairs if p.condition == "clean" and p.operation == "refresh" and p.delay == 0
    } == {(1.0, 0.0)}


def rooms_with(room: str) -> int:
    return next(s for s in range(100) if rooms.case(s).start.state["things"] == {room: ["key"]})


def test_a_task_that_has_ended_is_carried_forward() -> None:
    made = branch(rooms.case(rooms_with("a")), EVERYTHING)
    ended = [p for p in made.pairs if p.terminated]
    assert {p.delay for p in ended if p.condition == "clean"} == {2, 4}
    assert all((p.y0, p.y1) == (1.0, 1.0) for p in ended if p.condition == "clean")
    assert {p.operation for p in ended} == {"none", "refresh", "ablated-refresh", "replan"}


def test_what_is_not_deterministic_is_refused() -> None:
    turns = iter(range(10_000))

    def script(message: UserMessage, tools: Sequence[ToolSpec], draws: Any) -> Any:
        for n in range(6):
            yield AgentTurn(calls=(ToolCall(id=str(n), name="go", arguments={"room": f"r{next(turns)}"}),))
        yield AgentTurn(text="done")

    case = rooms.case(1, agent=ScriptedAgent("fickle", "1", script))
    with pytest.raises(CheckFailed, match="another run before"):
        branch(case, dataclasses.replace(EVERYTHING, share=0.9))
    late = dataclasses.replace(EVERYTHING, share=0.01, conditions=CONDITIONS[:1])
    with pytest.raises(CheckFailed, match="answered something else"):
        branch(case, late)
    with pytest.raises(CheckFailed, match="did not begin in the state"):
        branch(case, dataclasses.replace(late, mode="replay"))


def test_only_one_observation_is_altered() -> None:
    case = rooms.case(rooms_with("h"))
    plain = Run(case)
    plain.finish()
    altered = Run(case, Stale(2), 3)
    altered.finish()
    texts = [[r.text for e in run.history for r in e.results] for run in (plain, altered)]
    assert [i for i, (a, b) in enumerate(zip(*texts, strict=True)) if a != b] == [2]
    assert texts[1][2] == texts[0][0]
    assert altered.true[1:] == texts[0]


def test_conditions_and_operations() -> None:
    true = ToolResult(call_id="1", outcome="error", text="now")
    shown = {c.name: c.show(true, ["opening", "first", "second"]).text for c in CONDITIONS}
    assert shown == {"clean": "now", "stale-1": "second", "stale-2": "first", "missing": MISSING}
    assert Stale(9).show(true, ["opening", "first"]).text == "opening"
    assert Stale(1).show(true, ["opening"]).outcome == "ok"
    assert condition("stale-7") == Stale(7)
    assert Altered("loud", lambda text, earlier: text.upper()).show(true, []).text == "NOW"
    case = rooms.case(rooms_with("d"))
    world = case.world
    world.reset(case.start)
    world.call(ToolCall(id="0", name="go", arguments={"room": "d"}))
    applied = {o.name: o.apply(world, (true,), case.query) for o in OPERATIONS}
    assert {name: a.queries for name, a in applied.items()} == {
        "none": 0, "refresh": 1, "ablated-refresh": 1, "replan": 0,
    }  # fmt: skip
    assert applied["none"].results == (true,)
    assert applied["refresh"].results[0].text == "now\n> d\nRoom d: key."
    assert applied["ablated-refresh"].results[0].text == f"now\n> d\n{HIDDEN}"
    assert applied["replan"].results[0].text == f"now\n{REPLAN}"
    assert all(a.results[0].call_id == "1" for a in applied.values())
    own = Operated("peek", lambda w, pending: w.call(ToolCall(id="p", name="go", arguments={"room": "d"})).text)
    assert own.apply(world, (true,), case.query).queries == 1
    made = branch(case, Design(conditions=(Altered("loud", lambda text, earlier: text.upper()),), operations=(own,)))
    assert {(p.condition, p.operation) for p in made.pairs} == {("loud", "peek"), ("loud", "none")}
    for bad in (
        lambda: condition("stale-0"),
        lambda: operation("pray"),
        lambda: Design(delays=(-1,)),
        lambda: Design(delays=()),
    ):
        with pytest.raises(UsageError):
            bad()


def test_an_agent_that_makes_several_calls_in_a_turn() -> None:
    """Turns are whole: the branch comes at the first turn that ends at or after the delay."""

    def script(message: UserMessage, tools: Sequence[ToolSpec], draws: Any) -> Any:
        for n in range(3):
            calls = tuple(ToolCall(id=f"{n}{room}", name="go", arguments={"room": room}) for room in "abc")
            yield AgentTurn(calls=calls)
        yield AgentTurn(text="done")

    case = rooms.case(1, agent=ScriptedAgent("busy", "1", script))
    made = branch(case, Design(share=0.5))
    assert (made.factual.actions, made.at) == (9, 5)
    assert {p.delay for p in made.pairs if p.terminated} == set()
    assert all(p.features["budget_left"] == pytest.approx(0.5) for p in made.pairs if p.delay in (0, 1))


def test_a_run_without_an_action_is_skipped_and_said_so() -> None:
    def script(message: UserMessage, tools: Sequence[ToolSpec], draws: Any) -> Any:
        yield AgentTurn(text="No.")

    made = branch(rooms.case(1, agent=ScriptedAgent("idle", "1", script)), EVERYTHING)
    assert made.pairs == ()
    assert made.skipped is not None


def test_a_forked_branch_that_dies_is_said_so() -> None:
    case = rooms.case(rooms_with("e"))
    parent = os.getpid()

    def die(world: Any, pending: Any) -> str:
        assert os.getpid() != parent
        os._exit(9)

    with pytest.raises(InfrastructureError, match="forked branch died"):
        branch(case, Design(operations=(Operated("die", die),), mode="fork"))
