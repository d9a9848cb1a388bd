"""Keyed pseudonyms: the same person gets the same name, and only the key's holder can say whose it is."""

from __future__ import annotations

import hashlib
import hmac

from seatrial.errors import UsageError

_DIGITS = 16


class Pseudonyms:
    """HMAC-SHA256 under a secret key. Without the key a pseudonym cannot be tied to a guess of the name."""

    def __init__(self, key: bytes) -> None:
        if len(key) < 16:
            raise UsageError("a pseudonym key has at least 16 bytes")
        self.key = key

    def of(self, name: str, kind: str = "user") -> str:
        """The pseudonym of `name`: ``<kind>-<16 hex digits>``, 64 bits of the keyed hash.

        `kind` keeps name spaces apart: a user and a unit of the same name get unrelated pseudonyms.
        """
        seal = hmac.new(self.key, f"{kind}\0{name}".encode("utf-8", "surrogatepass"), hashlib.sha256)
        return f"{kind}-{seal.hexdigest()[:_DIGITS]}"
