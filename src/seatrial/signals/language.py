"""Human turns to confirmation, acceptance, praise, complaint and correction (METHODS 1.2), by reviewed rules.

Each cue and context of the lexicon adds points of log-odds to the kinds that it speaks for; a kind's confidence is
the logistic of its sum. It is the strength of the rule, a number to threshold, not a calibrated probability.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import re2

from seatrial.signals import classifier
from seatrial.signals.lexicon import CONTEXTS, KINDS, builtin
from seatrial.signals.matching import MASK, mask, matcher, normalise

NAME = "language"
VERSION = "4"

HUMAN_KINDS = ("confirmation", "accept_implicit", "praise", "complaint", "correction")
REPORT_FLOOR = 0.3
"""Verdicts below this confidence are not evidence of anything and are not listed."""

LATER = 0.4
"""The share of a cue's points that count when it stands only behind the turn's lead."""

ABSENT = -4.0
"""Log-odds of a kind for which no rule speaks, before the classifier is heard; no rule can say less."""

DECISIVE = 2.0
"""A context with more points than this can speak for a kind alone; weaker ones only tip the balance."""

TAIL = 700
_QUESTION = r"[?？][^\w\n]{0,6}\z"
_ASKS = (
    r"let me know|want me to|would you like|shall i|should i|do you want|which (?:one|option|would|do)|your call"
    r"|say the word|ready (?:to|for|when)|happy to|if you.d like|quer que|möchtest du|soll ich|voulez-vous"
    r"|veux-tu|quieres que|deseja"
)
_OFFERS_SHIP = (
    r"(?:want me to|would you like me to|shall i|should i|do you want me to|ready (?:for me )?to|like me to|i can"
    r"|quer que eu)[^\n?]{0,59}[^\n?0-9a-z_](?:commit|push|merge|pr(?:$|[^0-9a-z_])|pull request|ship|deploy|release)"
)
_REPORTS = (
    r"[✅✓🎉🚀]|(?:^|[^0-9a-z_])(?:done|fixed|added|updated|removed|implemented|created|renamed|replaced|completed?"
    r"|committed|pushed|merged|passe[sd]?|passing|clean|works?|working|ready|all set|now|changed|moved|refactored"
    r"|resolved|finished|built)(?:$|[^0-9a-z_])"
)
_REFUSED = r"wait for the user to tell you how to proceed|user (?:rejected|declined|denied)"
AGENT_WORDS = (_ASKS, _REPORTS, _OFFERS_SHIP, _REFUSED)
"""What is looked for in the agent's words: in its last line, in all that is read, and at their end."""
AGREES = re.compile(
    r"^\s*(?:y|yes|yep|yeah|yup|sure|ok(?:ay)?|please(?: do)?|go ahead|do it|sounds good|sim|s[ií]|oui"
    r"|ja|好的?|可以|はい"
    r"|yes,? (?:please|do|go ahead|both|all)"
    r"|(?:yes|yeah|yep|ok|sure)[,. ]+(?:please|go ahead|do (?:it|that|so|both)|push|commit|merge|create|open).{0,40}"
    r")\s*[.!]*\s*$",
    re.IGNORECASE,
)
_ABOUT_END = (_QUESTION, _OFFERS_SHIP, _REFUSED)
_SHOUTED = re.compile(r"[A-Z]{3}|[^\W\d_a-zA-Z]")
_WORD = re.compile(r"\w+")


def version() -> str:
    """The rules' version with the lexicon's and the classifier's."""
    return f"{VERSION}+lexicon-{builtin().version}+classifier-{classifier.model().version}"


class Verdict(NamedTuple):
    """One kind found in a turn: confidence, evidence [start, end) in characters, and the rules behind it."""

    kind: str
    confidence: float
    start: int
    end: int
    why: str


class _Weights(NamedTuple):
    """The lexicon's numbers laid out by position, for the inner loop."""

    bias: dict[str, float]
    cues: list[tuple[tuple[str, float], ...]]
    contexts: dict[str, tuple[tuple[str, float], ...]]


@lru_cache(maxsize=3)
def _looks(what: str) -> re2.Set:
    """One automaton for what is asked about the agent's words: their end, their last line, all that is read."""
    options = re2.Options()
    options.log_errors = False
    built = re2.Set.SearchSet(options)
    for pattern in {"end": _ABOUT_END, "line": (_ASKS,), "all": (_REPORTS,)}[what]:
        built.Add(pattern)
    built.Compile()
    return built


