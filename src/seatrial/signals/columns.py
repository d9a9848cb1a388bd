"""Human turns to columns: kinds, confidences and places of evidence of many turns at once, without an object a turn.

With the `fast` extra (Numba) the turns are read by compiled loops over the tables of `automata`; without it, or where
the tables belong to another lexicon, turn by turn through `language`. Both give the same answers.
"""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seatrial.errors import MissingExtra, UsageError
from seatrial.signals import automata, classifier, grams, language, matching, patterns
from seatrial.signals.lexicon import CONTEXTS, KINDS, builtin

Engine = Literal["auto", "compiled", "plain"]
BATCH = 500
"""Turns that are read at once: what they need fits a processor's cache."""

WORTH_COMPILING = 100_000
"""Turns from which `auto` uses the compiled loops: loading them takes about a second, the first time a minute."""

MANY = 20_000
"""Turns after which a process has spent more time on reading than loading the compiled loops takes."""

_CODES = 0x110000
_WIDTH = 256
"""Characters of a turn that most turns do not exceed."""

_MARKS = '`">@[<$|#\n'
_ORDER = np.array([0, 5, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11], np.int64)
"""Contexts in the order in which `language.contexts` lists them, so that sums round alike."""


class Columns(NamedTuple):
    """Verdicts at `language.REPORT_FLOOR` or above, by turn, then kind; every array (n_verdicts,).

    `turn` is the turn's position, `kind` a position in `lexicon.KINDS`, [`start`, `end`) the evidence in characters of
    the turn.
    """

    turn: NDArray[np.int64]
    kind: NDArray[np.int64]
    confidence: NDArray[np.float64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]


class Spoken(NamedTuple):
    """What is to be judged, by turn: the human's words, the agent's before them, and what had just happened (None:
    nothing)."""

    texts: Sequence[str]
    befores: Sequence[str]
    interrupted: NDArray[np.bool_] | None = None
    refused: NDArray[np.bool_] | None = None


