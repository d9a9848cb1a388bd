"""Is a candidate really personal or secret? Each answer costs time linear in the candidate."""

from __future__ import annotations

import math
from collections import Counter

_WORD = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
_DIGITS = frozenset(b"0123456789")
_NOT_DOMAINS = frozenset(
    b"png jpg jpeg gif svg webp ico bmp css js ts tsx jsx mjs py rs go rb md json yaml yml toml lock txt html".split()
)
_NO_PEOPLE = frozenset(b"shared public default all users".split())
_VERSION_WORDS = (b"version", b"ver", b"ver.", b"release", b"build", b"v")
_CARD_LENGTHS = {b"34": (15,), b"37": (15,), b"36": (14,), b"38": (14,), b"62": (16, 17, 18, 19)}
_REFERENCES = (b"$", b"%", b"process.env", b"os.environ", b"env.", b"self.", b"this.", b"config.", b"settings.")


def left_edge(buf: bytes, start: int) -> bool:
    """No word character stands before `start`; an escaped line break or tab counts as space."""
    if start == 0 or buf[start - 1] not in _WORD:
        return True
    return start >= 2 and buf[start - 2] == 0x5C and buf[start - 1] in b"nrt"


def word_edges(buf: bytes, start: int, end: int) -> bool:
    """The candidate is not a part of a longer word."""
    return left_edge(buf, start) and (end >= len(buf) or buf[end] not in _WORD)


def entropy(value: bytes) -> float:
    """Shannon entropy in bits per byte."""
    n = len(value)
    return -sum(c / n * math.log2(c / n) for c in Counter(value).values()) if n else 0.0


def looks_random(value: bytes) -> bool:
    """Letters and digits mixed, or mixed case, with the entropy of a generated token and not of words."""
    digits = sum(c in _DIGITS for c in value)
    return digits >= 2 and entropy(value) >= 3.0 and digits < len(value)


def secret_span(buf: bytes, start: int, end: int, name: bytes, *, quoted: bool, tight: bool) -> tuple[int, int] | None:
    """The secret that is assigned to a password-like name; None for code, a type, a count or a path.

    `tight`: ``name=value`` without spaces, as in a command line or an environment file.
    """
    if not quoted:
        cut = buf.find(b"&", start, end)  # the next parameter of a query
        end = end if cut < 0 else cut
        while end > start and buf[end - 1] in b".!?":
            end -= 1
    value = buf[start:end]
    if len(value) < 6 or (not quoted and buf[end : end + 1] in (b"(", b"[", b"{")):
        return None
    if value.startswith((*_REFERENCES, b"/", b"./", b"~", b"*")) or b"://" in value or b"***" in value:
        return None  # a reference, a path, emphasis, or masked already
    digits = sum(c in _DIGITS for c in value)
    letters = sum(0x41 <= (c & 0xDF) <= 0x5A for c in value)
    symbols = len(value) - digits - letters
    if not letters or (digits == 0 and symbols == 0):
        return None  # a number (a count of tokens, a port) or a word
    password = name.startswith((b"pass", b"pwd"))
    if _identifier(value) and not (digits and (quoted or (password and tight))):
        return None
    if password:
        secret = digits > 0 or any(c in b"!@#$%^&*+?" for c in value)
    else:
        secret = len(value) >= 8 and entropy(value) >= (2.75 if digits >= 2 else 4.0)
    return (start, end) if secret else None


def _identifier(value: bytes) -> bool:
    """Names, dotted or not, with at most two digits at the end: code rather than a secret."""
    stem = value.rstrip(b"0123456789")
    return len(value) - len(stem) <= 2 and all((c in _WORD and c not in _DIGITS) or c in b".-" for c in stem)


def is_email(buf: bytes, start: int, end: int) -> bool:
    """An address of a person or mailbox: not ``git@host:path``, a retina image or a package version."""
    local, _, domain = buf[start:end].rpartition(b"@")
    last = domain.rsplit(b".", 1)[-1].lower()
    if local == b"git" or last in _NOT_DOMAINS or not local.strip(b".'%+-"):
        return False
    if len(last) < 2 or any(c in _DIGITS for c in last) or last.startswith(b"-"):
        return False
    return buf[end : end + 1] != b"("


def luhn(digits: bytes) -> bool:
    """The check digit of payment cards (ISO/IEC 7812)."""
    total = 0
    for place, c in enumerate(reversed(digits)):
        d = c - 48
        if place % 2:
            d = d * 2 - 9 if d > 4 else d * 2
        total += d
    return total % 10 == 0


