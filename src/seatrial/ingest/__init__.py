"""Files to traces: every format has a reader, and every byte of a file is accounted for.

``read`` for traces alone, ``scan`` and ``read_file`` for traces with the account of each file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from seatrial.ingest.catalogue import named, readers
from seatrial.ingest.log import Log, Memory
from seatrial.ingest.reading import FileReading, read_file
from seatrial.ingest.walk import beside, scan, with_main_files
from seatrial.records import FileReport, Trace

__all__ = ["FileReading", "Log", "Memory", "beside", "read", "read_file", "readers", "scan", "with_main_files"]


def read(
    path: str | Path,
    format: str = "auto",
    *,
    on_report: Callable[[FileReport], None] | None = None,
) -> Iterator[Trace]:
    """The traces of a file or of every readable file under a folder.

    A record that several files share is counted once: later copies come as `Step.copied`. `on_report` is
    called with the account of each file when it has been read.

    Raises:
        UsageError: no such format.
        InputError: no such path, or the single file that was named cannot be opened.
        FormatError: no reader recognises the single file that was named.
    """
    if format != "auto":
        named(format)
    return _read(Path(path), format, on_report)


def _read(path: Path, format: str, on_report: Callable[[FileReport], None] | None) -> Iterator[Trace]:
    seen = Memory()
    for file in scan([path]):
        reading = read_file(file, format=format, seen=seen)
        yield from reading
        report = reading.report
        if on_report is not None:
            on_report(report)
        if reading.refused is not None and file == path:
            raise reading.refused
