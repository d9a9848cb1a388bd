"""The words of an ALFWorld game to what they tell: the goal, and percepts of places, contents, hands and failures."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

Need = Literal["clean", "hot", "cool", "light"]

_STATES: dict[str, Need] = {"clean": "clean", "hot": "hot", "cool": "cool"}
_THING = re.compile(r"\b([a-z]+ \d+)\b")
_SEES = re.compile(r"you see (.*?)\.(?:\s|$)")
_PLACE = re.compile(r"(?:arrive at|facing the|On the|The|open the|close the) ([a-z]+ \d+)")
_TASK = re.compile(r"Your task is to: (.+?)\.?\s*$", re.MULTILINE)
_GOALS: tuple[tuple[re.Pattern[str], Need | None, int], ...] = (
    (re.compile(r"(?:examine|look at)(?: the| a| an)? (?P<what>\w+) (?:with|under) the (?P<where>\w+)"), "light", 1),
    (re.compile(r"(?:put|find) two (?P<what>\w+)(?: and put them)? (?:in/on|in|on) (?P<where>\w+)"), None, 2),
    (re.compile(r"clean (?:some|a|an) (?P<what>\w+) and put it (?:in/on|in|on) (?P<where>\w+)"), "clean", 1),
    (re.compile(r"heat (?:some|a|an) (?P<what>\w+) and put it (?:in/on|in|on) (?P<where>\w+)"), "hot", 1),
    (re.compile(r"cool (?:some|a|an) (?P<what>\w+) and put it (?:in/on|in|on) (?P<where>\w+)"), "cool", 1),
    (re.compile(r"put (?:a|some) (?P<need>clean|hot|cool) (?P<what>\w+) (?:in/on|in|on) (?P<where>\w+)"), None, 1),
    (re.compile(r"put (?:a|an|some) (?P<what>\w+) (?:in/on|in|on) (?P<where>\w+)"), None, 1),
)


class Goal(msgspec.Struct, frozen=True):
    """What is to be done: `count` things of kind `what` brought to a `where`, after `need`; ``light``: looked at under
    a `where`."""

    what: str
    where: str
    need: Need | None = None
    count: int = 1


class Percept(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that a text tells. `place` is what it is about; `things` what lies there, None where it does not say;
    `here`: the reader stands there. `hand`: what is carried now, empty for nothing, None where it does not say."""

    place: str | None = None
    things: tuple[str, ...] | None = None
    closed: bool | None = None
    here: bool = False
    hand: str | None = None
    put: str | None = None
    treated: str | None = None
    nothing_happened: bool = False
    places: tuple[str, ...] = ()
    unread: bool = False
    think: bool = False


def goal_of(text: str) -> Goal | None:
    """The goal in the opening text; None where it states none that is known."""
    said = _TASK.search(text)
    if said is None:
        return None
    for pattern, need, count in _GOALS:
        found = pattern.search(said.group(1))
        if found:
            named = found.groupdict().get("need")
            return Goal(found["what"], found["where"], _STATES.get(named or "", need), count)
    return None


def percepts(text: str) -> list[Percept]:
    """What each line of a text tells, in order. Echoes of commands (``> ...``) and empty lines tell nothing."""
    out = []
    for line in text.splitlines():
        line = line.strip()
        if not line or line.startswith((">", "-=", "Your task is to")):
            continue
        out.append(_percept(line))
    return out


def _percept(line: str) -> Percept:
    if line.startswith("Nothing happens"):
        return Percept(nothing_happened=True)
    if line.startswith("You are in the middle of a room"):
        return Percept(here=True, places=tuple(_THING.findall(line)))
    if line.startswith("You pick up the"):
        thing, place = _THING.findall(line)[:2]
        return Percept(place=place, here=True, hand=thing)
    if line.startswith("You move the"):
        thing, place = _THING.findall(line)[:2]
        return Percept(place=place, here=True, hand="", put=thing)
    if line.startswith(("You heat the", "You cool the", "You clean the")):
        thing, place = _THING.findall(line)[:2]
        return Percept(place=place, here=True, hand=thing, treated=thing)
    if line.startswith("You are carrying"):
        return Percept(hand=(_THING.findall(line) or [""])[0])
    if line.startswith("You are not carrying"):
        return Percept(hand="")
    place = _PLACE.search(line)
    if place is not None:
        return _about(place.group(1), line)
    lowered = line.lower()
    return Percept(unread=True, think="plan" in lowered and "again" in lowered)


def _about(place: str, line: str) -> Percept:
    sees = _SEES.search(line)
    things = tuple(_THING.findall(sees.group(1))) if sees else None
    closed = True if "is closed" in line or line.startswith("You close") else False if "is open" in line else None
    return Percept(place=place, things=things, closed=closed, here=True)
