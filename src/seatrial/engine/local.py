"""The two verbs of the engine, `map_sessions` and `aggregate`, on this machine's processors.

The work is a pure, picklable function of a batch; what comes out does not depend on the number of workers.
"""

from __future__ import annotations

import collections
import multiprocessing
import multiprocessing.connection
import os
import pickle
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

from seatrial.engine.travel import Failure, cannot_travel, guarded, name_of, named, packed, unpacked
from seatrial.errors import InfrastructureError, UsageError

B = TypeVar("B")
R = TypeVar("R")
S = TypeVar("S")

Progress = Callable[[int, int | None, str], None]
"""Called with batches done, batches in all (None: not known) and what is being done."""

AHEAD = 2
"""Batches in flight for each worker: enough to keep it busy, few enough to bound memory."""


def default_workers() -> int:
    """Two processes, or one where there is one core."""
    return min(2, os.cpu_count() or 1)


def map_sessions(
    fn: Callable[[B], R],
    batches: Iterable[B],
    *,
    workers: int | None = None,
    progress: Progress | None = None,
    what: str = "sessions",
) -> Iterator[R]:
    """``fn(batch)`` for each batch, in the order of the batches, lazily.

    `fn` and the batches must be picklable when `workers` is more than one (None: two, or one where there is
    one core). With one worker everything runs in this process. Batches are taken as they are needed, so an
    endless iterator is fine. Closing the iterator early cancels what has not begun.

    Raises:
        SeatrialError: what `fn` raised, if it was one, with the batch named.
        InfrastructureError: `fn` raised anything else, or a worker process died; names the batch.
        UsageError: `workers` is less than one.
    """
    n = default_workers() if workers is None else workers
    if n < 1:
        raise UsageError(f"the number of workers must be at least 1, got {n}")
    total = len(batches) if isinstance(batches, collections.abc.Sized) else None
    if n == 1 or total in (0, 1):
        return _inline(fn, batches, total, progress, what)
    return _pooled(fn, batches, total, n, progress, what)


def aggregate(
    fn: Callable[[B], S],
    batches: Iterable[B],
    merge: Callable[[S, S], S],
    *,
    workers: int | None = None,
    progress: Progress | None = None,
    what: str = "sessions",
) -> S | None:
    """Merge ``fn(batch)`` over all batches, from the first to the last; None when there is no batch.

    The merging happens here, in order, so floating-point sums do not depend on the number of workers.

    Raises:
        As `map_sessions`.
    """
    return merged(map_sessions(fn, batches, workers=workers, progress=progress, what=what), merge)


def merged(parts: Iterator[S], merge: Callable[[S, S], S]) -> S | None:
    """Parts merged from the first to the last, one at a time, whichever engine made them; None when there is none."""
    whole = next(parts, None)
    if whole is None:
        return None
    for part in parts:
        whole = merge(whole, part)
    return whole


def _inline(
    fn: Callable[[B], R], batches: Iterable[B], total: int | None, progress: Progress | None, what: str
) -> Iterator[R]:
    for number, batch in enumerate(batches):
        outcome = guarded(fn, batch)
        if isinstance(outcome, Failure):
            raise named(outcome, number, batch)
        if progress is not None:
            progress(number + 1, total, what)
        yield outcome


def _pooled(
    fn: Callable[[B], R], batches: Iterable[B], total: int | None, n: int, progress: Progress | None, what: str
) -> Iterator[R]:
    # Forking a process that holds Polars' threads can deadlock: workers start from a clean one.
    methods = multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
    source = iter(batches)
    flying: collections.deque[tuple[int, B, Future[R | Failure]]] = collections.deque()
    sent = 0
    pool = ProcessPoolExecutor(n, mp_context=context, initializer=_end_with_parent)
    try:
        while True:
            for batch in source:
                flying.append((sent, batch, pool.submit(unpacked, packed(fn, batch, sent))))
                sent += 1
                if len(flying) >= n * AHEAD:
                    break
            if not flying:
                return
            number, batch, future = flying.popleft()
            try:
                outcome = future.result()
            except BrokenProcessPool as error:
                raise InfrastructureError(
                    f"a worker process died in {name_of(number, batch)}",
                    hint="it may have run out of memory; run again with --workers 1 "
                    "(a script needs the guard: if __name__ == '__main__')",
                ) from error
            except (pickle.PicklingError, AttributeError, TypeError) as error:
                raise cannot_travel(number, batch, error) from error
            if isinstance(outcome, Failure):
                raise named(outcome, number, batch)
            if progress is not None:
                progress(number + 1, total, what)
            yield outcome
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _end_with_parent() -> None:
    """In a worker: end when the process that gives it work is killed, which would leave it waiting for ever."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="end-with-parent").start()
