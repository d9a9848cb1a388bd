"""A store in a bucket: the same store, with a folder on this machine that follows the bucket (`mirror`)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from seatrial.canon import canonical, digest
from seatrial.errors import InputError, StoreError, UsageError
from seatrial.privacy import Pseudonyms
from seatrial.records import Check
from seatrial.records.tables import ATTEMPTS, SESSIONS, TABLES, Table
from seatrial.store.blobs import SUFFIX, Blobs, unpack
from seatrial.store.bucket import Bucket, normal
from seatrial.store.delta import DeltaTables
from seatrial.store.durable import sync_path, write_atomic
from seatrial.store.layout import ERASING, MARKER, MIRROR, check_layout, create_layout, same_store
from seatrial.store.lease import KEY as HEAD
from seatrial.store.lease import Head, Lease
from seatrial.store.mirror import Mirror
from seatrial.store.results import FOLDER as RESULTS
from seatrial.store.results import ResultHead, StoredResult
from seatrial.store.scan import Proof, merged, scan, scan_things
from seatrial.store.store import Store
from seatrial.store.verify import Verification
from seatrial.store.versions import Version, Versions

MIRRORS = "SEATRIAL_MIRRORS"
"""Environment variable: where the folders are that follow buckets."""

_KEY = "key"


def mirror_folder(url: str) -> Path:
    """The folder on this machine that follows a bucket: below ``SEATRIAL_MIRRORS``, or the user's state folder."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    root = Path(os.environ.get(MIRRORS) or Path(state) / "seatrial" / "mirrors")
    return root / digest(normal(url).encode())[:16]


class RemoteVersions(Versions):
    """The version log: `append` and `rewrite` publish, reading first looks whether the bucket has more."""

    def __init__(self, path: Path, mirror: Mirror, *, durable: bool = True) -> None:
        super().__init__(path, durable=durable)
        self._mirror = mirror

    def refresh(self, *, force: bool = False) -> None:
        """Bring the folder up to what the bucket's head names."""
        self._mirror.refresh(self.take, force=force)

    def _lines(self) -> list[bytes]:
        self.refresh()
        return super()._lines()

    def append(self, version: Version) -> None:
        """Send what the commit wrote, publish it, and only then note it here."""
        mirror, line = self._mirror, canonical(version) + b"\n"
        bases = mirror.push_tables(version.tables)
        before = [old + b"\n" for old in super()._lines()]
        segments = mirror.push_line(version.number, line, before)
        gone = [s for s in mirror.lease.head.segments if s not in segments]
        self._publish(version, segments, bases, erasures=0)
        super().append(version)
        mirror.bucket.delete(gone)

    def rewrite(self, versions: list[Version]) -> None:
        """Publish other lines in the place of all: what an erasure leaves."""
        mirror, newest = self._mirror, versions[-1]
        bases = mirror.push_tables(newest.tables)
        for table, at in newest.tables.items():
            if table not in bases:
                mirror.push_base(table, at)
        lines = b"".join(canonical(v) + b"\n" for v in versions if v.number)
        segments = (mirror.push_segment(1, newest.number, lines),) if newest.number else ()
        self._publish(newest, segments, dict(newest.tables), erasures=1)
        super().rewrite(versions)

    def _publish(self, newest: Version, segments: Sequence[str], bases: dict[str, int], *, erasures: int) -> None:
        mirror = self._mirror

        def change(head: Head) -> Head:
            return msgspec.structs.replace(
                head,
                number=newest.number,
                segments=tuple(segments),
                bases=head.bases | bases,
                erasures=head.erasures + erasures,
            )

        mirror.lease.publish(change)
        state = mirror.state()
        state.number, state.erasures = newest.number, mirror.lease.head.erasures
        state.tables |= newest.tables
        mirror.keep(state)


