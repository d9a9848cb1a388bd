"""Gymnasium environments and text games as worlds: step, save by replay, refuse what cannot come back."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from seatrial.errors import InputError, MissingExtra
from seatrial.records import ToolCall, World, WorldStart
from seatrial.world.gym import GymWorld
from seatrial.world.textworld import TextWorldGame


def act(world: Any, **arguments: Any) -> Any:
    return world.call(ToolCall(id="c", name="act", arguments=arguments))


@pytest.mark.parametrize(
    ("id", "actions", "wrong"),
    [
        ("CartPole-v1", [0, 1, 1, 0], 2),
        ("Taxi-v4", [0, 1, 2, 3], 6),
        ("Pendulum-v1", [[0.5], [-1.0], [2.0], [0.0]], [3.0]),
    ],
)
def test_a_gymnasium_environment(id: str, actions: list[Any], wrong: Any) -> None:
    pytest.importorskip("gymnasium", reason="the extra [gym] is not installed")
    world = GymWorld(id)
    assert isinstance(world, World)
    world.reset(WorldStart(state={}, seed=5))
    for action in actions[:2]:
        act(world, action=action)
    saved, state = world.snapshot(), world.state()
    first = [act(world, action=a).text for a in actions[2:]]
    moved = world.state()
    assert world.difference(state, moved)
    world.restore(saved)
    assert (world.state(), world.state_hash()) == (state, saved.state_hash)
    assert [act(world, action=a).text for a in actions[2:]] == first
    assert act(world, action=wrong).extra["refused"] == "schema"
    assert world.state()["steps"] == 4
    world.reset(WorldStart(state={}, seed=6))
    assert world.state()["observation"] != state["observation"]


def test_after_the_end_nothing_happens() -> None:
    pytest.importorskip("gymnasium", reason="the extra [gym] is not installed")
    world = GymWorld("CartPole-v1")
    world.reset(WorldStart(state={}, seed=1))
    while not world.state()["terminated"]:
        act(world, action=0)
    before = world.state_hash()
    assert "ended" in act(world, action=0).text
    assert world.state_hash() == before
    with pytest.raises(InputError, match="no-such"):
        GymWorld("no-such-v0")


def test_an_absent_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(MissingExtra, match=r"\[gym\].*pip install"):
        GymWorld("CartPole-v1")
    monkeypatch.setitem(sys.modules, "alfworld", None)
    monkeypatch.setitem(sys.modules, "textworld", None)
    with pytest.raises(MissingExtra, match=r"\[alfworld\]"):
        TextWorldGame("game.tw-pddl")


class Game:
    """Stands for TextWorld: a lamp and a door, with states as the real ones have them."""

    def __init__(self, drifts: bool = False) -> None:
        self.drifts = drifts
        self.resets = 0

    def load(self, path: str) -> None:
        self.path = path

    def reset(self) -> dict[str, Any]:
        self.resets += 1
        self.facts = {"lamp(off)"} | ({f"day({self.resets})"} if self.drifts else set())
        return self._seen("You are in a hall.")

    def step(self, command: str) -> tuple[dict[str, Any], int, bool]:
        if command == "light lamp" and "lamp(off)" in self.facts:
            self.facts = self.facts - {"lamp(off)"} | {"lamp(on)"}
            return self._seen("The lamp is on."), 0, False
        if command == "open door" and "lamp(on)" in self.facts:
            self.facts = self.facts | {"door(open)"}
            return self._seen("You can leave."), 1, True
        return self._seen("Nothing happens."), 0, False

    def _seen(self, feedback: str) -> dict[str, Any]:
        won = "door(open)" in self.facts
        commands = ["light lamp", "look"]
        return {"feedback": feedback, "facts": self.facts, "won": won, "admissible_commands": commands}


def test_a_text_game() -> None:
    world = TextWorldGame("hall/game.tw-pddl", make=Game)
    assert isinstance(world, World)
    world.reset(WorldStart(state={}))
    assert (world.name, world.commands()) == ("textworld:hall", ("light lamp", "look"))
    start, hashed = world.state(), world.state_hash()
    nothing = act(world, command="open door")
    assert (nothing.outcome, world.state_hash()) == ("error", hashed)
    assert act(world, command="light lamp").text == "The lamp is on."
    changes = world.difference(start, world.state())
    assert [(c.path, c.kind) for c in changes] == [
        (("facts", "lamp(off)"), "removed"),
        (("facts", "lamp(on)"), "added"),
    ]
    saved = world.snapshot()
    act(world, command="open door")
    assert world.state()["won"] is True
    assert "ended" in act(world, command="light lamp").text
    world.restore(saved)
    assert (world.state_hash(), world.state()["won"], world.state()["steps"]) == (saved.state_hash, False, 2)


def test_a_game_that_does_not_come_back_is_refused() -> None:
    world = TextWorldGame("hall/game.tw-pddl", make=lambda: Game(drifts=True))
    world.reset(WorldStart(state={}))
    act(world, command="light lamp")
    with pytest.raises(InputError, match="not deterministic"):
        world.restore(world.snapshot())