@lru_cache(maxsize=1)
def _weights() -> _Weights:
    lexicon = builtin()
    return _Weights(
        {kind: lexicon.bias.get(kind, -3.0) for kind in KINDS},
        [tuple(cue.weights.items()) for cue in lexicon.cue],
        {name: tuple(lexicon.context_weights(name).items()) for name in CONTEXTS},
    )


def contexts(turn: str, said: str, before: str, interrupted: bool, refused: bool) -> list[str]:
    """Which of the lexicon's contexts hold for a turn.

    `said` is the masked turn; `before` the agent's words before it (its end decides).
    """
    out = []
    tail = _lowered(before[-TAIL:].rstrip())
    end = tail[-300:]
    at_end = _looks("end").Match(end.encode("utf-8", "replace")) or () if tail else ()
    if tail and (0 in at_end or _looks("line").Match(end.rsplit("\n", 1)[-1][-240:].encode("utf-8", "replace"))):
        out.append("agent-asks")
        if said.startswith(("no ", "no,", "no.", "nope", "nein", "non,", "não", "no\n")):
            out.append("answers-no")
    if tail and _looks("all").Match(tail.encode("utf-8", "replace")):
        out.append("agent-reports")
    if 1 in at_end and AGREES.match(turn):
        out.append("agrees-to-ship")
    if interrupted:
        out.append("interrupted")
    if refused or 2 in at_end:
        out.append("refused")
    own = said.replace(MASK, "").strip()
    if own.endswith(("?", "？")):
        out.append("is-question")
    words = len(own[:2000].split()) if own.isascii() else len(_WORD.findall(own[:2000]))
    if words <= 4:
        out.append("short")
    elif words > 60:
        out.append("long")
    if _SHOUTED.search(turn[:400]):
        letters = [c for c in turn[:400] if c.isalpha()]
        if len(letters) >= 8 and sum(c.isupper() for c in letters) > 0.6 * len(letters):
            out.append("shouting")
    if said.count(MASK) > 0.4 * len(said) and len(said) > 60:
        out.append("pasted")
    if "!" in own:
        out.append("exclaims")
    return out


def _lowered(text: str) -> str:
    return text.lower() if text.isascii() else text.translate(LOWER)


class _Lower(dict[int, str]):
    """Lower case, character for character; half a character becomes a question mark, as UTF-8 would have it."""

    def __missing__(self, code: int) -> str:
        low = "?" if 0xD800 <= code <= 0xDFFF else chr(code).lower()
        self[code] = low = low if len(low) == 1 else chr(code)
        return low


LOWER = _Lower()


class Reading(NamedTuple):
    """What the rules saw in a turn: the cues that it leads with and the later ones (lexicon positions), contexts
    and normalised forms. `learned` is what the classifier adds, by kind; empty: it was not asked. `places` are those
    of the strongest cue that speaks for a kind, and `sure` confidences of `REPORT_FLOOR` or more by kind, where they
    are known already."""

    lead: list[int]
    later: list[int]
    contexts: list[str]
    normal: str
    said: str
    learned: Mapping[str, float] = {}
    places: Mapping[str, tuple[int, int]] = {}
    sure: Mapping[str, float] | None = None


class Heard(NamedTuple):
    """A human turn to be read: its text, the agent's words before it, and what had just happened."""

    text: str
    before: str = ""
    interrupted: bool = False
    refused: bool = False


def read(turn: str, before: str = "", *, interrupted: bool = False, refused: bool = False) -> Reading:
    """Apply the lexicon to one turn: `judge` without the verdicts and without the classifier."""
    normal = normalise(turn)
    said = mask(normal)
    lead, later = matcher().match(normal, said)
    return Reading(lead, later, contexts(turn, said, before, interrupted, refused), normal, said)


def read_many(turns: Sequence[Heard], *, learned: bool = True) -> list[Reading]:
    """Apply the lexicon to many turns and, with `learned`, the classifier to all of them at once (much faster than
    one by one). A turn's reading never depends on the others."""
    readings = [read(t.text, t.before, interrupted=t.interrupted, refused=t.refused) for t in turns]
    if not learned or not readings:
        return readings
    kinds = classifier.model().kinds
    known = [i for i, r in enumerate(readings) if latin(r.said)]
    added = classifier.log_odds(
        [readings[i].said for i in known], [turns[i].before for i in known], [readings[i].contexts for i in known]
    ).tolist()
    for i, row in zip(known, added, strict=True):
        readings[i] = readings[i]._replace(learned=dict(zip(kinds, row, strict=True)))
    return readings


def latin(said: str) -> bool:
    """Whether the classifier can judge a turn: it has hardly seen other scripts, where the rules stand alone."""
    return said.isascii() or 2 * sum(c > "\u024f" for c in said) < len(said)


