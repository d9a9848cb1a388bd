"""Requests to the spool, and the one committer that takes them from there into the store."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator

import msgspec

from seatrial.canon import digest
from seatrial.errors import FormatError, SeatrialError
from seatrial.ingest.spans import Span
from seatrial.intake.assignments import Assignments
from seatrial.intake.live import Live
from seatrial.server.body import Refused
from seatrial.server.conversations import Conversations, sessions_of
from seatrial.server.otlp import decode
from seatrial.server.settings import ServerSettings
from seatrial.server.spool import Encoding, Entry, Request, Spool
from seatrial.store import Store, expire

SPOOL = "spool"
"""The spool's folder in the store."""

_CHUNK_BYTES = 32 * 1024 * 1024
_CHUNK_CONVERSATIONS = 128
_TICK_S = 0.2
_EXPIRE_S = 3600.0
_LONGEST = 10
"""A conversation that never falls quiet is committed after so many times `commit_after`."""


class Counts(msgspec.Struct, kw_only=True):
    """What a receiver did since it began. `repeated` requests had a body that is in the spool already."""

    requests: int = 0
    repeated: int = 0
    spans: int = 0
    rejected_spans: int = 0
    sessions_added: int = 0
    sessions_replaced: int = 0
    without_agent: int = 0
    recovered: int = 0
    damaged: int = 0


