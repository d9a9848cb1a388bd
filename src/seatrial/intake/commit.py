"""Prepared sessions into the store, a batch at a time: decided under the lock, committed at once."""

from __future__ import annotations

from typing import Any

import polars as pl

from seatrial.errors import StoreError
from seatrial.intake.assignments import Join
from seatrial.intake.prepare import FileEnd, Part, Prepared
from seatrial.intake.settle import at_home, compare, join, mark_copied, rename, repack, trace_of
from seatrial.records import FileReport, Skip, Trace
from seatrial.records.tables import CONSENTS, TABLES
from seatrial.store import Store, frames, session_row, step_rows
from seatrial.store.consent import frame, newer

BATCH_SESSIONS = 256
BATCH_BYTES = 16 * 1024 * 1024
"""A commit's bounds: sessions, and compressed bytes held in memory until then."""


class Committer:
    """Takes the parts of files in order; `finish` commits what is left. Holds one batch in memory."""

    def __init__(self, store: Store, assignments: Join | None) -> None:
        self._store = store
        self._assignments = assignments
        self._batch: list[Prepared] = []
        self._bytes = 0
        self._owners = store.owners()
        self._owners_version = store.data_version
        self._names: dict[str, dict[str, str]] = {}
        self._sessions: dict[str, int] = {}
        self._ends: list[FileEnd] = []
        self.counts = {"added": 0, "replaced": 0, "known": 0, "copied": 0}
        self.redacted: dict[str, int] = {}
        self.notes: list[Skip] = []

    def take(self, part: Part) -> None:
        """The next session, or the end of a file."""
        if isinstance(part, FileEnd):
            self._ends.append(part)
            return
        self._batch.append(part)
        self._bytes += len(part.packed)
        for what in part.misfits:
            self._note(part, f"session {part.session}: {what}, which no count can hold: it is left out")
        for kind, n in part.redacted.items():
            self.redacted[kind] = self.redacted.get(kind, 0) + n
        if len(self._batch) >= BATCH_SESSIONS or self._bytes >= BATCH_BYTES:
            self._flush()

    def finish(self) -> None:
        """Commit what is left."""
        if self._batch:
            self._flush()

    def name_of(self, file: str, session: str) -> str:
        """What a session of a file is called in the store: another one may have had its name."""
        return self._names.get(file, {}).get(session, session)

    @property
    def sessions(self) -> int:
        """Distinct sessions so far."""
        return len(self._sessions)

    @property
    def steps(self) -> int:
        """Steps of those sessions, copied ones included."""
        return sum(self._sessions.values())

    @property
    def reports(self) -> tuple[FileReport, ...]:
        """The accounts of the files so far, in order."""
        return tuple(end.report for end in self._ends)

    @property
    def lost(self) -> list[Skip]:
        """Sessions that could not be stored."""
        return [skip for end in self._ends for skip in end.lost]

    def _flush(self) -> None:
        batch, self._batch, self._bytes = self._batch, [], 0
        with self._store.writing():
            if self._store.data_version != self._owners_version:
                self._owners = self._store.owners()
            kept = _Kept(self._store, batch)
            batch = self._renamed(batch, kept)
            self._commit(batch, kept)
            self._owners_version = self._store.data_version

    def _renamed(self, batch: list[Prepared], kept: _Kept) -> list[Prepared]:
        """Sessions that merely share another one's id get an id of their own."""
        earlier: dict[str, Prepared] = {}
        for prepared in batch:
            old = earlier.get(prepared.session) or kept.differing(prepared)
            if old is not None and compare(prepared, old) == "other":
                mark = (prepared.row["source_hash"] or prepared.blob)[:8]
                name = f"{prepared.session}~{mark}"
                self._names.setdefault(prepared.file, {})[prepared.session] = name
                self._note(prepared, f"another session has the id {prepared.session}; this one is kept as {name}")
            else:
                earlier[prepared.session] = prepared
        if not self._names:
            return batch
        renamed = [repack(p, rename(trace_of(p), self._names[p.file])) if p.file in self._names else p for p in batch]
        kept.extend(renamed)
        return renamed

    def _commit(self, batch: list[Prepared], kept: _Kept) -> None:
        elsewhere = self._owners.elsewhere({p.session: p.records(copied=False) for p in batch})
        claims: dict[str, str] = {}
        pending: dict[str, Prepared] = {}
        for prepared in batch:
            name = prepared.session
            old = pending.get(name) or kept.get(name)
            if old is not None:
                prepared = at_home(prepared, old)
            verdict = None if old is None else compare(prepared, old)
            if old is not None and verdict in ("older", "twin"):
                self._note_left(prepared, old, older=verdict == "older")
                self._sessions.setdefault(name, len(old.steps))
                continue
            prepared = join(prepared, self._assignments, None if old is None else kept.trace(old))
            taken = elsewhere.get(name, frozenset()) | {
                r for r in prepared.records(copied=False) if claims.get(r, name) != name
            }
            if taken:
                prepared = repack(prepared, mark_copied(trace_of(prepared), taken))
            for record in prepared.records(copied=False):
                claims.setdefault(record, name)
            self._sessions[name] = len(prepared.steps)
            if old is None or old.blob != prepared.blob:
                pending[name] = prepared
        self._count(batch, pending, kept)
        if pending:
            self._write(list(pending.values()), kept)

    def _count(self, batch: list[Prepared], pending: dict[str, Prepared], kept: _Kept) -> None:
        for name in {p.session: None for p in batch}:
            what = "known" if name not in pending else "replaced" if name in kept else "added"
            self.counts[what] += 1
        self.counts["copied"] += sum(bool(s["copied"]) for p in pending.values() for s in p.steps)

    def _write(self, pending: list[Prepared], kept: _Kept) -> None:
        for prepared in pending:
            self._store.blobs.put(prepared.blob, prepared.packed)
        tables = frames([p.row for p in pending], [s for p in pending for s in p.steps])
        if any(p.session in kept for p in pending):
            # What was derived from a replaced session is no longer about it.
            tables = {t.name: pl.DataFrame(schema=t.schema()) for t in TABLES if t.by == "session"} | tables
        given = newer(self._store, [p.consent for p in pending if p.consent is not None])
        if given:
            tables[CONSENTS.name] = frame(given)
        replaced = [*(p.session for p in pending), *(c.subject for c in given)]
        self._store.commit(tables, replace_sessions=replaced)
        for prepared in pending:
            self._owners.claim(prepared.session, prepared.records(copied=False))

    def _note_left(self, prepared: Prepared, old: Prepared, *, older: bool) -> None:
        counts = f"{len(prepared.steps)} steps here, {len(old.steps)} in the store"
        same = f"session {prepared.session} is also in {old.file}, which is kept"
        self._note(prepared, f"an older copy of session {prepared.session}: {counts}" if older else same)

    def _note(self, prepared: Prepared, why: str) -> None:
        self.notes.append(Skip(file=prepared.file, line=None, why=why, noted=True))


