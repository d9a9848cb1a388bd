"""Texts to the lexicon's cues, in linear time: by RE2.

RE2's ``\\b`` knows ASCII alone, so boundaries are spelled out as "not a letter, digit or underscore".
"""

from __future__ import annotations

import re
from functools import cached_property, lru_cache

import re2

from seatrial.signals.lexicon import Lexicon, builtin, portable
from seatrial.signals.triggers import EDGE, literals

MASK = "\x1b"
"""Stands for a character that the human did not say in their own voice: code, quotation, link, pasted output."""

LEAD = 120
"""Characters in which a turn says what it is about. Cues that stand only behind them speak with less weight."""

LIMIT = 6_000
"""Characters of a turn that are read. Longer turns are pastes; their evidence is at the front."""

OTHER = "\x1a"
"""Stands for any other character that is neither ASCII nor a letter or digit of some script."""

_KNOWN = {
    **dict.fromkeys("’‘ʼ´′", "'"),
    **dict.fromkeys("“”„«»″", '"'),
    **dict.fromkeys("\u00a0\u2002\u2003\u2009\u202f\u3000", " "),
    **dict.fromkeys("–—−‐‑", "-"),
    **dict.fromkeys("，、", ","),
    **dict.fromkeys("。｡", "."),
    "！": "!",
    "？": "?",
    "：": ":",
    "；": ";",
    "…": ".",
    **dict.fromkeys("❯➜", "$"),
    "¡": "!",
    "¿": "?",
    **dict.fromkeys("👍🎉🙌💯❤🥳🔥👏🙏😍🤩✅", "\x01"),
    **dict.fromkeys("👎🤬😡🤦😤😠🙄", "\x02"),
    **dict.fromkeys("🤔🤨😕🧐", "\x03"),
}
"""Characters that mean the same as an ASCII one. Emoji become control characters: \x01 glad, \x02 angry,
\x03 in doubt."""
_CONTROL = dict.fromkeys((1, 2, 3, 26), OTHER)