class Receiver:
    """Takes requests from any number of threads. `say` is told, in one line each, what goes wrong.

    Raises:
        StoreError: another receiver runs on this store.
        MissingExtra: the spool holds protobuf, and the extra ``[otel]`` is not installed.
    """

    def __init__(
        self,
        store: Store,
        settings: ServerSettings = ServerSettings(),
        *,
        redact: bool = True,
        assignments: Assignments | None = None,
        user: str | None = None,
        retention_days: int | None = None,
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.counts = Counts()
        self._settings = settings
        self._say = say
        self._store = store
        self._retention_days = retention_days
        self._expired_at = -math.inf
        self._live = Live(store, redact=redact, assignments=assignments, user=user)
        self._conversations = Conversations()
        self._decoding = threading.Lock()
        self._stopping = threading.Event()
        self._spool = Spool(store.path / SPOOL, segment_age=max(settings.settle_after / 4, 1.0))
        try:
            self._recover()
        except BaseException:
            self._spool.close()
            raise
        self._committer = threading.Thread(target=self._run, name="committer", daemon=True)
        self._committer.start()

    def _recover(self) -> None:
        for entry, request in self._spool.found():
            try:
                spans = decode(request.body, request.encoding).spans
            except FormatError as error:
                self._say(f"a spooled request cannot be read any more: {error}")
                self.counts.damaged += 1
                continue
            self._conversations.add(entry, sessions_of(spans), request.time)
            self.counts.recovered += 1
        if self._spool.damaged:
            self.counts.damaged += self._spool.damaged
            self._say(f"{self._spool.damaged} damaged places in the spool were stepped over")

    def receive(self, body: bytes, encoding: Encoding) -> int:
        """Keep a request. When this returns it is on disk; how many of its spans were rejected.

        Raises:
            FormatError: it is no trace request.
            MissingExtra: protobuf, and the extra ``[otel]`` is not installed.
            OSError: it could not be written.
            Refused: the spool is full.
        """
        with self._decoding:
            decoded = decode(body, encoding)
            n, rejected, traces = len(decoded.spans), decoded.rejected, sessions_of(decoded.spans)
            del decoded
        self.counts.requests += 1
        self.counts.rejected_spans += rejected
        if not traces:
            return rejected
        if self._conversations.has(digest(body)):
            self.counts.repeated += 1
            return rejected
        if self._spool.size + len(body) > self._settings.max_spool:
            raise Refused(503, "the spool is full", retry_after=10)
        now = time.time()
        entry = self._spool.put(Request(encoding=encoding, body=body, time=now))
        self._conversations.add(entry, traces, now)
        self._spool.noted(entry)
        self.counts.spans += n
        return rejected

    def status(self) -> dict[str, object]:
        """How it is doing: counts, bytes in the spool, seconds that the oldest uncommitted span has waited."""
        since = self._conversations.waiting()
        return {
            **msgspec.to_builtins(self.counts),
            "open_conversations": len(self._conversations),
            "spool_bytes": self._spool.size,
            "waiting_s": 0.0 if since is None else round(max(time.time() - since, 0.0), 3),
            "problems": self._conversations.problems(),
        }

    def close(self, *, empty: bool = False) -> None:
        """Commit what waits, and let the spool go. Nothing is lost if this is never called.

        With `empty`, nothing stays in the spool: not what open conversations may yet need, nor what could not be kept.
        """
        self._stopping.set()
        self._committer.join()
        try:
            self._commit(quiet=0.0)
            if empty:
                self._spool.clear()
        finally:
            self._spool.close()

    # Committing

    def _run(self) -> None:
        pause = _TICK_S
        while not self._stopping.wait(pause):
            try:
                self._commit(quiet=self._settings.commit_after)
                self._settle()
                self._expire()
                pause = _TICK_S
            except (SeatrialError, OSError) as error:
                self._say(f"not committed yet, trying again: {error}")
                pause = min(pause * 2, 10.0)

    def _commit(self, *, quiet: float) -> None:
        now = time.time()
        due = self._conversations.due(now, quiet, quiet * _LONGEST)
        pending = iter(list(_chunks(due)))
        for chunk in pending:
            try:
                result = self._live.keep(self._spans(chunk))
            except BaseException:
                for left in (chunk, *pending):
                    for _, trace_ids in left:
                        self._conversations.undone(trace_ids, now, None)
                raise
            for at, why in result.failed.items():
                self._conversations.undone(chunk[at][1], now, why)
                self._say(f"a conversation could not be kept (its spans stay in the spool): {why}")
            self.counts.sessions_added += result.added
            self.counts.sessions_replaced += result.replaced
            self.counts.without_agent += result.without_agent

    def _spans(self, chunk: list[_Due]) -> list[list[Span]]:
        """All spans at hand of each conversation; a request is decoded once, whoever it belongs to."""
        groups: list[list[Span]] = [[] for _ in chunk]
        owner = {trace_id: at for at, (_, trace_ids) in enumerate(chunk) for trace_id in trace_ids}
        entries = {entry for wanted, _ in chunk for entry in wanted}
        for entry in sorted(entries, key=lambda e: (e.segment, e.offset)):
            request = self._spool.read(entry)
            for span in decode(request.body, request.encoding).spans:
                at = owner.get(span.trace_id)
                if at is not None:
                    groups[at].append(span)
        return groups

    def _expire(self) -> None:
        now = time.monotonic()
        if self._retention_days is not None and now - self._expired_at > _EXPIRE_S:
            self._expired_at = now
            done = expire(self._store, self._retention_days)
            if done is not None:
                self._say(f"{len(done.sessions)} sessions were kept for {self._retention_days} days and are erased")

    def _settle(self) -> None:
        settings = self._settings
        crowded = self._spool.size > settings.max_spool * 3 // 4
        oldest = len(self._conversations) // 2 + 1 if crowded else 0
        if crowded:
            self._spool.rotate()
        for segment in self._conversations.settle(
            time.time(), settings.settle_after, settings.max_session, oldest=oldest
        ):
            if self._spool.drop(segment):
                self._conversations.forget(segment)


def drain(store: Store, *, redact: bool = True) -> list[str]:
    """Commit what a receiver left in the spool and empty it; returns what could not be kept, and is gone.

    Raises:
        StoreError: a receiver is running on this store.
    """
    if not (store.path / SPOOL).is_dir():
        return []
    receiver = Receiver(store, redact=redact)
    try:
        receiver.close(empty=True)
    finally:
        problems = receiver.status()["problems"]
    return problems if isinstance(problems, list) else []


_Due = tuple[list[Entry], frozenset[str]]


def _chunks(due: list[_Due]) -> Iterator[list[_Due]]:
    chunk: list[_Due] = []
    size = 0
    for one in due:
        more = sum(entry.size for entry in one[0])
        if chunk and (size + more > _CHUNK_BYTES or len(chunk) >= _CHUNK_CONVERSATIONS):
            yield chunk
            chunk, size = [], 0
        chunk.append(one)
        size += more
    if chunk:
        yield chunk


__all__ = ["SPOOL", "Counts", "Receiver", "drain"]
