"""Work and what became of it, as bytes that travel between processes: the same for every engine."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from seatrial.errors import InfrastructureError, SeatrialError

B = TypeVar("B")
R = TypeVar("R")

IMPORTABLE = "what the work names must be importable on every worker, by the same name"


class Failure(NamedTuple):
    """An exception on its way home. `pickled` is None for one that cannot travel."""

    pickled: bytes | None
    kind: str
    message: str
    hint: str | None


def packed(fn: Callable[[B], R], batch: B, number: int) -> bytes:
    """Work as bytes. An executor that meets work it cannot pickle may wait for ever when it is shut down."""
    try:
        return pickle.dumps((fn, batch), protocol=pickle.HIGHEST_PROTOCOL)
    except (pickle.PicklingError, AttributeError, TypeError, RecursionError) as error:
        raise cannot_travel(number, batch, error) from error


def unpacked(work: bytes) -> Any:
    """Do work that `packed` made: its result, or a `Failure`, also where this process lacks what the work names."""
    try:
        fn, batch = pickle.loads(work)
    except Exception as error:
        return Failure(None, type(error).__name__, f"{error} (a worker cannot load its work)", IMPORTABLE)
    return guarded(fn, batch)


def finished(work: bytes) -> bytes:
    """Do work that `packed` made: what came of it, as bytes for the way home."""
    outcome = unpacked(work)
    try:
        return pickle.dumps(outcome, protocol=pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        return pickle.dumps(Failure(None, type(error).__name__, f"its result cannot travel: {error}", None))


def cannot_travel(number: int, batch: Any, error: Exception) -> InfrastructureError:
    """Work or a result that cannot be pickled."""
    return InfrastructureError(
        f"{name_of(number, batch)} cannot be sent to or from a worker process: {error}", hint="run with --workers 1"
    )


def guarded(fn: Callable[[B], R], batch: B) -> R | Failure:
    """The result, or the exception as a value."""
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
        return Failure(pickled, type(error).__name__, str(error), getattr(error, "hint", None))


def named(failure: Failure, number: int, batch: Any) -> SeatrialError:
    """The exception of a failure, with its batch named."""
    where = name_of(number, batch)
    if failure.pickled is not None:
        error: SeatrialError = pickle.loads(failure.pickled)
        error.message = f"{error.message} (in {where})"
        return error
    return InfrastructureError(f"{where} failed: {failure.kind}: {failure.message}", hint=failure.hint)


def name_of(number: int, batch: Any) -> str:
    """A batch as messages name it: its place and its first and last item."""
    items = list(batch) if isinstance(batch, list | tuple) else [batch]
    shown = [str(i) if len(str(i)) <= 80 else str(i)[:77] + "..." for i in (items[:1] + items[1:][-1:])]
    return f"batch {number + 1} ({' .. '.join(shown)})" if shown else f"batch {number + 1} (empty)"
