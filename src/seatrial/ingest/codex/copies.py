"""Records that a fork replays: told from the thread's own by turn ids, else by having been read before.

A fork or sub-agent file opens with its parent's records, stamped anew. Ids of threads and turns are UUIDs of
version 7, which begin with their time: a turn older than the thread belongs to an ancestor.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from seatrial.canon import content_hash
from seatrial.ingest.drafts import an_object
from seatrial.records import ReadLog

_UUID7 = re.compile(r"([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\Z")
_UNIQUE = 16
"""Ids at least this long are taken to be unique; local servers hand out ids such as ``call_1``."""

_SAID = ("type", "role", "content", "summary", "name", "arguments", "input", "output", "call_id", "action")


class Origin(NamedTuple):
    """Where a record comes from: its id, the same wherever it is replayed, and whether it is a copy here."""

    record: str
    copied: bool


class Copies:
    """Decides record by record whether it is a copy."""

    def __init__(self, log: ReadLog) -> None:
        self._log = log
        self._own: str | None = None
        self._segment: str | None = None
        self._replaying = False
        self._found = False
        self._older: bool | None = None
        self._prompts = 0
        self._ordinals: dict[str, int] = {}

    def thread(self, own: str, ancestor: str | None) -> None:
        """The thread's own id, and that of the thread whose records it begins with."""
        self._own = own
        self._segment = ancestor or own
        self._replaying = ancestor is not None

    def ancestor(self, thread: str) -> None:
        """An ancestor's header: what follows is (or was, of an older one) its own."""
        self._segment = thread
        self._replaying = True

    @property
    def replaying(self) -> bool:
        """Whether the records at hand may be an ancestor's."""
        return self._replaying

    def turn(self, turn_id: Any) -> None:
        """A turn begins."""
        began, born = _milliseconds(turn_id), _milliseconds(self._own)
        if not self._replaying or began is None or born is None:
            return
        self._older = began < born
        self._prompts = 0
        if not self._older:
            self._end()

    def turn_ended(self) -> None:
        """A turn is over: until the next begins, only what was read before tells whose a record is."""
        self._older = None

    def prompted(self) -> None:
        """A person speaks: once in a turn; a second time, the fork may have been taken inside a turn and go on."""
        self._prompts += 1
        if self._prompts > 1:
            self._older = None

    def origin(self, payload: dict[str, Any]) -> Origin:
        """The id of this record of a conversation, and whether it is an ancestor's or was read before."""
        of = an_object(payload.get("internal_chat_message_metadata_passthrough")) or an_object(payload.get("metadata"))
        if "turn_id" in of:
            self.turn(of["turn_id"])
        record = self._key(payload)
        if self._replaying and self._older:
            return Origin(record, True)
        seen = self._log.seen(record)
        if self._replaying:
            if self._found and not seen:
                self._end()
                record = self._key(payload)
                return Origin(record, self._log.seen(record))
            self._found = self._found or seen
        return Origin(record, seen)

    def _end(self) -> None:
        self._replaying = False
        self._older = None
        self._segment = self._own
        self._ordinals.clear()

    def _key(self, payload: dict[str, Any]) -> str:
        for name in ("id", "call_id"):
            given = payload.get(name)
            if isinstance(given, str) and len(given) >= _UNIQUE:
                return f"codex:{payload.get('type')}:{given}"
        said = content_hash({name: payload[name] for name in _SAID if name in payload})
        self._ordinals[said] = n = self._ordinals.get(said, 0) + 1
        return f"codex:{self._segment}:{said}:{n}"


def _milliseconds(identifier: Any) -> int | None:
    found = _UUID7.match(identifier) if isinstance(identifier, str) else None
    return int(found.group(1) + found.group(2), 16) if found else None
