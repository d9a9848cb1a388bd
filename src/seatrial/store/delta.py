"""Delta Lake tables: create, replace rows by session, read as of a version."""

from __future__ import annotations

import hashlib
import io
import os
from pathlib import Path
from typing import IO, Any, cast
from urllib.parse import unquote

import deltalake
import msgspec
import polars as pl
from deltalake.exceptions import CommitFailedError
from deltalake.schema import ArrayType, Field, PrimitiveType, Schema

from seatrial.errors import SchemaError, StoreError
from seatrial.records.tables import Table
from seatrial.store.durable import sync_path
from seatrial.store.guarded import guard, guarded, hushed, is_panic

ATTEMPTS = 5
_MAGIC = b"PAR1"
COMPACT_AT = 64
"""Small files per table that trigger a compaction in the same commit."""

_PRIMITIVE = {"string": "string", "int64": "long", "float64": "double", "bool": "boolean"}


class _Add(msgspec.Struct):
    path: str


class _Action(msgspec.Struct):
    add: _Add | None = None


def _delta_schema(table: Table) -> Schema:
    fields = []
    for column in table.columns:
        kind: Any
        if column.type == "list<string>":
            kind = ArrayType(PrimitiveType("string"), contains_null=True)
        else:
            kind = PrimitiveType(_PRIMITIVE[column.type])
        fields.append(Field(column.name, kind, nullable=column.nullable))
    return Schema(fields)


def conform(table: Table, frame: pl.DataFrame) -> pl.DataFrame:
    """`frame` with exactly the table's columns, order and types.

    Raises:
        SchemaError: a column is missing, unknown, of another type, or null where it may not be.
    """
    schema = table.schema()
    missing = [c for c in schema if c not in frame.columns]
    unknown = [c for c in frame.columns if c not in schema]
    if missing or unknown:
        raise SchemaError(
            f"table {table.name}: missing columns {missing}, unknown columns {unknown}",
            hint=f"version {table.version} of the table has {list(schema)}",
        )
    try:
        frame = frame.select([pl.col(c).cast(t, strict=True) for c, t in schema.items()])
    except pl.exceptions.PolarsError as error:
        raise SchemaError(f"table {table.name}: {error}") from error
    for column in table.columns:
        if not column.nullable and frame[column.name].null_count():
            raise SchemaError(f"table {table.name}: column {column.name} holds nulls")
    return frame


def frame_digest(frame: pl.DataFrame, removed: list[str]) -> str:
    """sha256 of a commit's part in one table: the rows added and the sessions whose rows were removed."""
    sink = _Seal()
    frame.rechunk().write_ipc(cast(IO[bytes], sink), compression="uncompressed")
    for session in sorted(removed):
        sink.write(b"\0" + session.encode("utf-8", "surrogatepass"))
    return sink.seal.hexdigest()


class _Seal(io.RawIOBase):
    """A file that keeps the sha256 of what is written to it, and nothing else."""

    def __init__(self) -> None:
        super().__init__()
        self.seal = hashlib.sha256()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.seal.update(data)
        return len(data)


