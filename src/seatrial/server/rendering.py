"""Text and numbers to markup that is safe to put into a page: what templates may call.

Text of a trace is hostile. It becomes escaped text in which every hidden or direction-changing character and every
terminal sequence stands as a visible code; it is cut where it is long, and kept apart from what is around it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from urllib.parse import urlencode

import msgspec
from markupsafe import Markup, escape

from seatrial.report import numbers, page, words
from seatrial.report.text import HIDDEN, clean, clip

CUT = 6_000
"""Characters of one text that a page shows before it asks."""

_ESCAPE = re.compile(
    "\x1b(?:\\[[0-9;:?<=>]{0,40}[ -/]{0,4}[@-~]?|\\][^\x07\x1b]{0,80}(?:\x07|\x1b\\\\)?|.)?", re.DOTALL
)
_CODED = re.compile(f"{_ESCAPE.pattern}|{HIDDEN}", re.DOTALL)
_KEPT = frozenset("\n\t")
_PLAIN = re.compile(r"[A-Za-z0-9_.:/@+-]+")
"""Nothing to clean, escape or measure: most names are like this, and a page holds hundreds."""

_MARKS = "\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
_COMBINING = re.compile(f"([{_MARKS}]{{3}})[{_MARKS}]+")


class Highlight(msgspec.Struct, frozen=True, kw_only=True):
    """Characters [start, end) of a text that are evidence. `fate` is kept, merged or dropped."""

    start: int
    end: int
    kind: str
    fate: str
    ident: str
    title: str


def prose(text: str, marks: Sequence[Highlight] = ()) -> Markup:
    """Text of a trace, with line breaks and tabs as they are, hidden characters as codes, and evidence marked."""
    out: list[Markup] = []
    at = 0
    for mark in sorted(marks, key=lambda m: (m.start, -m.end)):
        if mark.start < at or mark.end <= mark.start or mark.start >= len(text):
            continue
        out.append(_coded(text[at : mark.start]))
        inner = _coded(text[mark.start : mark.end])
        out.append(
            Markup('<mark class="ev {}" id="{}" data-kind="{}" title="{}" tabindex="0">{}</mark>').format(
                mark.fate, mark.ident, mark.kind, clean(mark.title), inner
            )
        )
        at = mark.end
    out.append(_coded(text[at:]))
    return Markup("").join(out)


def _coded(text: str) -> Markup:
    if text.isascii() and text.isprintable():
        return escape(text)
    text = _COMBINING.sub(r"\1", text)
    out: list[Markup] = []
    at = 0
    for found in _CODED.finditer(text):
        if found.group() in _KEPT:
            continue
        out.append(escape(text[at : found.start()]))
        out.append(Markup('<span class="code">{}</span>').format(_code(found.group())))
        at = found.end()
    out.append(escape(text[at:]))
    return Markup("").join(out)


def _code(found: str) -> str:
    """A name for what must not act: ``ESC[31m``, ``U+202E``."""
    if found.startswith("\x1b"):
        rest = "".join(c if c.isprintable() and c.isascii() else f"\\x{ord(c):02x}" for c in found[1:])
        return f"ESC{rest}"
    return "".join(f"U+{ord(c):04X}" for c in found)


def pretty(value: Any) -> str:
    """A tool call's arguments as indented JSON."""
    try:
        return json.dumps(value, ensure_ascii=False, indent=2, sort_keys=False)
    except (TypeError, ValueError):
        return str(value)


def label(text: object, most: int = 96) -> Markup:
    """A name from a trace, on one line, of bearable length, whatever direction it is written in."""
    if text is None or text == "":
        return Markup('<span class="none">none</span>')
    if isinstance(text, str) and len(text) <= most and _PLAIN.fullmatch(text):
        return Markup(f"<bdi>{text}</bdi>")
    return Markup("<bdi>{}</bdi>").format(clip(clean(str(text)), most) or "(empty)")


def quoted(left: str, quote: str, right: str) -> Markup:
    """Evidence marked between the words around it, on one line."""
    parts = [clean(f"|{part}|")[1:-1] for part in (left, quote, right)]
    return Markup("<bdi>{}<mark>{}</mark>{}</bdi>").format(*parts)


@lru_cache(4096)
def when(moment: float | None) -> Markup:
    """A time (seconds UTC) for people and machines."""
    if moment is None or not math.isfinite(moment):
        return Markup('<span class="none">no time</span>')
    try:
        at = datetime.fromtimestamp(moment, UTC)
    except (OverflowError, ValueError, OSError):
        return Markup('<span class="none">no time</span>')
    return Markup('<time datetime="{}">{}</time>').format(
        at.isoformat(timespec="seconds"), at.strftime("%Y-%m-%d %H:%M")
    )


def duration(seconds: float | None) -> str:
    """``4 s``, ``3 min``, ``2.1 h``."""
    if seconds is None or not math.isfinite(seconds):
        return numbers.NA
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def size(n: int | None) -> str:
    """Characters or bytes, short: ``5.2 M``."""
    if n is None:
        return numbers.NA
    return f"{n:,}" if n < 10_000 else f"{n / 1000:.0f} k" if n < 1_000_000 else f"{n / 1e6:.1f} M"


def plural(n: int, one: str, many: str | None = None) -> str:
    """``1 session``, ``2 sessions``."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def link(path: str, query: Mapping[str, object]) -> str:
    """An address of this site with its parameters; those that are None or empty are left out."""
    given = [(k, str(v)) for k, v in query.items() if v not in (None, "", [])]
    return path + (f"?{urlencode(given)}" if given else "")


def _link(path: str, **query: object) -> str:
    return link(path, query)


def sections(parts: Sequence[Any], start: int = 2, prefix: str = "s", verdict: Any = None) -> Markup:
    """Sections of a report as markup; the report's own builder escapes everything in them."""
    return Markup(page.fragment(parts, depth=start, prefix=prefix, verdict=verdict))


def chart(drawn: Any, ident: str, heading: int = 3) -> Markup:
    """One chart of a report as markup."""
    return Markup(page.chart(drawn, ident, heading))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "chart": chart,
    "link": _link,
    "plural": plural,
    "prose": prose,
    "quoted": quoted,
    "sections": sections,
}
"""What templates may call."""

FILTERS: dict[str, Callable[..., Any]] = {
    "anything": numbers.anything,
    "check_name": words.check_name,
    "clean": clean,
    "count": numbers.count,
    "duration": duration,
    "estimate": numbers.estimate,
    "label": label,
    "number": numbers.number,
    "plain_name": words.plain_name,
    "pretty": pretty,
    "rank": numbers.rank,
    "sentence": words.sentence,
    "size": size,
    "when": when,
}
"""What templates may pipe through."""
