"""Whose turn it is to write to a store in a bucket, and what the newest state is: the object ``head``.

Everything else in the bucket is written once under a name of its own. `head` says which of it counts, and is only
ever written in the place of the `head` that its writer knew (a conditional request). Whoever takes the turn replaces
it, so that one who was slow, paused or cut off cannot publish any more, whatever its clock says: the time in it only
says how long others wait before they take the turn from a writer that has gone silent.
"""

from __future__ import annotations

import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec

from seatrial.canon import canonical
from seatrial.errors import StoreError
from seatrial.store.bucket import Bucket

KEY = "head"
LEASE_S = 60.0
"""Seconds after which a silent writer has lost its turn."""

WAIT_S = 150.0


class Head(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What counts. `segments` are the objects that hold the version log's lines, in order; `number` is how many
    lines. `bases` gives, by table, the Delta version whose checkpoint its log begins with. `erasures` counts erasures,
    after each of which other machines drop what they hold of what is gone; `erasing`: one has begun.

    `holder` writes, and others wait for it `until` then (seconds since the epoch). `nonce` tells two heads apart.
    """

    format: int = 1
    number: int = 0
    segments: tuple[str, ...] = ()
    bases: dict[str, int] = {}
    erasures: int = 0
    erasing: bool = False
    holder: str | None = None
    until: float = 0.0
    nonce: str = ""


class Overtaken(StoreError):
    """Another machine took the turn to write before this one could publish; nothing of it was published."""


class Lease:
    """The turn to write, for one process. Re-entrant; its caller holds the machine's own lock."""

    def __init__(self, bucket: Bucket, *, lease: float = LEASE_S, wait: float = WAIT_S) -> None:
        self._bucket = bucket
        self._me = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
        self._length = lease
        self._wait = wait
        self._guard = threading.RLock()
        self._depth = 0
        self._tag: str | None = None
        self._ended = threading.Event()
        self.head = Head()

    @property
    def held(self) -> bool:
        """Whether this process has the turn."""
        return self._depth > 0

    def read(self) -> Head:
        """The newest head; while the turn is held, what this process wrote last."""
        with self._guard:
            if not self.held:
                self._read()
            return self.head

    @contextmanager
    def turn(self, begun: Callable[[], None]) -> Iterator[None]:
        """Have the turn inside a ``with`` block; `begun` is called when it is newly had.

        Raises:
            StoreError: another machine kept it for too long.
        """
        if self._depth == 0:
            self._take()
            self._depth = 1
            self._ended = threading.Event()
            beat = threading.Thread(target=self._beat, args=(self._ended,), daemon=True)
            beat.start()
            try:
                begun()
                yield
            finally:
                self._ended.set()
                beat.join()
                self._depth = 0
                self._give_back()
            return
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1

    def publish(self, change: Callable[[Head], Head]) -> None:
        """Write the next head.

        Raises:
            Overtaken: the turn was lost.
        """
        with self._guard:
            if not self._swap(change(self.head)):
                raise self._overtaken()

    def sure(self) -> None:
        """Make sure that the turn is still had, and long enough for a request.

        Raises:
            Overtaken: it is not.
        """
        self.publish(lambda head: msgspec.structs.replace(head, until=time.time() + self._length))

    def _read(self) -> None:
        found = self._bucket.changed(KEY, self._tag)
        if found is not None:
            try:
                self.head = msgspec.json.decode(found.data, type=Head)
            except msgspec.DecodeError as error:
                raise StoreError(f"the object head is damaged: {error}", file=self._bucket.url) from error
            if self.head.format != 1:
                raise StoreError(
                    f"the store has layout {self.head.format}, this seatrial knows 1", file=self._bucket.url
                )
            self._tag = found.tag

    def _take(self) -> None:
        deadline = time.monotonic() + self._wait
        pause = 0.05
        while True:
            with self._guard:
                self._read()
                free = self.head.holder is None or self.head.until < time.time()
                if free and self._swap(
                    msgspec.structs.replace(self.head, holder=self._me, until=time.time() + self._length)
                ):
                    return
            if time.monotonic() > deadline:
                raise StoreError(
                    f"{self.head.holder or 'another machine'} has been writing to the store for {self._wait:g} s",
                    file=self._bucket.url,
                    hint="wait for it to finish, or end it, and run this again",
                )
            time.sleep(pause * (0.5 + secrets.randbelow(1000) / 1000))
            pause = min(pause * 1.5, 1.0)

    def _swap(self, head: Head) -> bool:
        """Put a head in the place of the one that is known; False when another one was there."""
        assert self._tag is not None
        head = msgspec.structs.replace(head, nonce=secrets.token_hex(8))
        tag = self._bucket.replace(KEY, canonical(head), self._tag)
        if tag is None:
            # A request that was sent again after its answer got lost meets what it wrote itself.
            found = self._bucket.get(KEY)
            if found is None or found.data != canonical(head):
                return False
            tag = found.tag
        self.head, self._tag = head, tag
        return True

    def _beat(self, ended: threading.Event) -> None:
        """Keep the turn as long as its holder lives."""
        while not ended.wait(self._length / 3):
            try:
                self.sure()
            except StoreError:
                if ended.wait(self._length / 20):
                    return

    def _give_back(self) -> None:
        try:
            self.publish(lambda head: msgspec.structs.replace(head, holder=None, until=0.0))
        except StoreError:
            return  # it lapses, or another one has it

    def _overtaken(self) -> Overtaken:
        return Overtaken(
            "another machine took over writing to the store, because this one had been silent for too long",
            file=self._bucket.url,
            hint="run this again: what was not committed is done anew",
        )
