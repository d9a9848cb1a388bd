"""One file, read: traces while it lasts, then the account of every byte."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from seatrial.errors import InputError, UsageError
from seatrial.ingest.catalogue import named, recognise
from seatrial.ingest.lines import BOM
from seatrial.ingest.log import Log
from seatrial.records import FileReport, Reader, Trace

HEAD = 64 * 1024
"""Bytes from which a format is recognised."""


class FileReading:
    """The traces of one file, to be iterated once; `report` is there when the iteration has ended.

    A file that cannot be opened, or that no reader recognises, gives no trace, a report of status ``refused``
    and its error in `refused`; so has a file that its reader refused before the first trace (status ``skipped``).
    A reader that breaks loses the rest of the file, with the reason in the report.
    """

    def __init__(self, path: Path, *, format: str | None, seen: Callable[[str], bool] | None) -> None:
        self.path = path
        self.format: str | None = None
        self.refused: InputError | None = None
        self._named: Reader | None = named(format) if format not in (None, "auto") else None
        self._log = Log(str(path), seen=seen)
        self._report: FileReport | None = None
        self._traces = self._read()

    def __iter__(self) -> Iterator[Trace]:
        return self._traces

    @property
    def report(self) -> FileReport:
        """The account of the file.

        Raises:
            UsageError: the iteration has not ended yet.
        """
        if self._report is None:
            raise UsageError(
                f"the report of {self.path} is not ready",
                hint="iterate over all its traces first",
            )
        return self._report

    def _read(self) -> Iterator[Trace]:
        size = 0
        try:
            size = self.path.stat().st_size
            if self.path.is_dir():
                raise InputError("a folder that cannot be listed", hint="check its permissions")
            if not self.path.is_file():
                raise InputError("not a regular file")
            reader = self._named or self._recognise()
        except (OSError, InputError) as error:
            self._refuse(error, size)
            return
        self.format = reader.name
        n_traces = n_steps = 0
        broke: str | None = None
        line: int | None = None
        try:
            for trace in reader.read(self.path, self._log):
                n_traces += 1
                n_steps += len(trace.steps)
                yield trace
        except OSError as error:
            broke = f"could not be read: {error.strerror or error}"
        except InputError as error:
            broke, line = error.message + (f" ({error.hint})" if error.hint else ""), error.line
            if not n_traces:
                error.file = str(self.path)
                self.refused = error
        except Exception as error:  # a reader is plugged in: its breaking is a finding about the file, not ours
            broke = f"the reader {reader.name} {reader.version} broke: {type(error).__name__}: {error}"
        rest = size - self._log.accounted
        if rest == len(BOM) and self._marked():
            self._log.kept(rest, "byte order mark")
            rest = 0
        if broke is not None:
            self._log.skip(line, broke, max(rest, 0))
        elif rest > 0:
            self._log.skip(None, f"the reader {reader.name} did not account for these bytes", rest)
        whole = n_traces or (broke is None and rest <= 0 and self._log.beside)
        why = None if whole else broke or self._why_nothing(size)
        self._report = self._log.report(
            format=reader.name,
            status="kept" if whole else "skipped",
            traces=n_traces,
            steps=n_steps,
            why=why,
        )

    def _marked(self) -> bool:
        with self.path.open("rb") as stream:
            return stream.read(len(BOM)) == BOM

    def _recognise(self) -> Reader:
        with self.path.open("rb") as stream:
            head = stream.read(HEAD)
        return recognise(self.path, head.removeprefix(BOM))

    def _why_nothing(self, size: int) -> str:
        if size == 0:
            return "the file is empty"
        lost = [skip for skip in self._log.skips if not skip.noted]
        return lost[0].why if lost else "it holds no session"

    def _refuse(self, error: OSError | InputError, size: int) -> None:
        if isinstance(error, OSError):
            error = InputError(f"cannot be opened: {error.strerror or error}", hint="check its permissions")
        error.file = str(self.path)
        self.refused = error
        self._log.skip(None, error.message, size)
        self._report = self._log.report(format=None, status="refused", why=error.message)


def read_file(
    path: Path,
    *,
    format: str | None = None,
    seen: Callable[[str], bool] | None = None,
) -> FileReading:
    """Read one file: iterate over its traces, then look at `report`.

    `format` None or ``auto``: recognised from name and content. `seen(record_id)` says whether a source record
    was already read, and remembers it: such records become `Step.copied`. None: each file stands alone.

    Raises:
        UsageError: no such format.
    """
    return FileReading(path, format=format, seen=seen)
