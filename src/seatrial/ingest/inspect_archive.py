"""The zip archive of an Inspect log: its members one at a time, bounded, with every byte accounted for."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from seatrial.canon import digest
from seatrial.errors import FormatError
from seatrial.ingest.jsontext import BadJSON, loads
from seatrial.records import ReadLog

LARGEST = 1 << 30
"""Bytes of one member, unpacked: a larger one is skipped with the reason."""

_SAMPLE = re.compile(r"samples/(.+)_epoch_(\d+)\.json")
_METHODS = {93: "zstandard", 95: "xz", 98: "PPMd", 96: "JPEG", 20: "zstandard"}


class Member(NamedTuple):
    """A member's value, the bytes that it takes in the archive, and the hash of its unpacked bytes."""

    value: Any
    size: int
    hash: str


class Archive:
    """An open archive. `names` are its members; of several with one name the last counts, as zip readers do."""

    def __init__(self, file: zipfile.ZipFile, length: int) -> None:
        self._file = file
        self._length = length
        self._infos = {info.filename: info for info in file.infolist()}
        self._sizes: dict[str, int] = {}
        self.names = frozenset(self._infos)

    def samples(self) -> list[str]:
        """Members that are samples, as the archive has them."""
        return [name for name in self._infos if _SAMPLE.fullmatch(name)]

    def others(self) -> list[str]:
        """Members that nobody has asked for."""
        return [name for name in self._infos if name not in self._sizes]

    def size(self, name: str) -> int:
        """The packed bytes of a member, never more than the file has."""
        if name not in self._sizes:
            self._sizes[name] = max(min(self._infos[name].compress_size, self.framing()), 0)
        return self._sizes[name]

    def framing(self) -> int:
        """Bytes of the file that are no member's: its directory and headers."""
        return self._length - sum(self._sizes.values())

    def read(self, name: str, log: ReadLog) -> Member | None:
        """A member's value; None when it cannot be read, which is then logged as skipped."""
        info = self._infos[name]
        size = self.size(name)
        why = self._refused(info)
        if why is None:
            try:
                with self._file.open(info) as stream:
                    data = stream.read(LARGEST + 1)
                if len(data) <= LARGEST:
                    value, repairs = loads(data)
                    for repair in repairs:
                        log.note(None, f"{name}: {repair}")
                    return Member(value, size, digest(data))
                why = f"larger than {LARGEST:,} bytes"
            except BadJSON as error:
                why = error.why
            except Exception as error:  # each packing method has errors of its own, and a hostile archive finds more
                why = f"cannot be unpacked: {type(error).__name__}: {error}"
        log.skip(None, f"{name}: {why}", size)
        return None

    @staticmethod
    def _refused(info: zipfile.ZipInfo) -> str | None:
        if info.flag_bits & 1:
            return "encrypted"
        if info.file_size > LARGEST:
            return f"larger than {LARGEST:,} bytes"
        if info.compress_type in _METHODS and not _can(info.compress_type):
            method = _METHODS[info.compress_type]
            return f"packed with {method}, which this Python cannot unpack; run `inspect log convert` on the log"
        return None


def _can(method: int) -> bool:
    """Whether this Python's zipfile unpacks a method: zstandard from 3.14 on."""
    return method == getattr(zipfile, "ZIP_ZSTANDARD", -1)


@contextmanager
def open_archive(path: Path) -> Iterator[Archive]:
    """The archive at `path`.

    Raises:
        FormatError: it is no zip archive, or its directory is broken.
    """
    try:
        file = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, ValueError, NotImplementedError, EOFError) as error:
        raise FormatError(
            f"the archive cannot be opened: {error}",
            hint="an .eval log is a zip archive; copy it again",
            file=str(path),
        ) from None
    with file:
        yield Archive(file, path.stat().st_size)