def judge(turns: Spoken, *, learned: bool = True, engine: Engine = "auto") -> Columns:
    """`language.judge` over many turns, as columns. `learned` False: rules alone.

    Raises:
        UsageError: sequences of different lengths.
        MissingExtra: `engine` is ``compiled`` and Numba is not installed.
    """
    n = len(turns.texts)
    sizes = {n, len(turns.befores), *(x.size for x in (turns.interrupted, turns.refused) if x is not None)}
    if len(sizes) > 1:
        raise UsageError("texts, befores and what happened differ in length", hint="give one of each for every turn")
    present = importlib.util.find_spec("numba") is not None
    if engine == "compiled" and not present:
        raise MissingExtra("fast", "compiled extraction of signals")
    compiled = present and engine != "plain" and (engine == "compiled" or n >= WORTH_COMPILING)
    work = _compiled if compiled and _tables() is not None else _plain
    none = np.zeros(n, np.bool_)
    stopped = turns.interrupted if turns.interrupted is not None else none
    refused = turns.refused if turns.refused is not None else none
    parts = []
    for low in range(0, n, BATCH):
        at = slice(low, low + BATCH)
        part = work(turns.texts[at], turns.befores[at], stopped[at], refused[at], learned)
        parts.append(part._replace(turn=part.turn + low))
    if not parts:
        parts = [_plain((), (), none, none, learned)]
    return Columns(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _plain(
    texts: Sequence[str], befores: Sequence[str], stopped: NDArray[np.bool_], refused: NDArray[np.bool_], learned: bool
) -> Columns:
    heard = [language.Heard(*row) for row in zip(texts, befores, stopped.tolist(), refused.tolist(), strict=True)]
    rows = [
        (i, KINDS.index(v.kind), v.confidence, v.start, v.end)
        for i, reading in enumerate(language.read_many(heard, learned=learned))
        for v in language.verdicts(reading, len(texts[i]))
    ]
    rows.sort()
    turn, kind, confidence, start, end = zip(*rows, strict=True) if rows else ((), (), (), (), ())
    ints = [np.array(x, np.int64) for x in (turn, kind, start, end)]
    return Columns(ints[0], ints[1], np.array(confidence, np.float64), ints[2], ints[3])


class _Tables(NamedTuple):
    """Everything that the compiled loops look up."""

    near: Any
    far: Any
    raw: Any
    agent: Any
    programs: Any
    points: NDArray[np.float64]
    share: NDArray[np.float64]
    raw_cue: NDArray[np.bool_]
    wide: NDArray[np.uint64]
    pointers: tuple[NDArray[Any], ...]
    bias: NDArray[np.float64]
    context_points: NDArray[np.float64]
    letters: _Letters


class _Letters:
    """What every character is to the loops: arrays over all code points, of which `plain` and `flags` are found when
    a character is first met."""

    def __init__(self, held: automata.Loaded) -> None:
        from seatrial.signals import facts

        self.plain = np.zeros(_CODES, np.uint32)
        self.plain[:128] = [ord(matching.normalise(chr(code))) for code in range(128)]
        self.flags = np.zeros(_CODES, np.uint8)
        self.symbol = np.full(_CODES, 128 + len(held.symbols), np.uint16)
        self.symbol[:128] = np.arange(128)
        self.symbol[held.symbols] = 128 + np.arange(len(held.symbols))
        self.raw = held.sides["raw"][0].column.astype(np.uint8)[self.symbol]
        self.looks = _looks(held)[self.symbol]
        self.agent = _heard(held)
        self.marks = np.zeros(129, np.uint8)
        self.marks[[9, 10, 11, 12, 13, 28, 29, 30, 31, 32]] = facts.BLANK
        signs = {"!": facts.EXCLAIM, _MARKS: facts.MARK, ":": facts.COLON, matching.MASK: facts.STAND_IN}
        for chars, bit in signs.items():
            self.marks[[ord(c) for c in chars]] |= bit

    def meet(self, codes: NDArray[np.uint32]) -> None:
        """Learn characters that are not known."""
        for code in np.unique(codes).tolist():
            char = chr(code)
            self.flags[code] = char.isalpha() | char.isupper() << 1 | (char.isalnum() and not char.isdecimal()) << 2
            self.plain[code] = ord(matching.PLAIN[code])


def _looks(held: automata.Loaded) -> NDArray[np.uint16]:
    """`running`'s look of every symbol."""
    from seatrial.signals import running

    grown, start = held.near[:2]
    begins = grown[start[1]] != grown.shape[0]
    out = held.column.astype(np.uint16)
    out[begins[held.column]] |= running.BEGINS
    out[[ord(c) for c in patterns.SIGNS]] |= running.SIGN
    out[[ord(c) for c in patterns.FILLERS]] |= running.FILLER
    out[[ord(c) for c in " \t\n\r\f\v"]] |= running.SPACE
    out[ord("-")] |= running.DASH
    word = np.array([patterns.WORD.holds(s) for s in range(128)] + [True] * (out.size - 128))
    out[word] |= running.WORD
    return out


def _heard(held: automata.Loaded) -> NDArray[np.uint8]:
    """The agent tables' column of every character, in lower case."""
    column = held.sides["agent"][0].column.astype(np.uint8)
    named = {code: 128 + i for i, code in enumerate(held.agent_symbols)}
    out = np.full(_CODES, column[-1], np.uint8)
    for code in range(_CODES):
        low = "?" if 0xD800 <= code <= 0xDFFF else chr(code).lower()
        if len(low) == 1 and (low < "\x80" or ord(low) in named):
            out[code] = column[named.get(ord(low), ord(low))]
    return out


@lru_cache(maxsize=1)
def _tables() -> _Tables | None:
    """None where the shipped tables belong to another lexicon."""
    from seatrial.signals.running import Near, Pack

    lexicon = builtin()
    found = automata.load(automata.fingerprint(lexicon))
    if found is None:
        return None
    far, raw, agent = (Pack(*found.sides[role][0]) for role in automata.ROLES)
    weights = np.array([[cue.weights.get(kind, 0.0) for kind in KINDS] for cue in lexicon.cue])
    later = np.array([[language.LATER * w for w in row] for row in weights.tolist()])
    cue, kind = np.nonzero(weights)
    start = np.searchsorted(cue, np.arange(len(lexicon.cue) + 1))
    spoken = [[lexicon.context_weights(c).get(k, 0.0) for k in KINDS] for c in CONTEXTS]
    wide = np.zeros(2, np.uint64)
    for c in np.flatnonzero(found.wide).tolist():
        wide[c // 64] |= np.uint64(1 << c % 64)
    return _Tables(
        Near(*found.near), far, raw, agent, found.programs, weights, later,
        np.array([c.text == "raw" for c in lexicon.cue]), wide,
        (start.astype(np.int64), kind.astype(np.int64), weights[cue, kind], later[cue, kind]),
        np.array([lexicon.bias.get(k, -3.0) for k in KINDS]), np.array(spoken), _Letters(found),
    )  # fmt: skip


class _Codes(NamedTuple):
    """Code points of texts: text i is codes[first[i] : first[i] + size[i]]."""

    codes: NDArray[np.uint32]
    first: NDArray[np.int64]
    size: NDArray[np.int64]


def _codes(texts: Sequence[str], room: NDArray[np.str_]) -> _Codes:
    """Short texts in the rows of `room`, which is the fastest that Python offers; longer ones behind them."""
    n, width = len(texts), room.itemsize // 4
    size = np.fromiter(map(len, texts), np.int64, n)
    rows = room[:n]
    rows[:] = texts
    codes = rows.view(np.uint32)
    first = np.arange(n, dtype=np.int64) * width
    long = np.flatnonzero(size > width)
    if long.size:
        joined = "".join([texts[i] for i in long.tolist()])
        more = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), np.uint32)
        ends = np.cumsum(size[long])
        first[long] = codes.size + ends - size[long]
        codes = np.concatenate([codes, more])
    return _Codes(codes, first, size)