def judge(turn: str, before: str = "", *, interrupted: bool = False, refused: bool = False) -> list[Verdict]:
    """The kinds that a human turn shows, at or above `REPORT_FLOOR`.

    `before` is what the agent had just said, empty when it worked without words. The caller makes sure that the
    agent did work before the turn: without it there is nothing to judge. `interrupted`: the human stopped the agent;
    `refused`: the human had just refused one of its calls.
    """
    return verdicts(read_many([Heard(turn, before, interrupted, refused)])[0], len(turn))


def verdicts(reading: Reading, length: int) -> list[Verdict]:
    """The kinds that a reading shows at `REPORT_FLOOR` or above, in the lexicon's order of kinds."""
    if reading.sure is not None:
        return [_evidence(kind, confidence, reading, length) for kind, confidence in reading.sure.items()]
    out = []
    for kind, total in score(reading).items():
        confidence = 1.0 / (1.0 + math.exp(-total))
        if confidence >= REPORT_FLOOR:
            out.append(_evidence(kind, confidence, reading, length))
    return out


def score(reading: Reading) -> dict[str, float]:
    """Log-odds by kind. A kind is present only if some cue or context speaks for it, or the classifier was asked
    about it: what it adds is then added to `ABSENT` where no rule speaks."""
    weights = _weights()
    totals = dict(weights.bias)
    favoured = set()
    for cues, share in ((reading.lead, 1.0), (reading.later, LATER)):
        for cue in cues:
            for kind, weight in weights.cues[cue]:
                totals[kind] += share * weight
                if weight > 0:
                    favoured.add(kind)
    for context in reading.contexts:
        for kind, weight in weights.contexts[context]:
            totals[kind] += weight
            if weight > DECISIVE:
                favoured.add(kind)
    found = {kind: max(total, ABSENT) for kind, total in totals.items() if kind in favoured}
    for kind, added in reading.learned.items():
        found[kind] = found.get(kind, ABSENT) + added
    return found


def _evidence(kind: str, confidence: float, reading: Reading, length: int) -> Verdict:
    """The strongest cue's place, and the names of everything that spoke."""
    leads, laters, around = _names(kind)
    spoke = [leads[c] for c in reading.lead if c in leads]
    spoke += [laters[c] for c in reading.later if c in laters]
    spoke.sort()
    span = reading.places.get(kind) or _place(spoke, reading) or (0, min(length, 120))
    names = [name for _, _, name in spoke]
    names += [around[c] for c in reading.contexts if c in around]
    if kind in reading.learned:
        names.append(f"classifier {reading.learned[kind]:+.1f}")
        if not spoke or spoke[0][0] >= 0:
            span = classifier.strongest(reading.said, kind)
    return Verdict(kind, round(confidence, 4), span[0], min(span[1], length), "; ".join(names))


def _place(spoke: Sequence[tuple[float, int, str]], reading: Reading) -> tuple[int, int] | None:
    """Where the strongest cue that speaks for a kind, and has a place, stands in the turn."""
    for points, cue, _ in spoke:
        found = matcher().spans(cue, reading.normal, reading.said) if points < 0 else None
        if found and found[1] > found[0]:
            return found
    return None


class _Names(NamedTuple):
    """What speaks for or against a kind: a cue in the lead and one behind it, each as (points with the sign turned,
    so that the strongest sorts first, position, how it is shown), and contexts as they are shown."""

    leads: dict[int, tuple[float, int, str]]
    laters: dict[int, tuple[float, int, str]]
    around: dict[str, str]


@lru_cache(maxsize=len(KINDS))
def _names(kind: str) -> _Names:
    lexicon = builtin()
    cues = [(c, cue.id, cue.weights[kind]) for c, cue in enumerate(lexicon.cue) if cue.weights.get(kind)]
    leads, laters = ({c: (-share * w, c, f"{name} {share * w:+.1f}") for c, name, w in cues} for share in (1.0, LATER))
    points = {context: lexicon.context_weights(context).get(kind) for context in CONTEXTS}
    return _Names(leads, laters, {context: f"{context} {value:+.1f}" for context, value in points.items() if value})


def judge_many(
    turns: Sequence[str], befores: Sequence[str] | None = None, interrupted: Sequence[bool] | None = None
) -> list[list[Verdict]]:
    """`judge` over many turns; one list of verdicts per turn."""
    befores = befores if befores is not None else [""] * len(turns)
    stops = interrupted if interrupted is not None else [False] * len(turns)
    heard = [Heard(t, b, i) for t, b, i in zip(turns, befores, stops, strict=True)]
    return [verdicts(r, len(t)) for r, t in zip(read_many(heard), turns, strict=True)]
