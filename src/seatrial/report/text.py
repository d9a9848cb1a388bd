"""Hostile text to harmless text: names and reasons come out of traces and may hold anything.

Escaping for HTML is `report.html`'s work. Here everything is removed that changes how *other* text looks: control
characters, direction overrides, invisible characters and stacks of combining marks.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

HIDDEN = (
    "[\x00-\x1f\x7f-\x9f"  # controls, escape sequences
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"  # soft hyphen, joiners, fillers
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f"  # zero width, direction, line separators
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"  # variation selectors, byte order mark, annotations
    "\ud800-\udfff\U000e0000-\U000e0fff]"  # lone surrogates, tags
)
"""A character class: what is invisible, or moves other text."""

_HIDDEN = re.compile(HIDDEN)
_SPACES = re.compile(r"[ \t\n\r\f\v]+")
_STACKED = 3
MAX_NAME = 96


def clean(text: str) -> str:
    """`text` on one line with nothing in it that could disturb its surroundings.

    White space runs become one space. A character that is invisible or moves text becomes its visible code,
    such as ``<U+202E>``, so that two names that differ only by it stay different. More than three combining
    marks on one character are cut.
    """
    text = _SPACES.sub(" ", text).strip()
    text = _HIDDEN.sub(lambda match: _code(match.group()), text)
    if text.isascii():
        return text
    kept: list[str] = []
    run = 0
    for character in text:
        run = run + 1 if unicodedata.category(character) in ("Mn", "Me") else 0
        if run <= _STACKED:
            kept.append(character)
    return "".join(kept)


def visible(text: str) -> str:
    """`text` with hidden characters as visible codes, line breaks kept."""
    return _HIDDEN.sub(lambda match: match.group() if match.group() == "\n" else _code(match.group()), text)


def _code(character: str) -> str:
    return f"<U+{ord(character):04X}>"


def width(text: str) -> int:
    """Columns that `text` takes in a fixed-width font: two for wide East Asian characters, none for marks."""
    return sum(
        0
        if unicodedata.category(character) in ("Mn", "Me")
        else 2
        if unicodedata.east_asian_width(character) in "WF"
        else 1
        for character in text
    )


def clip(text: str, columns: int = MAX_NAME) -> str:
    """`text` at most `columns` wide, the middle replaced by an ellipsis: both ends tell names apart."""
    if width(text) <= columns:
        return text
    head, tail = columns // 2, columns - columns // 2 - 1
    return _fit(text, head).rstrip() + "…" + _fit(text[::-1], tail)[::-1].lstrip()


_PIECE = re.compile(r"<U\+[0-9A-F]{4,6}>|.", re.DOTALL)


def around(left: str, evidence: str, right: str, columns: int) -> str:
    """Evidence in brackets with as much of the words around it as `columns` allow. It is shown whole, however long it
    is, and no visible code of a hidden character is cut in two."""
    before, middle, after = clean(left + "|")[:-1], clean(f"|{evidence}|")[1:-1], clean("|" + right)[1:]
    room = max(0, columns - width(middle) - 2)
    head = _pieces(_PIECE.findall(before)[::-1], max(room // 2, room - width(after)))[::-1]
    tail = _pieces(_PIECE.findall(after), room - sum(map(width, head)))
    return f"{''.join(head)}[{middle}]{''.join(tail)}"


def _pieces(pieces: Sequence[str], columns: int) -> list[str]:
    """The first of some pieces that fit, with an ellipsis where there are more."""
    if width("".join(pieces)) <= columns:
        return list(pieces)
    kept, used = list[str](), 1
    for piece in pieces:
        used += width(piece)
        if used > columns:
            break
        kept.append(piece)
    return [*kept, "…"]


def _fit(text: str, columns: int) -> str:
    kept, used = [], 0
    for character in text:
        used += width(character)
        if used > columns:
            break
        kept.append(character)
    return "".join(kept)


def name(text: str) -> str:
    """A name from a trace, clean and of bearable length."""
    return clip(clean(text)) or "(empty name)"


def json_text(text: str) -> str:
    """JSON text with hidden characters written as escapes: the same JSON, safe to look at."""
    return _HIDDEN.sub(lambda match: match.group() if match.group() == "\n" else _escape(match.group()), text)


def _escape(character: str) -> str:
    data = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{data[i]:02x}{data[i + 1]:02x}" for i in range(0, len(data), 2))


_PLAIN = str.maketrans(
    {
        "−": "-", "–": "-", "—": "-", "…": ".", "·": "|", "•": "*", "×": "x", "≥": ">", "≤": "<", "→": ">", "←": "<",
        "‘": "'", "’": "'", "“": '"', "”": '"', "●": "o", "◇": "?", "◆": "*", "━": "=", "─": "-", "╌": "-", "┊": ":",
        "│": "|", "├": "[", "┤": "]", "┝": "[", "┥": "]", "◀": "<", "▶": ">", "✓": "+", "✗": "x", "∞": "I", "τ": "t",
        "α": "a", "ρ": "r", "Γ": "G", "κ": "k", "█": "#", "░": ".", "▸": ">", "*": "*", "╶": "-", "╴": "-", "┄": "-",
        "é": "e", "½": "h", "²": "2",
    }
)  # fmt: skip


def ascii_only(text: str) -> str:
    """`text` in ASCII with the same width in columns, for terminals that cannot show more."""
    if text.isascii():
        return text
    text = text.translate(_PLAIN)
    return "".join(c if c.isascii() else "?" * width(c) for c in text)