class RemoteBlobs(Blobs):
    """Blobs that come to the folder when they are asked for."""

    def __init__(self, root: Path, mirror: Mirror, *, durable: bool = True) -> None:
        super().__init__(root, durable=durable)
        self._mirror = mirror
        self._again: set[str] = set()

    def _key(self, name: str) -> str:
        return f"blobs/{name[:2]}/{name}{SUFFIX}"

    def has(self, name: str) -> bool:
        return super().has(name) or any(t.key == self._key(name) for t in self._mirror.bucket.list(f"blobs/{name[:2]}"))

    def packed(self, name: str) -> bytes:
        if not super().has(name):
            self._mirror.fetch(self._key(name))
        return super().packed(name)

    def afresh(self, name: str) -> bytes:
        """The canonical bytes behind the bucket's own object, whatever the folder holds.

        Raises:
            StoreError: it is absent or damaged.
        """
        found = self._mirror.bucket.get(self._key(name))
        if found is None:
            raise StoreError(f"blob {name} is missing", hint="ingest its source again")
        return unpack(name, found.data)

    def discard(self, name: str) -> None:
        super().discard(name)
        self._again.add(name)

    def push(self, names: Iterable[str]) -> None:
        """Send blobs that the bucket may lack."""
        wanted = [n for n in names if super(RemoteBlobs, self).has(n)]
        again = frozenset(self._key(n) for n in wanted if n in self._again)
        self._mirror.push_blobs([self._key(n) for n in wanted], again=again)
        self._again.difference_update(wanted)

    def names(self) -> Iterator[str]:
        there = {t.key.rsplit("/", 1)[-1].removesuffix(SUFFIX) for t in self._mirror.bucket.list("blobs")}
        yield from sorted(there.union(super().names()))

    def published(self) -> list[str]:
        """The names of the blobs in the bucket, sorted."""
        found = self._mirror.bucket.list("blobs")
        return sorted(t.key.rsplit("/", 1)[-1].removesuffix(SUFFIX) for t in found if t.key.endswith(SUFFIX))

    def remove(self, names: Iterable[str]) -> None:
        gone = list(names)
        super().remove(gone)
        self._mirror.bucket.delete([self._key(n) for n in gone], before=self._mirror.lease.sure)


class _Afresh(RemoteBlobs):
    """Blobs as the bucket holds them: for `Store.verify`."""

    def get(self, name: str) -> bytes:
        return self.afresh(name)

    def names(self) -> Iterator[str]:
        yield from self.published()


class RemoteTables(DeltaTables):
    """Tables whose files come to the folder before they are read or changed."""

    def __init__(self, root: Path, mirror: Mirror, *, durable: bool = True) -> None:
        super().__init__(root, durable=durable)
        self._mirror = mirror

    def replace(self, table: Table, frame: pl.DataFrame, remove: list[str], at: int) -> int:
        self._mirror.rewind(table.name, at)
        if (self.path(table) / "_delta_log").is_dir() and table.name in self._mirror.state().tables:
            self._mirror.complete(table.name, at)
        return super().replace(table, frame, remove, at)

    def scan(self, table: Table, at: int | None) -> pl.LazyFrame:
        if at is not None:
            self._mirror.complete(table.name, at)
        return super().scan(table, at)

    def expunge(self, table: Table, at: int) -> int:
        self._mirror.complete(table.name, at)
        return super().expunge(table, at)


