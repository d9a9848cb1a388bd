"""Canonical JSON, content hashes and the hash chain: one byte string for one value, everywhere."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import msgspec

_ENCODER = msgspec.json.Encoder(order="deterministic")
GENESIS = "0" * 64


def canonical(value: Any) -> bytes:
    """The canonical JSON bytes of a record or plain value: keys sorted, no spaces, UTF-8.

    Raises:
        TypeError: the value holds something that JSON cannot.
    """
    return _ENCODER.encode(value)


def digest(data: bytes) -> str:
    """sha256 of bytes, as 64 hex digits."""
    return hashlib.sha256(data).hexdigest()


def content_hash(value: Any) -> str:
    """sha256 of the canonical JSON of `value`."""
    return digest(canonical(value))


def chain(links: Iterable[Any], start: str = GENESIS) -> list[str]:
    """A tamper-evident chain: hash i covers link i and hash i-1.

    Returns one hash per link; changing, dropping, adding or reordering any link changes every later hash.
    """
    out = []
    previous = start
    for link in links:
        previous = digest(previous.encode() + canonical(link))
        out.append(previous)
    return out
