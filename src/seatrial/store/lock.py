"""One writer at a time: an advisory lock that several processes and threads share."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from seatrial.errors import StoreError

if sys.platform == "win32":
    import msvcrt

    def _try_lock(fd: int) -> None:
        msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)

    def _unlock(fd: int) -> None:
        msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _try_lock(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _unlock(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_UN)


SAY_AFTER_S = 1.0
"""Seconds of waiting after which that is said, once."""


def _say(text: str) -> None:
    sys.stderr.write(f"seatrial: {text}\n")
    sys.stderr.flush()


class Lock:
    """Re-entrant in its thread, exclusive between threads and processes.

    The operating system drops the lock when its process dies, so a crash leaves nothing to clean up. `say` is told
    that another one is waited for, once that takes long (one line on standard error).
    """

    def __init__(self, path: Path, timeout: float, *, say: Callable[[str], None] = _say) -> None:
        self._path = path
        self._say = say
        self._timeout = timeout
        self._threads = threading.RLock()
        self._depth = 0
        self._fd = -1

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the lock inside a ``with`` block.

        Raises:
            StoreError: another process held it for longer than the timeout (seconds).
        """
        with self._threads:
            if self._depth == 0:
                self._fd = self._acquire()
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1
                if self._depth == 0:
                    self._let_go()

    def acquire(self) -> None:
        """Hold the lock from now on, whichever thread: for one that is held as long as its owner lives.

        Raises:
            StoreError: another process held it for longer than the timeout (seconds).
        """
        self._fd = self._acquire()

    def release(self) -> None:
        """End what `acquire` began."""
        self._let_go()

    def _let_go(self) -> None:
        _unlock(self._fd)
        os.close(self._fd)
        self._fd = -1

    def _acquire(self) -> int:
        try:
            fd = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise StoreError(
                f"the store cannot be written: {error.strerror}", file=str(self._path.parent), hint="check permissions"
            ) from error
        began = time.monotonic()
        deadline = began + self._timeout
        pause, said = 0.005, False
        while True:
            try:
                _try_lock(fd)
                return fd
            except OSError:
                now = time.monotonic()
                if not said and now - began >= SAY_AFTER_S:
                    said = True
                    self._say(
                        f"waiting for another process that writes to {self._path.parent} (up to {self._timeout:g} s)"
                    )
                if now >= deadline:
                    os.close(fd)
                    raise StoreError(
                        f"another process has been writing to the store for {self._timeout:g} s",
                        file=str(self._path.parent),
                        hint="wait for it to finish, or end it, and run this again",
                    ) from None
                time.sleep(pause)
                pause = min(pause * 1.5, 0.1)
