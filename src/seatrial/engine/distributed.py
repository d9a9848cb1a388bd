"""The two verbs of the engine on a cluster: Daft plans, Ray runs, and a worker that dies has its work done again.

Every batch is a partition with its work in one binary column; a pool of actors, one for each processor that is asked
for, does it. Results come back with their place and are given out in order, and merging happens here, from the first
batch to the last: so the answer is that of the local engine, to the last bit.
"""

from __future__ import annotations

import importlib.util
import math
import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from seatrial._version import __version__
from seatrial.engine import cluster, errands
from seatrial.engine.errands import Ended
from seatrial.engine.local import Progress, merged
from seatrial.engine.travel import Failure, cannot_travel, finished, name_of, named
from seatrial.errors import InfrastructureError, MissingExtra, UsageError

B = TypeVar("B")
R = TypeVar("R")
S = TypeVar("S")


class DistributedEngine:
    """An engine on Ray. `address` is HOST:PORT of a running cluster's head (None: start one on this
    machine); `workers` how many processes may work at once (None: as many as the cluster has processors).

    Raises:
        UsageError: `workers` is less than one.
        MissingExtra: the extra is not installed.
        InfrastructureError: the cluster cannot be reached, or a machine of it cannot do the work (`cluster.join`).
    """

    def __init__(self, address: str | None = None, *, workers: int | None = None) -> None:
        if workers is not None and workers < 1:
            raise UsageError(f"the number of workers must be at least 1, got {workers}")
        missing = [name for name in ("daft", "ray") if importlib.util.find_spec(name) is None]
        if missing:
            raise MissingExtra("distributed", f"a distributed engine (without {' and '.join(missing)} here)")
        self._seen: set[int] = set()
        self._address = address
        self.processors = cluster.join(address, workers)
        self.workers = self.processors if workers is None else min(self.processors, workers)

    def map_sessions(
        self, fn: Callable[[B], R], batches: Iterable[B], *, progress: Progress | None = None, what: str = "sessions"
    ) -> Iterator[R]:
        """As `engine.local.map_sessions`, with every batch sent at the start (the batches are read to their end).

        Raises:
            SeatrialError: what `fn` raised, if it was one, with the batch named.
            InfrastructureError: `fn` raised anything else, the cluster failed, or a worker has another version of
                seatrial.
        """
        work = list(batches)
        waiting: dict[int, bytes] = {}
        turn = 0
        for number, pid, version, packed in self._run(fn, work):
            self._met(pid, version)
            waiting[number] = packed
            while turn in waiting:
                outcome = pickle.loads(waiting.pop(turn))
                if isinstance(outcome, Failure):
                    raise named(outcome, turn, work[turn])
                turn += 1
                if progress is not None:
                    progress(turn, len(work), what)
                yield outcome
        if turn < len(work):
            raise InfrastructureError(
                f"the cluster returned {turn} of {len(work)} batches; {name_of(turn, work[turn])} is missing",
                hint="run again; what is already stored is not done twice",
            )

    def aggregate(
        self,
        fn: Callable[[B], S],
        batches: Iterable[B],
        merge: Callable[[S, S], S],
        *,
        progress: Progress | None = None,
        what: str = "sessions",
    ) -> S | None:
        """As `engine.local.aggregate`: the merging happens here, in order."""
        return merged(self.map_sessions(fn, batches, progress=progress, what=what), merge)

    def each_ended(self, fn: Callable[[B], R], pieces: Sequence[B], *, at_once: int) -> Iterator[Ended]:
        """``fn(piece)`` for pieces that are long and stand alone, told as they end (`errands.each_ended`); `at_once`
        of them at the same time, each in a process of its own.

        Raises:
            As `map_sessions`, after what is under way has ended and been told.
        """
        if at_once < 1:
            raise UsageError(f"at least 1 must work at a time, got {at_once}")
        # Ray counts processors in ten-thousandths, rounded: three thirds must not become more than the whole.
        share = min(1.0, math.floor(self.processors / at_once * 10_000) / 10_000)
        for ended in errands.each_ended(fn, pieces, at_once=at_once, share=share):
            if ended.pid is not None:
                self._met(ended.pid, ended.version)
            yield ended

    def _met(self, pid: int, version: str) -> None:
        if version != __version__:
            raise cluster.another_version("a worker", version)
        self._seen.add(pid)

    def worker_ids(self) -> tuple[int, ...]:
        """Process ids of the workers that returned results so far."""
        return tuple(sorted(self._seen))

    def _run(self, fn: Callable[[B], R], work: list[B]) -> Iterator[tuple[int, int, str, bytes]]:
        if not work:
            return
        import daft
        from ray import cloudpickle

        packed = []
        for number, batch in enumerate(work):
            try:
                packed.append(cloudpickle.dumps((fn, batch)))
            except Exception as error:
                raise cannot_travel(number, batch, error) from error
        frame = daft.from_pydict({"number": list(range(len(work))), "work": packed}).into_partitions(len(work))
        done = _worker(min(self.workers, len(work)))(frame["work"])
        try:
            for part in frame.select(frame["number"], done.alias("done")).iter_partitions():
                rows = _rows(part)
                for number, (pid, version, result) in rows:
                    yield number, pid, version, result
        except Exception as error:
            if isinstance(error, InfrastructureError):
                raise
            raise InfrastructureError(
                f"the cluster failed: {cluster.said(error)}",
                hint="'ray status' shows what the cluster has; run again to go on",
            ) from error


def _rows(part: Any) -> list[tuple[int, tuple[int, str, bytes]]]:
    import ray

    held = ray.get(part) if isinstance(part, ray.ObjectRef) else part
    columns = held.to_pydict()
    return [(n, pickle.loads(done)) for n, done in zip(columns["number"], columns["done"], strict=True)]


def _worker(processes: int) -> Any:
    """Daft's function over the column of work: bytes to bytes."""
    import daft

    kept = daft.udf(return_dtype=daft.DataType.binary(), concurrency=processes, num_cpus=1)
    return kept(_Actor)


class _Actor:
    """A worker process: does the work of a column, one batch after the other."""

    def __init__(self) -> None:
        self.pid = os.getpid()

    def __call__(self, column: Any) -> list[bytes]:
        return [pickle.dumps((self.pid, __version__, finished(work))) for work in column.to_pylist()]
