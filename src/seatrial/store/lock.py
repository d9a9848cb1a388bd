"""One writer at a time: an advisory lock that several processes and threads share."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
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


class Lock:
    """Re-entrant in its thread, exclusive between threads and processes.

    The operating system drops the lock when its process dies, so a crash leaves nothing to clean up.
    """

    def __init__(self, path: Path, timeout: float) -> None:
        self._path = path
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
        deadline = time.monotonic() + self._timeout
        pause = 0.005
        while True:
            try:
                _try_lock(fd)
                return fd
            except OSError:
                if time.monotonic() >= deadline:
                    os.close(fd)
                    raise StoreError(
                        f"another process has been writing to the store for {self._timeout:.0f} s",
                        file=str(self._path.parent),
                        hint="wait for it to finish, or end it, and run this again",
                    ) from None
                time.sleep(pause)
                pause = min(pause * 1.5, 0.1)
