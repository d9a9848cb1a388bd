"""Patterns to quick looks: whether a text can hold any of them at all, in one pass of an automaton (RE2).

A look says no only where Python's `re` would find nothing; whoever is told yes asks `re`. Texts with signs outside
ASCII are read as if each were an ASCII sign of its class, so that the automaton knows words, digits and space as `re`
does.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import re2

_SPACE = r"\t-\r\x1c-\x20"
_OTHER = "\x7f"
_SAME = {"\u017f": "s", "\u212a": "k", "\u0130": "i", "\u0131": "i"}
"""Letters that `re` takes for ASCII ones when it ignores case."""


class _Plain(dict[int, str]):
    """The ASCII sign that stands for a character."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        if char < "\x80":
            plain = char
        elif char in _SAME:
            plain = _SAME[char]
        elif char.isspace():
            plain = "\x1f"
        elif char.isdecimal():
            plain = "7"
        elif char.isalnum():
            plain = "q"
        else:
            plain = _OTHER
        self[code] = plain
        return plain


_PLAIN = _Plain()


def plain(text: str) -> bytes:
    """What looks read for a text: as many bytes as it has characters."""
    return (text if text.isascii() else text.translate(_PLAIN)).encode("ascii")


class Look:
    """Some patterns, looked for at once."""

    def __init__(self, patterns: Sequence[re.Pattern[str]]) -> None:
        options = re2.Options()
        options.max_mem = 64 << 20
        options.log_errors = False
        self._set = re2.Set.SearchSet(options)
        for pattern in patterns:
            self._set.Add(portable(pattern))
        self._set.Compile()

    def __call__(self, text: bytes) -> Sequence[int]:
        """Positions of the patterns that may occur; others do not. `text` as `plain` gives it."""
        return self._set.Match(text) or ()


class First:
    """A pattern, looked for from where a look says that it can first begin. The last answer is remembered: whoever
    asks whether it occurs asks next where."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self._pattern = pattern
        options = re2.Options()
        options.log_errors = False
        self._quick = re2.compile(portable(pattern), options)
        self._last: tuple[str, re.Match[str] | None] = ("", pattern.search(""))

    def __call__(self, text: str) -> re.Match[str] | None:
        """What the pattern's own `search` finds in `text`."""
        last, found = self._last
        if last is not text:
            begins = self._quick.search(plain(text))
            found = self._pattern.search(text, begins.start()) if begins is not None else None
            self._last = (text, found)
        return found


def portable(pattern: re.Pattern[str]) -> str:
    """The pattern for RE2, over what `plain` gives.

    Raises:
        re.error: it excludes signs that others are read as, so that a look could miss it.
    """
    out, inside, excluded = [], False, False
    source = pattern.pattern
    i = 0
    while i < len(source):
        char = source[i]
        if char == "\\":
            pair = source[i : i + 2]
            i += 2
            if pair == r"\s":
                out.append(_SPACE if inside else f"[{_SPACE}]")
            elif pair == r"\S" and not inside:
                out.append(f"[^{_SPACE}]")
            elif pair == r"\Z":
                out.append(r"\z")
            elif pair[1].isalnum() and pair[1] not in "AbwdnrtW":
                raise re.error(f"a look does not know {pair}", source)
            else:
                out.append(pair)
            continue
        if char == "[" and not inside:
            inside, excluded = True, source[i + 1] == "^"
        elif char == "]" and inside and source[i - 1] not in "[^":
            inside = excluded = False
        elif char == "$" and not inside and not pattern.flags & re.MULTILINE:
            raise re.error("a look does not know this $", source)
        elif excluded and char.lower() in "q7ski\x7f\x1f":
            raise re.error(f"a look cannot exclude {char!r}", source)
        out.append(_PLAIN[ord(char)])
        i += 1
    flags = "".join(letter for flag, letter in ((re.I, "i"), (re.M, "m"), (re.S, "s")) if pattern.flags & flag)
    return (f"(?{flags})" if flags else "") + "".join(out)
