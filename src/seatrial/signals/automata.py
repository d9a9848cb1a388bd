"""The lexicon's cues as tables that a compiled loop runs over text: what `scripts/build_automata` makes and ships.

One table finds many cues at once; which cues share a table was chosen so that none grows large. Tables that belong to
another lexicon are not used.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib import resources
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seatrial.signals import language, patterns
from seatrial.signals.determinise import Table, TooLarge, Unit, grouped, table
from seatrial.signals.lexicon import Lexicon
from seatrial.signals.patterns import REST

FILE = "automata.npz"
ROLES = ("start", "sentence", "said", "far", "raw", "agent")
"""Cues that stand at a turn's beginning, at a sentence's, anywhere, those that need a letter outside ASCII, those that
look at the whole text, and what is asked about the agent's words."""

_MOST = {"start": 3000, "sentence": 6000, "said": 4000, "far": 4000, "raw": 4000}
_ROLE = {"start": "start", "whole": "start", "sentence": "sentence"}
_GLAD_TO_DOUBT = (1, 2, 3)


def fingerprint(lexicon: Lexicon) -> str:
    """Identity of everything that the tables depend on: patterns, places and boundaries, not points."""
    parts = [lexicon.openers, *language.AGENT_WORDS]
    parts += [repr((cue.id, cue.patterns, cue.where, cue.text, cue.bound)) for cue in lexicon.cue]
    return hashlib.sha256("\x00".join(parts).encode()).hexdigest()[:16]


class Held(NamedTuple):
    """Tables by role, and the lexicon that they belong to."""

    fingerprint: str
    tables: dict[str, list[Table]]


def build(lexicon: Lexicon, tell: Callable[[str], None] = lambda _: None) -> Held:
    """All tables of a lexicon; takes minutes."""
    units: dict[str, list[Unit]] = {role: [] for role in ROLES[:5]}
    for i, cue in enumerate(lexicon.cue):
        near: list[str] = []
        far: list[str] = []
        for branch in (b for pattern in cue.patterns for b in patterns.branches(pattern)):
            (far if patterns.outside_ascii(patterns.parse(branch), _GLAD_TO_DOUBT) else near).append(branch)
        if cue.text == "raw" and far:
            raise ValueError(f"cue {cue.id!r}: letters outside ASCII are not looked for in raw text")
        if far:
            units["far"].append(Unit(i, patterns.placed(lexicon, cue, far)))
        role = "raw" if cue.text == "raw" else _ROLE.get(cue.where, "said")
        if near:
            units[role] += _apart(lexicon, i, near)
    out = {}
    for role in ROLES[:5]:
        tell(f"{role}: {len(units[role])} parts")
        out[role] = [table(group, 10**6) for group in grouped(units[role], _MOST[role], tell)]
    asks, reports, ship, refused = language.AGENT_WORDS
    out["agent"] = [
        table([Unit(0, patterns.parse(asks))], 10**5),
        table([Unit(0, patterns.parse(reports))], 10**5),
        table([Unit(0, patterns.parse(ship)), Unit(1, patterns.parse(refused))], 10**5),
    ]
    return Held(fingerprint(lexicon), out)


def _apart(lexicon: Lexicon, answer: int, branches: list[str]) -> list[Unit]:
    """A cue as one part where its own table is small, else its alternatives one by one."""
    cue = lexicon.cue[answer]
    whole = Unit(answer, patterns.placed(lexicon, cue, branches))
    try:
        if table([whole], 4000).next.shape[0] <= 1200:
            return [whole]
    except TooLarge:
        pass
    return [Unit(answer, patterns.placed(lexicon, cue, [branch])) for branch in branches]


def _words(masks: Sequence[int]) -> NDArray[np.uint64]:
    low = (1 << 64) - 1
    return np.array([[mask & low, mask >> 64] for mask in masks], np.uint64).reshape(-1, 2)


