"""Lazy tables whose damage is said as such, whenever it is met: Polars reads a table only when it is collected."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import polars as pl
from deltalake.exceptions import DeltaError

Broken = Callable[[BaseException], BaseException]
"""Makes the error to raise of the one that was met: a `StoreError`, or the error itself where the table is sound."""


@contextmanager
def guard(broken: Broken, *leave: type[Exception]) -> Iterator[None]:
    """Errors of the libraries that read and write tables go through `broken`, their panics included.

    A panic of compiled code is no `Exception`, and each library has a class of its own for it. `leave` names errors
    that pass as they are.
    """
    try:
        yield
    except leave:
        raise
    except (DeltaError, OSError, pl.exceptions.PolarsError) as error:
        raise broken(error) from error
    except BaseException as error:
        if not is_panic(error):
            raise
        raise broken(error) from error


@contextmanager
def hushed() -> Iterator[None]:
    """Nothing reaches standard error meanwhile: compiled code that gives up writes there before it says so."""
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def is_panic(error: BaseException) -> bool:
    """Whether compiled code gave up inside itself."""
    return type(error).__name__ == "PanicException"


def guarded(lazy: pl.LazyFrame, broken: Broken) -> pl.LazyFrame:
    """The same lazy table; collecting it, or what is made of it, tells damage through `broken`."""
    made = type("GuardedFrame", (_Guarded,), {"broken": staticmethod(broken)})
    return made._from_pyldf(lazy._ldf)  # type: ignore[attr-defined, no-any-return]


class _Guarded(pl.LazyFrame):
    broken: ClassVar[Broken]

    def join(self, other: pl.LazyFrame, *args: Any, **kwargs: Any) -> pl.LazyFrame:
        # Polars asks both sides for one type, and two guarded tables have one each.
        return super().join(pl.LazyFrame._from_pyldf(other._ldf), *args, **kwargs)

    def collect(self, *args: Any, **kwargs: Any) -> Any:
        with guard(type(self).broken):
            return super().collect(*args, **kwargs)
