"""Long, separate pieces of work on Ray: given out as processes become free, given again when a worker dies, and told
as they end.

Ray places each piece and notices a dead process; that a piece is given again is decided here and not by Ray, for who
gave it must know how often it was begun.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from seatrial._version import __version__
from seatrial.engine import cluster
from seatrial.engine.travel import Failure, cannot_travel, finished, named
from seatrial.errors import InfrastructureError, SeatrialError

B = TypeVar("B")
R = TypeVar("R")

BEGUN_AT_MOST = 3
"""A piece whose worker died so often is given up: the next worker would die of it too."""

PATIENCE_S = 10.0
"""How often, while nothing ends, the cluster is asked whether it still has processors."""


class Ended(NamedTuple):
    """A piece that ended: its place among all, what came of it, the process that did it, and how many workers died
    over it before. `pid` None: given up, for the last of them died too (then `result` is the reason, as text)."""

    place: int
    result: Any
    pid: int | None
    version: str
    died: int


def each_ended(fn: Callable[[B], R], pieces: Sequence[B], *, at_once: int, share: float) -> Iterator[Ended]:
    """``fn(piece)`` for every piece, `at_once` at the same time, told in the order in which they end. `share` is the
    part of a processor that each is given (below 1, more run than there are processors: they mostly wait).

    A worker that dies has its piece begun again, up to `BEGUN_AT_MOST` times in all; what a dead worker had done of it
    is lost, and counts once.

    Raises:
        SeatrialError: what `fn` raised, if it was one, with the piece named.
        InfrastructureError: `fn` raised anything else, a piece cannot travel, or the cluster is gone. All of these
            come after what was under way has ended and been told.
    """
    import ray

    send = ray.remote(num_cpus=share, max_retries=0)(_errand)
    waiting = list(range(len(pieces) - 1, -1, -1))
    flying: dict[Any, int] = {}
    died: dict[int, int] = {}
    broken: SeatrialError | None = None
    while waiting or flying:
        while waiting and len(flying) < at_once and broken is None:
            place = waiting.pop()
            flying[send.remote(_packed(fn, pieces[place], place))] = place
        if not flying:
            break
        ended = _first(list(flying))
        place = flying.pop(ended)
        try:
            pid, version, packed = pickle.loads(ray.get(ended))
        except ray.exceptions.RayTaskError as error:
            broken = broken or InfrastructureError(f"a worker cannot begin its work: {cluster.said(error)}")
            continue
        except ray.exceptions.RayError as error:
            died[place] = died.get(place, 0) + 1
            if died[place] < BEGUN_AT_MOST:
                waiting.append(place)
            else:
                yield Ended(place, cluster.said(error), None, __version__, died[place])
            continue
        outcome = pickle.loads(packed)
        if isinstance(outcome, Failure):
            broken = broken or named(outcome, place, pieces[place])
            continue
        yield Ended(place, outcome, pid, version, died.get(place, 0))
    if broken is not None:
        raise broken


def _packed(fn: Callable[[B], R], piece: B, place: int) -> bytes:
    from ray import cloudpickle

    try:
        return bytes(cloudpickle.dumps((fn, piece)))
    except Exception as error:
        raise cannot_travel(place, piece, error) from error


def _errand(work: bytes) -> bytes:
    return pickle.dumps((os.getpid(), __version__, finished(work)))


def _first(flying: list[Any]) -> Any:
    """The first of these to end, however long that takes, while the cluster has processors."""
    import ray

    while True:
        ended, _ = ray.wait(flying, num_returns=1, timeout=PATIENCE_S)
        if ended:
            return ended[0]
        if not any(n["Alive"] and n["Resources"].get("CPU", 0) > 0 for n in ray.nodes()):
            raise InfrastructureError(
                "the cluster has no machine left to work on",
                hint="'ray status' shows what the cluster has; run again to go on",
            )
