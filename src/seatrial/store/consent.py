"""Who agreed to what: records of consent, and the one place that says which sessions a purpose may use."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Literal

import msgspec
import polars as pl

from seatrial.errors import UsageError
from seatrial.records import Dropped
from seatrial.records.tables import CONSENTS, SESSIONS
from seatrial.records.trace import Consent, Trace
from seatrial.settings import load
from seatrial.store.store import Store

Purpose = Literal["rank", "label", "judge", "export", "serve"]
PURPOSES: tuple[Purpose, ...] = ("rank", "label", "judge", "export", "serve")
Default = Literal["assume", "require"]


class Permission(msgspec.Struct, frozen=True, kw_only=True):
    """Which sessions a purpose may not use, and why, by session. Whatever is not named may be used."""

    purpose: Purpose
    denied: dict[str, str]

    def allows(self, session: str) -> bool:
        """Whether this session may be used."""
        return session not in self.denied

    def among(self, sessions: Sequence[str]) -> tuple[list[str], tuple[Dropped, ...]]:
        """Those of some sessions that may be used, in order, and the others counted by reason."""
        kept = [s for s in sessions if s not in self.denied]
        reasons: dict[str, int] = {}
        for session in sessions:
            if session in self.denied:
                why = self.denied[session]
                reasons[why] = reasons.get(why, 0) + 1
        what = f"sessions without consent to {self.purpose}"
        return kept, tuple(Dropped(what=what, n=n, why=why) for why, n in sorted(reasons.items()))


def permission(store: Store, purpose: Purpose, default: Default | None = None) -> Permission:
    """What a purpose may use, by the consents on record.

    A session is governed by the consent of its person and by one that names the session itself; each must allow the
    purpose, and a withdrawn one allows nothing. A sub-agent is governed by the session that started it. Where there
    is no record, `default` decides: ``assume`` lets it be used, ``require`` does not (None: the setting ``consent``).
    """
    if default is None:
        default = load().consent
    on_record = {c.subject: c for c in consents(store)}
    if not on_record and default == "assume":
        return Permission(purpose=purpose, denied={})
    rows = store.table(SESSIONS.name).select("session", "user", "parent").collect()
    users = {session: user for session, user, _ in rows.iter_rows()}
    parents = {session: parent for session, _, parent in rows.iter_rows() if parent is not None}
    denied = {}
    for session in users:
        line = _line(session, parents)
        subjects = dict.fromkeys([*line, *(u for s in line if (u := users.get(s)) is not None)])
        why = _why_not([on_record[s] for s in subjects if s in on_record], purpose, default)
        if why is not None:
            denied[session] = why
    return Permission(purpose=purpose, denied=denied)


def permission_of(
    traces: Sequence[Trace], purpose: Purpose, *, store: Store | None = None, default: Default | None = None
) -> Permission:
    """`permission` for traces that come from files: by the consents that they carry, and those on record in `store`.

    A trace that carries one is also governed by it; a store knows a trace's person by the pseudonym of its name.
    """
    if default is None:
        default = load().consent
    on_record = {} if store is None else {c.subject: c for c in consents(store)}
    names = None if store is None else store.pseudonyms()[0]
    carried: dict[str, Consent] = {t.id: t.consent for t in traces if t.consent is not None}
    people: dict[str, str] = {t.id: t.user for t in traces if t.user is not None}
    parents = {t.id: t.parent for t in traces if t.parent is not None}
    denied = {}
    for session in dict.fromkeys(t.id for t in traces):
        line = _line(session, parents)
        users = [people[s] for s in line if s in people]
        subjects = [*line, *users, *(names.of(u) for u in users if names is not None)]
        given = [on_record[s] for s in dict.fromkeys(subjects) if s in on_record]
        why = _why_not([*given, *(carried[s] for s in line if s in carried)], purpose, default)
        if why is not None:
            denied[session] = why
    return Permission(purpose=purpose, denied=denied)


def _line(session: str, parents: dict[str, str]) -> list[str]:
    """A session and those above it; a circle ends where it closes."""
    line = [session]
    while (above := parents.get(line[-1])) is not None and above not in line:
        line.append(above)
    return line


def _why_not(given: list[Consent], purpose: Purpose, default: Default) -> str | None:
    if any(c.withdrawn is not None for c in given):
        return "consent was withdrawn"
    if any(purpose not in c.purposes for c in given):
        return "consent was given for other purposes only"
    return "there is no record of consent" if not given and default == "require" else None


def consents(store: Store) -> list[Consent]:
    """Every consent on record, by subject."""
    rows = store.table(CONSENTS.name).collect()
    return [
        Consent(
            subject=row["subject"],
            purposes=tuple(row["purposes"] or ()),
            basis=row["basis"],
            time=row["time"],
            withdrawn=row["withdrawn"],
        )
        for row in rows.iter_rows(named=True)
    ]


def set_consent(store: Store, given: Sequence[Consent]) -> str:
    """Put consents on record; one replaces an earlier one of its subject. Returns the data version.

    Raises:
        UsageError: a purpose is unknown.
    """
    for one in given:
        for purpose in one.purposes:
            if purpose not in PURPOSES:
                raise UsageError(f"there is no purpose {purpose!r}", hint=f"one of: {', '.join(PURPOSES)}")
    newest = {one.subject: one for one in given}
    with store.writing():
        there = {c.subject: c for c in consents(store)}
        changed = [c for c in newest.values() if there.get(c.subject) != c]
        return store.commit({CONSENTS.name: frame(changed)}) if changed else store.data_version


def newer(store: Store, given: Sequence[Consent]) -> list[Consent]:
    """Of consents that traces carry, those that say something newer than what is on record, one for each subject.

    One without a time is newer than nothing; a withdrawal on record stands.
    """
    if not given:
        return []
    there = {c.subject: c for c in consents(store)}
    out: dict[str, Consent] = {}
    for one in given:
        known = out.get(one.subject) or there.get(one.subject)
        if known is None or (known.withdrawn is None and (one.time or 0.0) > (known.time or 0.0)):
            out[one.subject] = one
    return list(out.values())


def withdraw(store: Store, subject: str, when: float | None = None) -> str:
    """Note that a subject's consent is withdrawn (`when` None: now), also where none was on record.

    The note stays, so that nothing of the subject that comes in later is used. Erasing what is there is `erase`.
    """
    with store.writing():
        there = next((c for c in consents(store) if c.subject == subject), Consent(subject=subject))
        moment = round(time.time() if when is None else when, 6)
        return set_consent(store, [msgspec.structs.replace(there, purposes=(), withdrawn=there.withdrawn or moment)])


def frame(given: Sequence[Consent]) -> pl.DataFrame:
    """Consents as rows of their table."""
    rows = [{**msgspec.structs.asdict(c), "purposes": list(c.purposes)} for c in given]
    return pl.DataFrame(rows, schema=CONSENTS.schema(), orient="row")
