"""Redacted canonical traces, compressed, named by the sha256 of their uncompressed bytes."""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from seatrial.canon import digest
from seatrial.errors import StoreError
from seatrial.store.durable import UNFINISHED_S, sync_path, write_atomic

LEVEL = 3
SUFFIX = ".json.z"
_STALE_S = 3600.0


def pack(canonical: bytes) -> tuple[str, bytes]:
    """The name (64 hex digits) and the compressed form of canonical bytes."""
    return digest(canonical), zlib.compress(canonical, LEVEL)


def unpack(name: str, packed: bytes) -> bytes:
    """The canonical bytes behind `packed`.

    Raises:
        StoreError: they are damaged, or their sha256 is not `name`.
    """
    try:
        data = zlib.decompress(packed)
    except zlib.error as error:
        raise StoreError(f"blob {name} is damaged: {error}", hint="ingest its source again") from error
    if digest(data) != name:
        raise StoreError(f"blob {name} holds other bytes than its name says", hint="ingest its source again")
    return data


class Blobs:
    """The folder ``blobs/``: ``blobs/<first two digits>/<hash>.json.z``.

    With `durable` False nothing is ever forced to disk: for a store that is gone with its process.
    """

    def __init__(self, root: Path, *, durable: bool = True) -> None:
        self._root = root
        self._durable = durable
        self._scratch = root / "scratch"
        self._dirty: set[Path] = set()
        self._unforced = False

    def path(self, name: str) -> Path:
        return self._root / name[:2] / f"{name}{SUFFIX}"

    def put(self, name: str, packed: bytes, *, durable: bool = True) -> bool:
        """Keep a packed blob; False when it was there already. `sync` makes a batch of puts durable.

        With `durable` False the file itself waits for `sync` too: for callers that can make it again.
        """
        path = self.path(name)
        if path.exists():
            return False
        for folder in (path.parent, self._scratch):
            if not folder.is_dir():
                folder.mkdir(parents=True, exist_ok=True)
                self._dirty.add(folder.parent)
        write_atomic(path, packed, scratch=self._scratch, durable=durable and self._durable)
        self._unforced = self._unforced or not durable
        self._dirty.add(path.parent)
        return True

    def sync(self) -> None:
        """Force the folders of all blobs put since the last call to disk."""
        if not self._durable:
            self._dirty.clear()
            return
        if self._unforced:
            os.sync()
            self._unforced = False
        for folder in sorted(self._dirty):
            sync_path(folder)
        self._dirty.clear()

    def get(self, name: str) -> bytes:
        """The canonical bytes of a blob, checked against its name.

        Raises:
            StoreError: it is absent or damaged.
        """
        return unpack(name, self.packed(name))

    def peek(self, name: str) -> bytes:
        """The canonical bytes of a blob, not checked against its name: enough to see what is not in it.

        Raises:
            StoreError: it is absent or damaged.
        """
        try:
            return zlib.decompress(self.packed(name))
        except zlib.error as error:
            raise StoreError(f"blob {name} is damaged: {error}", hint="ingest its source again") from error

    def has(self, name: str) -> bool:
        """Whether there is a blob of that name."""
        return self.path(name).exists()

    def packed(self, name: str) -> bytes:
        """The compressed bytes of a blob, unchecked.

        Raises:
            StoreError: it is absent.
        """
        try:
            return self.path(name).read_bytes()
        except FileNotFoundError:
            raise StoreError(f"blob {name} is missing", hint="ingest its source again") from None

    def discard(self, name: str) -> None:
        """Let go of a damaged blob, so that the next `put` of that name keeps a whole one."""
        self.path(name).unlink(missing_ok=True)

    def names(self) -> Iterator[str]:
        """Every blob's name, sorted."""
        if not self._root.is_dir():
            return
        for shard in sorted(self._root.iterdir()):
            if shard.is_dir() and shard != self._scratch:
                yield from sorted(p.name.removesuffix(SUFFIX) for p in shard.iterdir() if p.name.endswith(SUFFIX))

    def remove(self, names: Iterable[str]) -> None:
        """Remove blobs, durably, and whatever a crash left half written; names that are not there are passed over."""
        folders = set()
        for name in names:
            path = self.path(name)
            path.unlink(missing_ok=True)
            folders.add(path.parent)
        self.sweep(UNFINISHED_S)
        for folder in sorted(folders):
            if folder.is_dir():
                sync_path(folder)

    def sweep(self, older_than: float = _STALE_S) -> int:
        """Remove scratch files that a crash left behind, a number of seconds ago (an hour); how many."""
        removed = 0
        if self._scratch.is_dir():
            limit = time.time() - older_than
            for path in self._scratch.iterdir():
                try:
                    if path.stat().st_mtime < limit:
                        path.unlink()
                        removed += 1
                except OSError:
                    continue  # another writer was faster, or may not
        return removed
