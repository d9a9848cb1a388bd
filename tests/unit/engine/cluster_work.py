"""Work for the tests of the distributed engine: workers import it by name."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from seatrial.engine.choice import Engine
from seatrial.engine.local import Progress, merged
from seatrial.errors import UsageError


def total(batch: Sequence[float]) -> float:
    """A sum whose last bits depend on the order of adding."""
    out = 0.0
    for value in batch:
        out += value
    return out


def refuse(batch: Sequence[int]) -> int:
    """Fails as seatrial does."""
    raise UsageError(f"cannot do {batch[0]}")


def dies(batch: Sequence[int]) -> int:
    """Takes its process with it."""
    os._exit(9)


def marked(folder: str, fn: Callable[[Any], Any], batch: Any) -> Any:
    """Says that it has begun, works for a while, does the work, says that it is done."""
    name = "".join(c for c in str(batch) if c.isalnum())[:60]
    (Path(folder) / f"busy-{os.getpid()}-{name}").touch()
    time.sleep(0.4)
    found = fn(batch)
    (Path(folder) / f"done-{name}").touch()
    return found


def doubled(batch: Sequence[int]) -> int:
    return batch[0] * 2


class Marking:
    """An engine whose work can be seen, and met while it is under way, from outside."""

    def __init__(self, inner: Engine, folder: str) -> None:
        self._inner = inner
        self._folder = folder

    def map_sessions(
        self, fn: Callable[[Any], Any], batches: Iterable[Any], *, progress: Progress | None = None, what: str = ""
    ) -> Iterator[Any]:
        return self._inner.map_sessions(functools.partial(marked, self._folder, fn), batches)

    def aggregate(
        self, fn: Callable[[Any], Any], batches: Iterable[Any], merge: Callable[[Any, Any], Any], *,
        progress: Progress | None = None, what: str = "",
    ) -> Any:  # fmt: skip
        return merged(self.map_sessions(fn, batches), merge)

    def worker_ids(self) -> tuple[int, ...]:
        return self._inner.worker_ids()
