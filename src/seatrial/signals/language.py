"""Human turns to confirmation, acceptance, praise, complaint and correction (METHODS 1.2), by reviewed rules.

Each cue and context of the lexicon adds points of log-odds to the kinds that it speaks for; a kind's confidence is
the logistic of its sum. It is the strength of the rule, a number to threshold, not a calibrated probability.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

from seatrial.signals.lexicon import CONTEXTS, builtin
from seatrial.signals.matching import MASK, mask, matcher, normalise

NAME = "language"
VERSION = "1"

HUMAN_KINDS = ("confirmation", "accept_implicit", "praise", "complaint", "correction")
REPORT_FLOOR = 0.3
"""Verdicts below this confidence are not evidence of anything and are not listed."""

_TAIL = 700
_ASKS = re.compile(
    r"\?[\s*_`)\"🚀🎯🎉😊]*$|(?:let me know|want me to|would you like|shall i|should i|do you want|which (?:one|option|would|do)"
    r"|your call|say the word|ready (?:to|for|when)|happy to|if you.d like|quer que|möchtest du|soll ich|voulez-vous"
    r"|veux-tu|quieres que|deseja)[^\n]{0,200}$",
    re.IGNORECASE,
)
_SHIP = re.compile(
    r"(?:commit|push|merge|open|create|raise|submit|ship|deploy|release)\b[^\n?]{0,80}"
    r"(?:pr\b|pull request|commit|push|merge|changes|it\b|this\b|branch|main|ship|upstream)?[^\n?]{0,60}\?",
    re.IGNORECASE,
)
_OFFERS_SHIP = re.compile(
    r"(?:want me to|would you like me to|shall i|should i|do you want me to|ready (?:for me )?to|like me to|i can|quer que eu)"
    r"[^\n?]{0,60}\b(?:commit|push|merge|pr\b|pull request|ship|deploy|release)",
    re.IGNORECASE,
)
_REPORTS = re.compile(
    r"✅|✓|🎉|🚀|\b(?:done|fixed|added|updated|removed|implemented|created|renamed|replaced|completed?|committed|pushed|merged"
    r"|passe[sd]?|passing|clean|works?|working|ready|all set|now|changed|moved|refactored|resolved|finished|built)\b",
    re.IGNORECASE,
)
_AGREES = re.compile(
    r"^\s*(?:y|yes|yep|yeah|yup|sure|ok(?:ay)?|please(?: do)?|go ahead|do it|sounds good|sim|s[ií]|oui|ja|好的?|可以|はい"
    r"|yes,? (?:please|do|go ahead|both|all)|(?:yes|yeah|yep|ok|sure)[,. ]+(?:please|go ahead|do (?:it|that|so|both)|push|commit|merge|create|open).{0,40})\s*[.!]*\s*$",
    re.IGNORECASE,
)
_WORD = re.compile(r"\w+")


class Verdict(NamedTuple):
    """One kind found in a turn: confidence, evidence [start, end) in characters, and the rules behind it."""

    kind: str
    confidence: float
    start: int
    end: int
    why: str


class Weights(NamedTuple):
    """The lexicon's numbers laid out by position."""

    bias: dict[str, float]
    cues: list[dict[str, float]]
    contexts: dict[str, dict[str, float]]


def _weights() -> Weights:
    lexicon = builtin()
    return Weights(
        lexicon.bias,
        [cue.weights for cue in lexicon.cue],
        {context.id: context.weights for context in lexicon.context},
    )


def contexts(turn: str, said: str, before: str, interrupted: bool) -> list[str]:
    """Which of the lexicon's contexts hold for a turn.

    `said` is the masked turn; `before` the agent's words before it (its end decides).
    """
    out = []
    tail = before[-_TAIL:].rstrip()
    if tail and _ASKS.search(tail[-300:]):
        out.append("agent-asks")
    if tail and _REPORTS.search(tail):
        out.append("agent-reports")
    if _AGREES.match(turn) and _OFFERS_SHIP.search(tail[-300:]):
        out.append("agrees-to-ship")
    if interrupted:
        out.append("interrupted")
    own = said.replace(MASK, "").strip()
    if own.endswith("?") or own.endswith("？"):
        out.append("is-question")
    words = len(_WORD.findall(own[:2000]))
    if words <= 4:
        out.append("short")
    elif words > 60:
        out.append("long")
    letters = [c for c in turn[:400] if c.isalpha()]
    if len(letters) >= 8 and sum(c.isupper() for c in letters) > 0.6 * len(letters):
        out.append("shouting")
    if said.count(MASK) > 0.4 * len(said) and len(said) > 60:
        out.append("pasted")
    if "!" in own:
        out.append("exclaims")
    return out


