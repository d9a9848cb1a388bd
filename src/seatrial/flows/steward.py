"""What a person may ask of a store: to be told what it holds of them, to be forgotten, to take consent back."""

from __future__ import annotations

import csv
import io
import math
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from seatrial._version import __version__
from seatrial.canon import canonical
from seatrial.errors import EvidenceError, InputError, SettingsError, StoreError, UsageError
from seatrial.flows.look import safe_name
from seatrial.records import Consent
from seatrial.records.tables import TABLES, TRIAGE
from seatrial.settings import load
from seatrial.store import Erasure, Store, consents, erase, permission, set_consent, withdraw
from seatrial.store.erase import before, family, of_user
from seatrial.store.scan import Proof

ProgressFn = Callable[[int, int | None, str], None]

_PSEUDONYM = re.compile(r"user-[0-9a-f]{16}")
_TOLD = 20
_COLUMNS = "user or session, purposes; optional: basis, time, withdrawn"


class Subject(msgspec.Struct, frozen=True):
    """Someone or something that a request is about: the subject of consents, and the sessions, sub-agents included."""

    names: tuple[str, ...]
    sessions: tuple[str, ...]


def subject_of(store: Store, *, user: str | None = None, sessions: Sequence[str] = ()) -> Subject:
    """The sessions of a person, by name or pseudonym, or sessions by id (or the start of one).

    Raises:
        InputError: the store holds nothing of them.
        UsageError: neither a user nor a session is named, or both.
    """
    if (user is None) == (not sessions):
        raise UsageError("name a user, or sessions", hint="seatrial forget USER, or seatrial forget --session ID")
    if user is None:
        chosen = [store.resolve(s) for s in sessions]
        return Subject(tuple(chosen), tuple(family(store, chosen)))
    name = subject_name(store, user)
    found = family(store, of_user(store, name))
    if not found and all(c.subject != name for c in consents(store)):
        raise InputError(
            "the store holds nothing of that user",
            file=str(store.path),
            hint="users are matched by the exact name that their sessions had, or by pseudonym",
        )
    return Subject((name,), tuple(found))


def subject_name(store: Store, user: str) -> str:
    """How a person is called in the store: a pseudonym stands for itself."""
    if _PSEUDONYM.fullmatch(user):
        return user
    return store.pseudonyms()[0].of(user)


def forget(store: Store, about: Subject, progress: ProgressFn | None = None) -> Erasure:
    """Erase everything of a subject, consents included."""
    return erase(store, about.sessions, subjects=about.names, progress=progress)


def take_back(store: Store, about: Subject, progress: ProgressFn | None = None) -> Erasure:
    """Withdraw consent: what is there is erased; that it was withdrawn stays on record, for what may yet come."""
    for name in about.names:
        withdraw(store, name)
    return erase(store, about.sessions, remembered=about.names, progress=progress)


def tasks_made(store: Store) -> dict[str, str]:
    """The task that each session of triage became. It stands in a suite file, outside the store, and quotes it."""
    made = store.table(TRIAGE.name, ordered=False).filter(pl.col("task").is_not_null()).select("session", "task")
    return dict(made.collect().sort("session").iter_rows())


def cutoff(before_date: str | None, older_than: int | None) -> float:
    """The moment before which sessions must have ended to be purged (seconds): of a date, of an age in days, or of
    the setting ``retention_days``.

    Raises:
        UsageError: both are given, or the date cannot be read.
        SettingsError: neither is given and there is no such setting.
    """
    if before_date is not None and older_than is not None:
        raise UsageError("give --before or --older-than, not both")
    if before_date is not None:
        moment = _time(before_date)
        if moment is None:
            raise UsageError(f"{before_date!r} is no date", hint="write it as 2026-11-30")
        return moment
    days = older_than if older_than is not None else load().retention_days
    if days is None:
        raise SettingsError("how old?", hint="give --before or --older-than, or set retention_days in seatrial.toml")
    return time.time() - days * 86_400


class Purge(msgspec.Struct, frozen=True, kw_only=True):
    """What a purge erased (None: a dry run), how many sessions that is, and how many have no time and stay."""

    sessions: int
    undated: int
    erased: Erasure | None


def purge(store: Store, moment: float, *, dry_run: bool = False, progress: ProgressFn | None = None) -> Purge:
    """Erase sessions and attempts that ended before a moment, and every earlier state of all others.

    Where nothing is that old nothing is done, but that an erasure that was cut short is ended.
    """
    old, undated = before(store, moment)
    if dry_run:
        return Purge(sessions=len(family(store, old)), undated=undated, erased=None)
    if not old and not store.half_erased():
        nothing = Proof(files=0, bytes=0, unpacked_bytes=0, looked_for={}, found=())
        none = Erasure(
            sessions=(), rows={}, blobs=0, versions=0, shared=0, data_version=store.data_version, proof=nothing
        )
        return Purge(sessions=0, undated=undated, erased=none)
    done = erase(store, old, progress=progress)
    return Purge(sessions=len(done.sessions), undated=undated, erased=done)


