"""Scripted agents for ALFWorld that act on what they have seen, in the manner of ReAct, with weaknesses on the record.

What they are bad at, and what the benchmark's own agents are known to be bad at, too:

1. *Trust.* An agent by sight takes what it reads for the present: where it stands and what it carries follow from the
   last text that says so, not from its own actions. (An agent by deed does the reverse: it believes that its actions
   worked, and takes the contents it reads for those of the place it thinks it is at.)
2. *Giving up too early.* "Nothing happens" after going to or opening a place makes it leave that place out.
3. *Repeating.* Any other action that does nothing is tried again, up to `patience` times, before it is let go; then it
   looks at its hands once.
4. *Short memory.* It remembers the contents of the last `memory` places that it read.
5. *Haste.* It reads the first `attention` things of a list; reading the same list again, it reads on from there.
6. *Sight over memory.* A thing of the wanted kind that it reads of is to be fetched, even one that it has brought there
   itself, once it has forgotten that it did.
7. *Doubt.* A text that it cannot read makes it take up again what it had left out. Asked to plan anew, it also forgets
   which places it has searched, except those it still remembers the contents of.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from seatrial.records import AgentTurn, ToolCall, ToolResult, ToolSpec, UserMessage
from seatrial.world.household.reading import Goal, Percept, goal_of, percepts

APPLIANCES = {"clean": ("sinkbasin",), "hot": ("microwave",), "cool": ("fridge",)}
VERBS = {"clean": "clean", "hot": "heat", "cool": "cool"}
SURFACES = (
    "countertop", "diningtable", "desk", "sidetable", "coffeetable", "shelf", "dresser", "bed", "sofa", "armchair",
    "stoveburner", "sinkbasin", "fridge", "garbagecan", "toilet", "bathtubbasin", "handtowelholder",
)  # fmt: skip
"""Where things lie in the open, first those on which they lie most."""


class Traits(msgspec.Struct, frozen=True, kw_only=True):
    """How an agent is. `by_sight`: weakness 1 as described, else by deed. `order`: how it goes through a room in a
    search: as the room lists its places, from the last to the first, or what lies open first. `brought`: actions for
    which it knows that it brought a thing. `wander`: the chance, per action, to go somewhere else in a search and to
    forget one remembered place."""

    by_sight: bool = True
    memory: int = 8
    patience: int = 2
    order: Literal["listed", "backwards", "surfaces"] = "listed"
    attention: int = 3
    brought: int = 6
    wander: float = 0.0


@dataclass
class Belief:
    """What the agent thinks is so."""

    goal: Goal | None = None
    places: list[str] = field(default_factory=list)
    at: str | None = None
    hand: str = ""
    contents: dict[str, tuple[str, ...]] = field(default_factory=dict)
    closed: dict[str, bool] = field(default_factory=dict)
    read: dict[str, tuple[tuple[str, ...], int]] = field(default_factory=dict)
    searched: set[str] = field(default_factory=set)
    left_out: set[str] = field(default_factory=set)
    treated: set[str] = field(default_factory=set)
    brought: dict[str, int] = field(default_factory=dict)
    let_go: set[str] = field(default_factory=set)
    clock: int = 0
    last: str = ""
    failed: int = 0
    check_hands: bool = False


class HouseholdAgent:
    """Implements `records.AgentUnderTest` for one text game. Without `wander` it is deterministic."""

    def __init__(self, name: str, traits: Traits, version: str = "1") -> None:
        self.name = name
        self.version = version
        self.traits = traits

    def begin(self, tools: Sequence[ToolSpec], seed: int) -> Household:
        """A new session."""
        return Household(self.traits, random.Random(f"household:{seed}"))


AGENTS = {
    "by-sight": HouseholdAgent("by-sight", Traits()),
    "by-deed": HouseholdAgent("by-deed", Traits(by_sight=False, patience=1, order="backwards")),
    "wanderer": HouseholdAgent("wanderer", Traits(wander=0.1)),
}
"""The agents that ship, by name."""


class Household:
    """One session: beliefs, read from texts, and the next command."""

    def __init__(self, traits: Traits, draws: random.Random) -> None:
        self._traits = traits
        self._draws = draws
        self.belief = Belief()
        self._count = 0

    def copy(self) -> Household:
        """The same session so far, to go on by itself."""
        other = Household(self._traits, random.Random())
        other._draws.setstate(self._draws.getstate())
        other.belief, other._count = copy.deepcopy(self.belief), self._count
        return other

    def reseed(self, seed: int) -> None:
        """From now on draw from `seed`."""
        self._draws.seed(f"household:{seed}")

    def send(self, incoming: UserMessage | tuple[ToolResult, ...]) -> AgentTurn:
        """Read, and act."""
        if isinstance(incoming, UserMessage):
            self.belief.goal = goal_of(incoming.text)
            text = incoming.text
        else:
            text = incoming[-1].text if incoming else ""
        for i, percept in enumerate(percepts(text)):
            self._read(percept, first=i == 0)
        self._wander_off()
        why, command = self._next()
        self.belief.last = command
        self.belief.clock += 1
        self._count += 1
        if not command:
            return AgentTurn(text=why, reasoning=why)
        call = ToolCall(id=f"act-{self._count}", name="act", arguments={"command": command}, validity="valid")
        return AgentTurn(calls=(call,), reasoning=why)

    def _read(self, p: Percept, *, first: bool) -> None:
        """Take one percept in. `first`: it is the answer to the last command."""
        b = self.belief
        if p.places:
            b.places = [x for x in p.places if not b.places] or b.places
        if p.nothing_happened:
            self._nothing_happened()
            return
        if p.unread:
            b.left_out.clear()
            b.let_go.clear()
            if p.think:
                b.searched = set(b.contents)
            return
        if first:
            b.failed = 0
        place = p.place
        if self._traits.by_sight:
            b.at = place if p.here and place else b.at
        elif first:
            place = self._by_deed(place)
        if p.hand is not None and (self._traits.by_sight or not first or p.hand == ""):
            b.hand = p.hand
        if p.treated:
            b.treated.add(p.treated)
        if p.put:
            b.brought[p.put] = b.clock
        if place:
            self._see(place, p)
        if p.hand and place and p.hand in b.contents.get(place, ()):
            b.contents[place] = tuple(t for t in b.contents[place] if t != p.hand)

    def _by_deed(self, place: str | None) -> str | None:
        """Where the last command led, and what it put in the hand, whatever was read."""
        b = self.belief
        words = b.last.split(" ")
        if b.last.startswith("go to "):
            b.at = b.last.removeprefix("go to ")
        elif b.last.startswith("take "):
            b.hand = " ".join(words[1:3])
        elif b.last.startswith("move "):
            b.brought[" ".join(words[1:3])] = b.clock
            b.hand = ""
        elif words[0] in VERBS.values():
            b.treated.add(" ".join(words[1:3]))
        return b.at if place is not None else None

    def _see(self, place: str, p: Percept) -> None:
        b = self.belief
        if p.closed is not None:
            b.closed[place] = p.closed
        if p.things is not None:
            b.contents.pop(place, None)
            b.contents[place] = self._skim(place, p.things)
            b.searched.add(place)
            while len(b.contents) > self._traits.memory:
                del b.contents[next(iter(b.contents))]

    def _skim(self, place: str, things: tuple[str, ...]) -> tuple[str, ...]:
        """What it takes in of a list: the beginning, or where it has read this very list, as much again from there."""
        seen, done = self.belief.read.get(place, ((), 0))
        begin = done if seen == things and done < len(things) else 0
        end = begin + self._traits.attention
        self.belief.read[place] = (things, end)
        return things[begin:end]

    def _nothing_happened(self) -> None:
        b = self.belief
        b.failed += 1
        words = b.last.split(" ")
        if words[0] in ("go", "open"):
            place = " ".join(words[-2:])
            b.left_out.add(place)
            b.closed.pop(place, None)
            b.failed = 0
        elif b.failed > self._traits.patience:
            b.failed = 0
            b.check_hands = True
            if words[0] == "take":
                thing, place = " ".join(words[1:3]), " ".join(words[-2:])
                b.let_go.add(thing)
                b.contents[place] = tuple(t for t in b.contents.get(place, ()) if t != thing)
            elif words[0] == "move":
                b.left_out.add(" ".join(words[-2:]))

    def _wander_off(self) -> None:
        if self._traits.wander and self.belief.contents and self._draws.random() < self._traits.wander:
            del self.belief.contents[self._draws.choice(list(self.belief.contents))]

    def _next(self) -> tuple[str, str]:
        """Why, and what to say next; an empty command: it stops."""
        b = self.belief
        if b.goal is None:
            return "I do not know what to do.", ""
        if b.check_hands:
            b.check_hands = False
            return "That did not work; what am I carrying?", "inventory"
        if b.hand and _kind(b.hand) == b.goal.what:
            return self._with_it(b.goal)
        if b.hand:
            return self._to(
                self._near([p for p in b.places if p not in b.left_out]), f"move {b.hand} to", "put this down"
            )
        known = [p for p, things in b.contents.items() if self._wanted(things)]
        if b.at in known:
            known = [b.at or ""]
        if known:
            thing = self._wanted(b.contents[known[0]])
            return self._to(known[0], f"take {thing} from", f"fetch the {thing}")
        return self._search(b.goal.what)

    def _wanted(self, things: Sequence[str]) -> str | None:
        """A thing to fetch among these."""
        b = self.belief
        assert b.goal is not None
        kept = {t for t, when in b.brought.items() if b.clock - when <= self._traits.brought}
        return next((t for t in things if _kind(t) == b.goal.what and t not in kept and t not in b.let_go), None)

    def _with_it(self, goal: Goal) -> tuple[str, str]:
        """What to do with the wanted thing in the hand."""
        b = self.belief
        if goal.need == "light":
            for place, things in b.contents.items():
                lamp = next((t for t in things if _kind(t) == goal.where), None)
                if lamp:
                    if b.at == place:
                        return f"I turn on the {lamp}.", f"use {lamp}"
                    return f"I go to the {lamp} at the {place}.", f"go to {place}"
            return self._search(goal.where)
        if goal.need is not None and b.hand not in b.treated:
            appliance = self._near([p for p in b.places if _kind(p) in APPLIANCES[goal.need]])
            if appliance is None:
                return "There is nothing to do that with.", ""
            verb = f"{VERBS[goal.need]} {b.hand} with"
            if b.at == appliance:
                return f"I {verb} the {appliance}.", f"{verb} {appliance}"
            return f"I go to the {appliance} to {verb} it.", f"go to {appliance}"
        targets = [p for p in b.places if _kind(p) == goal.where]
        target = self._near([p for p in targets if p not in b.left_out]) or (targets[0] if targets else None)
        return self._to(target, f"move {b.hand} to", f"bring the {b.hand}")

    def _to(self, place: str | None, command: str, why: str) -> tuple[str, str]:
        """Go to a place, open it if it is known to be closed, and say the command there."""
        b = self.belief
        if place is None:
            return "There is no place for it.", ""
        if b.at != place:
            return f"I go to the {place} to {why}.", f"go to {place}"
        if b.closed.get(place):
            return f"I open the {place} to {why}.", f"open {place}"
        return f"At the {place} I {why}.", f"{command} {place}"

    def _near(self, places: Sequence[str]) -> str | None:
        """Where it stands, if that is one of the places; else the first."""
        return self.belief.at if self.belief.at in places else next(iter(places), None)

    def _search(self, kind: str) -> tuple[str, str]:
        """Look where it has not looked; when it has looked everywhere, once more."""
        b = self.belief
        if b.at in b.places and b.closed.get(b.at or "") and b.at not in b.left_out and b.at not in b.searched:
            return f"There may be a {kind} in the {b.at}.", f"open {b.at}"
        left = [p for p in b.places if p not in b.searched and p not in b.left_out and p != b.at]
        if not left:
            b.searched = set(b.contents)
            left = [p for p in b.places if p not in b.searched and p not in b.left_out and p != b.at]
        if not left:
            return f"There is no {kind} here.", ""
        if self._traits.order == "backwards":
            left.reverse()
        elif self._traits.order == "surfaces":
            left.sort(key=lambda p: SURFACES.index(_kind(p)) if _kind(p) in SURFACES else len(SURFACES))
        at = self._draws.randrange(len(left)) if self._draws.random() < self._traits.wander else 0
        return f"I look for a {kind}; next is the {left[at]}.", f"go to {left[at]}"


def _kind(thing: str) -> str:
    return thing.split(" ", 1)[0]
