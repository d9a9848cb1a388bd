"""What writers could not hold: the record of a loss, of a document with its losses, and how parts are compared."""

from __future__ import annotations

from typing import Any

import msgspec


class Loss(msgspec.Struct, frozen=True, kw_only=True):
    """Something that does not come back: `where` is the part (``steps[3]``), `fields` what of it, and why."""

    where: str
    fields: tuple[str, ...]
    why: str


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """A document, and what it could not hold."""

    document: dict[str, Any]
    losses: tuple[Loss, ...]


def same(field: str, a: Any, b: Any) -> bool:
    """Whether a field of a step came back; of its results all but `extra`, which is compared apart."""
    if field == "results":
        return len(a) == len(b) and all(
            msgspec.structs.replace(x, extra={}) == msgspec.structs.replace(y, extra={})
            for x, y in zip(a, b, strict=True)
        )
    return bool(a == b)
