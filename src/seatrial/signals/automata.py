"""The lexicon's cues as tables that a compiled loop runs over text: what `scripts/build_automata` makes and ships.

Cues are looked for from where they can begin: a turn's beginning, a sentence's, a word's. A `tree` reads the first
letters for all of them, each cue's own small table the rest. Tables that belong to another lexicon are not used.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib import resources
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seatrial.signals import language, patterns, programs, tree
from seatrial.signals.determinise import Table, Unit, grouped, table
from seatrial.signals.lexicon import Cue, Lexicon
from seatrial.signals.patterns import REST, Node
from seatrial.signals.triggers import EDGE, literals

FILE = "automata.npz"
PLACES = ("start", "sentence", "any", "loose")
"""Where a table is started: at the turn's beginning, behind a sentence's end, at a word, or at a sentence's beginning
once a word that it needs was seen: it could begin with any word at all."""

ROLES = ("far", "raw", "agent")
"""What is looked for everywhere: cues that need a letter outside ASCII, those that look at the whole text, and what is
asked about the agent's words."""

DEEP = 6
"""Letters that the tree reads."""

_MOST = 4000
_GLAD_TO_DOUBT = (1, 2, 3)


def fingerprint(lexicon: Lexicon) -> str:
    """Identity of everything that the tables depend on: patterns, places and boundaries, not points."""
    parts = [lexicon.openers, *language.AGENT_WORDS]
    parts += [repr((cue.id, cue.patterns, cue.where, cue.text, cue.bound)) for cue in lexicon.cue]
    return hashlib.sha256("\x00".join(parts).encode()).hexdigest()[:16]


class Near(NamedTuple):
    """A table that is started at one of `PLACES` (a position); it answers `cue`, or n_cues + j: loose table j is
    worth starting."""

    cue: int
    place: int
    table: Table


class Held(NamedTuple):
    """What ships, and the lexicon that it belongs to. `wide`: a cue that may begin before the word where its table was
    started."""

    fingerprint: str
    near: list[Near]
    symbols: list[int]
    tree: tree.Tree
    wide: list[bool]
    tables: dict[str, list[Table]]
    programs: programs.Programs


def build(lexicon: Lexicon, tell: Callable[[str], None] = lambda _: None) -> Held:
    """All tables of a lexicon; takes minutes."""
    near: list[Near] = []
    wide = []
    everywhere: dict[str, list[Unit]] = {"far": [], "raw": []}
    loose: list[tuple[Near, Near]] = []
    for i, cue in enumerate(lexicon.cue):
        parted = _parted(cue)
        if parted.far:
            everywhere["far"].append(Unit(i, patterns.placed(lexicon, cue, parted.far)))
        if cue.text == "raw":
            everywhere["raw"].append(Unit(i, patterns.placed(lexicon, cue, parted.near)))
        elif parted.near:
            place = {"start": 0, "whole": 0, "sentence": 1}.get(cue.where, 2)
            nodes, shortened = zip(*(_shortened(cue, branch) for branch in parted.near), strict=True)
            near.append(Near(i, place, _table(lexicon, cue, nodes)))
            wide.append(any(shortened))
        if cue.text == "raw" or not parted.near:
            wide.append(False)
        for branch in parted.loose:
            number = len(lexicon.cue) + len(loose)
            woken = table([Unit(0, patterns.parse("|".join(_needed(cue, branch))))], 10**5, anchored=True)
            loose.append((Near(number, 2, woken), Near(i, 3, _table(lexicon, cue, (patterns.parse(branch),)))))
    near += [one for one, _ in loose] + [one for _, one in loose]
    tables = [one.table for one in near]
    symbols = [*range(128), *sorted({s for one in tables for s in one.symbols if s >= 128}), REST]
    places = [[g for g, one in enumerate(near) if one.place == place] for place in range(3)]
    starts = [places[2], places[1] + places[2], places[0] + places[1] + places[2]]
    tell(f"{len(near)} tables of {sum(one.next.shape[0] for one in tables)} states")
    grown = tree.grow(tables, symbols, starts, DEEP)
    tell(f"a tree of {grown.next.shape[0]} rows and {grown.leaf.size - 1} leaves")
    _sound(grown, symbols)
    out = {}
    for role, units in everywhere.items():
        tell(f"{role}: {len(units)} parts")
        out[role] = [table(group, 10**6) for group in ([units] if role == "raw" else grouped(units, _MOST, tell))]
    asks, reports, ship, refused = language.AGENT_WORDS
    out["agent"] = [
        table([Unit(0, patterns.parse(asks))], 10**5),
        table([Unit(0, patterns.parse(reports))], 10**5),
        table([Unit(0, patterns.parse(ship)), Unit(1, patterns.parse(refused))], 10**5),
    ]
    named = sorted({s for one in (*tables, *out["far"], *out["raw"]) for s in one.symbols if s >= 128})
    return Held(fingerprint(lexicon), near, symbols, grown, wide, out, programs.build(lexicon, named))