class _Kept:
    """What the store holds of a batch's sessions, looked up once."""

    def __init__(self, store: Store, batch: list[Prepared]) -> None:
        self._store = store
        self._rows: dict[str, dict[str, Any]] = {}
        self._looked: set[str] = set()
        self._loaded: dict[str, Prepared] = {}
        self.extend(batch)

    def extend(self, batch: list[Prepared]) -> None:
        names = sorted({p.session for p in batch} - self._looked)
        if names:
            self._looked.update(names)
            wanted = pl.Series("session", names, dtype=pl.String()).implode()
            rows = self._store.table("sessions", ordered=False).filter(pl.col("session").is_in(wanted)).collect()
            self._rows |= {row["session"]: row for row in rows.iter_rows(named=True)}

    def __contains__(self, session: str) -> bool:
        return session in self._rows

    def get(self, session: str) -> Prepared | None:
        row = self._rows.get(session)
        if row is None:
            return None
        if session not in self._loaded:
            try:
                self._loaded[session] = _stored(row, self._store.blobs.packed(row["blob"]))
            except StoreError:
                # A lost or damaged blob is made good by reading its source again, which is being done here.
                self._store.blobs.discard(row["blob"])
                return None
        return self._loaded[session]

    def differing(self, prepared: Prepared) -> Prepared | None:
        """The stored session of that name, unless it is the same or surely comes from the same bytes."""
        row = self._rows.get(prepared.session)
        if row is None or row["blob"] == prepared.blob:
            return None
        if row["source_hash"] is not None and row["source_hash"] == prepared.row["source_hash"]:
            return None
        return self.get(prepared.session)

    def trace(self, prepared: Prepared) -> Trace:
        return trace_of(prepared)


def _stored(row: dict[str, Any], packed: bytes) -> Prepared:
    bare = Prepared(session=row["session"], blob=row["blob"], packed=packed, row=row, steps=[], file=row["file"] or "")
    trace = trace_of(bare)
    return Prepared(
        session=trace.id,
        blob=row["blob"],
        packed=packed,
        row=session_row(trace, row["blob"]),
        steps=step_rows(trace),
        file=row["file"] or "",
    )


__all__ = ["Committer"]