def save(held: Held, path: str) -> None:
    """Write the shipped file."""
    arrays: dict[str, NDArray[Any]] = {"fingerprint": np.array(held.fingerprint)}
    for role, tables in held.tables.items():
        for i, one in enumerate(tables):
            name = f"{role}.{i}."
            arrays[name + "next"] = one.next.astype(np.uint16)
            arrays[name + "symbols"] = np.array(one.symbols, np.int32)
            arrays[name + "classes"] = np.array(one.classes, np.uint16)
            arrays[name + "found"] = _words(one.found)
            arrays[name + "at_end"] = _words(one.at_end)
    np.savez_compressed(path, **arrays)  # type: ignore[arg-type]


class Side(NamedTuple):
    """Up to four tables side by side, as `running.Pack` has them."""

    next: NDArray[np.uint32]
    column: NDArray[np.uint16]
    width: int
    begin: NDArray[np.int64]
    accept: NDArray[np.int64]
    dead: NDArray[np.int64]
    found: NDArray[np.uint64]
    at_end: NDArray[np.uint64]


class Loaded(NamedTuple):
    """Ready to run: `symbols` lists the letters outside ASCII that any cue names; symbol 128 + i is the i-th, the one
    after the last any other. `agent_symbols` the same for the agent's words."""

    symbols: list[int]
    agent_symbols: list[int]
    sides: dict[str, list[Side]]
    hunted: Hunted


class Hunted(NamedTuple):
    """The tables of `said` as `running.Hunt` has them."""

    next: NDArray[np.uint32]
    column: NDArray[np.uint16]
    width: int
    wait: NDArray[np.int64]
    accept: NDArray[np.int64]
    found: NDArray[np.uint64]
    at_end: NDArray[np.uint64]
    coarse: NDArray[np.uint8]
    alive: NDArray[np.uint64]


@lru_cache(maxsize=1)
def load(wanted: str) -> Loaded | None:
    """The shipped tables; None where they belong to another lexicon than the one with the fingerprint `wanted`."""
    with resources.files("seatrial.signals").joinpath(FILE).open("rb") as file:
        held = np.load(file, allow_pickle=False)
        if str(held["fingerprint"]) != wanted:
            return None
        arrays = {name: held[name] for name in held.files}
    tables: dict[str, list[dict[str, NDArray[Any]]]] = {role: [] for role in ROLES}
    for name in arrays:
        if name.endswith(".next"):
            stem = name.removesuffix("next")
            parts = {k: arrays[stem + k] for k in ("next", "symbols", "classes", "found", "at_end")}
            tables[stem.split(".")[0]].append(parts)
    named = {
        group: sorted({int(s) for role in roles for t in tables[role] for s in t["symbols"] if s >= 128})
        for group, roles in (("own", ROLES[:5]), ("agent", ROLES[5:]))
    }
    sides = {
        role: [
            _side(tables[role][i : i + 4], named["agent" if role == "agent" else "own"])
            for i in range(0, len(tables[role]), 4)
        ]
        for role in ROLES
        if role != "said"
    }
    return Loaded(named["own"], named["agent"], sides, _hunted(tables["said"], named["own"]))


