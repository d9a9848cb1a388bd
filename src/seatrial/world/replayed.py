"""What worlds without a copy of their state have in common: a snapshot is the start and the actions since."""

from __future__ import annotations

from typing import Any

import msgspec

from seatrial.errors import InputError
from seatrial.records import Snapshot, ToolResult
from seatrial.world.toolbox import check_origin


class Past(msgspec.Struct, frozen=True):
    """All that a deterministic environment's present follows from."""

    start: dict[str, Any]
    seed: int
    actions: tuple[Any, ...]


def pack(past: Past, name: str, version: str, state_hash: str) -> Snapshot:
    """The snapshot."""
    return Snapshot(world=name, version=version, state_hash=state_hash, data=msgspec.msgpack.encode(past))


def unpack(snapshot: Snapshot, name: str, version: str) -> Past:
    """The past that `snapshot` holds.

    Raises:
        InputError: it is of another world or version, or damaged.
    """
    check_origin(snapshot, name, version)
    try:
        return msgspec.msgpack.decode(snapshot.data, type=Past)
    except msgspec.DecodeError as error:
        raise InputError(f"snapshot of {snapshot.world} is damaged: {error}", hint="take it again") from error


def verify(snapshot: Snapshot, state_hash: str) -> None:
    """Refuse an environment that did not come back to the same state.

    Raises:
        InputError: the replayed state has another hash.
    """
    if state_hash != snapshot.state_hash:
        raise InputError(
            f"{snapshot.world} is not deterministic: the same actions led to another state",
            hint="give it a seed, or do not branch in it",
        )


def over(call_id: str) -> ToolResult:
    """The result of acting in an episode that has ended."""
    text = "the episode has ended; nothing happens any more"
    return ToolResult(call_id=call_id, outcome="error", text=text, extra={"cause": "model", "seconds": 0.0})
