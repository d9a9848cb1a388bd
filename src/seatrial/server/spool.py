"""The spool: a checksummed log of requests as they came, on disk before anyone is told that they were received.

A folder of segments that are only appended to. Requests that arrive together share one write and one fsync. A
segment is removed once nothing in it is needed any more. A torn end, of a request that nobody was told about, is cut
off when the spool is opened again; damage in the middle of a segment is stepped over and counted.
"""

from __future__ import annotations

import math
import os
import queue
import threading
import time
import zlib
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from seatrial.canon import canonical, digest
from seatrial.errors import StoreError
from seatrial.store.durable import sync_path
from seatrial.store.lock import Lock

Encoding = Literal["json", "protobuf"]

_MARK = b"STSPOOL1"
_HEAD = len(_MARK) + 8 + 32
SEGMENT_BYTES = 8 * 1024 * 1024
_BATCH_BYTES = 32 * 1024 * 1024
_LOCK_TIMEOUT_S = 2.0


class Entry(msgspec.Struct, frozen=True):
    """Where a request lies: segment number, first byte and length of its record; sha256 and size of its body."""

    segment: int
    offset: int
    length: int
    digest: str
    size: int


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A request's body, decompressed, how it is encoded, and when it came (seconds)."""

    encoding: Encoding
    body: bytes
    time: float


class _Head(msgspec.Struct, frozen=True):
    encoding: Encoding
    time: float
    digest: str
    size: int


class _Item(NamedTuple):
    record: bytes
    digest: str
    size: int
    done: Future[Entry]


