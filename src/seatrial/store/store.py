"""The store: a folder of blobs and tables behind one version log."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, ClassVar, Protocol

import msgspec
import polars as pl

from seatrial.canon import canonical, digest
from seatrial.errors import InputError, StoreError, UsageError
from seatrial.privacy import Pseudonyms
from seatrial.records.tables import ATTEMPTS, SESSIONS, STEPS, TABLES, Table
from seatrial.records.trace import Trace
from seatrial.store.audit import FILE as AUDIT
from seatrial.store.audit import Audit
from seatrial.store.blobs import Blobs, pack
from seatrial.store.bucket import is_url
from seatrial.store.delta import DeltaTables, conform, frame_digest
from seatrial.store.durable import sync_path, write_atomic
from seatrial.store.layout import (
    ERASING,
    FORMAT,
    LOCK_TIMEOUT_S,
    MARKER,
    check_layout,
    create_layout,
    fingerprint,
    followed,
    key_on_record,
    record_key,
    write_key,
)
from seatrial.store.ledgers import ledger_attempts
from seatrial.store.lock import Lock
from seatrial.store.originals import Originals
from seatrial.store.owners import Owners
from seatrial.store.results import FOLDER as RESULTS
from seatrial.store.results import ResultHead, Results, StoredResult
from seatrial.store.scan import Proof, scan
from seatrial.store.verify import Verification, verify
from seatrial.store.versions import Version, Versions, link

_TABLES = {table.name: table for table in TABLES}
_KEY_HINT = "restore it from a copy; deleting it cuts all stored pseudonyms off from their people for good"
_TEMPORARY_KEY = digest(b"seatrial temporary store").encode()


class Elsewhere(Protocol):
    """Opens the store at a URL (`remote.open_remote`)."""

    def __call__(self, url: str, *, create: bool, durable: bool) -> Store: ...


class Store:
    """Records on disk. Opened with `Store.open`; reading takes no lock, writers take turns.

    Every `commit` covers all the tables that it is given, or none of them: readers follow the version log.
    """

    elsewhere: ClassVar[Elsewhere | None] = None
    """Opens a store that is in no folder; the room's door sets it."""

    def __init__(self, path: Path, *, durable: bool = True) -> None:
        self.path = path
        self.blobs = Blobs(path / "blobs", durable=durable)
        self.versions = Versions(path / "versions.jsonl", durable=durable)
        self.delta = DeltaTables(path / "tables", durable=durable)
        self.audit = Audit(path / AUDIT)
        self._results = Results(path / RESULTS, durable=durable)
        self._originals = Originals(path)
        self._lock = Lock(path / "lock", LOCK_TIMEOUT_S)

    @classmethod
    def open(cls, path: str | Path, *, create: bool = False, durable: bool = True) -> Store:
        """Open the store in a folder or a bucket (``s3://...``); with `create`, make one where there is none.

        With `durable` False nothing is forced to disk: a power cut may lose it, a killed process does not.

        Raises:
            InputError: there is no store (and `create` is False), or the place holds something else.
            MissingExtra: a bucket is named, and obstore is not installed.
            StoreError: the store is of an unknown version, its ``store.json`` is damaged, or a bucket does not answer.
            UsageError: `path` is a URL of another kind.
        """
        url = str(path) if is_url(path) else followed(Path(path))
        if url is not None:
            assert cls.elsewhere is not None
            return cls.elsewhere(url, create=create, durable=durable)
        folder = Path(path)
        marker = folder / MARKER
        if not marker.exists():
            if not create:
                raise InputError(
                    "there is no store here", file=str(folder), hint="make one with: seatrial ingest PATH --store DIR"
                )
            create_layout(folder)
        check_layout(marker)
        return cls(folder, durable=durable)

    @property
    def data_version(self) -> str:
        """The stamp that reports name: it covers all tables, and equal stamps mean equal content."""
        return self.versions.head().stamp

    def writing(self) -> AbstractContextManager[None]:
        """Hold the store's lock over several reads and commits. Re-entrant.

        Raises:
            StoreError: another process held the lock for two minutes.
        """
        return self._lock.held()

    # Blobs and traces

    def put(self, trace: Trace, *, durable: bool = True) -> str:
        """Keep a trace as a blob and return its hash. Idempotent; `commit` makes it part of a data version.

        With `durable` False a power cut before that commit may lose it: for what can be made again.
        """
        name, packed = pack(canonical(trace))
        self.blobs.put(name, packed, durable=durable)
        return name

    def trace(self, session: str) -> Trace:
        """The stored trace of a session, or of an attempt.

        Raises:
            InputError: no such session.
            StoreError: its blob is missing or damaged.
        """
        blob = self.blobs_of([session]).get(session) or self._attempt_blob(session)
        if blob is None:
            raise InputError(
                f"the store has no session {session!r}",
                file=str(self.path),
                hint="'seatrial sessions list' shows what it has",
            )
        return self.trace_of(blob)

    def trace_of(self, blob: str, form: type[Trace] = Trace) -> Trace:
        """The trace behind a blob hash; `form` is another type to decode it as, for who reads only a part of it.

        Raises:
            StoreError: the blob is missing or damaged.
        """
        try:
            return msgspec.json.decode(self.blobs.get(blob), type=form)
        except msgspec.DecodeError as error:
            raise StoreError(f"blob {blob} does not hold a trace: {error}", hint="run: seatrial verify") from error

    def blobs_of(self, sessions: Sequence[str]) -> dict[str, str]:
        """Blob hashes by session; sessions that the store does not have are absent."""
        wanted = pl.Series("session", list(sessions), dtype=pl.String()).implode()
        frame = self.table("sessions", ordered=False).filter(pl.col("session").is_in(wanted))
        return dict(frame.select("session", "blob").collect().iter_rows())

    def _attempt_blob(self, session: str) -> str | None:
        found = self.table(ATTEMPTS.name, ordered=False).filter(pl.col("session") == session).select("blob").collect()
        return found["blob"][0] if found.height else None

    def session_ids(self) -> list[str]:
        """Every session, sorted."""
        return self.table("sessions").select("session").collect()["session"].to_list()

    def resolve(self, start: str) -> str:
        """The one session whose id is, or begins with, `start`.

        Raises:
            InputError: none or several do.
        """
        ids = self.session_ids()
        if start in ids:
            return start
        ids += self.table(ATTEMPTS.name, ordered=False).select("session").collect()["session"].to_list()
        ids += ledger_attempts(self.path).keys() - set(ids)
        if start in ids:
            return start
        hits = [i for i in ids if start and i.startswith(start)]
        if len(hits) == 1:
            return hits[0]
        named = ", ".join(hits[:5]) + (", ..." if hits[5:] else "")
        what = f"{len(hits)} sessions ({named})" if hits else "no session"
        raise InputError(
            f"{what} in the store begin{'s' if not hits else ''} with {start!r}",
            file=str(self.path),
            hint="'seatrial sessions list' shows the ids",
        )

    def owners(self) -> Owners:
        """Which session counts each source record, as of the newest version."""
        return Owners(self.table(STEPS.name, ordered=False))

    # Tables

    def table(self, name: str, version: int | str | None = None, *, ordered: bool = True) -> pl.LazyFrame:
        """A table as of a data version (number or stamp; None: the newest), sorted by its key if `ordered`.

        Read several tables at one `version` to see them at one moment.

        Raises:
            UsageError: no such table.
            ErasedError: the rows of that version were erased.
            StoreError: no such version, or the table is damaged.
        """
        table = _table(name)
        at = self.versions.readable(version).tables.get(name)
        lazy = self.delta.scan(table, at)
        return lazy.sort(table.key) if ordered else lazy

    def commit(self, tables: dict[str, pl.DataFrame], replace_sessions: Sequence[str] | None = None) -> str:
        """Commit to several tables at once; returns the new data version (the old one if nothing changed).

        In every table that is named, the rows of `replace_sessions` give way to the frame's rows (an empty
        frame just removes them). None means the sessions that the frames hold, so repeating a commit changes
        nothing but the version. Tables that are not named stay as they are.

        Raises:
            SchemaError: a frame does not fit its table.
            StoreError: the store is locked or damaged.
            UsageError: no such table.
        """
        frames = {name: conform(_table(name), frame) for name, frame in sorted(tables.items())}
        if replace_sessions is None:
            replaced = {s for name, f in frames.items() for s in f[_table(name).by].unique().to_list()}
        else:
            replaced = set(replace_sessions)
        self.blobs.sync()
        self.blobs.sweep()
        with self.writing():
            head = self.versions.head()
            at, content = dict(head.tables), {}
            superseded: tuple[str, ...] = ()
            for name, frame in frames.items():
                if name == SESSIONS.name:
                    old = self.blobs_of(sorted(replaced))
                    superseded = tuple(sorted(set(old.values()) - set(frame["blob"].to_list())))
                    remove = sorted(old)
                else:
                    remove = self._present(name, sorted(replaced))
                if remove or frame.height:
                    at[name] = self.delta.replace(_table(name), frame, remove, at.get(name, 0))
                    content[name] = frame_digest(frame, remove)
            if not content:
                return head.stamp
            version = Version(
                number=head.number + 1,
                digest=link(head, content),
                tables=at,
                content=content,
                superseded=superseded,
                time=time.time(),
            )
            self.versions.append(version)
            return version.stamp

    def _present(self, name: str, sessions: list[str]) -> list[str]:
        """Those of `sessions` that have rows in the table now."""
        if not sessions or name not in self.versions.head().tables:
            return []
        by = _table(name).by
        wanted = pl.Series(by, sessions, dtype=pl.String()).implode()
        # The bounds tell files that can hold none of them by their statistics.
        near = pl.col(by).is_between(pl.lit(min(sessions)), pl.lit(max(sessions)))
        lazy = self.table(name, ordered=False).select(by).filter(near & pl.col(by).is_in(wanted))
        return sorted(lazy.unique().collect()[by].to_list())

    # Results

    def save_result(self, kind: str, name: str, envelope: Mapping[str, Any]) -> str:
        """Keep what a command printed, for the web application to show; returns its id (`Results.save`).

        Raises:
            ErasedError: it was made from a data version that has been erased since, and may quote what is gone.
            StoreError: it cannot be written.
            UsageError: `kind` is not a word of small letters.
        """
        with self.writing():
            made_from = envelope.get("data_version")
            if isinstance(made_from, str) and made_from in {v.stamp for v in self.versions.all()}:
                self.versions.readable(made_from)
            return self._results.save(kind, name, envelope)

    def results(self, kind: str | None = None) -> list[ResultHead]:
        """Results that commands left, newest first; of one `kind`, or all."""
        return self._results.heads(kind)

    def unreadable_results(self, kind: str | None = None) -> list[str]:
        """Names of result files that `results` leaves out because they are damaged."""
        return self._results.unreadable(kind)

    def result(self, ident: str) -> StoredResult:
        """One result with its envelope.

        Raises:
            InputError: there is none of that id.
            StoreError: its file is damaged.
        """
        return self._results.get(ident)

    def remove_result(self, ident: str) -> None:
        """Remove one result (`Results.remove`)."""
        with self.writing():
            self._results.remove(ident)

    def strike_results(self, identifiers: Sequence[str]) -> int:
        """Remove the results that name one of these sessions, blobs or pseudonyms; how many."""
        return self._results.strike(identifiers)

    # Stewardship

    @property
    def originals(self) -> Originals:
        """The files that sessions came from, where they were kept; whoever changes them holds `writing`."""
        return self._originals

    def verify(self, progress: Callable[[int, int | None, str], None] | None = None) -> Verification:
        """Derive every hash again and check blobs, tables and version log against each other."""
        return self._verified(self.blobs, progress)

    def _verified(self, blobs: Blobs, progress: Callable[[int, int | None, str], None] | None = None) -> Verification:
        erasing = self.half_erased()
        return verify(
            self.versions,
            blobs,
            self.delta,
            progress,
            erasing=erasing,
            results=self._results,
            originals=self._originals,
            key=self._key_problems(),
        )

    def half_erased(self) -> bool:
        """Whether an erasure was cut short and has not been ended."""
        return (self.path / ERASING).exists()

    def refuse_originals(self) -> None:
        """See whether this store may keep originals.

        Raises:
            UsageError: it may not.
        """

    def begin_erasing(self, note: bytes) -> None:
        """Write down what is being erased, durably: whoever writes next ends it if this is cut short."""
        write_atomic(self.path / ERASING, note, mode=0o600)
        sync_path(self.path)

    def end_erasing(self) -> None:
        """Everything in the note is gone."""
        (self.path / ERASING).unlink()
        sync_path(self.path)

    def look_for(self, wanted: Mapping[str, Sequence[str]]) -> Proof:
        """Look for identifiers, given by kind, in every byte of the store (`scan`)."""
        return scan(self.path, wanted, self._originals.texts())

    def pseudonyms(self) -> tuple[Pseudonyms, bool]:
        """The keyed pseudonyms of this store; True when the key is new because the old one was deleted.

        Deleting the file ``key`` cuts every stored pseudonym off from its person for good.

        Raises:
            StoreError: the key cannot be read, or is not the one that the store's pseudonyms were made with.
        """
        path = self.path / "key"
        with self.writing():
            new = not path.exists()
            if new:
                # A crash in between leaves a store whose key is not on record yet.
                self._record_key(None)
                write_key(path)
            try:
                data = path.read_bytes()
                made = Pseudonyms(bytes.fromhex(data.decode("ascii").strip()))
            except (ValueError, OSError, UsageError) as error:
                raise StoreError(
                    f"the pseudonym key cannot be read: {error}", file=str(path), hint=_KEY_HINT
                ) from error
            fits = self._key_on_record() == fingerprint(data)
            if not fits and self._key_on_record() is not None and self.versions.head().number:
                raise StoreError(
                    "the pseudonym key is not the one that this store's people were named with",
                    file=str(path),
                    hint=_KEY_HINT,
                )
            if not fits:
                self._record_key(data)
            return made, new and self.versions.head().number > 0

    def _key_on_record(self) -> str | None:
        return key_on_record(self.path / MARKER)

    def _record_key(self, key: bytes | None) -> None:
        record_key(self.path / MARKER, key)

    def _named_anybody(self) -> bool:
        try:
            return self.versions.head().number > 0
        except StoreError:
            return True

    def _key_problems(self) -> list[str]:
        """What is wrong with the pseudonym key. That there is none is no damage: who deletes it means to."""
        path = self.path / "key"
        try:
            data = path.read_bytes()
            Pseudonyms(bytes.fromhex(data.decode("ascii").strip()))
        except FileNotFoundError:
            return []
        except (ValueError, OSError, UsageError) as error:
            return [f"the pseudonym key cannot be read: {error}"]
        if self._key_on_record() not in (None, fingerprint(data)) and self._named_anybody():
            return ["the pseudonym key is not the one that this store's people were named with"]
        return []


def _table(name: str) -> Table:
    if name not in _TABLES:
        raise UsageError(f"there is no table {name!r}", hint=f"one of: {', '.join(_TABLES)}")
    return _TABLES[name]


@contextmanager
def temporary_store() -> Iterator[Store]:
    """A store that is gone after the ``with`` block: for commands that are given paths.

    Only its owner can read it. Its pseudonym key is fixed, so that two runs on one input give the same
    bytes; its pseudonyms never leave it.
    """
    folder = Path(tempfile.mkdtemp(prefix="seatrial-"))
    try:
        os.chmod(folder, 0o700)
        write_key(folder / "key", _TEMPORARY_KEY)
        yield Store.open(folder, create=True, durable=False)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


__all__ = ["FORMAT", "Store", "temporary_store"]