_rooms = threading.local()


def _room(which: int, n: int, width: int) -> NDArray[np.str_]:
    """Room for a batch of texts, one a thread: memory that is new every time costs more than what is done in it."""
    held: dict[int, NDArray[np.str_]] = _rooms.__dict__.setdefault("held", {})
    if which not in held or held[which].size < n:
        held[which] = np.zeros(max(n, BATCH), f"<U{width}")
    return held[which]


class _Read(NamedTuple):
    """What the loops found in a batch of turns."""

    raw: _Codes
    before: _Codes
    at: NDArray[np.int64]
    normal: NDArray[np.uint32]
    said: NDArray[np.uint32]
    hits: NDArray[np.uint64]
    astray: NDArray[np.uint64]
    contexts: NDArray[np.int64]
    events: NDArray[np.int64]
    event_at: NDArray[np.int64]


def _read(
    texts: Sequence[str], befores: Sequence[str], stopped: NDArray[np.bool_], refused: NDArray[np.bool_]
) -> _Read:
    """Read a batch. The code points lie in room that the thread's next batch takes."""
    from seatrial.signals import facts, running

    held = _tables()
    assert held is not None
    n = len(texts)
    letters = held.letters
    raw = _codes([t if len(t) <= matching.LIMIT else t[: matching.LIMIT] for t in texts], _room(0, n, _WIDTH))
    before = _codes(
        [w if len(w) <= language.TAIL else w[-language.TAIL :] for w in befores], _room(1, n, language.TAIL)
    )
    at = np.zeros(n + 1, np.int64)
    np.cumsum(raw.size, out=at[1:])
    normal, said = np.empty(at[-1], np.uint32), np.empty(at[-1], np.uint32)
    shown = np.empty((n, 2), np.int64)
    while unknown := facts.plain_forms(
        raw.codes, raw.first, at, letters.plain, letters.marks, letters.flags, normal, said, shown
    ):
        letters.meet(said[:unknown])
    hits, astray = np.zeros((n, 4), np.uint64), np.empty((n, 2), np.uint64)
    events, event_at = np.empty((n * 256, 2), np.int64), np.empty(n + 1, np.int64)
    running.near_cues(said, at, letters.looks, held.near, hits, events, event_at)
    running.far_cues(normal, said, at, shown, letters.symbol, letters.raw, held.raw, held.far, held.wide, hits, astray)
    contexts, offered = np.empty(n, np.int64), np.zeros(n, np.bool_)
    facts.contexts(
        before.codes, before.first, before.size, stopped, refused, letters.agent, held.agent, normal, said, at, shown,
        contexts, offered,
    )  # fmt: skip
    for i in np.flatnonzero(offered).tolist():
        if language.AGREES.match(texts[i]):
            contexts[i] |= 1 << facts.SHIP
    return _Read(raw, before, at, normal, said, hits, astray, contexts, events, event_at)