class _Parted(NamedTuple):
    """A cue's alternatives: with a letter outside ASCII in every match, with any first word, and the others."""

    far: list[str]
    loose: list[str]
    near: list[str]


def _parted(cue: Cue) -> _Parted:
    out = _Parted([], [], [])
    for branch in (b for pattern in cue.patterns for b in patterns.branches(pattern)):
        if patterns.outside_ascii(patterns.parse(branch), _GLAD_TO_DOUBT):
            out.far.append(branch)
        elif cue.text != "raw" and patterns.any_word(_shortened(cue, branch)[0]):
            out.loose.append(branch)
        else:
            out.near.append(branch)
    if cue.text == "raw" and (out.far or out.loose):
        raise ValueError(f"cue {cue.id!r}: letters outside ASCII are not looked for in raw text")
    if out.near and not cue.bound:
        raise ValueError(f"cue {cue.id!r}: what may stand within a word needs a letter outside ASCII")
    if out.loose and cue.where != "sentence":
        raise ValueError(f"cue {cue.id!r}: only a sentence may begin with any word")
    return out


def _shortened(cue: Cue, branch: str) -> tuple[Node, bool]:
    """An alternative without what may stand before it and could be any word; whether there was such a thing.

    Where a cue stands anywhere and that word ends in a sign, there is a match with it if and only if there is one
    without.
    """
    node = patterns.parse(branch)
    if cue.where not in ("any", "end") or node.kind != "row of" or not node.parts:
        return node, False
    head = node.parts[0]
    if head.kind != "repeat" or head.low or not patterns.any_word(head.parts[0]):
        return node, False
    machine = patterns.Positions([head.parts[0]])
    ends = [machine.letters[at] for at in patterns.bits(machine.last[0])]
    if any(letters.rest or letters.some & patterns.WORD.some for letters in ends):
        return node, False
    return Node("row of", node.parts[1:]), True


def _table(lexicon: Lexicon, cue: Cue, nodes: Sequence[Node]) -> Table:
    _, skipped, after = patterns.around(lexicon, cue)
    whole = Node("row of", (patterns.parse(skipped), Node("any of", tuple(nodes)), patterns.parse(after)))
    return table([Unit(0, whole)], 10**5, anchored=True)


def _needed(cue: Cue, branch: str) -> list[str]:
    words = sorted(word.lstrip(EDGE) for word in literals(branch) or ())
    if not words or not all(word.isascii() and word.isalpha() for word in words):
        raise ValueError(f"cue {cue.id!r}: no words without which it cannot be: {branch}")
    return words


def _sound(grown: tree.Tree, symbols: Sequence[int]) -> None:
    """What the loops take for granted: no cue of a sentence begins with what may stand before it."""
    fillers = [grown.column[symbols.index(ord(c))] for c in patterns.FILLERS]
    anywhere, sentence = (grown.next[start][fillers] for start in grown.starts[:2])
    if (anywhere != sentence).any():
        raise ValueError("a cue begins with a sign that may stand before a sentence")


def _words(masks: Sequence[int]) -> NDArray[np.uint64]:
    low = (1 << 64) - 1
    return np.array([[mask & low, mask >> 64] for mask in masks], np.uint64).reshape(-1, 2)


