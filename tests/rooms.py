"""A small world to branch in: rooms, a key in one of them, and an agent that goes through them and trusts its eyes."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from seatrial.records import AgentTurn, ToolCall, ToolSpec, UserMessage, WorldStart
from seatrial.records.protocols import World
from seatrial.recovery.live import Case
from seatrial.world import MemoryWorld, Output, Script, ScriptedAgent, Tool
from seatrial.world.toolbox import parameters

ROOMS = "abcdefgh"


def _go(state: dict[str, Any], arguments: dict[str, Any], draws: random.Random) -> Output:
    state["at"] = arguments["room"]
    things = state["things"].get(arguments["room"], [])
    return Output(text=f"Room {arguments['room']}: {', '.join(things) or 'nothing'}.")


def _take(state: dict[str, Any], arguments: dict[str, Any], draws: random.Random) -> Output:
    here = state["things"].get(state["at"], [])
    if arguments["thing"] not in here:
        return Output(text="Nothing happens.", outcome="error")
    here.remove(arguments["thing"])
    state["hand"].append(arguments["thing"])
    return Output(text=f"You have the {arguments['thing']}.")


def rooms() -> MemoryWorld:
    """The world."""
    go = ToolSpec(name="go", description="Go to a room.", parameters=parameters({"room": "string"}))
    take = ToolSpec(name="take", description="Take a thing.", parameters=parameters({"thing": "string"}))
    return MemoryWorld("rooms", "1", (Tool(go, _go), Tool(take, _take)))


def seeker(shuffled: bool = False) -> ScriptedAgent:
    """Goes from room to room until it reads of a key, and takes it. `shuffled`: in an order drawn as it goes."""

    def script(message: UserMessage, tools: Sequence[ToolSpec], draws: random.Random) -> Script:
        left, n = list(ROOMS), 0
        while left:
            room = left.pop(draws.randrange(len(left)) if shuffled else 0)
            n += 1
            call = ToolCall(id=str(n), name="go", arguments={"room": room})
            seen = yield AgentTurn(reasoning=f"The key may be in {room}.", calls=(call,))
            assert isinstance(seen, tuple)
            if "key" in seen[-1].text:
                n += 1
                call = ToolCall(id=str(n), name="take", arguments={"thing": "key"})
                seen = yield AgentTurn(reasoning="There it is.", calls=(call,))
                assert isinstance(seen, tuple)
                if "You have" in seen[-1].text:
                    break
        yield AgentTurn(text="I am done.")

    return ScriptedAgent("shuffled" if shuffled else "in-order", "1", script)


def look(world: World) -> tuple[ToolCall, ...]:
    """Look at the room again."""
    return (ToolCall(id="again", name="go", arguments={"room": world.state()["at"]}),)


def found(world: World) -> float:
    """It has the key."""
    return float("key" in world.state()["hand"])


def case(seed: int, *, agent: ScriptedAgent | None = None, max_actions: int = 12,
         score: Callable[[World], float] = found) -> Case:  # fmt: skip
    """One task: the key lies in a room that the seed draws."""
    room = random.Random(seed).choice(ROOMS)
    start = WorldStart(state={"at": "", "hand": [], "things": {room: ["key"]}}, seed=seed)
    return Case(
        task=f"key-{seed}", world=rooms(), start=start, opening=UserMessage(text="Find the key."),
        agent=agent or seeker(), score=score, query=look, max_actions=max_actions, seed=seed,
    )  # fmt: skip


class Rooms:
    """A source of such tasks, as ``python:module:function`` names one."""

    def tasks(self) -> tuple[str, ...]:
        """Twelve."""
        return tuple(f"key-{n}" for n in range(12))

    def case(self, task: str, agent: Any, *, max_actions: int, seed: int) -> Case:
        """By number."""
        import dataclasses

        return dataclasses.replace(case(int(task.removeprefix("key-")), max_actions=max_actions), agent=agent)
