"""Is everything that was stored still there, unchanged?"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import msgspec
import polars as pl

from seatrial.errors import SeatrialError
from seatrial.records import Check, Trace
from seatrial.records.tables import ATTEMPTS, SESSIONS, TABLES, TRIAGE, Table
from seatrial.store.blobs import Blobs
from seatrial.store.delta import DeltaTables
from seatrial.store.originals import Originals
from seatrial.store.results import Results
from seatrial.store.versions import ORIGIN, Version, Versions, link

SHOWN = 20
"""Problems of one kind that are listed one by one."""


class Verification(msgspec.Struct, frozen=True, kw_only=True):
    """What `Store.verify` found. `ok` is True exactly when `problems` is empty.

    `superseded` counts blobs that only earlier data versions use; `unreferenced` those that no version uses
    (an ingest that was cut short left them, and running it again takes them up). Neither is a problem.
    `data_version` is ``unknown`` where the version log is damaged.
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


def verify(
    versions: Versions,
    blobs: Blobs,
    delta: DeltaTables,
    progress: Callable[[int, int | None, str], None] | None = None,
    *,
    erasing: bool = False,
    results: Results | None = None,
    originals: Originals | None = None,
    key: Sequence[str] = (),
) -> Verification:
    """Check blobs, tables and the version log against each other, as of the newest data version.

    `erasing`: an erasure was cut short, which is a problem as long as it has not been ended. `key`: what is wrong
    with the pseudonym key.
    """
    found = _Findings()
    if erasing:
        found.add("erasure", ["an erasure was cut short: run seatrial purge, which ends it"], "nothing is half erased")
    found.add("pseudonym_key", list(key), "it is the key that people were named with")
    try:
        history = versions.all()
    except SeatrialError as error:
        return _without_history(found, blobs, str(error), results, originals)
    head = history[-1]
    broken = {t.name for t in TABLES if not _files(delta, t, head, found)}
    found.add("version_log", _chain(history), "every version follows from the one before it")
    sessions = [] if SESSIONS.name in broken else _rows(delta, SESSIONS, head)
    rows = sessions + ([] if ATTEMPTS.name in broken else _rows(delta, ATTEMPTS, head))
    names = list(blobs.names())
    damaged: list[str] = []
    unlike: list[str] = []
    by_blob = {blob: session for session, blob in rows}
    for done, name in enumerate(names, 1):
        try:
            trace = msgspec.json.decode(blobs.get(name), type=Trace)
        except (SeatrialError, msgspec.DecodeError) as error:
            damaged.append(f"blob {name}: {error}")
        else:
            if name in by_blob and trace.id != by_blob[name]:
                unlike.append(f"session {by_blob[name]!r} points to the blob of session {trace.id!r}")
        if progress is not None:
            progress(done, len(names), "blobs")
    found.add("blob_hashes", damaged, f"sha256 of {len(names)} blobs derived again")
    present = set(names)
    missing = [f"session {session!r}: its blob {blob} is missing" for session, blob in rows if blob not in present]
    found.add("sessions_have_blobs", missing + unlike, "every session and attempt has its own blob")
    loose = present - set(by_blob)
    superseded = loose & {blob for version in history for blob in version.superseded}
    known = {session for session, _ in sessions} | _attempts(delta, broken, head)
    for table in TABLES:
        if table.name not in broken:
            unknown = broken & {SESSIONS.name, ATTEMPTS.name} or table in (ATTEMPTS, TRIAGE) or table.by != "session"
            _table(delta, table, head, None if unknown else known, found)
    if originals is not None:
        wrong = originals.problems(None if broken & {SESSIONS.name, ATTEMPTS.name} else known)
        if wrong or originals.all():
            whole = (
                f"{len(originals.all())} originals decrypt to the bytes that their names say; their sessions are here"
            )
            found.add("originals", wrong, whole)
    if results is not None:
        kept = len(results.heads())
        found.add("results", results.problems(), f"{kept} results of commands hold what their names say")
    return Verification(
        ok=not found.problems,
        data_version=head.stamp,
        checks=tuple(found.checks),
        problems=tuple(found.problems),
        sessions=len(sessions),
        blobs=len(names),
        superseded=len(superseded),
        unreferenced=len(loose - superseded),
    )


def _without_history(
    found: _Findings, blobs: Blobs, why: str, results: Results | None, originals: Originals | None
) -> Verification:
    """What can still be said where the version log is damaged: nothing tells which rows are the newest."""
    found.add("version_log", [why], "every version follows from the one before it")
    names, damaged = list(blobs.names()), []
    for name in names:
        try:
            msgspec.json.decode(blobs.get(name), type=Trace)
        except (SeatrialError, msgspec.DecodeError) as error:
            damaged.append(f"blob {name}: {error}")
    found.add("blob_hashes", damaged, f"sha256 of {len(names)} blobs derived again")
    if originals is not None:
        found.add("originals", originals.problems(), "originals decrypt to the bytes that their names say")
    if results is not None:
        found.add("results", results.problems(), "results of commands hold what their names say")
    return Verification(
        ok=False,
        data_version="unknown",
        checks=tuple(found.checks),
        problems=tuple(found.problems),
        sessions=0,
        blobs=len(names),
        superseded=0,
        unreferenced=0,
    )


def _chain(history: list[Version]) -> list[str]:
    wrong = []
    for previous, version in itertools.pairwise(history):
        if version.digest != link(previous, version.content):
            wrong.append(f"data version {version.stamp} does not follow from {previous.stamp}")
    return wrong if history[0] == ORIGIN else ["the version log does not begin at its origin"]


def _files(delta: DeltaTables, table: Table, head: Version, found: _Findings) -> bool:
    """Can the table be read at all? Says what is wrong with its files if not."""
    at = head.tables.get(table.name)
    wrong = []
    if at is not None:
        try:
            wrong = [f"table {table.name}: {what}" for what in delta.damaged(table, at, whole=True)]
            if not wrong:
                delta.scan(table, head.tables.get(table.name)).collect(engine="streaming")
        except (SeatrialError, pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
            wrong = [f"table {table.name} cannot be read: {error}"]
    if wrong:
        found.add(f"table_{table.name}", wrong, "its files are there, of the recorded size, and can be read")
    return not wrong


def _rows(delta: DeltaTables, table: Table, head: Version) -> list[tuple[str, str]]:
    frame = delta.scan(table, head.tables.get(table.name)).select("session", "blob").collect()
    return list(frame.drop_nulls().iter_rows())


def _attempts(delta: DeltaTables, broken: set[str], head: Version) -> set[str]:
    """Every attempt, also those that left no trace."""
    if ATTEMPTS.name in broken:
        return set()
    return set(delta.scan(ATTEMPTS, head.tables.get(ATTEMPTS.name)).select("session").collect()["session"].to_list())


def _table(delta: DeltaTables, table: Table, head: Version, sessions: set[str] | None, found: _Findings) -> None:
    columns = list(dict.fromkeys((*table.key, table.by)))
    frame = delta.scan(table, head.tables.get(table.name)).select(columns).collect()
    doubled = frame.group_by(table.key).len().filter(pl.col("len") > 1).sort(table.key)
    problems = [f"table {table.name}: key {row} stands {n} times" for *row, n in doubled.iter_rows()]
    if sessions is not None:
        strangers = sorted(set(frame["session"].unique().to_list()) - sessions)
        problems += [f"table {table.name}: rows of unknown session {session!r}" for session in strangers]
    found.add(f"table_{table.name}", problems, f"{frame.height} rows read; keys unique; every session known")