def _compiled(
    texts: Sequence[str], befores: Sequence[str], stopped: NDArray[np.bool_], refused: NDArray[np.bool_], learned: bool
) -> Columns:
    read = _read(texts, befores, stopped, refused)
    found, cue = _verdicts(read, _learned(read) if learned else None)
    for v in np.flatnonzero(~_placed(found, cue)).tolist():
        found.start[v], found.end[v] = _elsewhere(texts[found.turn[v]], int(cue[v]), KINDS[found.kind[v]], learned)
    return found


def _verdicts(
    read: _Read, learned: tuple[NDArray[np.float64], NDArray[np.bool_]] | None
) -> tuple[Columns, NDArray[np.int64]]:
    """What a batch shows, and each verdict's strongest cue (-1: none); see `_placed`. `learned` as `_learned` gives."""
    from seatrial.signals import pointing

    held = _tables()
    assert held is not None
    shape = (read.contexts.size, len(KINDS))
    total, spoken = np.empty(shape), np.empty(shape, np.bool_)
    start, kinds, points, share = held.pointers
    pointing.add_up(
        read.hits, read.contexts, held.bias, start, kinds, points, share, _ORDER, held.context_points,
        language.DECISIVE, language.ABSENT, total, spoken,
    )  # fmt: skip
    total[~spoken] = np.nan
    if learned is not None:
        _learn(total, *learned)
    room = np.empty(total.size, np.int64), np.empty(total.size, np.int64), np.empty(total.size)
    count = pointing.confidences(total, language.REPORT_FLOOR, *room)
    turn, kind, confidence = room[0][:count], room[1][:count], room[2][:count]
    place, cue = np.zeros((count, 2), np.int64), np.empty(count, np.int64)
    pointing.point(
        turn, kind, read.hits, read.events, read.event_at, read.astray, held.points, held.share, held.raw_cue,
        read.normal, read.said, read.at, held.letters.symbol, held.programs, place, cue,
    )  # fmt: skip
    return Columns(turn, kind, confidence, place[:, 0], place[:, 1]), cue


