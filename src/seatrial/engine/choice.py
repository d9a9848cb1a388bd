"""Which engine does the work: this machine's processors, or a cluster that is there already (DESIGN 4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

from seatrial.engine import local
from seatrial.engine.local import Progress
from seatrial.errors import UsageError

B = TypeVar("B")
R = TypeVar("R")
S = TypeVar("S")

FORMS = "local, ray, or ray://HOST:PORT"


class Engine(Protocol):
    """The two verbs. What they return does not depend on the engine, nor on the number of its workers."""

    def map_sessions(
        self, fn: Callable[[B], R], batches: Iterable[B], *, progress: Progress | None = None, what: str = "sessions"
    ) -> Iterator[R]:
        """``fn(batch)`` for each batch, in the order of the batches, lazily."""
        ...

    def aggregate(
        self,
        fn: Callable[[B], S],
        batches: Iterable[B],
        merge: Callable[[S, S], S],
        *,
        progress: Progress | None = None,
        what: str = "sessions",
    ) -> S | None:
        """``fn(batch)`` over all batches, merged from the first to the last; None when there is no batch."""
        ...

    def worker_ids(self) -> tuple[int, ...]:
        """Process ids of the workers that returned results, where the engine can tell; else empty."""
        ...


class LocalEngine:
    """A pool of processes on this machine. `workers` None: two, or one where there is one core."""

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers

    def map_sessions(
        self, fn: Callable[[B], R], batches: Iterable[B], *, progress: Progress | None = None, what: str = "sessions"
    ) -> Iterator[R]:
        """See `engine.local.map_sessions`."""
        return local.map_sessions(fn, batches, workers=self.workers, progress=progress, what=what)

    def aggregate(
        self,
        fn: Callable[[B], S],
        batches: Iterable[B],
        merge: Callable[[S, S], S],
        *,
        progress: Progress | None = None,
        what: str = "sessions",
    ) -> S | None:
        """See `engine.local.aggregate`."""
        return local.aggregate(fn, batches, merge, workers=self.workers, progress=progress, what=what)

    def worker_ids(self) -> tuple[int, ...]:
        """Empty: a pool does not tell."""
        return ()


def engine_at(url: str = "local", *, workers: int | None = None) -> Engine:
    """The engine that a URL names: ``local``, ``ray`` (a cluster started here), ``ray://HOST:PORT`` (one that runs).

    Raises:
        UsageError: the URL is of neither form, or `workers` is less than one.
        MissingExtra: the extra ``[distributed]`` is not installed.
        InfrastructureError: the cluster cannot be reached.
    """
    if url == "local":
        return LocalEngine(workers)
    scheme, colon, address = url.partition("://")
    if scheme != "ray" or (colon and not address):
        raise UsageError(f"there is no engine {url!r}", hint=f"one of: {FORMS}")
    from seatrial.engine.distributed import DistributedEngine

    return DistributedEngine(address or None, workers=workers)