def is_card(buf: bytes, start: int, end: int) -> bool:
    """A number of a card scheme's prefix and length, evenly separated, standing alone, with a valid check digit."""
    text = buf[start:end]
    separators = {c for c in text if c not in _DIGITS}
    if len(separators) > 1 or not word_edges(buf, start, end):
        return False
    if buf[start - 1 : start] in (b".", b"-", b"+", b"#"):
        return False
    if buf[end : end + 1] in (b".", b"-") and buf[end + 1 : end + 2].isalnum():
        return False
    digits = bytes(c for c in text if c in _DIGITS)
    lengths = _CARD_LENGTHS.get(digits[:2])
    if lengths is None:
        four, two = int(digits[:4]), int(digits[:2])
        known = digits[:1] == b"4" or 51 <= two <= 55 or 2221 <= four <= 2720 or four == 6011 or two == 65
        known = known or 3528 <= four <= 3589 or 6440 <= four <= 6499
        lengths = (16,) if known else ()
        if 3000 <= four <= 3059:
            lengths = (14,)
    return len(digits) in lengths and len(set(digits)) > 1 and luhn(digits)


def phone_span(buf: bytes, start: int, end: int) -> tuple[int, int] | None:
    """An international or North American number that stands alone."""
    text = buf[start:end]
    digits = sum(c in _DIGITS for c in text)
    before = buf[start - 1 : start]
    refused = (b"+", b".", b"/") if text.startswith(b"+") else (b".", b"-", b"/", b"+", b"#", b"=")
    if not left_edge(buf, start) or before in refused:
        return None
    after = buf[end : end + 1]
    if (after and after[0] in _WORD) or (after in (b".", b"-", b"/", b":") and buf[end + 1 : end + 2].isdigit()):
        return None
    if text.startswith(b"+"):
        if not 8 <= digits <= 15:
            return None
        if b"." in text and not _dotted_phone(text):
            return None
        # A number alone after a line's leading + is an added line of a diff.
        line_start = start == 0 or before in (b"\n", b"\0")
        spaced = any(c in b" ()" for c in text)
        if line_start and not spaced and digits < 11:
            return None
    elif not 10 <= digits <= 11 or (b"(" in text) != (b")" in text):
        return None
    return start, end


def _dotted_phone(text: bytes) -> bool:
    groups = text[1:].split(b".")
    return len(groups) >= 3 and all(len(g) >= 2 for g in groups[1:]) and len(groups[-1]) >= 3


def named_phone_span(buf: bytes, start: int, end: int) -> tuple[int, int] | None:
    """A number after the word phone, tel or the like: any national form of 7 to 15 digits."""
    digits = sum(c in _DIGITS for c in buf[start:end])
    after = buf[end : end + 1]
    if not 7 <= digits <= 15 or (after and after[0] in _WORD):
        return None
    return start, end


def is_ipv4(buf: bytes, start: int, end: int) -> bool:
    """An IPv4 address that says something about a person or machine.

    Loopback, unspecified, broadcast, netmask and ``x.0.0.0`` stay, and so does what reads as a version or
    section number: after a version word, `v`, an operator or ``name/``, or with one-digit parts only.
    """
    if not word_edges(buf, start, end):
        return False
    before, after = buf[start - 1 : start] if start else b"", buf[end : end + 1]
    if before in (b".", b"-", b"^", b"~") or (before == b"=" and buf[start - 2 : start - 1] in b"=<>~!"):
        return False
    if after in (b".", b"-", b"+") and buf[end + 1 : end + 2].isalnum() and buf[end + 1 : end + 2] != b" ":
        return False
    if before == b"/" and start >= 2 and buf[start - 2] in _WORD:
        return False
    parts = buf[start:end].split(b".")
    if any(len(p) > 1 and p.startswith(b"0") for p in parts):
        return False
    octets = [int(p) for p in parts]
    if max(octets) > 255 or octets[0] in (0, 127, 255) or octets[1:] == [0, 0, 0] or max(octets) < 10:
        return False
    words = buf[max(0, start - 16) : start].rsplit(b"\0", 1)[-1].lower().rstrip(b" :=\"'").split()
    return not (words and words[-1].lstrip(b"\"'({").endswith(_VERSION_WORDS))


def home_span(buf: bytes, start: int, end: int, user: bytes) -> tuple[int, int] | None:
    """A home folder from its root to the end of the user's name; what follows it stays."""
    if buf[start + 1 : start + 2] == b":" and not left_edge(buf, start):
        start += 2  # no drive letter, but the end of the entry before it in a search path
    if (start and buf[start - 1] in b".~-") or not left_edge(buf, start):
        return None
    trimmed = user.rstrip(b".")
    end -= len(user) - len(trimmed)
    if not trimmed or trimmed.isdigit() or trimmed.lower() in _NO_PEOPLE:
        return None
    stem, dot, suffix = trimmed.rpartition(b".")
    page = bool(dot and stem) and suffix.lower() in _NOT_DOMAINS
    return None if page and buf[end : end + 1] not in (b"/", b"\\") else (start, end)