class DeltaTables:
    """The folder ``tables/``: one Delta Lake table for each `records.tables.Table`.

    With `durable` False nothing is forced to disk: for a store that is gone with its process.
    """

    def __init__(self, root: Path, *, durable: bool = True) -> None:
        self._root = root
        self._durable = durable
        self._sound: set[tuple[str, int]] = set()

    def path(self, table: Table) -> Path:
        return self._root / table.name

    def replace(self, table: Table, frame: pl.DataFrame, remove: list[str], at: int) -> int:
        """Remove the rows of some sessions and append `frame`, on top of Delta version `at`; the new version.

        The rows of a commit that never got its line in the version log (Delta versions after `at`) are undone
        first. Other writers' commits are met by trying again. The caller holds the store's lock.

        Raises:
            StoreError: the table is damaged, or someone else keeps committing to it.
        """
        for attempt in range(1, ATTEMPTS + 1):
            try:
                with guard(lambda error: self._broken(table, error), CommitFailedError):
                    return self._replace(table, frame, remove, at)
            except CommitFailedError as error:
                if attempt == ATTEMPTS:
                    raise self._broken(table, error) from error
        raise AssertionError("unreachable")

    def _replace(self, table: Table, frame: pl.DataFrame, remove: list[str], at: int) -> int:
        handle = self._at(table, at)
        if remove:
            ids = pl.DataFrame({table.by: remove}, schema={table.by: pl.String()})
            # A merge names columns only: a DELETE predicate would write the session ids into the log.
            handle.merge(
                source=ids, predicate=f"t.{table.by} = s.{table.by}", source_alias="s", target_alias="t"
            ).when_matched_delete().execute()
        if frame.height:
            new_columns = set(frame.columns) - {f.name for f in handle.schema().fields}
            deltalake.write_deltalake(handle, frame, mode="append", schema_mode="merge" if new_columns else None)
        handle.update_incremental()
        if len(handle.file_uris()) > COMPACT_AT:
            handle.optimize.compact()
        version = int(handle.version())
        self._sync(table, at, version)
        return version

    def _at(self, table: Table, at: int) -> deltalake.DeltaTable:
        path = self.path(table)
        if not deltalake.DeltaTable.is_deltatable(str(path)):
            stats = [c.name for c in table.columns if c.name not in table.personal and c.type != "list<string>"]
            deltalake.DeltaTable.create(
                str(path),
                schema=_delta_schema(table),
                name=table.name,
                mode="ignore",
                configuration={
                    "delta.dataSkippingStatsColumns": ",".join(stats),
                    "delta.enableExpiredLogCleanup": "false",
                },
            )
            if self._durable:
                sync_path(path.parent)
        handle = deltalake.DeltaTable(str(path))
        if handle.version() != at:
            handle.restore(at)
        return handle

    def scan(self, table: Table, at: int | None) -> pl.LazyFrame:
        """The table as of Delta version `at`; None means that nothing was ever committed to it.

        Columns that the table gained since it was written are null.

        Raises:
            StoreError: the table is absent or damaged.
        """
        schema = table.schema()
        if at is None:
            return pl.LazyFrame(schema=schema)
        with guard(lambda error: self._broken(table, error)):
            handle = deltalake.DeltaTable(str(self.path(table)), version=at)
            have = {f.name for f in handle.schema().fields}
            if (table.name, at) not in self._sound:
                wrong = self.damaged(table, at)
                if wrong:
                    raise self._lost(table, wrong[0])
                self._sound.add((table.name, at))
            lazy = pl.scan_delta(handle)
        lazy = lazy.select(
            [pl.col(c).cast(t) if c in have else pl.lit(None, dtype=t).alias(c) for c, t in schema.items()]
        )
        return guarded(lazy, lambda error: self._met(table, at, error))

    def _met(self, table: Table, at: int, error: BaseException) -> BaseException:
        """What an error met while reading means: the table's damage, or a mistake of who reads it."""
        wrong = self.damaged(table, at, whole=True)
        return self._lost(table, wrong[0]) if wrong else error

    def damaged(self, table: Table, at: int, *, whole: bool = False) -> list[str]:
        """Data files of a version that are missing, not as long as the log says, or no Parquet; each with its path.

        With `whole` every value of every file is read.

        Raises:
            StoreError: the log cannot be read.
        """
        with guard(lambda error: self._broken(table, error)):
            frame = pl.DataFrame(
                deltalake.DeltaTable(str(self.path(table)), version=at).get_add_actions(flatten=True)
            ).select("path", "size_bytes")
        wrong = []
        for name, size in frame.iter_rows():
            why = _wrong(self.path(table) / unquote(name), size, whole)
            if why is not None:
                wrong.append(f"{name} {why}")
        return wrong

    def expunge(self, table: Table, at: int) -> int:
        """Keep the rows of Delta version `at` and nothing of any other: files, log entries, checkpoints.

        The version that holds those rows from now on. `drop_log` ends it, once the caller has written that down.

        Raises:
            StoreError: the table is damaged.
        """
        with guard(lambda error: self._broken(table, error)):
            handle = self._at(table, at)
            handle.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False, full=True)
            handle.update_incremental()
            handle.create_checkpoint()
        version = int(handle.version())
        self._sync(table, version, version)
        return version

    def drop_log(self, table: Table, before: int) -> None:
        """Remove log entries and checkpoints of Delta versions before `before`, which has a checkpoint."""
        log = self.path(table) / "_delta_log"
        for entry in log.iterdir():
            number = entry.name[:20]
            if (number.isdigit() and int(number) < before) or entry.name.startswith("_commit_"):
                entry.unlink(missing_ok=True)
        sync_path(log)

    def _sync(self, table: Table, after: int, version: int) -> None:
        """Force to disk what Delta wrote after version `after`: Delta itself does not."""
        if not self._durable:
            return
        root = self.path(table)
        log = root / "_delta_log"
        decoder = msgspec.json.Decoder(_Action)
        for number in range(after, version + 1):
            entry = log / f"{number:020d}.json"
            if not entry.exists():
                continue
            for line in entry.read_bytes().splitlines():
                action = decoder.decode(line)
                if action.add is not None:
                    data = root / action.add.path
                    if data.exists():
                        sync_path(data)
            sync_path(entry)
        for entry in log.glob("*checkpoint*"):
            if entry.name == "_last_checkpoint" or entry.name[:20] > f"{after:020d}":
                sync_path(entry)
        sync_path(log)
        sync_path(root)

    def _lost(self, table: Table, what: str) -> StoreError:
        return StoreError(
            f"table {table.name} is damaged: {what}",
            file=str(self.path(table)),
            hint="'seatrial verify' lists all damage; ingest the sources again into a new store",
        )

    def _broken(self, table: Table, error: BaseException) -> StoreError:
        return StoreError(
            f"table {table.name} cannot be read or written: {str(error).strip().splitlines()[0][:300]}",
            file=str(self.path(table)),
            hint="run: seatrial verify; what is lost comes back by ingesting the sources again into a new store",
        )


def _wrong(file: Path, size: int, whole: bool) -> str | None:
    """What is wrong with a Parquet file that should be so many bytes long; None: nothing."""
    try:
        found = file.stat().st_size
        if found != size:
            return f"has {found} bytes instead of {size}"
        with file.open("rb") as stream:
            start = stream.read(len(_MAGIC))
            stream.seek(-len(_MAGIC), os.SEEK_END)
            if start != _MAGIC or stream.read() != _MAGIC:
                return "holds other bytes than were written: it is no Parquet file"
        with hushed():
            pl.read_parquet_schema(file)
            if whole:
                pl.read_parquet(file)
    except FileNotFoundError:
        return "has gone"
    except OSError as error:
        return f"cannot be read: {error.strerror or error}"
    except BaseException as error:
        if not isinstance(error, pl.exceptions.PolarsError) and not is_panic(error):
            raise
        said = str(error).strip().splitlines() or ["it cannot be read"]
        return f"holds other bytes than were written: {said[0][:200]}"
    return None
