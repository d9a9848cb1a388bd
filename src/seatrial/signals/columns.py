"""Human turns to columns: kinds, confidences and places of evidence of many turns at once, without an object a turn.

With the `fast` extra (Numba) the turns are read by compiled loops over the tables of `automata`; without it, or where
the tables belong to another lexicon, turn by turn through `language`. Both give the same answers.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seatrial.errors import MissingExtra, UsageError
from seatrial.signals import automata, classifier, grams, language, matching
from seatrial.signals.lexicon import CONTEXTS, KINDS, builtin

Engine = Literal["auto", "compiled", "plain"]
BATCH = 2_000
"""Turns that are read at once: what they need fits a processor's cache."""

WORTH_COMPILING = 100_000
"""Turns from which `auto` uses the compiled loops: loading them takes about a second, the first time a minute."""

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

    said: tuple[Any, ...]
    hunt: Any
    far: Any
    raw: Any
    agent: Any
    programs: Any
    points: NDArray[np.float64]
    share: NDArray[np.float64]
    raw_cue: NDArray[np.bool_]
    pointers: tuple[NDArray[Any], ...]
    bias: NDArray[np.float64]
    context_points: NDArray[np.float64]
    letters: _Letters


class _Letters:
    """What every character becomes, found when it is first met: arrays over all code points."""

    def __init__(self, own: list[int], agent: list[int]) -> None:
        self.plain = np.zeros(0x110000, np.uint32)
        self.plain[:128] = np.arange(128)
        self.flags = np.zeros(0x110000, np.uint8)
        self.symbol = np.full(0x110000, 128 + len(own), np.uint16)
        self.agent = np.zeros(0x110000, np.uint16)
        for array, named in ((self.symbol, own),):
            array[:128] = np.arange(128)
            array[named] = 128 + np.arange(len(named))
        self._agent = {code: 128 + i for i, code in enumerate(agent)}
        self._other = 128 + len(agent)

    def meet(self, codes: NDArray[np.uint32]) -> None:
        """Make sure that all characters in `codes` are known."""
        far = codes[codes > 127]
        if far.size:
            far = far[self.agent[far] == 0]
        for code in np.unique(far).tolist():
            char = chr(code)
            self.plain[code] = ord(matching.PLAIN[code])
            self.flags[code] = char.isalpha() | char.isupper() << 1 | (char.isalnum() and not char.isdecimal()) << 2
            low = ord(language.LOWER[code])
            self.agent[code] = low if low < 128 else self._agent.get(low, self._other)


@lru_cache(maxsize=1)
def _tables() -> _Tables | None:
    """None where the shipped tables belong to another lexicon."""
    from seatrial.signals import programs
    from seatrial.signals.running import Hunt, Pack

    lexicon = builtin()
    found = automata.load(automata.fingerprint(lexicon))
    if found is None:
        return None
    sides = {role: [Pack(*side) for side in some] for role, some in found.sides.items()}
    weights = np.array([[cue.weights.get(kind, 0.0) for kind in KINDS] for cue in lexicon.cue])
    later = np.array([[language.LATER * w for w in row] for row in weights.tolist()])
    cue, kind = np.nonzero(weights)
    start = np.searchsorted(cue, np.arange(len(lexicon.cue) + 1))
    spoken = [[lexicon.context_weights(c).get(k, 0.0) for k in KINDS] for c in CONTEXTS]
    return _Tables(
        (*sides["start"], *sides["sentence"]), Hunt(*found.hunted), sides["far"][0], sides["raw"][0], sides["agent"][0],
        programs.build(lexicon, found.symbols), weights, later,
        np.array([c.text == "raw" for c in lexicon.cue]),
        (start.astype(np.int64), kind.astype(np.int64), weights[cue, kind], later[cue, kind]),
        np.array([lexicon.bias.get(k, -3.0) for k in KINDS]), np.array(spoken),
        _Letters(found.symbols, found.agent_symbols),
    )  # fmt: skip


