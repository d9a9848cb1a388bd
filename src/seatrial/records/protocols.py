"""The shapes that rooms and third parties implement (STYLE: one input, one output, and the reason inside)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from seatrial.records.loss import FileReport, Skip
from seatrial.records.signal import Signal
from seatrial.records.trace import Trace


class ReadLog(Protocol):
    """Where a reader writes down what it saw. Every byte ends up kept or skipped."""

    def kept(self, n_bytes: int, what: str = "record") -> None:
        """`n_bytes` of the source became part of a trace, or are known bookkeeping named by `what`."""

    def skip(self, line: int | None, why: str, n_bytes: int = 0) -> None:
        """`n_bytes` at `line` (1-based) could not be kept."""

    def note(self, line: int | None, why: str) -> None:
        """A finding that lost nothing."""

    def seen(self, record_id: str) -> bool:
        """True if this source record was already read, here or from another file; remembers it."""


@runtime_checkable
class Reader(Protocol):
    """One source format: one file of ingest."""

    @property
    def name(self) -> str:
        """Format name as ``--format`` takes it, e.g. ``claude-code``."""

    @property
    def version(self) -> str:
        """Bumped when the same bytes would give a different trace."""

    @property
    def verified(self) -> bool:
        """False when no real file was at hand and the reader follows the public specification alone."""

    def sniff(self, path: Path, head: bytes) -> float:
        """Confidence in [0, 1] that this file is of this format, from its first bytes."""

    def read(self, path: Path, log: ReadLog) -> Iterator[Trace]:
        """Stream the file's traces. Bad records go to `log`; only an unreadable file raises."""


@runtime_checkable
class Detector(Protocol):
    """Finds one family of signals in a trace."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    def detect(self, trace: Trace) -> Sequence[Signal]:
        """Signals of this trace, none dropped, in step order."""


__all__ = ["Detector", "FileReport", "ReadLog", "Reader", "Skip"]
