"""The two verbs of the engine, `map_sessions` and `aggregate`, on this machine's processors.

The work is a pure, picklable function of a batch; what comes out does not depend on the number of workers.
"""

from __future__ import annotations

import collections
import multiprocessing
import os
import pickle
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, NamedTuple, TypeVar

from seatrial.errors import InfrastructureError, SeatrialError, UsageError

B = TypeVar("B")
R = TypeVar("R")
S = TypeVar("S")

Progress = Callable[[int, int | None, str], None]
"""Called with batches done, batches in all (None: not known) and what is being done."""

AHEAD = 2
"""Batches in flight for each worker: enough to keep it busy, few enough to bound memory."""


class _Failure(NamedTuple):
    """An exception on its way home. `pickled` is None for one that cannot travel."""

    pickled: bytes | None
    kind: str
    message: str
    hint: str | None


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
    parts = map_sessions(fn, batches, workers=workers, progress=progress, what=what)
    merged = next(parts, None)
    if merged is None:
        return None
    for part in parts:
        merged = merge(merged, part)
    return merged


def _inline(
    fn: Callable[[B], R], batches: Iterable[B], total: int | None, progress: Progress | None, what: str
) -> Iterator[R]:
    for number, batch in enumerate(batches):
        outcome = _guarded(fn, batch)
        if isinstance(outcome, _Failure):
            raise _named(outcome, number, batch)
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
    flying: collections.deque[tuple[int, B, Future[R | _Failure]]] = collections.deque()
    sent = 0
    pool = ProcessPoolExecutor(n, mp_context=context)
    try:
        while True:
            for batch in source:
                flying.append((sent, batch, pool.submit(_unpacked, _packed(fn, batch, sent))))
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
                    f"a worker process died in {_name(number, batch)}",
                    hint="it may have run out of memory; run again with --workers 1 "
                    "(a script needs the guard: if __name__ == '__main__')",
                ) from error
            except (pickle.PicklingError, AttributeError, TypeError) as error:
                raise _cannot_travel(number, batch, error) from error
            if isinstance(outcome, _Failure):
                raise _named(outcome, number, batch)
            if progress is not None:
                progress(number + 1, total, what)
            yield outcome
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _packed(fn: Callable[[B], R], batch: B, number: int) -> bytes:
    """Work as bytes. An executor that meets work it cannot pickle may wait for ever when it is shut down."""
    try:
        return pickle.dumps((fn, batch), protocol=pickle.HIGHEST_PROTOCOL)
    except (pickle.PicklingError, AttributeError, TypeError, RecursionError) as error:
        raise _cannot_travel(number, batch, error) from error


def _unpacked(packed: bytes) -> Any:
    fn, batch = pickle.loads(packed)
    return _guarded(fn, batch)


def _cannot_travel(number: int, batch: Any, error: Exception) -> InfrastructureError:
    return InfrastructureError(
        f"{_name(number, batch)} cannot be sent to or from a worker process: {error}", hint="run with --workers 1"
    )


def _guarded(fn: Callable[[B], R], batch: B) -> R | _Failure:
    try:
        return fn(batch)
    except Exception as error:
        pickled: bytes | None = None
        if isinstance(error, SeatrialError):
            try:
                pickled = pickle.dumps(error)
                pickle.loads(pickled)
            except Exception:
                pickled = None
        return _Failure(pickled, type(error).__name__, str(error), getattr(error, "hint", None))


def _named(failure: _Failure, number: int, batch: Any) -> SeatrialError:
    where = _name(number, batch)
    if failure.pickled is not None:
        error: SeatrialError = pickle.loads(failure.pickled)
        error.message = f"{error.message} (in {where})"
        return error
    return InfrastructureError(f"{where} failed: {failure.kind}: {failure.message}", hint=failure.hint)


def _name(number: int, batch: Any) -> str:
    items = list(batch) if isinstance(batch, list | tuple) else [batch]
    shown = [str(i) if len(str(i)) <= 80 else str(i)[:77] + "..." for i in (items[:1] + items[1:][-1:])]
    return f"batch {number + 1} ({' .. '.join(shown)})" if shown else f"batch {number + 1} (empty)"