def _hunted(tables: list[dict[str, NDArray[Any]]], named: list[int]) -> Hunted:
    side = _side(tables, named, len(tables))
    symbols = [*range(128), *named, REST]
    coarse = np.array([_coarse(symbol) for symbol in symbols], np.uint8)
    letter = np.array([patterns.WORD.holds(symbol) for symbol in symbols])
    whole = (side.next // side.width).reshape(-1, side.width)[:, side.column].astype(np.int64)
    gives: NDArray[np.bool_] = np.asarray(side.found.any(axis=1))
    z, blank = symbols.index(ord("z")), symbols.index(ord(" "))
    wait = []
    alive = np.zeros((32, 32, 32), np.uint64)
    pairs = sorted({(int(k), int(c)) for k, c in zip(side.column, coarse, strict=True)})
    at = np.array([int(np.flatnonzero((side.column == k) & (coarse == c))[0]) for k, c in pairs])
    kinds = np.array([c for _, c in pairs])
    for g, begin in enumerate(side.begin // side.width):
        rest = whole[whole[begin, z], z]
        for _ in range(40):
            rest = whole[rest, z]
        after = whole[rest, blank]
        idle = np.zeros(whole.shape[0], np.bool_)
        idle[[rest, after]] = True
        sound = (
            (whole[rest, letter] == rest).all() and (whole[rest, ~letter] == after).all() and begin == after
            and not gives[[rest, after]].any() and not side.at_end[[rest, after]].any()
        )  # fmt: skip
        if not sound:
            raise ValueError("a table of cues that stand anywhere does not wait between words")
        wait.append((rest * side.width, after * side.width))
        bit = np.uint64(1 << g)
        one = whole[after, at]
        for i in np.flatnonzero(~idle[one]):
            alive[kinds[i], 31, 31] |= bit
            two = whole[one[i], at]
            for j in np.flatnonzero(~idle[two] | gives[one[i]]):
                alive[kinds[i], kinds[j], 31] |= bit
                three = whole[two[j], at]
                alive[kinds[i], kinds[j], kinds[~idle[three] | gives[one[i]] | gives[two[j]]]] |= bit
    return Hunted(
        side.next, side.column, side.width, np.array(wait, np.int64), side.accept, side.found, side.at_end, coarse,
        alive.reshape(-1),
    )  # fmt: skip


def _coarse(symbol: int) -> int:
    """One of 31 kinds of symbols: letters apart, digits together, signs nearly so."""
    if 97 <= symbol <= 122:
        return symbol - 97
    if symbol == REST or symbol >= 128:
        return 30
    if 48 <= symbol <= 57 or symbol == 95:
        return 26
    return 27 if symbol == 32 else 28 if symbol == 39 else 29


def _side(tables: list[dict[str, NDArray[Any]]], named: list[int], most: int = 4) -> Side:
    """Tables with one common alphabet; an automaton without states stands in for a missing fourth."""
    symbols = [*range(128), *named, REST]
    columns = []
    for one in tables:
        own = dict(zip(one["symbols"].tolist(), one["classes"].tolist(), strict=True))
        columns.append([own[s] if s in own else own[REST] for s in symbols])
    together = list(zip(*columns, strict=True))
    kinds: dict[tuple[int, ...], int] = {}
    column = np.array([kinds.setdefault(key, len(kinds)) for key in together], np.uint16)
    width = len(kinds)
    rows: list[NDArray[Any]] = []
    found: list[NDArray[Any]] = []
    at_end: list[NDArray[Any]] = []
    begin, accept, dead = [], [], []
    base = 0
    for j in range(most):
        if j >= len(tables):
            rows.append(np.full((1, width), base * width, np.uint32))
            found.append(np.zeros((1, 2), np.uint64))
            at_end.append(np.zeros((1, 2), np.uint64))
            begin.append(base * width)
            accept.append((base + 1) * width)
            dead.append(base * width)
            base += 1
            continue
        one = tables[j]
        gives = one["found"].any(axis=1)
        order = np.argsort(gives, kind="stable")
        place = np.empty_like(order)
        place[order] = np.arange(order.size)
        wide = one["next"][:, [key[j] for key in kinds]].astype(np.int64)
        rows.append(((place[wide[order]] + base) * width).astype(np.uint32))
        found.append(one["found"][order])
        at_end.append(one["at_end"][order])
        begin.append((place[0] + base) * width)
        accept.append((base + int((~gives).sum())) * width)
        stuck = (one["next"] == np.arange(order.size)[:, None]).all(axis=1) & ~gives & ~one["at_end"].any(axis=1)
        dead.append((base + place[np.flatnonzero(stuck)[0]]) * width if stuck.any() else -1)
        base += order.size
    return Side(
        np.concatenate(rows).reshape(-1), column, width, np.array(begin, np.int64), np.array(accept, np.int64),
        np.array(dead, np.int64), np.concatenate(found), np.concatenate(at_end),
    )  # fmt: skip
