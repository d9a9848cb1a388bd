"""Work for the tests of the distributed engine: workers import it by name."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

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


def slow(folder: str, batch: Sequence[int]) -> int:
    """Says that it has begun, works for a while, says that it is done."""
    number = batch[0]
    (Path(folder) / f"busy-{os.getpid()}-{number}").touch()
    time.sleep(0.4)
    (Path(folder) / f"done-{number}").touch()
    return number * 2
