"""The log of data versions: one line per commit, and each line covers all tables.

A commit writes its tables first and its line last, so the line is what makes it happen: readers follow the
last whole line, and what a crashed writer left behind it is undone by the next one.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from seatrial.canon import GENESIS, canonical, digest
from seatrial.errors import ErasedError, StoreError
from seatrial.store.durable import sync_path, write_atomic


class Version(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One data version. `tables` maps a table to its Delta version; a table not named is still empty.

    `digest` covers the content of this commit and of every one before it. `superseded` names blobs that no
    session of this version points to any more. `time` is seconds since the epoch. `erased` is when its rows and
    blobs were erased: it can be named, but not read, any more.
    """

    number: int
    digest: str
    tables: dict[str, int] = {}
    content: dict[str, str] = {}
    superseded: tuple[str, ...] = ()
    time: float = 0.0
    erased: float | None = None

    @property
    def stamp(self) -> str:
        """How reports name the data: ``<number>-<twelve digits>``; equal stamps mean equal content."""
        return f"{self.number}-{self.digest[:12]}"


HEAD = "head"
_CONTENT = (("blobs", "*/*.json.z"), ("tables", "*/_delta_log/*.json"))

ORIGIN = Version(number=0, digest=GENESIS)


def link(previous: Version, content: dict[str, str]) -> str:
    """The digest of a version whose commit holds `content` (table to sha256) and follows `previous`."""
    return digest(previous.digest.encode() + canonical(content))


class Versions:
    """The file ``versions.jsonl``, and beside it the file ``head``: how many lines the log has at least.

    The log says what there is; `head` follows it, so that a log that lost lines is not taken for a younger one.
    With `durable` False nothing is forced to disk.
    """

    def __init__(self, path: Path, *, durable: bool = True) -> None:
        self._path = path
        self._mark = path.with_name(HEAD)
        self._durable = durable

    def all(self) -> list[Version]:
        """Every version, oldest first, version 0 (empty) included.

        Raises:
            StoreError: a whole line of the log does not parse, or lines are missing.
        """
        return [ORIGIN, *(self._parse(line, i) for i, line in enumerate(self._lines(), 1))]

    def begin(self) -> None:
        """Say of a store that is being made that it has no version yet."""
        if not self._mark.exists() and not self._path.exists():
            self._remember(0)

    def head(self) -> Version:
        """The newest version.

        Raises:
            StoreError: it does not parse, or lines of the log are missing.
        """
        lines = self._lines()
        return self._parse(lines[-1], len(lines)) if lines else ORIGIN

    def find(self, wanted: int | str | None) -> Version:
        """A version by number or stamp; None means the newest.

        Raises:
            StoreError: there is no such version.
        """
        if wanted is None:
            return self.head()
        for version in self.all():
            if wanted in (version.number, version.stamp, str(version.number)):
                return version
        raise StoreError(
            f"the store has no data version {wanted}", file=str(self._path), hint=f"the newest is {self.head().stamp}"
        )

    def readable(self, wanted: int | str | None) -> Version:
        """`find`, for a version whose rows are to be read.

        Raises:
            ErasedError: its rows were erased.
            StoreError: there is no such version.
        """
        version = self.find(wanted)
        if version.erased is not None:
            when = datetime.fromtimestamp(version.erased, UTC).strftime("%Y-%m-%d")
            raise ErasedError(
                f"data version {version.stamp} can no longer be read: sessions in it were erased on {when}",
                file=str(self._path),
                hint=f"the newest version is {self.head().stamp}",
            )
        return version

    def rewrite(self, versions: list[Version]) -> None:
        """Put other lines in the place of all, at once and durably. The caller holds the store's lock."""
        write_atomic(self._path, b"".join(canonical(v) + b"\n" for v in versions if v.number))
        sync_path(self._path.parent)

    def take(self, lines: bytes, number: int) -> None:
        """Hold these lines, that many, from now on: the log as it is elsewhere."""
        write_atomic(self._path, lines, durable=self._durable)
        self._remember(number)

    def append(self, version: Version) -> None:
        """Add a version, durably. The caller holds the store's lock."""
        with open(self._path, "ab") as out:
            whole = self._whole_bytes()
            if out.tell() != whole:
                out.truncate(whole)
            out.write(canonical(version) + b"\n")
            out.flush()
            if self._durable:
                os.fsync(out.fileno())
        self._remember(version.number)

    def _remember(self, number: int) -> None:
        write_atomic(self._mark, b"%d\n" % number, durable=self._durable)

    def _least(self) -> int | None:
        """How many lines the log must have; None where that was never written down."""
        try:
            return int(self._mark.read_bytes())
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise StoreError(
                f"the count of data versions cannot be read: {error}", file=str(self._mark), hint="run: seatrial verify"
            ) from error

    def _whole_bytes(self) -> int:
        return self._read().rfind(b"\n") + 1

    def _read(self) -> bytes:
        try:
            return self._path.read_bytes()
        except FileNotFoundError:
            return b""

    def _lines(self) -> list[bytes]:
        # The count is read first: a commit in between makes the log longer, never shorter than the count says.
        least = self._least()
        # A torn last line has no newline: it belongs to a commit that never happened.
        data = self._read()
        found = data[: data.rfind(b"\n") + 1].split(b"\n")[:-1]
        if len(found) < (least or 0) or (least is None and not found and self._used()):
            said = f"{least} data versions" if least else "the data that is here"
            raise StoreError(
                f"the version log is damaged: it holds {len(found)} lines, which cannot be all of {said}",
                file=str(self._path),
                hint="restore it from a copy, or ingest the sources again into a new store",
            )
        return found

    def _used(self) -> bool:
        """Whether blobs or tables lie beside the log."""
        beside = self._path.parent
        return any(next((beside / name).glob(what), None) for name, what in _CONTENT)

    def _parse(self, line: bytes, number: int) -> Version:
        try:
            version = msgspec.json.decode(line, type=Version)
        except msgspec.DecodeError as error:
            raise StoreError(f"the version log is damaged: {error}", file=str(self._path), line=number) from error
        if version.number != number:
            raise StoreError(
                f"the version log is damaged: version {version.number} stands on line {number}",
                file=str(self._path),
                line=number,
            )
        return version