_NEEDS_MASK = re.compile(r"[`\">@\[<$|#\n]|https?:|[0-9][0-9]:[0-9][0-9]:[0-9][0-9]")
_MASKED = re.compile(
    r"""
    ```.*?(?:```|\Z)                      # fenced code
  | `[^`\n]{1,300}`                       # inline code
  | ^[ \t]*>[^\n]*                        # a quoted line
  | ^[ \t]*(?:[$%\#]|\S+@\S+[:~]\S*[$%\#])[ ]\S[^\n]*   # a shell prompt
  | ^[ \t]*(?:[+-]{1,3}[ \t]|@@)[^\n]*[;{}()=][^\n]*   # a diff line
  | ^[ \t]*at\ [\w.$<>]+\s?\([^\n]*         # a stack frame
  | ^[^\n]*\b[0-9][0-9]:[0-9][0-9]:[0-9][0-9]\b[^\n]*          # a log line
  | ^[^\n]*(?:\|[^\n|]*){3,}$            # a table row
  | "(?:[^"\n]{2,400})"                    # a quotation
  | <(\w[\w-]*)[^>\n]*>.*?</\1>           # an element
  | https?://\S+ | \[[^\]\n]{1,80}\](?:\([^)\n]*\))? | [@\#](?:file:|sym:)?[\w./-]+   # links, images, mentions
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)


def normalise(text: str) -> str:
    """Lower case, with plain quotes and punctuation, character for character: a span here is a span there.

    What remains outside ASCII is letters and digits (see `lexicon.portable`).
    """
    text = text[:LIMIT]
    if text.isascii():
        low = text.lower()
        return low.translate(_CONTROL) if "\x1a" in low or "\x01" in low or "\x02" in low or "\x03" in low else low
    plain: str = text.translate(PLAIN)
    return plain


class _Plain(dict[int, str]):
    """The plain form of every character, found once; a letter's lower case whatever stands beside it."""

    def __missing__(self, code: int) -> str:
        char = chr(code).lower()
        if len(char) != 1:
            char = chr(code)
        keep = char < "\x80" or (char.isalnum() and char == char.lower())
        self[code] = plain = _KNOWN.get(char) or (char if keep else OTHER)
        return plain


PLAIN = _Plain(_CONTROL)


def mask(text: str) -> str:
    """Replace what is not the human's own voice, character for character (see `MASK`)."""
    if not _NEEDS_MASK.search(text):
        return text
    return _MASKED.sub(lambda m: MASK * len(m.group()), text)


class Matcher:
    """Finds a lexicon's cues. Cues are named by their position in the lexicon.

    Two looks, both linear in the text: one RE2 set over the literals that the cues need (a small automaton), then
    each candidate cue by its own RE2 automaton. One automaton for all cues at once would not fit in memory.
    """

    def __init__(self, lexicon: Lexicon) -> None:
        self.lexicon = lexicon
        self._said = _First(lexicon, "said")
        self._raw = _First(lexicon, "raw")
        self._places = [re2.compile(lexicon.re2_pattern(cue)) for cue in lexicon.cue]
        self._full = [
            _set([lexicon.re2_pattern(cue)], from_start=cue.where in ("start", "whole")) for cue in lexicon.cue
        ]
        self._short = lru_cache(maxsize=16_384)(self._match)

    def match(self, normal: str, said: str) -> tuple[list[int], list[int]]:
        """Positions of the cues that a turn leads with, and of those that stand only behind its lead, ascending.

        `normal` and `said` as `normalise` and `mask` give them. Short turns ("yes", "commit this") come often and are
        remembered.
        """
        return self._short(normal, said) if len(normal) <= 64 else self._match(normal, said)

    def _match(self, normal: str, said: str) -> tuple[list[int], list[int]]:
        texts = {"said": said.encode(), "raw": normal.encode()}
        cues = [c for c in self._said.candidates(texts["said"]) if self._full[c].Match(texts["said"])]
        cues += [c for c in self._raw.candidates(texts["raw"]) if self._full[c].Match(texts["raw"])]
        cues.sort()
        if len(normal) <= LEAD or not cues:
            return cues, []
        texts = {"said": said[:LEAD].encode(), "raw": normal[:LEAD].encode()}
        front = {c for c in cues if self._full[c].Match(texts[self.lexicon.cue[c].text])}
        return [c for c in cues if c in front], [c for c in cues if c not in front]

    def spans(self, cue: int, normal: str, said: str) -> tuple[int, int] | None:
        """Where a cue stands first (characters of the turn); None where it does not."""
        found = self._places[cue].search(said if self.lexicon.cue[cue].text == "said" else normal)
        if found is None:
            return None
        start, end = found.span(1)
        return int(start), int(end)

    @cached_property
    def patterns(self) -> list[re.Pattern[str]]:
        """The cues for `re`; the oracle alone needs them."""
        return [self.lexicon.python_pattern(cue) for cue in self.lexicon.cue]

    def oracle(self, normal: str, said: str) -> tuple[list[int], list[int]]:
        """What `match` must give, by Python's backtracking `re` (tests, benchmarks)."""
        cues = self._search(normal, said)
        if len(normal) <= LEAD:
            return cues, []
        front = set(self._search(normal[:LEAD], said[:LEAD]))
        return [c for c in cues if c in front], [c for c in cues if c not in front]

    def _search(self, normal: str, said: str) -> list[int]:
        texts = {"said": said, "raw": normal}
        return [i for i, cue in enumerate(self.lexicon.cue) if self.patterns[i].search(texts[cue.text])]


class _First:
    """The first look: cues whose literals occur, and those that need none."""

    def __init__(self, lexicon: Lexicon, text: str) -> None:
        self._always: list[int] = []
        self._cues: list[int] = []
        patterns = []
        for i, cue in enumerate(lexicon.cue):
            if cue.text != text:
                continue
            needed = literals(cue.alternation())
            if needed is None:
                self._always.append(i)
            else:
                self._cues.append(i)
                patterns.append("|".join(_literal(word, cue.bound or cue.where != "any") for word in sorted(needed)))
        self._set = _set(patterns)

    def candidates(self, text: bytes) -> list[int]:
        return self._always + [self._cues[i] for i in self._set.Match(text) or ()]


def _literal(word: str, bound: bool) -> str:
    edge = portable(r"(?:^|[^\w])", for_re2=True) if word.startswith(EDGE) and bound else ""
    return edge + re.escape(word.lstrip(EDGE))


def _set(patterns: list[str], *, from_start: bool = False) -> re2.Set:
    options = re2.Options()
    options.max_mem = 64 << 20
    options.log_errors = False
    built = re2.Set.MatchSet(options) if from_start else re2.Set.SearchSet(options)
    for pattern in patterns:
        built.Add(pattern)
    built.Compile()
    return built


@lru_cache(maxsize=1)
def matcher() -> Matcher:
    """The matcher of the built-in lexicon, built once per process."""
    return Matcher(builtin())
