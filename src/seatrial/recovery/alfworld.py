"""A folder of ALFWorld games to cases: the task of a game is its folder's name, success is the game's own goal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from seatrial.errors import InputError
from seatrial.records import ToolCall, UserMessage, WorldStart
from seatrial.records.protocols import AgentUnderTest, World
from seatrial.recovery.live import Case
from seatrial.recovery.operate import Query
from seatrial.world.household import percepts
from seatrial.world.textworld import TextWorldGame

GAME = "game.tw-pddl"


def games(folder: Path) -> tuple[Path, ...]:
    """Every game below a folder, by task name.

    Raises:
        InputError: there is none.
    """
    found = sorted(folder.rglob(GAME), key=task_of)
    if not found:
        raise InputError("no ALFWorld games here", file=str(folder), hint=f"unpack them: folders with {GAME}")
    return tuple(found)


def task_of(game: Path) -> str:
    """Kind, things and scene, then the trial: ``pick_and_place_simple-Mug-None-Desk-308/trial_T2019...``."""
    return f"{game.parent.parent.name}/{game.parent.name}"


def case(game: Path, agent: AgentUnderTest, *, max_actions: int = 50, seed: int = 0) -> Case:
    """One game for one agent. Loading it takes about 0.4 s of processor time.

    Raises:
        MissingExtra: the extra [alfworld] is not installed.
    """
    world = TextWorldGame(str(game))
    start = WorldStart(state={}, seed=seed)
    world.reset(start)
    opening = UserMessage(text=world.feedback)
    return Case(
        task=task_of(game), world=world, start=start, opening=opening, agent=agent, score=_won, over=_over,
        query=look_again(opening.text), max_actions=max_actions, seed=seed,
    )  # fmt: skip


def look_again(opening: str) -> Query:
    """The query of a game: examine the place where the agent stands; look around where it stands at none. At a place
    with several receptacles it is the first in the alphabet."""
    places = frozenset(p for percept in percepts(opening) for p in percept.places)

    def query(world: World) -> Sequence[ToolCall]:
        assert isinstance(world, TextWorldGame)
        offered = (c.removeprefix("examine ") for c in world.commands() if c.startswith("examine "))
        here = next((f"examine {place}" for place in offered if place in places), "look")
        return (ToolCall(id="again", name="act", arguments={"command": here}, validity="valid"),)

    return query


def _won(world: World) -> float:
    return float(_over(world))


def _over(world: World) -> bool:
    assert isinstance(world, TextWorldGame)
    return world.won
