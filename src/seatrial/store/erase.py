"""Sessions and people out of a store, for good: rows, blobs, earlier versions and what the log says of them.

Rows go first, by a commit like any other, so that nobody reads them from then on. Then what is left on disk goes:
superseded Parquet files, log entries, blobs, and the way back to every earlier data version. A note of what is being
erased lies in the store until that is done, so that a crash in between is made good by the next erasure.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import polars as pl

from seatrial.canon import canonical
from seatrial.errors import StoreError
from seatrial.records.tables import ATTEMPTS, CONSENTS, SESSIONS, STEPS, TABLES, Table
from seatrial.records.trace import Trace
from seatrial.store import links
from seatrial.store.durable import clear_scratch, sync_path, write_atomic
from seatrial.store.layout import ERASING
from seatrial.store.ledgers import LEDGERS, ledger_attempts
from seatrial.store.scan import Proof
from seatrial.store.store import Store

_LOOSE_S = 24 * 3600.0
_TEXT = 24
_TEXTS = 2000

Progress = Callable[[int, int | None, str], None]


class Erasure(msgspec.Struct, frozen=True, kw_only=True):
    """What was erased: sessions, rows by table, blobs, and `versions` that can no longer be read.

    `linked` are sessions that stay and named one of the erased (as what they continue, or in what they quote): the
    name is struck out of them, and their originals are not kept. `shared` counts source records that sessions which
    stay also hold, as copies; their text stays there.
    """

    sessions: tuple[str, ...]
    linked: tuple[str, ...] = ()
    rows: dict[str, int]
    blobs: int
    versions: int
    shared: int
    data_version: str
    proof: Proof


class _Marker(msgspec.Struct):
    blobs: list[str]
    sessions: list[str] = []
    subjects: list[str] = []
    linked: list[str] = []


def erase(
    store: Store,
    sessions: Sequence[str],
    *,
    subjects: Sequence[str] = (),
    remembered: Sequence[str] = (),
    progress: Progress | None = None,
) -> Erasure:
    """Erase sessions, with their sub-agents, and the consent of `subjects`; then prove that they are gone.

    Every earlier data version can no longer be read afterwards, whoever it is about. `remembered` are ids that stay
    on record as subjects of a withdrawn consent.

    Raises:
        MissingExtra: originals are kept, and what it takes to look into those that stay is not installed.
        StoreError: the store is locked or damaged.
    """
    say = progress or (lambda done, total, what: None)
    store.originals.ready()
    with store.writing():
        _finish(store)
        wanted = family(store, sessions)
        before = store.versions.head()
        wanted_for = _identifiers(store, wanted, subjects)
        blobs = _blobs(store, set(wanted), set(subjects))
        linked = links.naming(store, wanted)
        before_them = [struck.blob for struck in linked.values()]
        store.begin_erasing(canonical(_Marker([*blobs, *before_them], wanted, list(subjects), sorted(linked))))
        say(0, 3, "erasing")
        links.keep(store, linked)
        # A session may have had a consent of its own.
        agreed = [s for s in dict.fromkeys([*subjects, *wanted]) if s not in remembered]
        rows = _counts(store, wanted, agreed)
        empty = {t.name: pl.DataFrame(schema=t.schema()) for t in TABLES}
        store.commit({t.name: empty[t.name] for t in TABLES if t.by == "session"}, replace_sessions=wanted)
        store.commit({CONSENTS.name: empty[CONSENTS.name]}, replace_sessions=agreed)
        say(1, 3, "erasing")
        _finish(store)
        say(2, 3, "erasing")
        proof = store.look_for({k: [i for i in ids if i not in remembered] for k, ids in wanted_for.ids.items()})
        say(3, 3, "erasing")
    return Erasure(
        sessions=tuple(wanted),
        rows=rows,
        linked=tuple(sorted(linked)),
        blobs=len(blobs),
        versions=before.number,
        shared=wanted_for.shared,
        data_version=store.data_version,
        proof=proof,
    )


def family(store: Store, sessions: Sequence[str]) -> list[str]:
    """These sessions and every sub-agent under them, sorted; sessions that the store does not have are left out.

    Attempts are sessions here, those of runs that were cut short included.
    """
    parents = dict(store.table(SESSIONS.name, ordered=False).select("session", "parent").collect().iter_rows())
    attempts = set(store.table(ATTEMPTS.name, ordered=False).select("session").collect()["session"].to_list())
    attempts |= ledger_attempts(store.path).keys()
    children: dict[str, list[str]] = {}
    for session, parent in parents.items():
        if parent is not None:
            children.setdefault(parent, []).append(session)
    found: set[str] = set()
    todo = [s for s in sessions if s in parents or s in attempts or s in children]
    while todo:
        one = todo.pop()
        if one not in found:
            found.add(one)
            todo.extend(children.get(one, []))
    return sorted(found)


def of_user(store: Store, pseudonym: str) -> list[str]:
    """The sessions of a person, sorted; sub-agents of theirs that name no user are found by `family`."""
    rows = store.table(SESSIONS.name).filter((pl.col("user") == pseudonym) | (pl.col("unit") == pseudonym))
    return rows.select("session").collect()["session"].to_list()


def before(store: Store, moment: float) -> tuple[list[str], int]:
    """Sessions and attempts that ended before `moment` (seconds), and how many have no time and therefore stay."""
    sessions = store.table(SESSIONS.name).filter(pl.col("parent").is_null())
    ended = sessions.select("session", pl.coalesce("end", "start").alias("at")).collect()
    attempts = store.table(ATTEMPTS.name).select("session", pl.col("start").alias("at")).collect()
    both = pl.concat([ended, attempts.join(ended, on="session", how="anti")])
    open_runs = [(a.session, a.start) for a in ledger_attempts(store.path).values()]
    loose = pl.DataFrame(open_runs, schema=both.schema, orient="row").join(both, on="session", how="anti")
    both = pl.concat([both, loose])
    old = both.filter(pl.col("at") < moment)["session"].sort().to_list()
    return old, int(both["at"].null_count())


def expire(store: Store, days: int, now: float | None = None) -> Erasure | None:
    """Erase what ended more than `days` days ago; None when there is nothing of the kind.

    Raises:
        StoreError: the store is locked or damaged.
    """
    moment = (time.time() if now is None else now) - days * 86_400
    with store.writing():
        old, _ = before(store, moment)
        return erase(store, old) if old else None


class _Wanted(msgspec.Struct):
    ids: dict[str, list[str]]
    shared: int


def _identifiers(store: Store, sessions: list[str], subjects: Sequence[str]) -> _Wanted:
    """What must not be found afterwards."""
    chosen = pl.Series("session", sessions, dtype=pl.String()).implode()
    steps = store.table(STEPS.name, ordered=False).select("session", "source_ids").explode("source_ids").drop_nulls()
    mine = steps.filter(pl.col("session").is_in(chosen)).select("source_ids").unique().collect()["source_ids"]
    asked = mine.implode()
    others = steps.filter(~pl.col("session").is_in(chosen) & pl.col("source_ids").is_in(asked))
    elsewhere = set(others.select("source_ids").unique().collect()["source_ids"].to_list()) if len(mine) else set()
    blobs = store.blobs_of(sessions)
    # An attempt's or task's id may stand in other rows; a session's own name and content may not.
    return _Wanted(
        {
            "session": sessions,
            "blob": sorted(blobs.values()),
            "subject": sorted(subjects),
            "source record": sorted(r for r in mine.to_list() if r not in elsewhere and len(r) >= _TEXT // 2),
        },
        len(elsewhere),
    )


def _blobs(store: Store, sessions: set[str], subjects: set[str]) -> list[str]:
    """Blobs to remove: of these sessions, of every earlier state of any session, and loose ones of theirs or old."""
    current = _used(store)
    superseded = {blob for version in store.versions.all() for blob in version.superseded}
    gone = []
    for name in store.blobs.names():
        if name in current:
            wanted = current[name] in sessions
        else:
            wanted = name in superseded or _loose(store, name, sessions, subjects)
        if wanted:
            gone.append(name)
    return gone


def _used(store: Store) -> dict[str, str]:
    """Blobs that rows, and the ledgers of runs that were cut short, point to, and whose they are."""
    current = {a.blob: a.session for a in ledger_attempts(store.path).values() if a.blob is not None}
    for table in (SESSIONS, ATTEMPTS):
        rows = store.table(table.name, ordered=False).select("blob", "session").drop_nulls().collect()
        current |= dict(rows.iter_rows())
    return current


def _loose(store: Store, name: str, sessions: set[str], subjects: set[str]) -> bool:
    """Whether a blob that no version uses is to go. A recent one of someone else may be about to be committed."""
    try:
        if time.time() - store.blobs.path(name).stat().st_mtime > _LOOSE_S:
            return True
        trace = store.trace_of(name)
    except (StoreError, OSError):
        return True
    return _is_of(trace, sessions, subjects)


def _is_of(trace: Trace, sessions: set[str], subjects: set[str]) -> bool:
    return trace.id in sessions or trace.parent in sessions or trace.user in subjects


def _counts(store: Store, sessions: list[str], subjects: Sequence[str]) -> dict[str, int]:
    out = {}
    for table in TABLES:
        n = _rows_of(store, table, sessions if table.by == "session" else list(subjects))
        if n:
            out[table.name] = n
    return out


def _rows_of(store: Store, table: Table, values: list[str]) -> int:
    wanted = pl.Series(table.by, values, dtype=pl.String()).implode()
    lazy = store.table(table.name, ordered=False).filter(pl.col(table.by).is_in(wanted))
    return int(lazy.select(pl.len()).collect().item())


def _finish(store: Store) -> None:
    """Remove from disk what no reader can see any more. May be begun again after a crash at any place."""
    path = store.path / ERASING
    try:
        marker = msgspec.json.decode(path.read_bytes(), type=_Marker)
    except FileNotFoundError:
        return
    head = store.versions.head()
    at = {t: head.tables[t.name] for t in TABLES if t.name in head.tables}
    now = {t: store.delta.expunge(t, version) for t, version in at.items()}
    moment = time.time()
    versions = [
        msgspec.structs.replace(v, tables={}, superseded=(), erased=v.erased or moment)
        for v in store.versions.all()
        if v.number < head.number
    ]
    tables = {t.name: version for t, version in now.items()}
    store.versions.rewrite([*versions, msgspec.structs.replace(head, tables=tables, superseded=())])
    for table, version in now.items():
        store.delta.drop_log(table, version)
    _strike(store.path / LEDGERS, marker.sessions)
    # A crash before the rows were gone leaves blobs in the note that are still in use.
    used = _used(store)
    store.blobs.remove(b for b in marker.blobs if b not in used)
    store.audit.strike(marker.sessions)
    store.originals.strike([*marker.sessions, *marker.linked])
    store.strike_results([*marker.sessions, *marker.blobs, *marker.subjects])
    clear_scratch(store.path)
    store.end_erasing()


def _strike(folder: Path, sessions: Sequence[str]) -> None:
    """Take erased attempts out of the ledgers of runs: a run that is resumed makes them again."""
    if not folder.is_dir() or not sessions:
        return
    marks = [canonical(session) for session in sessions]
    for path in sorted(folder.glob("*.jsonl")):
        lines = path.read_bytes().splitlines(keepends=True)
        kept = [line for line in lines if not any(mark in line for mark in marks)]
        if len(kept) < len(lines):
            write_atomic(path, b"".join(kept))
            sync_path(folder)
