"""Texts to the lexicon's cues, in linear time: one RE2 set over all cues, `re` only to place the evidence.

RE2's ``\\b`` knows ASCII alone, so boundaries are spelled out as "not a letter, digit or underscore".
"""

from __future__ import annotations

import re
from functools import lru_cache

import re2

from seatrial.signals.lexicon import Lexicon, builtin

MASK = "\N{OBJECT REPLACEMENT CHARACTER}"
"""Stands for a character that the human did not say in their own voice: code, quotation, link, pasted output."""

LEAD = 120
"""Characters in which a turn says what it is about. Cues that stand only behind them speak with less weight."""

LIMIT = 6_000
"""Characters of a turn that are read. Longer turns are pastes; their evidence is at the front."""

_SAME_LENGTH = str.maketrans({"’": "'", "‘": "'", "ʼ": "'", "`": "`", "“": '"', "”": '"', "\u00a0": " ", "\u3000": " "})
_NEEDS_MASK = re.compile(r"[`\">@\[<$❯]|https?:|\n[ \t]{2,}|\n.*\n.*\n")
_MASKED = re.compile(
    r"""
    ```.*?(?:```|\Z)                      # fenced code
  | `[^`\n]{1,300}`                       # inline code
  | ^[ \t]*>[^\n]*                        # a quoted line
  | ^[ \t]*(?:[$%❯#]|\S+@\S+[:~]\S*[$%\#])[ ]\S[^\n]*   # a shell prompt
  | ^[ \t]*(?:[+-]{1,3}[ \t]|@@)[^\n]*[;{}()=][^\n]*   # a diff line
  | ^[ \t]*at\ [\w.$<>]+\s?\([^\n]*         # a stack frame
  | ^[^\n]*\b\d\d:\d\d:\d\d\b[^\n]*          # a log line
  | ^[^\n]*(?:\|[^\n|]*){3,}$            # a table row
  | "(?:[^"\n]{2,400})"                    # a quotation
  | <(\w[\w-]*)[^>\n]*>.*?</\1>           # an element
  | https?://\S+ | \[[^\]\n]{1,80}\](?:\([^)\n]*\))? | [@\#](?:file:|sym:)?[\w./-]+   # links, images, mentions
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE | re.IGNORECASE,
)


def normalise(text: str) -> str:
    """Lower case with straight quotes, the same number of characters, so that a span here is a span there."""
    text = text[:LIMIT]
    low = text.lower()
    if len(low) != len(text):
        low = "".join(c.lower() if len(c.lower()) == 1 else c for c in text)
    return low if low.isascii() else low.translate(_SAME_LENGTH)


def mask(text: str) -> str:
    """Replace what is not the human's own voice, character for character (see `MASK`)."""
    if not _NEEDS_MASK.search(text):
        return text
    return _MASKED.sub(lambda m: MASK * len(m.group()), text)


class Matcher:
    """Finds a lexicon's cues. Cues are named by their position in the lexicon."""

    def __init__(self, lexicon: Lexicon) -> None:
        self.lexicon = lexicon
        self._said = _Family(lexicon, "said")
        self._raw = _Family(lexicon, "raw")

    def match(self, normal: str, said: str) -> tuple[list[int], list[int]]:
        """Positions of the cues that a turn leads with, and of those that stand only behind its lead, ascending.

        `normal` and `said` as `normalise` and `mask` give them.
        """
        cues = self._said.match(said) + self._raw.match(normal)
        cues.sort()
        if len(normal) <= LEAD or not cues:
            return cues, []
        front = {*self._said.match(said[:LEAD]), *self._raw.match(normal[:LEAD])}
        return [c for c in cues if c in front], [c for c in cues if c not in front]

    def spans(self, cue: int, normal: str, said: str) -> tuple[int, int] | None:
        """Where a cue stands (characters of the turn); None if `re` does not find it."""
        family = self._said if self.lexicon.cue[cue].text == "said" else self._raw
        found = family.patterns[cue].search(said if family is self._said else normal)
        return found.span(1) if found else None

    def oracle(self, normal: str, said: str) -> tuple[list[int], list[int]]:
        """What `match` must give, by Python's backtracking `re` (tests, benchmarks)."""
        cues = self._search(normal, said)
        if len(normal) <= LEAD:
            return cues, []
        front = set(self._search(normal[:LEAD], said[:LEAD]))
        return [c for c in cues if c in front], [c for c in cues if c not in front]

    def _search(self, normal: str, said: str) -> list[int]:
        texts = {"said": said, "raw": normal}
        return [
            i
            for i, cue in enumerate(self.lexicon.cue)
            if (self._said if cue.text == "said" else self._raw).patterns[i].search(texts[cue.text])
        ]


class _Family:
    """The cues that read the same text."""

    def __init__(self, lexicon: Lexicon, text: str) -> None:
        options = re2.Options()
        options.max_mem = 256 << 20
        options.log_errors = False
        self._set = re2.Set.SearchSet(options)
        self._cues = [i for i, cue in enumerate(lexicon.cue) if cue.text == text]
        for i in self._cues:
            self._set.Add(lexicon.re2_pattern(lexicon.cue[i]))
        self._set.Compile()
        self.patterns = {i: lexicon.python_pattern(lexicon.cue[i]) for i in self._cues}

    def match(self, text: str) -> list[int]:
        return [self._cues[i] for i in self._set.Match(text) or ()]


@lru_cache(maxsize=1)
def matcher() -> Matcher:
    """The matcher of the built-in lexicon, built once per process."""
    return Matcher(builtin())