class Spool:
    """One process has it open at a time.

    Raises:
        StoreError: another process has it open, or it cannot be written.
    """

    def __init__(self, folder: Path, *, segment_bytes: int = SEGMENT_BYTES, segment_age: float = 900.0) -> None:
        self.folder = folder
        self.damaged = 0
        self._segment_bytes = segment_bytes
        self._segment_age = segment_age
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        sync_path(folder.parent)
        self._lock = Lock(folder / "lock", _LOCK_TIMEOUT_S)
        try:
            self._lock.acquire()
        except StoreError as error:
            raise StoreError("another process has the spool open", file=str(folder), hint="stop it first") from error
        self._sizes: dict[int, int] = {}
        self._unnoted: dict[int, int] = {}
        self._guard = threading.Lock()
        self._queue: queue.Queue[_Item | None] = queue.Queue()
        self._fd = -1
        self._active = 0
        self._begun = 0.0
        self._closed = False
        self._found = list(self._recover())
        self._writer = threading.Thread(target=self._write, name="spool", daemon=True)
        self._writer.start()

    @property
    def size(self) -> int:
        """Bytes on disk."""
        with self._guard:
            return sum(self._sizes.values())

    def found(self) -> Iterator[tuple[Entry, Request]]:
        """The requests that were there when the spool was opened, oldest first; one in memory at a time."""
        found, self._found = self._found, []
        for entry in found:
            yield entry, self.read(entry)

    def put(self, request: Request) -> Entry:
        """Keep a request; when this returns it is on disk. Its segment stays until the caller has `noted` it.

        Raises:
            OSError: it is not (the disk is full, say).
            StoreError: the spool is closed.
        """
        done: Future[Entry] = Future()
        name = digest(request.body)
        head = canonical(_Head(request.encoding, request.time, name, len(request.body)))
        payload = len(head).to_bytes(4, "big") + head + zlib.compress(request.body, 1)
        seal = bytes.fromhex(digest(payload))
        with self._guard:
            if self._closed:
                raise StoreError("the spool is closed", file=str(self.folder))
            record = b"".join((_MARK, len(payload).to_bytes(8, "big"), seal, payload))
            self._queue.put(_Item(record, name, len(request.body), done))
        return done.result()

    def read(self, entry: Entry) -> Request:
        """A request that was kept.

        Raises:
            StoreError: it is gone or damaged.
        """
        try:
            with open(self._path(entry.segment), "rb") as stream:
                stream.seek(entry.offset)
                payload = _payload(stream.read(entry.length))
        except OSError as error:
            raise StoreError(f"the spool cannot be read: {error}", file=str(self.folder)) from error
        if payload is None:
            raise StoreError("a spooled request is damaged", file=str(self._path(entry.segment)))
        head, start = _head(payload)
        return Request(encoding=head.encoding, body=zlib.decompress(payload[start:]), time=head.time)

    def noted(self, entry: Entry) -> None:
        """The caller has written down that it needs this request, so that it will not drop it by mistake."""
        with self._guard:
            self._unnoted[entry.segment] -= 1

    def drop(self, segment: int) -> bool:
        """Remove a segment that nothing needs any more; False for one that is being written to."""
        with self._guard:
            if (segment == self._active and self._fd >= 0) or self._unnoted.get(segment):
                return False
            self._unnoted.pop(segment, None)
            self._sizes.pop(segment, None)
        self._path(segment).unlink(missing_ok=True)
        return True

    def clear(self) -> None:
        """Remove every segment. Whoever still wants to put something must wait until this is done."""
        with self._guard:
            if self._fd >= 0:
                os.close(self._fd)
                self._fd = -1
            for path in self.folder.glob("*.spool"):
                path.unlink()
            self._sizes.clear()
            self._unnoted.clear()
        sync_path(self.folder)

    def rotate(self) -> None:
        """Let the next request begin a new segment, so that the present one can be dropped."""
        with self._guard:
            self._begun = -math.inf

    def close(self) -> None:
        """Finish what is being written and let another process have the spool."""
        with self._guard:
            if self._closed:
                return
            self._closed = True
            self._queue.put(None)
        self._writer.join()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        self._lock.release()

    # Writing

    def _write(self) -> None:
        while True:
            batch = [self._queue.get()]
            size = 0
            while size < _BATCH_BYTES and not self._queue.empty():
                item = self._queue.get_nowait()
                batch.append(item)
                size += 0 if item is None else len(item.record)
            items = [item for item in batch if item is not None]
            if items:
                self._together(items)
            if None in batch:
                return

    def _together(self, items: list[_Item]) -> None:
        at = -1
        try:
            at = self._open_segment()
            entries = []
            offset = at
            for item in items:
                _write_all(self._fd, item.record)
                entries.append(Entry(self._active, offset, len(item.record), item.digest, item.size))
                offset += len(item.record)
            os.fsync(self._fd)
        except OSError as error:
            self._give_up(at)
            for item in items:
                item.done.set_exception(error)
            return
        with self._guard:
            self._sizes[self._active] = offset
            self._unnoted[self._active] = self._unnoted.get(self._active, 0) + len(items)
        for item, entry in zip(items, entries, strict=True):
            item.done.set_result(entry)

    def _give_up(self, at: int) -> None:
        """A write failed: take back what it left, and go on in a new segment."""
        if self._fd < 0:
            return
        try:
            if at >= 0:
                os.ftruncate(self._fd, at)
            os.close(self._fd)
        except OSError:
            pass  # what is left is no whole record, or one that nobody was told about
        self._fd = -1

    def _open_segment(self) -> int:
        """The active segment's end, after making a new one where the old is full or old."""
        now = time.monotonic()
        with self._guard:
            full = self._sizes.get(self._active, 0) >= self._segment_bytes
            old = self._sizes.get(self._active, 0) > 0 and now - self._begun > self._segment_age
            if self._fd >= 0 and not full and not old:
                return self._sizes[self._active]
            if self._fd >= 0:
                os.close(self._fd)
                self._fd = -1
            number = self._active + 1
            self._fd = os.open(self._path(number), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
            self._active, self._begun = number, now
            self._sizes[number] = 0
        sync_path(self.folder)
        return 0

    # Opening

    def _path(self, segment: int) -> Path:
        return self.folder / f"{segment:012d}.spool"

    def _recover(self) -> Iterator[Entry]:
        numbers = sorted(int(p.stem) for p in self.folder.glob("*.spool") if p.stem.isdigit())
        for number in numbers:
            path = self._path(number)
            whole = 0
            for entry in self._entries(number):
                yield entry
                whole = entry.offset + entry.length
            if whole < path.stat().st_size:
                with open(path, "r+b") as stream:
                    stream.truncate(whole)
                    os.fsync(stream.fileno())
            if whole:
                self._sizes[number] = whole
            else:
                path.unlink()
        self._active = numbers[-1] if numbers else 0

    def _entries(self, number: int) -> Iterator[Entry]:
        with open(self._path(number), "rb") as stream:
            data = stream.read()  # a segment is a few MiB, or one large request
        at, bad = 0, 0
        while (at := data.find(_MARK, at)) >= 0:
            length = _HEAD + int.from_bytes(data[at + len(_MARK) : at + len(_MARK) + 8], "big")
            payload = _payload(data[at : at + length])
            if payload is None:
                bad += 1
                at += 1
                continue
            self.damaged += bad
            bad = 0
            head, _ = _head(payload)
            yield Entry(number, at, length, head.digest, head.size)
            at += length


def _payload(record: bytes) -> bytes | None:
    """The payload of a whole and sound record; None for anything else."""
    size = int.from_bytes(record[len(_MARK) : len(_MARK) + 8], "big")
    if record[: len(_MARK)] != _MARK or len(record) != _HEAD + size:
        return None
    payload = record[_HEAD:]
    return payload if bytes.fromhex(digest(payload)) == record[_HEAD - 32 : _HEAD] else None


def _head(payload: bytes) -> tuple[_Head, int]:
    end = 4 + int.from_bytes(payload[:4], "big")
    return msgspec.json.decode(payload[4:end], type=_Head), end


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
