"""A rubric to findings: criteria that two people could not check alike (METHODS 6.4)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from seatrial.records.judge import Criterion

_VAGUE = re.compile(
    r"\b(good|bad|better|best|nice|great|helpful(?:ly|ness)?|appropriate(?:ly)?|proper(?:ly)?|reasonabl[ey]|"
    r"suitabl[ey]|adequate(?:ly)?|high[- ]quality|quality|professional(?:ly|ism)?|friendly|natural(?:ly)?|"
    r"satisf(?:ied|actory|ying)|effective(?:ly|ness)?|efficient(?:ly)?|well|clear(?:ly)?|intuitive|engaging|"
    r"thorough(?:ly)?|comprehensive(?:ly)?|polite(?:ly|ness)?|empathetic|smooth(?:ly)?|correct(?:ly|ness)?|"
    r"accurate(?:ly)?|relevant|safe(?:ly)?|robust)\b",
    re.I,
)
_OBSERVABLE = re.compile(
    r"\b(calls?|called|tool|argument|asks?|asked|names?|named|states?|stated|says?|said|quotes?|cites?|lists?|listed|"
    r"mentions?|mentioned|contains?|includes?|included|refuses?|refused|confirms?|confirmed|repeats?|offers?|offered|"
    r"number|amount|date|price|field|file|path|url|link|id|word|words|sentence|line|lines|turns?|step|steps|before|after|"
    r"first|last|exactly|at least|at most|no more than|never|equals?|matches?|returns?|writes?|wrote|transfers?|"
    r"escalates?|exit code|passes|test|tests|answer(?:s|ed)?)\b|\d|[\"`'“]",
    re.I,
)
_SEVERAL = re.compile(r"[^.]\b(and|as well as|but also)\b|;", re.I)
_SCALE = re.compile(r"\b(scale|rate|rating|score|grade)\b|\b1\s*(?:-|–|to)\s*(?:5|10)\b", re.I)


class LintFinding(NamedTuple):
    """One complaint about one criterion: what is wrong and how to write it instead."""

    criterion: str
    rule: str
    text: str


def lint(criteria: Sequence[Criterion]) -> list[LintFinding]:
    """Findings in the rubric's order; an empty list means that every criterion names something to look for."""
    out: list[LintFinding] = []
    seen: dict[str, str] = {}
    for c in criteria:
        words = f"{c.statement} {c.passes} {c.fails}"
        vague = _VAGUE.search(c.statement)
        if not _OBSERVABLE.search(words):
            why = f"{vague.group()!r} is an opinion" if vague else "it names no call, word, number or order of events"
            out.append(LintFinding(c.id, "no observable", f"nothing to look for: {why}. Say what is in the record when "
                                   "it is met, and where"))  # fmt: skip
        elif vague and not (c.passes.strip() and c.fails.strip()):
            out.append(LintFinding(c.id, "vague word", f"{vague.group()!r} means different things to different people: "
                                   "say in `passes` and `fails` what is seen in either case"))  # fmt: skip
        if _SCALE.search(c.statement):
            out.append(LintFinding(c.id, "a scale", "a criterion is met or not: make each step a criterion of its own"))
        if _SEVERAL.search(c.statement):
            out.append(LintFinding(c.id, "several things", "more than one thing is asked: split it, so that a failure "
                                   "says which"))  # fmt: skip
        if not c.statement.strip():
            out.append(LintFinding(c.id, "empty", "the statement is empty"))
        same = seen.setdefault(" ".join(c.statement.lower().split()), c.id)
        if same != c.id:
            out.append(LintFinding(c.id, "twice", f"it says the same as {same}"))
    return out
