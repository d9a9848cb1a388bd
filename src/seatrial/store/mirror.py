"""A store in a bucket and the folder on this machine that follows it.

The bucket holds what a store's folder holds, under the same names, so that other programs read its tables as they
are. Blobs and Parquet files never change, and come to the folder when they are asked for; of a table's log, those
entries come that the newest data version names. What is written goes to the folder first, then to the bucket, file by
file, and at last into `head`, which is what makes it happen (`lease`).
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import unquote

import deltalake
import msgspec
import polars as pl

from seatrial.canon import canonical
from seatrial.errors import StoreError
from seatrial.store.bucket import Bucket
from seatrial.store.durable import write_atomic
from seatrial.store.layout import MIRROR
from seatrial.store.lease import Head, Lease
from seatrial.store.lock import Lock

AT_ONCE = 8
"""Requests at a time."""

FRESH_S = 1.0
"""Seconds for which a reader takes what it knows of the bucket for the newest."""

LOG = "_delta_log"
_TRIES = 8
_SEGMENT = re.compile(r"versions/(\d+)-(\d+)-[0-9a-f]+\.jsonl")


class State(msgspec.Struct, kw_only=True):
    """What the folder holds of the bucket: `tables` up to which Delta version."""

    url: str
    number: int = 0
    erasures: int = 0
    tables: dict[str, int] = {}


class _Add(msgspec.Struct):
    path: str


class _Action(msgspec.Struct):
    add: _Add | None = None


class _Tables(msgspec.Struct):
    tables: dict[str, int] = {}


def entry(number: int) -> str:
    """The name of a log entry."""
    return f"{number:020d}.json"


def checkpoint(number: int) -> str:
    """The name of the checkpoint of a Delta version."""
    return f"{number:020d}.checkpoint.parquet"


class Mirror:
    """The folder and its bucket. Writing methods are for the holder of the lease."""

    def __init__(self, folder: Path, bucket: Bucket, lease: Lease) -> None:
        self.folder = folder
        self.bucket = bucket
        self.lease = lease
        self._pulling = Lock(folder / "pull.lock", 120.0)
        self._looked = 0.0
        self._whole: set[tuple[str, int]] = set()
        self._there: set[str] = set()

    # From the bucket

    def refresh(self, take: Callable[[bytes, int], None], *, force: bool = False) -> None:
        """Bring the version log, and the logs of tables, up to the bucket's `head`. `take(lines, number)` keeps them.

        Raises:
            StoreError: the bucket does not answer, or lacks what its head names.
        """
        if not force and (self.lease.held or time.monotonic() - self._looked < FRESH_S):
            return
        for attempt in range(1, _TRIES + 1):
            head = self.lease.read()
            with self._pulling.held():
                state = self.state()
                if (head.number, head.erasures) == (state.number, state.erasures):
                    break
                lines = self._lines(head)
                if lines is not None:
                    self._follow(head, state, lines)
                    take(lines, head.number)
                    self.keep(state)
                    break
            if attempt == _TRIES:
                raise StoreError("the version log in the bucket lacks a part", file=self.bucket.url, hint="restore it")
        self._looked = time.monotonic()

    def state(self) -> State:
        """What the folder holds."""
        try:
            return msgspec.json.decode((self.folder / MIRROR).read_bytes(), type=State)
        except (FileNotFoundError, msgspec.DecodeError):
            return State(url=self.bucket.url)

    def keep(self, state: State) -> None:
        """Note what the folder holds from now on."""
        write_atomic(self.folder / MIRROR, canonical(state), durable=False)

    def _lines(self, head: Head) -> bytes | None:
        """The version log; None when a part of it gave way to a newer one meanwhile."""
        parts = []
        for segment in head.segments:
            found = self.bucket.get(segment)
            if found is None:
                return None
            parts.append(found.data)
        return b"".join(parts)

    def _follow(self, head: Head, state: State, lines: bytes) -> None:
        if head.erasures != state.erasures or head.number < state.number:
            self._prune()
            state.tables = {}
        last = lines.rstrip(b"\n").rsplit(b"\n", 1)[-1]
        tables = msgspec.json.decode(last, type=_Tables).tables if last else {}
        for name, to in tables.items():
            self._pull_log(name, state.tables.get(name), head.bases.get(name), to)
            state.tables[name] = to
        state.number, state.erasures = head.number, head.erasures

    def _pull_log(self, table: str, have: int | None, base: int | None, to: int) -> None:
        names = []
        if base is not None and base <= to and (have is None or have < base):
            names.append(checkpoint(base))
            have = base - 1
        names += [entry(n) for n in range((-1 if have is None else have) + 1, to + 1)]
        self._fetch_all(f"tables/{table}/{LOG}/{name}" for name in names)

    def _prune(self) -> None:
        """Let go of everything that the bucket may not have any more."""
        for name in ("blobs", "tables", "results"):
            folder = self.folder / name
            there = {t.key for t in self.bucket.list(name)}
            for path in [p for p in folder.rglob("*") if p.is_file()]:
                if LOG in path.parts or path.relative_to(self.folder).as_posix() not in there:
                    path.unlink(missing_ok=True)
        self._whole.clear()
        self._there.clear()

    def fetch(self, key: str) -> bool:
        """Bring one object to the folder; False when the bucket has none."""
        found = self.bucket.get(key)
        if found is None:
            return False
        path = self.folder / key
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, found.data, durable=False)
        return True

    def _fetch_all(self, keys: Iterable[str]) -> None:
        def one(key: str) -> None:
            if not self.fetch(key):
                raise StoreError("an object of the store is missing", file=f"{self.bucket.url}/{key}")

        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(one, keys))

    def complete(self, table: str, at: int, *, anew: bool = False) -> None:
        """See to it that a table can be read here as of a Delta version; with `anew`, from the bucket's own bytes.

        Raises:
            StoreError: the bucket lacks a file of it.
        """
        if (table, at) in self._whole and not anew:
            return
        with self._pulling.held():
            log = self.folder / "tables" / table / LOG
            if not (log / entry(at)).exists():
                keys = [t.key for t in self.bucket.list(f"tables/{table}/{LOG}")]
                names = {entry(n): n for n in range(at + 1)}
                self._fetch_all(k for k in keys if k.rsplit("/", 1)[-1] in names)
            wanted = [
                f"tables/{table}/{name}"
                for name in self.files(table, at)
                if anew or not (self.folder / "tables" / table / name).exists()
            ]
            self._fetch_all(wanted)
        self._whole.add((table, at))

    def files(self, table: str, at: int) -> list[str]:
        """The Parquet files of a table's version, below the table's folder."""
        try:
            handle = deltalake.DeltaTable(str(self.folder / "tables" / table), version=at)
            paths = pl.DataFrame(handle.get_add_actions(flatten=True))["path"].to_list()
        except Exception as error:
            raise StoreError(
                f"table {table} cannot be read: {error}", file=self.bucket.url, hint="run: seatrial verify"
            ) from error
        return [unquote(p) for p in paths]

    # To the bucket

    def rewind(self, table: str, at: int) -> None:
        """Take back what an unpublished commit wrote into the folder's log after a Delta version."""
        log = self.folder / "tables" / table / LOG
        if not log.is_dir():
            return
        for path in log.iterdir():
            number = path.name[:20]
            if (number.isdigit() and int(number) > at) or path.name == "_last_checkpoint":
                path.unlink(missing_ok=True)

    def push_blobs(self, keys: Sequence[str], *, again: frozenset[str] = frozenset()) -> None:
        """Blobs that the bucket may lack; those in `again` are written whatever is there."""
        new = [k for k in keys if k not in self._there or k in again]

        def one(key: str) -> None:
            try:
                data = (self.folder / key).read_bytes()
            except FileNotFoundError:
                return  # it is only in the bucket
            if key in again:
                self.bucket.put(key, data)
            else:
                self.bucket.create(key, data)

        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(one, new))
        self._there.update(new)

    def push_tables(self, tables: dict[str, int]) -> dict[str, int]:
        """Send what the logs gained since the last publication; the checkpoints that are new, by table."""
        state = self.state()
        bases = {}
        for table, to in sorted(tables.items()):
            for number in range(state.tables.get(table, -1) + 1, to + 1):
                self._push_entry(table, number)
                name = checkpoint(number)
                if (self.folder / "tables" / table / LOG / name).exists():
                    self._push_alone(f"tables/{table}/{LOG}/{name}")
                    bases[table] = number
        return bases

    def push_base(self, table: str, at: int) -> None:
        """Send a checkpoint that was made of a version that is published already."""
        self._push_alone(f"tables/{table}/{LOG}/{checkpoint(at)}")

    def _push_entry(self, table: str, number: int) -> None:
        key = f"tables/{table}/{LOG}/{entry(number)}"
        decoder = msgspec.json.Decoder(_Action)
        adds = [a.add.path for a in map(decoder.decode, (self.folder / key).read_bytes().splitlines()) if a.add]
        data = [f"tables/{table}/{unquote(path)}" for path in adds]

        def one(name: str) -> None:
            # A file that a later entry took away again may be gone from the folder.
            if (self.folder / name).exists():
                self.bucket.put(name, (self.folder / name).read_bytes())

        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(one, data))
        self._push_alone(key)

    def _push_alone(self, key: str) -> None:
        """Write an object whose name another writer, cut off before it could publish, may have used.

        What lies there is replaced only after the turn was had since it was seen: a successor's is never.
        """
        data = (self.folder / key).read_bytes()
        for _ in range(_TRIES):
            if self.bucket.create(key, data) is not None:
                return
            there = self.bucket.get(key)
            if there is None:
                continue
            if there.data == data:
                return
            self.lease.sure()
            if self.bucket.replace(key, data, there.tag) is not None:
                return
        raise StoreError("another program keeps writing this object", file=f"{self.bucket.url}/{key}")

    def push_line(self, number: int, line: bytes, before: Sequence[bytes]) -> tuple[str, ...]:
        """A segment with the newest line of the version log, joined with short ones before it; the new list."""
        segments = list(self.lease.head.segments)
        first = number
        while segments:
            start, end = spans(segments[-1])
            if end - start + 1 > number - first + 1:
                break
            first = start
            segments.pop()
        # Numbers are 1-based and `before` holds lines 1 to number - 1.
        return (*segments, self.push_segment(first, number, b"".join([*before[first - 1 :], line])))

    def push_segment(self, first: int, last: int, lines: bytes) -> str:
        """Write lines of the version log under a name of their own."""
        key = f"versions/{first}-{last}-{secrets.token_hex(8)}.jsonl"
        self.bucket.put(key, lines)
        return key

    def sweep(self, tables: dict[str, int]) -> int:
        """Delete what no head names: earlier Parquet files, log entries and version logs. How many objects.

        Each request is sent only while the turn is surely had for longer than a request may take.
        """
        kept = set(self.lease.head.segments)
        for table, at in tables.items():
            kept |= {f"tables/{table}/{name}" for name in self.files(table, at)}
            log = self.folder / "tables" / table / LOG
            kept |= {f"tables/{table}/{LOG}/{path.name}" for path in log.iterdir()}
        gone = [t.key for prefix in ("tables", "versions") for t in self.bucket.list(prefix) if t.key not in kept]
        self.bucket.delete(gone, before=self.lease.sure)
        return len(gone)


def spans(segment: str) -> tuple[int, int]:
    """The first and last line of a segment, by its name.

    Raises:
        StoreError: it is no segment's name.
    """
    found = _SEGMENT.fullmatch(segment)
    if found is None:
        raise StoreError(f"{segment[:60]!r} is no part of a version log")
    return int(found[1]), int(found[2])


__all__ = ["AT_ONCE", "FRESH_S", "Mirror", "State", "checkpoint", "entry", "spans"]
