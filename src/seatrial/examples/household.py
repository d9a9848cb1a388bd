"""A home with things in containers, and a tidy-up agent that goes by what it has read: where recovery can be tried out.

The agent knows the home only through observations, so that a stale one can mislead it and a second look can set it
right. Its weaknesses are those of a hasty reader, none of them tied to any recovery operation: it believes that it is
where the last text says; what it set out to search counts as searched whatever the answer was; the last text that it
read drives out the one before, with all that was seen there; a few containers slip its mind from the start; and its
patience ends.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from seatrial.records import AgentTurn, ToolCall, ToolResult, ToolSpec, UserMessage, WorldStart
from seatrial.records.protocols import World
from seatrial.world import MemoryWorld, Output, Tool
from seatrial.world.memory import State

ROOMS: dict[str, tuple[str, ...]] = {
    "kitchen": ("fridge", "counter", "cupboard"),
    "bedroom": ("wardrobe", "dresser", "bed"),
    "study": ("desk", "shelf", "safe"),
}
"""Rooms and the containers in them. Every room opens on the hall and on nothing else."""
HALL = "hall"
THINGS = ("mug", "book", "lamp", "key", "plate", "apple", "candle", "towel", "pen", "bowl")
PATIENCE = 24
"""Actions after which a tidy-up is broken off."""
NOTHING = "Nothing happens."
FORGETS = 0.2
"""Chance that a container slips the agent's mind."""

_ROOM = re.compile(r"You are in the (\w+)\.")
_INSIDE = re.compile(r"In the (\w+): ([^.]+)\.")
_BARE: dict[str, Any] = {"type": "object", "properties": {}}


def _one(name: str) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {"type": "string"}}, "required": [name]}


def home() -> MemoryWorld:
    """An empty home; `start` furnishes it."""
    tools = [
        Tool(ToolSpec(name="go", description="Walk to the hall, or from it to a room.", parameters=_one("room")), _go),
        Tool(ToolSpec(name="search", description="Look into a container of the room.", parameters=_one("container"),
                      effect="read"), _search),
        Tool(ToolSpec(name="take", description="Pick a thing up.", parameters=_one("thing")), _take),
        Tool(ToolSpec(name="put", description="Put down what you hold.", parameters=_one("container")), _put),
        Tool(ToolSpec(name="look", description="Where am I, and what do I hold?", parameters=_BARE, effect="read"),
             _look),
    ]  # fmt: skip
    return MemoryWorld("household", "1", tools)


def start(seed: int) -> tuple[WorldStart, UserMessage]:
    """The home of a task and what is asked: one thing to be put in one container, everything else wherever it is."""
    draws = random.Random(f"household:{seed}")
    containers = [c for inside in ROOMS.values() for c in inside]
    target = draws.choice(containers)
    things = draws.sample(THINGS, 8)
    inside: dict[str, list[str]] = {c: [] for c in containers}
    inside[draws.choice([c for c in containers if c != target])].append(things[0])
    for thing in things[1:]:
        inside[draws.choice(containers)].append(thing)
    state: State = {"room": HALL, "holding": None, "inside": inside, "wanted": things[0], "target": target}
    return WorldStart(state=state, seed=seed), UserMessage(text=f"Put the {things[0]} in the {target}.")


def score(world: World) -> float:
    """1 if the thing lies in its container."""
    state = world.state()
    return float(state["wanted"] in state["inside"][state["target"]])


def over(world: World) -> bool:
    """The task ends when the thing lies in its container."""
    return score(world) == 1.0


def query(world: World) -> Sequence[ToolCall]:
    """One look, which changes nothing: what a refresh asks."""
    return (ToolCall(id="look", name="look", arguments={}),)


def _go(state: State, arguments: dict[str, Any], draws: random.Random) -> Output:
    room = arguments["room"]
    if room == state["room"] or HALL not in (room, state["room"]) or room not in (HALL, *ROOMS):
        return Output(text=NOTHING)
    state["room"] = room
    return Output(text=f"You are in the {room}.")


def _search(state: State, arguments: dict[str, Any], draws: random.Random) -> Output:
    container = arguments["container"]
    if container not in ROOMS.get(state["room"], ()):
        return Output(text=NOTHING)
    things = state["inside"][container]
    return Output(text=f"You are in the {state['room']}. In the {container}: {', '.join(things) or 'nothing'}.")


def _take(state: State, arguments: dict[str, Any], draws: random.Random) -> Output:
    thing = arguments["thing"]
    place = next((c for c in ROOMS.get(state["room"], ()) if thing in state["inside"][c]), None)
    if state["holding"] or place is None:
        return Output(text=NOTHING)
    state["inside"][place].remove(thing)
    state["holding"] = thing
    return Output(text=f"You are in the {state['room']}. You hold the {thing}.")


def _put(state: State, arguments: dict[str, Any], draws: random.Random) -> Output:
    container, thing = arguments["container"], state["holding"]
    if thing is None or container not in ROOMS.get(state["room"], ()):
        return Output(text=NOTHING)
    state["inside"][container].append(thing)
    state["holding"] = None
    return Output(text=f"You are in the {state['room']}. In the {container}: {', '.join(state['inside'][container])}.")