def export_subject(store: Store, about: Subject, out: Path) -> dict[str, Any]:
    """Everything that the store holds of a subject, as files: traces, rows of every table, and what they mean.

    Raises:
        InputError: `out` cannot be written, or is not empty.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        if any(out.iterdir()):
            raise InputError("this folder is not empty", file=str(out), hint="give an empty or new folder")
        (out / "traces").mkdir()
        (out / "tables").mkdir()
        blobs = store.blobs_of(about.sessions)
        for session, blob in sorted(blobs.items()):
            (out / "traces" / f"{safe_name(session)}.json").write_bytes(store.blobs.get(blob))
        rows = {}
        for table in TABLES:
            values = about.sessions if table.by == "session" else (*about.names, *about.sessions)
            wanted = pl.Series(table.by, values, dtype=pl.String()).implode()
            found = store.table(table.name).filter(pl.col(table.by).is_in(wanted)).collect()
            if found.height:
                rows[table.name] = found.height
                found.write_ndjson(out / "tables" / f"{table.name}.jsonl")
        result = {
            "subject": list(about.names),
            "sessions": len(about.sessions),
            "traces": len(blobs),
            "originals": len({o.id for session in about.sessions for o in store.originals.of(session)}),
            "rows": rows,
            "columns": {t.name: {c.name: c.about for c in t.columns if c.about} for t in TABLES if t.name in rows},
        }
        note = {"made_by": f"seatrial {__version__}", "made": time.time(), "data_version": store.data_version, **result}
        (out / "about.json").write_bytes(msgspec.json.format(canonical(note), indent=1) + b"\n")
    except OSError as error:
        raise InputError(f"cannot write there: {error.strerror}", file=str(out)) from error
    return {k: v for k, v in result.items() if k != "columns"}


def export_originals(store: Store, sessions: Sequence[str], out: Path) -> dict[str, Any]:
    """The files that some sessions came from, decrypted, as they were read; only the owner can read them.

    Raises:
        EvidenceError: none of them was kept, or no session may be exported.
        InputError: `out` cannot be written, or there is no such session.
        MissingExtra: there is no cryptography.
        StoreError: one is damaged.
    """
    named = [store.resolve(s) for s in sessions]
    allowed, refused = permission(store, "export").among(named)
    found = {original.id: original for session in allowed for original in store.originals.of(session)}
    if not allowed:
        why = "; ".join(f"{d.n} {d.what}: {d.why}" for d in refused)
        raise EvidenceError(f"no original of these sessions may be exported ({why})")
    if not found:
        raise EvidenceError("the store keeps no original of these sessions: they were read without --keep-raw")
    files = []
    try:
        out.mkdir(parents=True, exist_ok=True)
        for original in found.values():
            target = out / safe_name(f"{original.id[:8]}-{Path(original.file).name}")
            try:
                with open(target, "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as plain:
                    for piece in store.originals.plain(original):
                        plain.write(piece)
            except StoreError:
                target.unlink(missing_ok=True)
                raise
            files.append({"file": target.name, "source": original.file, "sessions": list(original.sessions)})
    except OSError as error:
        raise InputError(f"cannot write there: {error.strerror}", file=str(out)) from error
    return {"files": files, "left_out": refused}


# Consent


def consent_file(store: Store, path: Path) -> list[Consent]:
    """Consents from a CSV or JSON Lines file; a user's name becomes the pseudonym.

    Raises:
        InputError: it cannot be read, or a line of it cannot mean anything.
    """
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the consents cannot be read: {error}", file=str(path)) from error
    rows = _json_lines(text, path) if path.suffix in (".jsonl", ".ndjson") else _csv(text, path)
    given, wrong = [], []
    for line, row in rows:
        try:
            given.append(_consent(store, row, path, line))
        except InputError as error:
            wrong.append(error)
    if len(wrong) > 1:
        told = "; ".join(f"line {e.line}: {e.message}" for e in wrong[:_TOLD])
        more = f"; and {len(wrong) - _TOLD} more" if len(wrong) > _TOLD else ""
        first = wrong[0]
        raise InputError(f"{len(wrong)} lines: {told}{more}", hint=first.hint, file=str(path), line=first.line)
    if wrong:
        raise wrong[0]
    return given


def _csv(text: str, path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    rows = csv.DictReader(io.StringIO(text, newline=""))
    if "purposes" not in (rows.fieldnames or ()):
        raise InputError("the consents lack a column purposes", file=str(path), line=1, hint=f"columns are {_COLUMNS}")
    for row in rows:
        yield rows.line_num, row


def _json_lines(text: str, path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                yield number, msgspec.json.decode(line, type=dict[str, Any])
            except msgspec.DecodeError as error:
                raise InputError(f"not a JSON object: {error}", file=str(path), line=number) from error


def _consent(store: Store, row: Mapping[str, Any], path: Path, line: int) -> Consent:
    user, session = (str(row.get(k) or "").strip() for k in ("user", "session"))
    if bool(user) == bool(session):
        raise InputError("a line names a user or a session", file=str(path), line=line, hint=f"columns: {_COLUMNS}")
    purposes = row.get("purposes") or ()
    if isinstance(purposes, str):
        purposes = [p for p in re.split(r"[\s,;|]+", purposes) if p]
    return Consent(
        subject=subject_name(store, user) if user else session,
        purposes=tuple(str(p) for p in purposes),
        basis=str(row.get("basis") or "").strip() or None,
        time=_moment(row, "time", path, line),
        withdrawn=_moment(row, "withdrawn", path, line),
    )


def _moment(row: Mapping[str, Any], name: str, path: Path, line: int) -> float | None:
    given = row.get(name)
    if given is None or not str(given).strip():
        return None
    found = _time(str(given))
    if found is None:
        raise InputError(f"{name} {given!r} is no time", file=str(path), line=line, hint="seconds or ISO 8601")
    return found


def _time(text: str) -> float | None:
    try:
        seconds = float(text)
    except ValueError:
        pass
    else:
        return seconds if math.isfinite(seconds) else None
    try:
        when = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()


def record_consents(store: Store, given: Sequence[Consent]) -> str:
    """Put consents on record; returns the data version.

    Raises:
        UsageError: a purpose is unknown.
    """
    return set_consent(store, given)


__all__ = [
    "Purge",
    "Subject",
    "consent_file",
    "cutoff",
    "export_originals",
    "export_subject",
    "forget",
    "purge",
    "record_consents",
    "subject_name",
    "subject_of",
    "take_back",
]