def _codes(texts: Sequence[str]) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Code points of all texts end to end, and where each begins (n + 1,)."""
    at = np.zeros(len(texts) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)), out=at[1:])
    joined = "".join(texts)
    if joined.isascii():
        return np.frombuffer(joined.encode("ascii"), np.uint8).astype(np.uint32), at
    return np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), np.uint32), at


def _compiled(
    texts: Sequence[str], befores: Sequence[str], stopped: NDArray[np.bool_], refused: NDArray[np.bool_], learned: bool
) -> Columns:
    from seatrial.signals import pointing, running

    held = _tables()
    assert held is not None
    n = len(texts)
    cut = [text[: matching.LIMIT] for text in texts]
    raw, at = _codes(cut)
    before, before_at = _codes([words[-language.TAIL :] for words in befores])
    letters = held.letters
    letters.meet(raw)
    letters.meet(before)
    normal, said = np.empty(raw.size, np.uint32), np.empty(raw.size, np.uint32)
    hits, contexts, offered = np.zeros((n, 4), np.uint64), np.zeros(n, np.int64), np.zeros(n, np.bool_)
    running.read(
        raw, at, before, before_at, stopped, refused, letters.plain, letters.flags, letters.symbol, letters.agent,
        held.said, held.hunt, held.far, held.raw, held.agent, normal, said, hits, contexts, offered,
    )  # fmt: skip
    for i in np.flatnonzero(offered).tolist():
        if language.AGREES.match(texts[i]):
            contexts[i] |= 1 << running.SHIP
    total, spoken = np.empty((n, len(KINDS))), np.empty((n, len(KINDS)), np.bool_)
    start, kinds, points, share = held.pointers
    running.add_up(
        hits, contexts, held.bias, start, kinds, points, share, _ORDER, held.context_points, language.DECISIVE,
        language.ABSENT, total, spoken,
    )  # fmt: skip
    total[~spoken] = np.nan
    if learned:
        _learn(total, contexts, said, at, before, before_at, letters)
    most = n * len(KINDS)
    turn, kind, confidence = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most)
    count = pointing.confidences(total, language.REPORT_FLOOR, turn, kind, confidence)
    turn, kind, confidence = turn[:count], kind[:count], confidence[:count]
    place, cue = np.zeros((count, 2), np.int64), np.empty(count, np.int64)
    pointing.point(
        turn, kind, hits, held.points, held.share, held.raw_cue, normal, said, at, letters.symbol, held.programs,
        place, cue,
    )  # fmt: skip
    for v in np.flatnonzero((cue < 0) | (place[:, 0] < 0) | (place[:, 1] <= place[:, 0])).tolist():
        place[v] = _elsewhere(texts[turn[v]], int(cue[v]), KINDS[kind[v]], learned)
    return Columns(turn, kind, confidence, place[:, 0], place[:, 1])


def _learn(
    total: NDArray[np.float64], contexts: NDArray[np.int64], said: NDArray[np.uint32], at: NDArray[np.int64],
    before: NDArray[np.uint32], before_at: NDArray[np.int64], letters: _Letters,
) -> None:  # fmt: skip
    """Add the classifier's part to `total`."""
    from seatrial.signals import counting

    fitted, n = classifier.model(), at.size - 1
    sums, features = np.zeros((n, len(fitted.kinds)), np.int64), np.zeros(n, np.int64)
    known = np.zeros(n, np.bool_)
    counting.sums(said, at, before, before_at, letters.plain, grams.KIND, fitted.weights, sums, features, known)
    held = (contexts[:, None] >> np.arange(len(CONTEXTS)) & 1).astype(np.bool_)
    added = classifier.from_sums(sums.astype(np.float64), features, held)
    for j, kind in enumerate(fitted.kinds):
        k = KINDS.index(kind)
        whole = np.where(np.isnan(total[:, k]), language.ABSENT, total[:, k]) + added[:, j]
        total[:, k] = np.where(known, whole, total[:, k])


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
