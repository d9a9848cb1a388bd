"""What precedes the first agent turn to a difficulty: pre-treatment, blind to model and run (METHODS 3.3).

One point each for: more than 60 words; more than 200 words; two or more files or links named; two or more
constraints ("must", "without", "only"); error text; three or more list items or steps; several parts joined ("and
then", "also"). 0 is `low`, 1 or 2 `medium`, 3 or more `high`; no human words before the agent: `unknown`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from seatrial.records import Step
from seatrial.signals import looks

VERSION = "difficulty-1"
LEVELS = ("low", "medium", "high", "unknown")

_FILE = re.compile(r"(?:[\w./-]+\.[a-z]{1,5}\b)|@[\w./-]+|https?://\S+|`[^`\n]+`", re.IGNORECASE)
_CONSTRAINT = re.compile(
    r"\b(?:must|without|only|never|always|at (?:most|least)|exactly|ensure|make sure|should not|don.?t|avoid|keep"
    r"|within|at the same time|backwards? compatib\w*|muss|ohne|nur|debe|sin|deve|sem|doit|sans)\b"
    r"|必须|不要|只|必ず|のみ",
    re.IGNORECASE,
)
_ERROR = re.compile(r"\b\w*(?:error|exception)\b|traceback|\bfail(?:s|ed|ing|ure)?\b|fatal:|报错|エラー", re.IGNORECASE)
_ITEM = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+\S", re.MULTILINE)
_JOIN = re.compile(r"\b(?:and then|then|also|additionally|as well|after that|finally|next|besides|furthermore)\b", re.I)
_WORD = re.compile(r"\w+")
_CJK = re.compile(r"[぀-ヿ一-鿿가-힣]")
_READ = 20_000
_COUNTED = ((_FILE, 2), (_CONSTRAINT, 2), (_ERROR, 1), (_ITEM, 3), (_JOIN, 2))
"""What gives a point, and how often it must occur; files are told apart."""


@lru_cache(maxsize=1)
def _look() -> looks.Look:
    return looks.Look([pattern for pattern, _ in _COUNTED])


def classify(steps: Sequence[Step]) -> str:
    """The difficulty of a trace from its steps; only human words before the first own agent step are read."""
    said = []
    for step in steps:
        if step.event_class == "agent" and not step.copied:
            break
        if step.event_class in ("human", "simulated_user") and not step.copied:
            said.append(step.text)
    text = "\n".join(said)[:_READ]
    if not text.strip():
        return "unknown"
    points = 0
    if len(text) > (120 if text.isascii() else 60):  # no fewer characters can hold more than 60 words
        words = len(_WORD.findall(text)) + (0 if text.isascii() else len(_CJK.findall(text)) // 2)
        points = (words > 60) + (words > 200)
    for i in _look()(looks.plain(text)):
        pattern, least = _COUNTED[i]
        found = pattern.findall(text)
        points += len(set(found) if pattern is _FILE else found) >= least
    return "low" if points == 0 else "medium" if points <= 2 else "high"