class RemoteStore(Store):
    """A `Store` in a bucket. Opened with `Store.open("s3://bucket/prefix")`."""

    blobs: RemoteBlobs
    versions: RemoteVersions

    def __init__(self, folder: Path, bucket: Bucket, *, durable: bool = True) -> None:
        super().__init__(folder, durable=durable)
        self.bucket = bucket
        self._lease = Lease(bucket)
        self._mirror = Mirror(folder, bucket, self._lease)
        self.blobs = RemoteBlobs(folder / "blobs", self._mirror, durable=durable)
        self.versions = RemoteVersions(folder / "versions.jsonl", self._mirror, durable=durable)
        self.delta = RemoteTables(folder / "tables", self._mirror, durable=durable)

    def writing(self) -> AbstractContextManager[None]:
        """Hold this machine's lock, and the turn to write among all machines. Re-entrant."""
        return self._writing()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with self._lock.held(), self._lease.turn(self._begun):
            yield

    def _begun(self) -> None:
        self.versions.refresh(force=True)
        note = self.path / ERASING
        if not self._lease.head.erasing:
            note.unlink(missing_ok=True)
        elif not self._mirror.fetch(ERASING):
            raise StoreError("an erasure was cut short and its note is missing", file=self.bucket.url)

    def commit(self, tables: dict[str, pl.DataFrame], replace_sessions: Sequence[str] | None = None) -> str:
        """`Store.commit`; blobs go to the bucket first, and the bucket's head makes the commit happen.

        Raises:
            StoreError: also where another machine took over (`lease.Overtaken`): nothing was committed then.
        """
        frames = [tables[t.name] for t in (SESSIONS, ATTEMPTS) if t.name in tables]
        names = {blob for f in frames if "blob" in f.columns for blob in f["blob"].drop_nulls().to_list()}
        with self.writing():
            self.blobs.push(sorted(names))
            return super().commit(tables, replace_sessions)

    def pseudonyms(self) -> tuple[Pseudonyms, bool]:
        """`Store.pseudonyms`, with the key that lies in the bucket."""
        with self.writing():
            path = self.path / _KEY
            found = self.bucket.get(_KEY)
            if found is None:
                path.unlink(missing_ok=True)
            elif not path.exists() or path.read_bytes() != found.data:
                write_atomic(path, found.data, mode=0o600)
            made = super().pseudonyms()
            if found is None:
                self.bucket.put(_KEY, path.read_bytes())
            return made

    def _key_on_record(self) -> str | None:
        self._take_marker()
        return super()._key_on_record()

    def _record_key(self, key: bytes | None) -> None:
        self._take_marker()
        super()._record_key(key)
        self.bucket.put(MARKER, (self.path / MARKER).read_bytes())

    def _take_marker(self) -> None:
        found = self.bucket.get(MARKER)
        if found is not None and (self.path / MARKER).read_bytes() != found.data:
            write_atomic(self.path / MARKER, found.data)

    def refuse_originals(self) -> None:
        raise UsageError(
            "a store in a bucket keeps no originals: their key would lie beside them",
            hint="leave out --keep-raw, or keep them in a store on this machine",
        )

    # Results

    def save_result(self, kind: str, name: str, envelope: Mapping[str, Any]) -> str:
        ident = super().save_result(kind, name, envelope)
        key = f"{RESULTS}/{ident}.json"
        self.bucket.put(key, (self.path / key).read_bytes())
        return ident

    def results(self, kind: str | None = None) -> list[ResultHead]:
        self._pull_results()
        return super().results(kind)

    def result(self, ident: str) -> StoredResult:
        if not (self.path / RESULTS / f"{ident}.json").exists():
            self._pull_results()
        return super().result(ident)

    def remove_result(self, ident: str) -> None:
        self.result(ident)  # it may be in the bucket alone
        super().remove_result(ident)
        self.bucket.delete([f"{RESULTS}/{ident}.json"])

    def strike_results(self, identifiers: Sequence[str]) -> int:
        self._pull_results()
        folder = self.path / RESULTS
        before = {p.name for p in folder.iterdir()} if folder.is_dir() else set()
        struck = super().strike_results(identifiers)
        after = {p.name for p in folder.iterdir()} if folder.is_dir() else set()
        self.bucket.delete([f"{RESULTS}/{name}" for name in sorted(before - after)])
        return struck

    def _pull_results(self) -> None:
        for thing in self.bucket.list(RESULTS):
            path = self.path / thing.key
            if not path.exists() or path.stat().st_size != thing.size:
                self._mirror.fetch(thing.key)

    # Stewardship

    def begin_erasing(self, note: bytes) -> None:
        super().begin_erasing(note)
        self.bucket.put(ERASING, note)
        self._lease.publish(lambda head: msgspec.structs.replace(head, erasing=True))

    def end_erasing(self) -> None:
        """Delete from the bucket what no head names, then say that the erasure is over."""
        self._mirror.sweep(self.versions.head().tables)
        self._lease.publish(lambda head: msgspec.structs.replace(head, erasing=False))
        self.bucket.delete([ERASING])
        super().end_erasing()

    def look_for(self, wanted: Mapping[str, Sequence[str]]) -> Proof:
        """Every byte of the bucket and of this machine's folder."""
        things = ((t.key, found.data) for t in self.bucket.list() if (found := self.bucket.get(t.key)) is not None)
        there = scan_things(((f"{self.bucket.url}/{key}", data) for key, data in things), wanted)
        both = merged(there, scan(self.path, wanted))
        if self.bucket.keeps_versions:
            why = f"{self.bucket.url}: the bucket keeps earlier versions of objects, which no deletion here reaches"
            both = msgspec.structs.replace(both, found=(*both.found, why))
        return both

    def verify(self, progress: Callable[[int, int | None, str], None] | None = None) -> Verification:
        """`Store.verify` over the bucket's own bytes."""
        tables = self.versions.head().tables
        there = {t.key for t in self.bucket.list("tables")}
        missing = []
        for table in (t.name for t in TABLES if t.name in tables):
            self._mirror.complete(table, tables[table])
            files = [f"tables/{table}/{name}" for name in self._mirror.files(table, tables[table])]
            lost = [key for key in files if key not in there]
            missing += [f"table {table}: the bucket lacks {key}, which this machine still has" for key in lost]
            if not lost:
                self._mirror.complete(table, tables[table], anew=True)
        self._pull_results()
        found = self._verified(_Afresh(self.path / "blobs", self._mirror), progress)
        if not missing:
            return found
        check = Check(name="bucket", ok=False, value=len(missing), why="the bucket has every file of every table")
        return msgspec.structs.replace(
            found, ok=False, checks=(*found.checks, check), problems=(*missing, *found.problems)
        )

    def half_erased(self) -> bool:
        return self._lease.read().erasing


