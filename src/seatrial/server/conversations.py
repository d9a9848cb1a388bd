"""Which spooled requests belong to which conversation, and what is to be done about each: an index, no content.

Spans belong together by their trace id, and trace ids by the session that their spans name.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping

from seatrial.ingest.span_fields import SESSION, text_at
from seatrial.ingest.spans import Span
from seatrial.server.spool import Entry


def sessions_of(spans: Iterable[Span]) -> dict[str, set[str]]:
    """The trace ids of some spans, and the sessions that each trace's spans name."""
    traces: dict[str, set[str]] = {}
    for span in spans:
        names = traces.setdefault(span.trace_id, set())
        if (name := text_at(span.attributes, SESSION)) is not None:
            names.add(name)
    return traces


class Conversation:
    """Trace ids that belong together, and the requests that hold their spans, in order of arrival."""

    def __init__(self) -> None:
        self.trace_ids: set[str] = set()
        self.names: set[str] = set()
        self.entries: dict[Entry, None] = {}
        self.bytes = 0
        self.last = 0.0
        self.waiting_since: float | None = None
        self.failed: str | None = None


class Conversations:
    """The open conversations. Safe between threads."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._by_trace: dict[str, Conversation] = {}
        self._by_name: dict[str, Conversation] = {}
        self._users: dict[int, int] = {}
        self._digests: dict[str, int] = {}

    def __len__(self) -> int:
        return len({id(c) for c in self._by_trace.values()})

    def has(self, digest: str) -> bool:
        """Whether a request with that body is in the spool."""
        with self._guard:
            return digest in self._digests

    def add(self, entry: Entry, traces: Mapping[str, set[str]], now: float) -> None:
        """A request that is in the spool, with the traces in it (`sessions_of`)."""
        with self._guard:
            self._digests[entry.digest] = entry.segment
            self._users.setdefault(entry.segment, 0)
            for trace_id, names in traces.items():
                found = self._merged(trace_id, names)
                if entry not in found.entries:
                    found.entries[entry] = None
                    found.bytes += entry.size
                    self._users[entry.segment] += 1
                found.last = max(found.last, now)
                found.waiting_since = now if found.waiting_since is None else found.waiting_since

    def _merged(self, trace_id: str, names: set[str]) -> Conversation:
        there = [self._by_trace.get(trace_id), *(self._by_name.get(n) for n in sorted(names))]
        met = list({id(c): c for c in there if c is not None}.values())
        into = met[0] if met else Conversation()
        for other in met[1:]:
            for entry in other.entries:
                if entry in into.entries:
                    self._users[entry.segment] -= 1
                else:
                    into.bytes += entry.size
                into.entries[entry] = None
            into.entries = dict.fromkeys(sorted(into.entries, key=lambda e: (e.segment, e.offset)))
            into.last = max(into.last, other.last)
            self._register(into, other.trace_ids, other.names)
        self._register(into, {trace_id}, names)
        return into

    def _register(self, into: Conversation, trace_ids: set[str], names: set[str]) -> None:
        into.trace_ids |= trace_ids
        into.names |= names
        self._by_trace |= dict.fromkeys(trace_ids, into)
        self._by_name |= dict.fromkeys(names, into)

    def waiting(self) -> float | None:
        """When the oldest span came that is not committed yet (seconds); None when all are."""
        with self._guard:
            return min((c.waiting_since for c in self._by_trace.values() if c.waiting_since is not None), default=None)

    def due(self, now: float, quiet: float, longest: float) -> list[tuple[list[Entry], frozenset[str]]]:
        """Conversations with new spans that have been quiet for `quiet` seconds, or waited for `longest`:
        their requests and trace ids. They count as committed from now on; `failed` takes that back.
        """
        out = []
        with self._guard:
            for found in {id(c): c for c in self._by_trace.values()}.values():
                since = found.waiting_since
                if since is None or (now - found.last < quiet and now - since < longest):
                    continue
                found.waiting_since = None
                found.failed = None
                out.append((list(found.entries), frozenset(found.trace_ids)))
        return out

    def undone(self, trace_ids: frozenset[str], now: float, why: str | None) -> None:
        """A conversation that was due could not be committed: because of itself (`why`), or for now (None)."""
        with self._guard:
            for found in {id(c): c for t in trace_ids if (c := self._by_trace.get(t)) is not None}.values():
                if why is None:
                    found.waiting_since = found.waiting_since or now
                found.failed = why

    def settle(self, now: float, quiet: float, largest: int, *, oldest: int = 0) -> list[int]:
        """Forget committed conversations that have been quiet for `quiet` seconds, have more than `largest` bytes,
        or are among the `oldest` committed ones; returns the segments that nothing needs any more.
        """
        with self._guard:
            done = [c for c in {id(c): c for c in self._by_trace.values()}.values()
                    if c.waiting_since is None and c.failed is None]  # fmt: skip
            done.sort(key=lambda c: c.last)
            for at, found in enumerate(done):
                if now - found.last < quiet and found.bytes <= largest and at >= oldest:
                    continue
                for entry in found.entries:
                    self._users[entry.segment] -= 1
                for trace_id in found.trace_ids:
                    del self._by_trace[trace_id]
                for name in found.names:
                    del self._by_name[name]
            return sorted(segment for segment, users in self._users.items() if users == 0)

    def forget(self, segment: int) -> None:
        """A segment is gone, and with it the memory of its requests."""
        with self._guard:
            self._users.pop(segment, None)
            for digest in [d for d, s in self._digests.items() if s == segment]:
                del self._digests[digest]

    def problems(self) -> list[str]:
        """Why conversations could not be kept."""
        with self._guard:
            return sorted({c.failed for c in self._by_trace.values() if c.failed is not None})
