"""Stored results to the records that they were made from; one that another version made is said to be so."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from seatrial.errors import InputError, UsageError
from seatrial.records import Estimate, Ranking
from seatrial.report.text import clean, clip
from seatrial.server import withheld
from seatrial.store import Permission, ResultHead, Store, StoredResult

T = TypeVar("T")


def choose(heads: list[ResultHead], wanted: str) -> ResultHead | None:
    """The result that is asked for, or the newest; None where there is none at all.

    Raises:
        InputError: the one that is asked for is not there.
    """
    if not wanted:
        return heads[0] if heads else None
    found = next((h for h in heads if h.id == wanted), None)
    if found is None:
        raise InputError(
            f"there is no {clip(clean(wanted), 60)} here", hint="it may be gone: choose from the page itself"
        )
    return found


def read(store: Store, ident: str, may: Permission) -> StoredResult:
    """A result with its envelope, and nothing in it of sessions that may not be shown.

    Raises:
        InputError: there is none of that id, or it is about such a session.
    """
    return withheld.without(store.result(ident), may)


def as_record(result: StoredResult, kind: type[T], within: str | None = None) -> T:
    """What a result holds, as a record.

    Raises:
        UsageError: another version of seatrial made it, and it does not fit any more.
    """
    held: Any = result.envelope.get("result")
    if within is not None and isinstance(held, dict):
        held = held.get(within)
    try:
        made: T = _revived(msgspec.convert(held, kind))
        return made
    except msgspec.ValidationError as error:
        raise UsageError(
            f"this result was made by seatrial {result.envelope.get('seatrial')} and cannot be shown: {error}",
            hint="run its command again",
        ) from error


_ESTIMATE = frozenset(f.encode_name for f in msgspec.structs.fields(Estimate) if f.required)


def _revived(value: Any) -> Any:
    """A record with estimates wherever commands put them: fields that may hold anything come back as plain objects."""
    if isinstance(value, msgspec.Struct):
        fields = {name: getattr(value, name) for name in value.__struct_fields__}
        changed = {name: new for name, old in fields.items() if (new := _revived(old)) is not old}
        return msgspec.structs.replace(value, **changed) if changed else value
    if isinstance(value, dict):
        if value.keys() >= _ESTIMATE:
            return msgspec.convert(value, Estimate)
        made = {k: _revived(v) for k, v in value.items()}
        return made if any(made[k] is not v for k, v in value.items()) else value
    if isinstance(value, list | tuple):
        some = [_revived(v) for v in value]
        return type(value)(some) if any(a is not b for a, b in zip(some, value, strict=True)) else value
    return value


def is_ranking(result: StoredResult) -> bool:
    """Whether it ranks models (``rank --plan`` only plans)."""
    held = result.envelope.get("result")
    return isinstance(held, dict) and "models" in held and "design" in held


def ranking(result: StoredResult) -> Ranking:
    """A ranking."""
    return as_record(result, Ranking)
