"""Stored results to what of them may be shown now: words of sessions whose people agree no longer are left out."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any

import msgspec

from seatrial.errors import InputError
from seatrial.store import Permission, StoredResult

_GONE = object()
BREAKS = re.compile(r"[\s,;:'\"()\[\]{}]+")
"""What parts the words of a sentence that may name a session."""


def without(result: StoredResult, may: Permission) -> StoredResult:
    """A result as it may be shown; one of its warnings says how much is left out.

    A result was made when its sessions could be used, and quotes some of them: examples, items to label, differences
    of two traces. What stands beside the id of a session that may not be shown is left out: an entry of a list
    altogether, anything else as None.

    Raises:
        InputError: the whole result is about such a session.
    """
    if not may.denied:
        return result
    kept = _Kept(may)
    held = kept.of(result.envelope.get("result"))
    if held is _GONE:
        raise InputError("this result is about a session that may not be shown")
    given = result.envelope.get("warnings")
    warnings = [w for w in given if not kept.within(w)] if isinstance(given, list) else []
    if kept.left_out:
        what = "passage is" if kept.left_out == 1 else "passages are"
        warnings.append(f"{kept.left_out} {what} left out: about sessions that may not be shown")
    envelope = {**result.envelope, "result": held, "warnings": warnings}
    return msgspec.structs.replace(result, envelope=envelope)


class Names:
    """Finds the ids of sessions that may not be shown in what programs say."""

    def __init__(self, may: Permission) -> None:
        self._denied = may.denied

    def within(self, text: object) -> bool:
        """Whether a text is, or holds, the id of such a session."""
        if not isinstance(text, str) or not self._denied:
            return False
        words = BREAKS.split(text)
        return text in self._denied or any(w.rstrip(".") in self._denied or w in self._denied for w in words) or any(
            odd in text for odd in self._odd
        )  # fmt: skip

    @cached_property
    def _odd(self) -> list[str]:
        """Ids that no splitting into words would find."""
        return [ident for ident in self._denied if ident and (BREAKS.search(ident) or ident.endswith("."))]


class _Kept(Names):
    def __init__(self, may: Permission) -> None:
        super().__init__(may)
        self.left_out = 0

    def of(self, value: Any) -> Any:
        """What may be shown of a value; `_GONE` for an object that stands beside such an id."""
        if isinstance(value, dict):
            if any(isinstance(v, str) and v in self._denied for v in value.values()):
                self.left_out += 1
                return _GONE
            inside = {k: self.of(v) for k, v in value.items() if k not in self._denied}
            self.left_out += len(value) - len(inside)
            return {k: None if v is _GONE else v for k, v in inside.items()}
        if isinstance(value, list):
            some = [v for v in value if not (isinstance(v, str) and v in self._denied)]
            return [made for v in some if (made := self.of(v)) is not _GONE]
        return value
