"""Fidelity and replay on real ALFWorld games: the winning walkthrough, with looks and a detour planted (METHODS 5)."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from seatrial.dimensions.fidelity import Fidelity
from seatrial.dimensions.replay import ReplayIntegrity
from seatrial.records import Agent, AgentTurn, Attempt, Evidence, Task, ToolCall, WorldStart
from seatrial.world import FixedText, ScriptedAgent, run_episode, trace_of

pytestmark = [pytest.mark.real, pytest.mark.full, pytest.mark.filterwarnings("ignore")]
GAMES = 3
WON = {"required": [{"path": "won", "op": "eq", "value": True}]}


@pytest.fixture(scope="module")
def games(data: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    pytest.importorskip("alfworld", reason="the extra [alfworld] is not installed")
    archive = data / "alfworld" / "alf_games_valid.txz"
    if not archive.is_file():
        pytest.skip("the packed ALFWorld games are not there")
    folder = tmp_path_factory.mktemp("alfworld")
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    found = sorted(folder.rglob("game.tw-pddl"))
    short = [g for g in found if len(json.loads(g.read_text())["walkthrough"]) <= 4]
    assert len(short) >= GAMES
    return short[:GAMES]


@pytest.mark.parametrize("n", range(GAMES))
def test_the_walkthrough_is_relevant_what_was_planted_is_not_and_all_of_it_replays(games: list[Path], n: int) -> None:
    from seatrial.world.textworld import TextWorldGame

    way = json.loads(games[n].read_text())["walkthrough"]
    commands = ["look", way[0], "inventory", *way]

    def script(message: Any, tools: Any, draws: Any) -> Any:
        for at, command in enumerate(commands):
            yield AgentTurn(calls=(ToolCall(id=f"c{at}", name="act", arguments={"command": command}),))
        yield AgentTurn(text="done")

    def fresh() -> TextWorldGame:
        world = TextWorldGame(str(games[n]))
        world.reset(WorldStart(state={}, seed=0))
        return world

    world = fresh()
    talk = ScriptedAgent("walker", "1", script).begin(world.tools, 0)
    done = run_episode(world, talk, FixedText("go"), hashes=True)
    trace = trace_of(done, id="walk", agent=Agent(name="walker"), world=world, start=WorldStart(state={}, seed=0))
    assert trace.extra["final"]["won"] is True
    run = Evidence(
        attempt=Attempt(task="game", trial=0, status="passed"), task=Task(id="game", input="go", intent=WON),
        trace=trace, world=fresh, required=lambda state: (bool(state["won"]),),
    )  # fmt: skip
    assert ReplayIntegrity().measure(run).value == 1.0
    value = Fidelity().measure(run)
    assert [a.relevant for a in value.actions] == [False, False, False] + [True] * len(way)
    # A game restores by replay: the replayed commands are counted, and the budget bounds them.
    assert value.parts["cost"]["calls"] <= len(commands) * 41