class Reading(NamedTuple):
    """What the rules saw in a turn: its cues (lexicon positions), contexts and normalised forms."""

    cues: list[int]
    contexts: list[str]
    normal: str
    said: str


def read(turn: str, before: str = "", *, interrupted: bool = False) -> Reading:
    """Apply the lexicon to one turn."""
    normal = normalise(turn)
    said = mask(normal)
    return Reading(matcher().match(normal, said), contexts(turn, said, before, interrupted), normal, said)


def judge(turn: str, before: str = "", *, interrupted: bool = False) -> list[Verdict]:
    """The kinds that a human turn shows, at or above `REPORT_FLOOR`.

    `before` is what the agent had just said, empty when it worked without words. The caller makes sure that the
    agent did work before the turn: without it there is nothing to judge.
    """
    return verdicts(read(turn, before, interrupted=interrupted), len(turn))


def verdicts(reading: Reading, length: int) -> list[Verdict]:
    """The kinds that a reading shows at `REPORT_FLOOR` or above, in the lexicon's order of kinds."""
    out = []
    for kind, total in score(reading).items():
        confidence = 1.0 / (1.0 + math.exp(-total))
        if confidence >= REPORT_FLOOR:
            out.append(_evidence(kind, confidence, reading, length))
    return out


def score(reading: Reading) -> dict[str, float]:
    """Log-odds by kind. A kind is present only if some cue or context speaks for it."""
    weights = _WEIGHTS or _load()
    totals = dict(weights.bias)
    favoured = set()
    for cue in reading.cues:
        for kind, weight in weights.cues[cue].items():
            totals[kind] = totals.get(kind, -3.0) + weight
            if weight > 0:
                favoured.add(kind)
    for context in reading.contexts:
        for kind, weight in weights.contexts[context].items():
            totals[kind] = totals.get(kind, -3.0) + weight
            if weight > 2:
                favoured.add(kind)
    return {kind: totals[kind] for kind in totals if kind in favoured}


def _evidence(kind: str, confidence: float, reading: Reading, length: int) -> Verdict:
    """The strongest cue's place, and the names of everything that spoke."""
    lexicon = builtin()
    weights = _WEIGHTS or _load()
    spoke = sorted(
        ((weights.cues[c].get(kind, 0.0), c) for c in reading.cues if weights.cues[c].get(kind)),
        key=lambda pair: (-pair[0], pair[1]),
    )
    span = (0, min(length, 120))
    for weight, cue in spoke:
        found = matcher().spans(cue, reading.normal, reading.said) if weight > 0 else None
        if found and found[1] > found[0]:
            span = found
            break
    names = [f"{lexicon.cue[c].id} {w:+.1f}" for w, c in spoke]
    names += [f"{n} {weights.contexts[n][kind]:+.1f}" for n in reading.contexts if weights.contexts[n].get(kind)]
    return Verdict(kind, round(confidence, 4), span[0], min(span[1], length), "; ".join(names))


_WEIGHTS: Weights | None = None


def _load() -> Weights:
    global _WEIGHTS
    _WEIGHTS = _weights()
    assert set(_WEIGHTS.contexts) <= set(CONTEXTS)
    return _WEIGHTS


def judge_many(
    turns: Sequence[str], befores: Sequence[str] | None = None, interrupted: Sequence[bool] | None = None
) -> list[list[Verdict]]:
    """`judge` over many turns; one list of verdicts per turn."""
    befores = befores if befores is not None else [""] * len(turns)
    stops = interrupted if interrupted is not None else [False] * len(turns)
    return [judge(t, b, interrupted=i) for t, b, i in zip(turns, befores, stops, strict=True)]