def _look(state: State, arguments: dict[str, Any], draws: random.Random) -> Output:
    held = f"You hold the {state['holding']}." if state["holding"] else "Your hands are empty."
    return Output(text=f"You are in the {state['room']}. {held}")


def room_of(container: str) -> str:
    """The room that a container stands in."""
    return next(room for room, inside in ROOMS.items() if container in inside)


@dataclass(slots=True)
class Mind:
    """What the agent believes; it follows from what it has read."""

    wanted: str = ""
    target: str = ""
    order: tuple[str, ...] = ()
    room: str = HALL
    seen: tuple[str, ...] = ()
    holding: bool = False
    searched: frozenset[str] = frozenset()
    failed: bool = False
    tried: str = ""


@dataclass(slots=True)
class Conversation:
    """One tidy-up; a copy goes on from the same place on its own."""

    carefulness: float
    draws: random.Random
    mind: Mind = field(default_factory=Mind)
    calls: int = 0

    def copy(self) -> Conversation:
        """Another conversation in the same place."""
        draws = random.Random()
        draws.setstate(self.draws.getstate())
        return Conversation(self.carefulness, draws, replace(self.mind), self.calls)

    def reseed(self, seed: int) -> None:
        """From now on draw from `seed`."""
        self.draws.seed(f"household agent:{seed}")

    def send(self, incoming: UserMessage | tuple[ToolResult, ...]) -> AgentTurn:
        """The next turn: one call, or words when it gives up."""
        if isinstance(incoming, UserMessage):
            self._told(incoming.text)
        else:
            for result in incoming:
                self._read(result.text)
        step = self._next()
        if step is None:
            return AgentTurn(text="I cannot find it.")
        name, arguments, why = step
        self.calls += 1
        return AgentTurn(calls=(ToolCall(id=str(self.calls), name=name, arguments=arguments),), reasoning=why)

    def _told(self, text: str) -> None:
        words = re.match(r"Put the (\w+) in the (\w+)\.", text)
        assert words is not None
        rooms = list(ROOMS)
        self.draws.shuffle(rooms)
        self.mind = Mind(wanted=words.group(1), target=words.group(2),
                         order=tuple(c for r in rooms for c in ROOMS[r]
                                     if c != words.group(2) and self.draws.random() >= FORGETS))  # fmt: skip

    def _read(self, text: str) -> None:
        m = self.mind
        m.failed = NOTHING in text
        for line in text.split("\n"):
            room = _ROOM.search(line)
            if room is None:
                continue
            m.room = room.group(1)
            if "You hold" in line:
                m.holding = True
            inside = _INSIDE.search(line)
            # A later text drives out an earlier one, and what was seen there, unless it is read with care.
            if inside is not None:
                m.seen = tuple(inside.group(2).split(", "))
            elif self.draws.random() >= self.carefulness:
                m.seen = ()

    def _next(self) -> tuple[str, dict[str, Any], str] | None:
        m = self.mind
        if m.holding:
            return self._carry()
        if m.wanted in m.seen and m.tried != m.wanted:
            m.tried = m.wanted
            return "take", {"thing": m.wanted}, f"There is the {m.wanted}."
        left = [c for c in m.order if c not in m.searched]
        if not left:
            return None
        room = room_of(left[0])
        if m.failed and m.tried == room:
            # A way that is barred is not tried again: the room counts as searched.
            m.searched |= set(ROOMS[room])
            m.tried = ""
            return self._next()
        if m.room != room:
            step = room if m.room == HALL else HALL
            m.tried = room if step == room else ""
            return "go", {"room": step}, f"I look for the {m.wanted} in the {room}."
        m.searched |= {left[0]}
        m.tried = ""
        return "search", {"container": left[0]}, f"The {m.wanted} may be in the {left[0]}."

    def _carry(self) -> tuple[str, dict[str, Any], str]:
        m = self.mind
        room = room_of(m.target)
        if m.room == room:
            return "put", {"container": m.target}, f"The {m.wanted} belongs in the {m.target}."
        return "go", {"room": room if m.room == HALL else HALL}, f"I carry the {m.wanted} to the {room}."


class Tidier:
    """Implements `records.AgentUnderTest`. `carefulness` is the chance that a text without a container in it leaves
    what was seen in mind. At 0 only the order of the search is drawn, and a run repeats itself for a seed."""

    version = "1"

    def __init__(self, name: str = "tidier", carefulness: float = 0.0) -> None:
        self.name = name
        self.carefulness = carefulness

    def begin(self, tools: Sequence[ToolSpec], seed: int) -> Conversation:
        """A new tidy-up with its own draws."""
        return Conversation(self.carefulness, random.Random(f"household agent:{seed}"))


AGENT = Tidier()
CAREFUL = Tidier("careful-tidier", 0.7)
"""``--agent python:seatrial.examples.household:AGENT``, and one that reads with more care and draws."""
