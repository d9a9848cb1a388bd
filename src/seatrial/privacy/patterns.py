"""What counts as personal or secret: linear-time candidates (RE2), then checks that keep look-alikes.

A rule's pattern finds candidates in UTF-8 bytes; its check narrows a candidate to the bytes to replace, or
refuses it. RE2 has no look-around, so boundaries are checked here, on the bytes next to the candidate.
Many short texts are searched as one, with a zero byte between them: no pattern may match a zero byte.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from typing import Any, NamedTuple

import re2

from seatrial.privacy import checks

TYPES: tuple[str, ...] = ("KEY", "TOKEN", "SECRET", "CARD", "EMAIL", "PHONE", "IP", "HOME")
"""Placeholder types. KEY: API and private keys; TOKEN: bearer, session and access tokens, credentials in
URLs; SECRET: values assigned to password-like names; HOME: home folders; the others as they say."""

Span = tuple[int, int]
Check = Callable[[bytes, Any], "Span | None"]


class Rule(NamedTuple):
    """One kind of candidate. `needs`: the pattern runs only where one of these byte strings occurs; a rule
    without runs only where `GATE` finds anything."""

    type: str
    pattern: Any
    check: Check
    needs: tuple[bytes, ...] = ()
    gated: bool = True


def _whole(buf: bytes, match: Any) -> Span | None:
    return match.span()  # type: ignore[no-any-return]


def _free(buf: bytes, match: Any) -> Span | None:
    start, end = match.span()
    return (start, end) if checks.word_edges(buf, start, end) else None


def _random(buf: bytes, match: Any) -> Span | None:
    start, end = match.span()
    if not checks.left_edge(buf, start):
        return None
    return (start, end) if checks.looks_random(buf[start:end].split(b"-", 1)[-1]) else None


def _bearer(buf: bytes, match: Any) -> Span | None:
    start, end = match.span(1)
    return (start, end) if checks.looks_random(buf[start:end]) else None


def _credentials(buf: bytes, match: Any) -> Span | None:
    start, end = match.span(1)
    password = buf[start:end].split(b":", 1)[1]
    return None if password.startswith((b"$", b"[", b"{", b"%", b"*")) else (start, end)


def _assigned(buf: bytes, match: Any) -> Span | None:
    start, end = match.span(3)
    name = match.group(1).lower()
    quoted = buf[start - 1 : start] in (b'"', b"'", b"`")
    tight = match.group(2) == b"="
    return checks.secret_span(buf, start, end, name, quoted=quoted, tight=tight)


def _email(buf: bytes, match: Any) -> Span | None:
    start, end = match.span()
    return (start, end) if checks.is_email(buf, start, end) else None


def _card(buf: bytes, match: Any) -> Span | None:
    start, end = match.span()
    return (start, end) if checks.is_card(buf, start, end) else None


def _phone(buf: bytes, match: Any) -> Span | None:
    start, end = match.span()
    return checks.phone_span(buf, start, end)


def _named_phone(buf: bytes, match: Any) -> Span | None:
    start, end = match.span(1)
    return checks.named_phone_span(buf, start, end)


def _ipv4(buf: bytes, match: Any) -> Span | None:
    start, end = match.span()
    return (start, end) if checks.is_ipv4(buf, start, end) else None


def _ipv6(buf: bytes, match: Any) -> Span | None:
    start, end = match.span()
    while end > start and buf[end - 1 : end] == b":" and buf[end - 2 : end] != b"::":
        end -= 1
    if not checks.word_edges(buf, start, end) or buf[start - 1 : start] == b":":
        return None
    try:
        ipaddress.IPv6Address(buf[start:end].decode("ascii"))
    except ValueError:
        return None
    return start, end


def _home(buf: bytes, match: Any) -> Span | None:
    start, end = match.span()
    return checks.home_span(buf, start, end, match.group(1))


def _rx(*parts: str) -> Any:
    return re2.compile("|".join(parts).encode())


_SECRET_NAMES = (
    r"pass(?:word|wd|phrase)|pwd|secret|token|api[_-]?key|access[_-]?key|secret[_-]?key|private[_-]?key"
    r"|auth[_-]?key|encryption[_-]?key|signing[_-]?key|account[_-]?key|credentials?"
)

_GAP = r"(?:\s|\\[nr])*"
_KEY_NAME = r"[A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----"
# Headers and base64 lines only, never "anything up to END": a hostile text of many BEGINs stays linear.
_KEY_BLOCK = rf"-----BEGIN {_KEY_NAME}(?:{_GAP}(?:[A-Za-z]+(?:-[A-Za-z]+)?: [^\n\x00\\]*|[A-Za-z0-9+/=]{{16,}}))+"
_KEY_TAIL = rf"(?:{_GAP}[A-Za-z0-9+/=]+)?{_GAP}-----END {_KEY_NAME}"

RULES: tuple[Rule, ...] = (
    Rule(
        "KEY",
        _rx(_KEY_BLOCK + _KEY_TAIL, _KEY_BLOCK),
        _whole,
        (b"PRIVATE KEY",),
    ),
    Rule("TOKEN", _rx(r"[a-z][a-z0-9+.-]*://([^\s\x00/:@'\"<>]*:[^\s\x00/@'\"<>]+)@"), _credentials, (b"://",)),
    Rule("TOKEN", _rx(r"eyJ[A-Za-z0-9_-]{6,}\.eyJ[A-Za-z0-9_-]{4,}\.?[A-Za-z0-9_-]*"), _free, (b"eyJ",)),
    Rule(
        "KEY",
        _rx(
            r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}",
            r"AIza[0-9A-Za-z_-]{35}",
            r"AGE-SECRET-KEY-1[0-9A-Z]{50,}",
            r"[rsp]k_(?:live|test)_[0-9A-Za-z]{16,}",
            r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",
            r"key-[0-9a-f]{32}",
        ),
        _free,
    ),
    Rule("KEY", _rx(r"sk-[A-Za-z0-9_-]{16,}"), _random, (b"sk-",)),
    Rule(
        "TOKEN",
        _rx(
            r"gh[opusr]_[A-Za-z0-9]{30,}",
            r"github_pat_[A-Za-z0-9_]{22,}",
            r"gl(?:pat|ptt|dt|rt)-[A-Za-z0-9_-]{20,}",
            r"xox[abceoprs]-[A-Za-z0-9-]{10,}",
            r"xapp-[0-9]-[A-Za-z0-9-]{10,}",
            r"npm_[A-Za-z0-9]{36}",
            r"pypi-[A-Za-z0-9_-]{50,}",
            r"hf_[A-Za-z0-9]{30,}",
            r"dop_v1_[a-f0-9]{64}",
            r"ya29\.[A-Za-z0-9_-]{20,}",
            r"whsec_[A-Za-z0-9+/=]{24,}",
            r"hooks\.slack\.com/services/[A-Za-z0-9/]{20,}",
        ),
        _free,
    ),
    Rule("TOKEN", _rx(r"(?i)\b(?:bearer|authorization:\s*(?:basic|token))\s+([A-Za-z0-9._~+/=-]{16,})"), _bearer),
    Rule(
        "SECRET",
        _rx(
            rf"(?i)({_SECRET_NAMES})[0-9]*\\*[\"'`]?[ \t]*(:=|=>|=|:)[ \t]*\\*[\"'`]?"
            r"([^\s\x00\"'`,;<>(){}\[\]|\\]{6,})",
        ),
        _assigned,
        gated=False,
    ),
    Rule(
        "SECRET",
        _rx(
            rf"(?i)--({_SECRET_NAMES})([ \t]+)[\"']?"
            r"([^\s\x00\"'`,;<>(){}\[\]|\\-][^\s\x00\"'`,;<>(){}\[\]|\\]{5,})"
        ),
        _assigned,
        (b"--",),
    ),
    Rule(
        "CARD",
        _rx(r"[2-6][0-9]{3}[ -]?[0-9]{4}[ -]?[0-9]{4}[ -]?[0-9]{1,7}", r"3[0-9]{3}[ -]?[0-9]{6}[ -]?[0-9]{4,5}"),
        _card,
    ),
    Rule(
        "EMAIL",
        _rx(r"(?:[A-Za-z0-9._%+'-]|[^\x00-\x7f])+@(?:[A-Za-z0-9-]|[^\x00-\x7f])+(?:\.(?:[A-Za-z0-9-]|[^\x00-\x7f])+)+"),
        _email,
        (b"@",),
    ),
    Rule(
        "PHONE",
        _rx(
            r"\+[1-9][0-9]{7,14}",
            r"\+[1-9][0-9]{0,2}[ .-]?\(?0?[0-9]{1,4}\)?(?:[ .-]?[0-9]{2,4}){1,4}",
            r"(?:1[ .-])?\([2-9][0-9]{2}\) ?[2-9][0-9]{2}[ .-][0-9]{4}",
            r"(?:1[.-])?[2-9][0-9]{2}[ .-][2-9][0-9]{2}[.-][0-9]{4}",
        ),
        _phone,
    ),
    Rule(
        "PHONE",
        _rx(
            r"(?i)(?:phone|mobile|telephone|tel|cell|fax|whatsapp)(?:[ _-]?(?:number|no|num))?\.?\\*[\"']?"
            r"[ \t]*(?::|=|is)?[ \t]*\\*[\"']?(\+?\(?[0-9][0-9 ().-]{5,24}[0-9])"
        ),
        _named_phone,
    ),
    Rule("IP", _rx(r"[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}"), _ipv4),
    Rule(
        "IP",
        _rx(r"(?:[23][0-9A-Fa-f]{3}|[fF][cCdD][0-9A-Fa-f]{2}|[fF][eE][89abAB][0-9A-Fa-f]):[0-9A-Fa-f:]{2,}"),
        _ipv6,
    ),
    Rule(
        "HOME",
        _rx(
            r"(?:/mnt/[a-z]|[A-Za-z]:)?(?:/home/|/Users/)((?:[A-Za-z0-9._-]|[^\x00-\x7f])+)",
        ),
        _home,
        (b"/home/", b"/Users/"),
    ),
    Rule("HOME", _rx(r"(?i)[A-Z]:\\+Users\\+((?:[A-Za-z0-9._-]|[^\x00-\x7f])+)"), _home, (b"\\Users\\", b"\\users\\")),
    Rule("HOME", _rx(r"-(?:home|Users)-([A-Za-z0-9]+)"), _home, (b"-home-", b"-Users-")),
)
"""In order of precedence: where two candidates overlap, the earlier rule wins."""


def _gate() -> Any:
    wanted = [r.pattern.pattern for r in RULES if r.gated and not r.needs]
    # The gate only says whether: it needs neither groups nor the greedy tails of its parts.
    return re2.compile(b"|".join(b"(?:" + p + b")" for p in wanted))


GATE = _gate()
"""Finds something wherever a gated rule does, in one pass instead of one for each rule."""

PLACEHOLDER = re2.compile(f"<({'|'.join(TYPES)})_([0-9]{{1,9}})>".encode())
