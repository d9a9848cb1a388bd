"""Is everything that was stored still there, unchanged?"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec
import polars as pl

from seatrial.errors import SeatrialError
from seatrial.records import Check, Trace
from seatrial.records.tables import SESSIONS, TABLES, Table
from seatrial.store.versions import ORIGIN, Version, link

if TYPE_CHECKING:
    from seatrial.store.store import Store

SHOWN = 20
"""Problems of one kind that are listed one by one."""


class Verification(msgspec.Struct, frozen=True, kw_only=True):
    """What `Store.verify` found. `ok` is True exactly when `problems` is empty.

    `superseded` counts blobs that only earlier data versions use; `unreferenced` those that no version uses
    (an ingest that was cut short left them, and running it again takes them up). Neither is a problem.
    """

    ok: bool
    data_version: str
    checks: tuple[Check, ...]
    problems: tuple[str, ...]
    sessions: int
    blobs: int
    superseded: int
    unreferenced: int


class _Findings:
    def __init__(self) -> None:
        self.checks: list[Check] = []
        self.problems: list[str] = []

    def add(self, name: str, found: list[str], why: str, value: float | str | None = None) -> None:
        ok = not found
        self.checks.append(Check(name=name, ok=ok, value=len(found) if value is None else value, why=why))
        self.problems.extend(found[:SHOWN])
        if len(found) > SHOWN:
            self.problems.append(f"{name}: {len(found) - SHOWN} more")


def verify(store: Store, progress: Callable[[int, int | None, str], None] | None = None) -> Verification:
    """Check blobs, tables and the version log against each other, as of the newest data version."""
    found = _Findings()
    history = store.versions.all()
    head = history[-1]
    found.add("version_log", _chain(history), "every version follows from the one before it")
    rows = _rows(store, head, found)
    names = list(store.blobs.names())
    damaged, wrong = [], []
    by_blob = {blob: session for session, blob in rows}
    for done, name in enumerate(names, 1):
        try:
            trace = msgspec.json.decode(store.blobs.get(name), type=Trace)
        except (SeatrialError, msgspec.DecodeError) as error:
            damaged.append(f"blob {name}: {error}")
        else:
            if name in by_blob and trace.id != by_blob[name]:
                wrong.append(f"session {by_blob[name]!r} points to the blob of session {trace.id!r}")
        if progress is not None:
            progress(done, len(names), "blobs")
    found.add("blob_hashes", damaged, f"sha256 of {len(names)} blobs derived again")
    present = set(names)
    missing = [f"session {session!r}: its blob {blob} is missing" for session, blob in rows if blob not in present]
    found.add("sessions_have_blobs", missing + wrong, "every session row has its blob, and the blob is that session")
    loose = present - set(by_blob)
    superseded = loose & {blob for version in history for blob in version.superseded}
    for table in TABLES:
        _table(store, table, head, {session for session, _ in rows}, found)
    return Verification(
        ok=not found.problems,
        data_version=head.stamp,
        checks=tuple(found.checks),
        problems=tuple(found.problems),
        sessions=len(rows),
        blobs=len(names),
        superseded=len(superseded),
        unreferenced=len(loose - superseded),
    )


def _chain(history: list[Version]) -> list[str]:
    wrong = []
    for previous, version in itertools.pairwise(history):
        if version.digest != link(previous, version.content):
            wrong.append(f"data version {version.stamp} does not follow from {previous.stamp}")
    return wrong if history[0] == ORIGIN else ["the version log does not begin at its origin"]


def _rows(store: Store, head: Version, found: _Findings) -> list[tuple[str, str]]:
    try:
        frame = store.table(SESSIONS.name, version=head.number).select("session", "blob").collect()
    except (SeatrialError, pl.exceptions.PolarsError, OSError) as error:
        found.add("table_sessions", [f"table sessions cannot be read: {error}"], "the table can be read")
        return []
    return list(frame.iter_rows())


def _table(store: Store, table: Table, head: Version, sessions: set[str], found: _Findings) -> None:
    name = f"table_{table.name}"
    try:
        lazy = store.table(table.name, version=head.number, ordered=False)
        # Reading whole columns, not their footers, is what notices a truncated file.
        frame = lazy.collect(engine="streaming")
    except (SeatrialError, pl.exceptions.PolarsError, OSError) as error:
        if not any(c.name == name for c in found.checks):
            found.add(name, [f"table {table.name} cannot be read: {error}"], "the table can be read")
        return
    doubled = frame.group_by(table.key).len().filter(pl.col("len") > 1).sort(table.key)
    problems = [f"table {table.name}: key {row} stands {n} times" for *row, n in doubled.iter_rows()]
    strangers = sorted(set(frame["session"].unique().to_list()) - sessions)
    problems += [f"table {table.name}: rows of unknown session {session!r}" for session in strangers]
    found.add(name, problems, f"{frame.height} rows read; keys unique; every session known")