def save(held: Held, path: str) -> None:
    """Write the shipped file."""
    tables = [one.table for one in held.near]
    arrays: dict[str, NDArray[Any]] = {
        "fingerprint": np.array(held.fingerprint),
        "wide": np.array(held.wide),
        "near.cue": np.array([one.cue for one in held.near]),
        "near.place": np.array([one.place for one in held.near]),
        "near.rows": np.array([one.next.shape[0] for one in tables]),
        "near.next": np.concatenate([one.next.ravel() for one in tables]).astype(np.uint16),
        "near.found": np.concatenate([np.array(one.found, np.bool_) for one in tables]),
        "near.at_end": np.concatenate([np.array(one.at_end, np.bool_) for one in tables]),
        "near.class": tree.columns(tables, held.symbols)[1],
        "symbols": np.array(held.symbols[128:-1], np.int32),
        **{f"tree.{name}": array for name, array in held.tree._asdict().items()},
        **{f"programs.{name}": array for name, array in held.programs._asdict().items()},
    }
    for role, some in held.tables.items():
        for i, one in enumerate(some):
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
    after the last any other. `agent_symbols` the same for the agent's words. `near` are the parts of `running.Near`,
    `column` its column of every symbol. `programs` are those of all cues over `symbols`."""

    symbols: list[int]
    agent_symbols: list[int]
    near: tuple[Any, ...]
    column: NDArray[np.uint8]
    wide: NDArray[np.bool_]
    sides: dict[str, list[Side]]
    programs: programs.Programs


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
        stem, _, last = name.rpartition(".")
        if last == "next" and stem.split(".")[0] in ROLES:
            parts = {k: arrays[f"{stem}.{k}"] for k in ("next", "symbols", "classes", "found", "at_end")}
            tables[stem.split(".")[0]].append(parts)
    own = {int(s) for role in ROLES[:2] for t in tables[role] for s in t["symbols"] if s >= 128}
    known = arrays["symbols"].tolist()
    own_named = sorted(own.union(known))
    agent_named = sorted({int(s) for t in tables["agent"] for s in t["symbols"] if s >= 128})
    sides = {
        role: [
            _side(some[i : i + 4], agent_named if role == "agent" else own_named) for i in range(0, len(some), 4)
        ]
        for role, some in tables.items()
    }  # fmt: skip
    place = {s: 128 + i for i, s in enumerate(known)}
    column = arrays["tree.column"]
    at = [*range(128), *(place.get(s, column.size - 1) for s in own_named), column.size - 1]
    ways = programs.Programs(**{name: arrays[f"programs.{name}"] for name in programs.Programs._fields})
    return Loaded(own_named, agent_named, _near(arrays), column[at], arrays["wide"], sides, ways)


def _near(arrays: dict[str, NDArray[Any]]) -> tuple[Any, ...]:
    """The parts of `running.Near`, in its order."""
    grown = tree.Tree(**{name: arrays[f"tree.{name}"] for name in tree.Tree._fields})
    cue, sizes, kind = arrays["near.cue"], arrays["near.rows"], arrays["near.class"]
    ends = np.zeros((grown.next.shape[0], 2), np.uint64)
    for g, c in enumerate(cue.tolist()):
        ends[:, c // 64] |= np.where(grown.at_end[:, g], np.uint64(1 << c % 64), np.uint64(0))
    width = kind.max(axis=1).astype(np.int64) + 1
    top, first = np.cumsum(sizes) - sizes, np.cumsum(sizes * width) - sizes * width
    single, final = arrays["near.next"].copy(), arrays["near.at_end"].copy()
    at = np.zeros(final.size, np.uint16)
    special = []
    for t, n, low, wide in zip(top.tolist(), sizes.tolist(), first.tolist(), width.tolist(), strict=True):
        table = single[low : low + n * wide].reshape(n, wide)
        found, at_end = arrays["near.found"][t : t + n], final[t : t + n].copy()
        dead = (table == np.arange(n)[:, None]).all(axis=1) & ~found & ~at_end
        order = np.argsort(np.where(dead, 0, np.where(found, 1, 2)), kind="stable")
        own = at[t : t + n]
        own[order] = np.arange(n)
        table[:] = own[table[order]]
        final[t : t + n] = at_end[order]
        special.append(int((dead | found).sum()))
    loose = np.flatnonzero(arrays["near.place"] == PLACES.index("loose"))
    return (
        grown.next, grown.starts, ends, grown.leaf, grown.alive[:, 0].astype(np.uint8),
        at[top[grown.alive[:, 0]] + grown.alive[:, 1]], single, first, width, kind, np.array(special),
        at[top].astype(np.int64), top, final, cue.astype(np.int64), loose, arrays["wide"].size,
    )  # fmt: skip


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
