"""Real ALFWorld games: the fast game is TextWorld's own, word for word, and a world to branch in exactly.

Runs where the extra [alfworld] is installed (``pip install 'seatrial[alfworld]'``) and the packed games are at hand.
"""

from __future__ import annotations

import json
import random
import tarfile
from pathlib import Path
from typing import Any

import pytest

from seatrial.records import ToolCall, World, WorldStart

pytest.importorskip("textworld", reason="the extra [alfworld] is not installed")
pytest.importorskip("alfworld", reason="the extra [alfworld] is not installed")

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def games(data: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    """Six unseen games, one of each kind, by name."""
    packed = data / "alfworld" / "alf_games_valid.txz"
    if not packed.exists():
        pytest.skip("no packed ALFWorld games")
    folder = tmp_path_factory.mktemp("games")
    with tarfile.open(packed) as archive:
        names = sorted(n for n in archive.getnames() if "valid_unseen" in n and n.endswith("game.tw-pddl"))
        kinds: dict[str, str] = {}
        for name in names:
            kinds.setdefault(Path(name).parts[-3].split("-")[0], name)
        for name in kinds.values():
            archive.extract(name, folder, filter="data")
    return tuple(sorted(folder.rglob("game.tw-pddl")))


def theirs(game: Path) -> Any:
    """TextWorld's own environment."""
    from alfworld.agents.environment.alfred_tw_env import AlfredDemangler
    from textworld import EnvInfos
    from textworld.envs.pddl import PddlEnv

    env = AlfredDemangler(PddlEnv(EnvInfos(won=True, facts=True, admissible_commands=True)))
    env.load(json.loads(game.read_bytes()))  # a path would be left open
    return env


def test_the_same_game_word_for_word(games: tuple[Path, ...]) -> None:
    """Feedback, commands, facts and the goal after refused, random and winning commands, in two games."""
    from seatrial.world.pddl import PddlGame

    draws = random.Random(1)
    for game in games[:2]:
        env, fast = theirs(game), PddlGame()
        fast.load(str(game))
        slow, quick = env.reset(), fast.reset()
        commands: list[str | None] = ["look", "go to the moon", "inventory", *[None] * 8, *fast.walkthrough]
        for command in [None, *commands]:
            if command is not None or slow.last_command is not None:
                said = command or draws.choice(slow.admissible_commands)
                slow, quick = env.step(said)[0], fast.step(said)[0]
            assert quick.feedback == slow.feedback
            assert quick.won == slow.won
            assert quick.admissible_commands == slow.admissible_commands
            assert quick.facts == sorted(str(f) for f in slow.facts)


def test_a_real_game_is_a_world(games: tuple[Path, ...]) -> None:
    """Walkthroughs win; a snapshot comes back to the same state, and from there to the same end."""
    from seatrial.world.pddl import PddlGame
    from seatrial.world.textworld import TextWorldGame

    for game in games:
        told = PddlGame()
        told.load(str(game))
        world = TextWorldGame(str(game))
        assert isinstance(world, World)
        world.reset(WorldStart(state={}))
        start = world.state()
        half = len(told.walkthrough) // 2
        said = [world.call(ToolCall(id="c", name="act", arguments={"command": c})) for c in told.walkthrough[:half]]
        assert all(r.outcome == "ok" for r in said)
        saved, state = world.snapshot(), world.state()
        assert world.difference(start, state)
        refused = world.call(ToolCall(id="c", name="act", arguments={"command": "go to the moon"}))
        assert (refused.outcome, world.state_hash()) == ("error", saved.state_hash)
        rest = [
            world.call(ToolCall(id="c", name="act", arguments={"command": c})).text for c in told.walkthrough[half:]
        ]
        assert world.won
        assert "ended" in world.call(ToolCall(id="c", name="act", arguments={"command": "look"})).text
        world.restore(saved)
        assert (world.state_hash(), world.won, world.state()["facts"]) == (saved.state_hash, False, state["facts"])
        again = [
            world.call(ToolCall(id="c", name="act", arguments={"command": c})).text for c in told.walkthrough[half:]
        ]
        assert again == rest
        assert world.won


def test_another_look_is_at_the_place_where_the_agent_stands(games: tuple[Path, ...]) -> None:
    from seatrial.recovery.alfworld import case
    from seatrial.world.household import AGENTS

    made = case(games[0], AGENTS["by-sight"])
    made.world.reset(made.start)
    assert [c.arguments["command"] for c in made.query(made.world)] == ["look"]
    place = next(c for c in made.world.commands() if c.startswith("go to ")).removeprefix("go to ")  # type: ignore[attr-defined]
    made.world.call(ToolCall(id="c", name="act", arguments={"command": f"go to {place}"}))
    look = made.query(made.world)[0]
    assert made.world.call(look).text.startswith((f"The {place}", f"On the {place}"))


@pytest.mark.full
def test_no_intervention_no_difference_on_real_games(games: tuple[Path, ...]) -> None:
    """At least a hundred placebo branches, by snapshot and by fork, and not one pair differs."""
    from seatrial.recovery.alfworld import case
    from seatrial.recovery.branch import Design, branch
    from seatrial.world.household import AGENTS

    placebo = []
    for game in games:
        for name in ("by-sight", "by-deed"):
            made = branch(case(game, AGENTS[name], max_actions=35), Design())
            placebo += [p for p in made.pairs if p.placebo and not p.terminated]
    forked = branch(case(games[0], AGENTS["by-sight"], max_actions=35), Design(mode="fork"))
    placebo += [p for p in forked.pairs if p.placebo and not p.terminated]
    assert len(placebo) >= 100
    assert [p for p in placebo if p.y0 != p.y1] == []