def open_remote(url: str, *, create: bool = False, durable: bool = True) -> RemoteStore:
    """Open, or with `create` make, a store in a bucket, and the folder here that follows it.

    Raises:
        InputError: there is no store (and `create` is False), or something else is at that place.
        MissingExtra: obstore is not installed.
        StoreError: the bucket does not answer, or the folder here follows another store that was at this URL.
        UsageError: no ``s3://`` URL.
    """
    bucket = Bucket(url)
    folder = mirror_folder(url)
    marker = bucket.get(MARKER)
    if marker is None:
        if not create:
            raise InputError(
                "there is no store here",
                file=bucket.url,
                hint=f"make one with: seatrial ingest PATH --store {bucket.url}",
            )
        marker = _create(bucket, folder)
    about = folder / MARKER
    if about.exists() and not same_store(about.read_bytes(), marker.data):
        raise StoreError(
            f"the folder {folder} follows another store that was at this URL", file=bucket.url, hint="remove the folder"
        )
    if not about.exists():
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for name in ("blobs", "tables"):
            (folder / name).mkdir(exist_ok=True)
        Versions(folder / "versions.jsonl").begin()
        write_atomic(about, marker.data)
        sync_path(folder)
    check_layout(about)
    store = RemoteStore(folder, bucket, durable=durable)
    store._mirror.keep(store._mirror.state())
    store.versions.refresh()
    return store


def _create(bucket: Bucket, folder: Path) -> Any:
    strangers = [t.key for t in bucket.list() if t.key not in (_KEY, HEAD, MARKER)]
    if strangers:
        raise InputError(
            f"this place is not a store and is not empty (it holds {strangers[0]})",
            file=bucket.url,
            hint="give an empty prefix",
        )
    # A folder that has never followed anything was left by a creation that did not get through: that goes on.
    if (folder / MARKER).exists() and (folder / MIRROR).exists():
        raise StoreError(
            f"the store has gone, and the folder {folder} still follows it", file=bucket.url, hint="remove the folder"
        )
    create_layout(folder)
    bucket.create(_KEY, (folder / _KEY).read_bytes())
    bucket.create(HEAD, canonical(Head(nonce=os.urandom(8).hex())))
    bucket.create(MARKER, (folder / MARKER).read_bytes())
    # Two may make the store at once: the first objects stand.
    key, marker = bucket.get(_KEY), bucket.get(MARKER)
    if key is None or marker is None:
        raise StoreError("the store vanished while it was made", file=bucket.url)
    write_atomic(folder / _KEY, key.data, mode=0o600)
    write_atomic(folder / MARKER, marker.data)
    sync_path(folder)
    return marker


__all__ = ["MIRRORS", "RemoteStore", "mirror_folder", "open_remote"]