def _placed(found: Columns, cue: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of the places that `_verdicts` gives are places."""
    return (cue >= 0) & (found.start >= 0) & (found.end > found.start)


def _learn(total: NDArray[np.float64], added: NDArray[np.float64], known: NDArray[np.bool_]) -> None:
    """Add the classifier's part to `total`."""
    for j, k in enumerate(map(KINDS.index, classifier.model().kinds)):
        whole = np.where(np.isnan(total[:, k]), language.ABSENT, total[:, k]) + added[:, j]
        total[:, k] = np.where(known, whole, total[:, k])


def _learned(read: _Read) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """What the classifier adds (n_turns, its kinds), and which turns it can judge."""
    from seatrial.signals import counting

    tables = _tables()
    assert tables is not None
    letters, fitted, n = tables.letters, classifier.model(), read.contexts.size
    sums, features = np.zeros((n, len(fitted.kinds)), np.int64), np.zeros(n, np.int64)
    known = np.zeros(n, np.bool_)
    before, first, size = read.before
    unmet = np.empty(n * grams.BEFORE, np.uint32)
    if unknown := counting.unmet(before, first, size, letters.plain, unmet):
        letters.meet(unmet[:unknown])
    counting.sums(
        read.said, read.at, before, first, size, letters.plain, grams.KIND, fitted.weights, sums, features, known
    )
    held = (read.contexts[:, None] >> np.arange(len(CONTEXTS)) & 1).astype(np.bool_)
    return classifier.from_sums(sums.astype(np.float64), features, held), known


_so_far = 0


def read_many(turns: Sequence[language.Heard], *, learned: bool = True, many: bool = False) -> list[language.Reading]:
    """`language.read_many`, by the compiled loops where it can: with `many`, or once this process read `MANY` turns."""
    global _so_far
    _so_far += len(turns)
    if turns and (many or _so_far >= MANY) and able():
        return readings(turns, learned=learned)
    return language.read_many(turns, learned=learned)


def able() -> bool:
    """Whether the compiled loops can be used: Numba is there and has room for them, and the tables belong to the
    lexicon."""
    if importlib.util.find_spec("numba") is None:
        return False
    try:
        return _tables() is not None
    except RuntimeError:  # Numba found no directory in which it may keep what it compiles
        return False


def readings(turns: Sequence[language.Heard], *, learned: bool = True) -> list[language.Reading]:
    """What `language.read_many` gives, by the compiled loops (see `able`)."""
    return [one for low in range(0, len(turns), BATCH) for one in _readings(turns[low : low + BATCH], learned)]


def _readings(turns: Sequence[language.Heard], learned: bool) -> list[language.Reading]:
    texts, befores, stopped, refused = zip(*turns, strict=True)
    read = _read(texts, befores, np.array(stopped, np.bool_), np.array(refused, np.bool_))
    normal, said = (array.tobytes().decode("utf-32-le") for array in (read.normal, read.said))
    at = read.at.tolist()
    fitted: list[dict[str, float]] = [{}] * len(turns)
    heard = _learned(read) if learned else None
    if heard is not None:
        kinds, added = classifier.model().kinds, zip(heard[0].tolist(), heard[1].tolist(), strict=True)
        fitted = [dict(zip(kinds, row, strict=True)) if known else {} for row, known in added]
    found, cue = _verdicts(read, heard)
    places: list[dict[str, tuple[int, int]]] = [{} for _ in turns]
    sure: list[dict[str, float]] = [{} for _ in turns]
    rows = zip(*map(np.ndarray.tolist, (*found, _placed(found, cue))), strict=True)
    for turn, kind, confidence, start, end, placed in rows:
        sure[turn][KINDS[kind]] = confidence
        if placed:
            places[turn][KINDS[kind]] = (start, end)
    lead = read.hits[:, :2] & read.hits[:, 2:]
    names = [(CONTEXTS[c], c) for c in _ORDER.tolist()]
    return [
        language.Reading(
            _bits(one), _bits(other), [name for name, c in names if held_in >> c & 1], normal[start:end],
            said[start:end], adds, where, known,
        )
        for one, other, held_in, start, end, adds, where, known in zip(
            lead.tolist(), (read.hits[:, 2:] & ~lead).tolist(), read.contexts.tolist(), at[:-1], at[1:], fitted, places,
            sure, strict=True,
        )
    ]  # fmt: skip


def _bits(words: Sequence[int]) -> list[int]:
    return list(patterns.bits(words[0] | words[1] << 64))


def _elsewhere(text: str, cue: int, kind: str, learned: bool) -> tuple[int, int]:
    """The place of evidence that the compiled loop left open: no cue, or one with too many ways to match."""
    normal = matching.normalise(text)
    said = matching.mask(normal)
    if cue >= 0:
        found = matching.matcher().spans(cue, normal, said)
        if found is not None and found[1] > found[0]:
            return found
    elif learned and kind in classifier.model().kinds and language.latin(said):
        start, end = classifier.strongest(said, kind)
        return start, min(end, len(text))
    return 0, min(len(text), 120)
