"""A resume ledger: one JSON line for each finished unit of work, on disk before the next begins."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec

from seatrial.canon import canonical
from seatrial.errors import InputError, UsageError


class _Line(msgspec.Struct, frozen=True):
    key: str
    value: Any = None


class Ledger:
    """What is already done, by key. Open it once per run; a second run goes on where a killed one stopped.

    A torn last line (its writer was killed) is cut off and its work is done again; `torn` says how many bytes
    that were. A key recorded twice keeps its last value.
    """

    def __init__(self, path: str | Path) -> None:
        """Open or make the ledger.

        Raises:
            InputError: the file cannot be opened, or a whole line of it is damaged.
        """
        self.path = Path(path)
        self.torn = 0
        self._done: dict[str, Any] = {}
        try:
            self._file = open(self.path, "a+b")  # noqa: SIM115 - held until close()
            self._file.seek(0)
            data = self._file.read()
        except OSError as error:
            raise InputError(f"the ledger cannot be opened: {error.strerror}", file=str(self.path)) from error
        whole = data.rfind(b"\n") + 1
        try:
            for number, line in enumerate(data[:whole].split(b"\n")[:-1], 1):
                self._read(line, number)
        except InputError:
            self._file.close()
            raise
        if whole < len(data):
            self.torn = len(data) - whole
            self._file.truncate(whole)
            self._flush()

    def _read(self, line: bytes, number: int) -> None:
        try:
            entry = msgspec.json.decode(line, type=_Line)
        except msgspec.DecodeError as error:
            raise InputError(
                f"the ledger is damaged: {error}",
                file=str(self.path),
                line=number,
                hint="remove that line to do its work again",
            ) from error
        self._done[entry.key] = entry.value

    def record(self, key: str, value: Any = None) -> None:
        """Note that `key` is done, with a JSON value to find again; on disk when this returns.

        Raises:
            UsageError: the ledger is closed.
        """
        self.record_all({key: value})

    def record_all(self, entries: Mapping[str, Any]) -> None:
        """Note several units of work at once: one write to disk for all.

        Raises:
            UsageError: the ledger is closed.
        """
        if self._file.closed:
            raise UsageError(f"the ledger {self.path} is closed")
        self._file.write(b"".join(canonical(_Line(key, value)) + b"\n" for key, value in entries.items()))
        self._flush()
        self._done.update({key: msgspec.json.decode(canonical(value)) for key, value in entries.items()})

    def _flush(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())

    def get(self, key: str, default: Any = None) -> Any:
        """The value recorded for a key."""
        return self._done.get(key, default)

    def __contains__(self, key: object) -> bool:
        return key in self._done

    def __iter__(self) -> Iterator[str]:
        return iter(self._done)

    def __len__(self) -> int:
        return len(self._done)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
