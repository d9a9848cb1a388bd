"""Sessions by column: one light frame per state of the store, in memory, that pages filter, count and cut.

Built once per data version of the tables it reads. A store that is large keeps answering from the last frame while
the next one is built.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeVar

import msgspec
import numpy as np
import polars as pl

from seatrial.canon import canonical
from seatrial.errors import InputError, SeatrialError
from seatrial.records.tables import ATTEMPTS, SESSIONS, SIGNALS
from seatrial.server import columns, state
from seatrial.store import Permission, Store, consents, permission

T = TypeVar("T")
Value = tuple[str, int, bool]
"""A value of a facet, how many sessions have it, and whether it is chosen."""

LARGE = 20_000
"""Sessions from which on a frame is built beside the requests that want it."""

_STATE_S = 0.5
_WORDS = 8
_TALLIES = 16
_ROWS = 256
_MOST_DERIVED = 64
FACETS: Mapping[str, str] = {
    "model": "arm",
    "harness": "agent",
    "type": "task_type",
    "outcome": "outcome_status",
    "format": "format",
}
"""Facets of the address and their columns."""

SIGNS: Mapping[str, str] = {
    "complaint": "n_complaint",
    "correction": "n_correction",
    "error": "n_execution_error",
    "praise": "n_praise",
    "confirmation": "n_confirmation",
}
"""What a session may hold, and the column that counts it."""

Order = Literal["newest", "oldest", "errors", "complaints", "longest", "cost"]
ORDERS: Mapping[Order, str] = {
    "newest": "Newest first",
    "oldest": "Oldest first",
    "errors": "Most failed calls",
    "complaints": "Most complaints and corrections",
    "longest": "Longest",
    "cost": "Most expensive",
}


_BY: Mapping[Order, pl.Expr] = {
    "errors": pl.col("tool_errors"),
    "complaints": pl.col("n_complaint") + pl.col("n_correction"),
    "longest": pl.col("steps"),
    "cost": pl.col("cost_usd"),
}


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked for: words (in ids, tasks and people's pseudonyms), facet values, signs, and an order."""

    words: str = ""
    facets: dict[str, list[str]] = {}
    signs: list[str] = []
    agents: Literal["main", "sub", "all"] = "main"
    order: Order = "newest"


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """One page of sessions, how many there are in all, and the counts of each facet's values."""

    rows: list[dict[str, object]]
    total: int
    facets: dict[str, list[Value]]
    signs: dict[str, int]
    agents: dict[str, int]


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """What a query finds, whatever the order: which rows (None: all), and the counts."""

    hit: pl.Series | None
    total: int
    facets: dict[str, list[Value]]
    signs: dict[str, int]
    agents: dict[str, int]


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The store at one moment. `frame` holds only sessions that may be shown; `stale` while a newer one is built;
    `extracted`: signals have been looked for in any session.

    `data_version` is the newest that has the same sessions; `sessions` names them and what pages list of them: it stays
    while only labels and decisions are committed.

    `orders`, `found`, `tallies`, `rows`, `labels` and `subagents` remember the rows in an order, where the last few
    words stand, what the last few queries found, the last few sessions that were asked for, the values of categories,
    and the rows with a parent.
    """

    data_version: str
    frame: pl.DataFrame
    may: Permission
    withheld: int
    built_s: float
    sessions: str = ""
    extracted: bool = False
    stale: bool = False
    orders: dict[Order, pl.Series] = {}
    found: dict[str, pl.Series] = {}
    tallies: dict[bytes, Tally] = {}
    rows: dict[str, dict[str, object] | None] = {}
    labels: dict[str, dict[int, str]] = {}
    subagents: list[pl.DataFrame] = []

    def find(self, query: Query, offset: int, limit: int) -> Found:
        """A page of what a query finds."""
        tally = self._tally(query)
        at = self._ordered(tally.hit, query.order).slice(offset, limit)
        rows = self.frame[at].drop("extracted", "blob").to_dicts()
        return Found(rows=rows, total=tally.total, facets=tally.facets, signs=tally.signs, agents=tally.agents)

    def _tally(self, query: Query) -> Tally:
        """The counts, which are the same for every page and order: made once."""
        key = canonical(msgspec.structs.replace(query, order="newest"))
        kept = self.tallies.get(key)
        if kept is not None:
            return kept
        frame, masks = self.frame, self._masks(query)
        every = _both(masks.values())
        facets = {}
        for name, column in FACETS.items():
            others = _both(m for other, m in masks.items() if other != name)
            facets[name] = self._counts(column, others, query.facets.get(name, []))
        signs = {name: _sum(_both([frame[column] > 0, every])) for name, column in SIGNS.items()}
        wide = _both(m for other, m in masks.items() if other != "agents")
        below = _sum(_both([frame["parent"].is_not_null(), wide]))
        n = frame.height if wide is None else _sum(wide)
        agents = {"main": n - below, "sub": below, "all": n}
        total = frame.height if every is None else _sum(every)
        made = Tally(hit=every, total=total, facets=facets, signs=signs, agents=agents)
        if len(self.tallies) >= _TALLIES:
            self.tallies.clear()
        self.tallies[key] = made
        return made

    def _counts(self, column: str, hit: pl.Series | None, chosen: list[str], most: int = 12) -> list[Value]:
        """The commonest values of a category with their counts, and those that are chosen whether common or not."""
        codes = self.frame[column].to_physical()
        if column not in self.labels:
            values = self.frame[column].unique()
            self.labels[column] = dict(zip(values.to_physical(), values.cast(pl.String), strict=True))
        names = self.labels[column]
        counted = np.bincount((codes if hit is None else codes.filter(hit)).to_numpy())
        there = [(names[code], int(counted[code])) for code in np.flatnonzero(counted).tolist()]
        rows = [(name, n, name in chosen) for name, n in sorted(there, key=lambda row: (-row[1], row[0]))]
        kept = rows[:most] + [r for r in rows[most:] if r[2]]
        return kept + [(value, 0, True) for value in chosen if value not in {r[0] for r in rows}]

    def ids(self, query: Query) -> list[str]:
        """Every session that a query finds, in its order."""
        return self.frame["session"].gather(self.places(query)).to_list()

    def places(self, query: Query) -> pl.Series:
        """The rows that a query finds, in its order."""
        return self._ordered(self._tally(query).hit, query.order)

    def blobs(self, at: pl.Series) -> list[tuple[str, str]]:
        """The sessions in some rows, with the hashes of their traces."""
        part = self.frame.select("session", "blob")[at]
        return [(session, (blob or b"").hex()) for session, blob in part.iter_rows()]

    def below(self, session: str, most: int = 50) -> list[dict[str, object]]:
        """The sub-agents of a session."""
        if not self.subagents:
            few = pl.col("parent").is_not_null()
            self.subagents.append(self.frame.lazy().filter(few).select("parent", "session", "arm", "steps").collect())
        found = self.subagents[0].filter(pl.col("parent") == session)
        return found.select("session", "arm", "steps").head(most).to_dicts()

    def row(self, session: str) -> dict[str, object] | None:
        """What is known of one session; None for one that is not here, or may not be shown."""
        if session not in self.rows:
            found = self.frame.filter(pl.col("session") == session)
            if len(self.rows) >= _ROWS:
                self.rows.clear()
            self.rows[session] = found.row(0, named=True) if found.height else None
            return self.rows[session]
        return self.rows[session]

    def _words(self, words: str) -> pl.Series:
        mask = self.found.get(words)
        if mask is None:
            places = [pl.col(c).str.contains(words, literal=True) for c in ("session", "task", "user", "suite")]
            mask = _mask(self.frame, pl.any_horizontal(*(p.fill_null(False) for p in places)))
            if len(self.found) >= _WORDS:
                self.found.clear()
            self.found[words] = mask
        return mask

    def _ordered(self, hit: pl.Series | None, order: Order) -> pl.Series:
        """Positions of the rows that are hit, in order. The frame itself stands newest first; another order of all
        rows is found once."""
        if order in ("newest", "oldest"):
            at = pl.arange(self.frame.height, dtype=pl.UInt32(), eager=True) if hit is None else hit.arg_true()
            return at if order == "newest" else at.reverse()
        every = self.orders.get(order)
        if every is None:
            ranked = pl.arg_sort_by(_BY[order], descending=True, nulls_last=True, maintain_order=True)
            every = self.orders[order] = self.frame.select(ranked.alias("at"))["at"]
        return every if hit is None else every.filter(hit.gather(every))

    def _masks(self, query: Query) -> dict[str, pl.Series]:
        frame = self.frame
        masks: dict[str, pl.Series] = {}
        words = query.words.strip()
        if words:
            masks["words"] = self._words(words)
        for name, column in FACETS.items():
            if query.facets.get(name):
                masks[name] = _mask(frame, pl.col(column).cast(pl.String).is_in(query.facets[name]))
        for sign in query.signs:
            if sign in SIGNS:
                masks[f"sign {sign}"] = frame[SIGNS[sign]] > 0
        if query.agents != "all":
            parent = frame["parent"]
            masks["agents"] = parent.is_null() if query.agents == "main" else parent.is_not_null()
        return masks


class Index:
    """Keeps the snapshot of a store. Safe between threads."""

    def __init__(self, store: Store, consent: Literal["assume", "require"]) -> None:
        self._store = store
        self._consent: Literal["assume", "require"] = consent
        self._guard = threading.Lock()
        self._building = threading.Lock()
        self._kept: tuple[tuple[object, ...], Snapshot] | None = None
        self._derived: OrderedDict[Hashable, tuple[tuple[object, ...], Any]] = OrderedDict()
        self._checked = 0.0

    def current(self) -> Snapshot:
        """The store now, or a moment ago where it is large.

        Raises:
            StoreError: the store is damaged.
        """
        kept = self._kept
        if kept is not None and time.monotonic() - self._checked < _STATE_S:
            return kept[1]
        head = self._store.versions.head()
        now = state.watched(head)
        self._checked = time.monotonic()
        if kept is not None and kept[0] == now:
            if kept[1].data_version != head.stamp:
                self._kept = kept = (now, msgspec.structs.replace(kept[1], data_version=head.stamp))
            return kept[1]
        if kept is not None and kept[1].frame.height > LARGE:
            threading.Thread(target=self._rebuild, name="index", daemon=True).start()
            return msgspec.structs.replace(kept[1], stale=True)
        with self._building:
            if self._kept is None or self._kept[0] != now:
                self._keep(now)
        assert self._kept is not None
        return self._kept[1]

    def derived(
        self,
        name: Hashable,
        tables: Sequence[str],
        make: Callable[[Snapshot], T],
        keep: Callable[[T], bool] = lambda made: True,
    ) -> T:
        """What `make` gives for the sessions and some other tables, made once for each state of them.

        The last few are kept, so what is made is small, or bounded; what `keep` says no to is made anew.
        """
        snapshot = self.current()
        head = self._store.versions.head()
        now = (snapshot.sessions, *(head.tables.get(table) for table in tables), head.erased)
        with self._guard:
            kept = self._derived.get(name)
            if kept is not None and kept[0] == now:
                self._derived.move_to_end(name)
                made: T = kept[1]
                return made
        made = make(snapshot)
        if not keep(made):
            return made
        with self._guard:
            self._derived[name] = (now, made)
            self._derived.move_to_end(name)
            while len(self._derived) > _MOST_DERIVED:
                self._derived.popitem(last=False)
        return made

    def warm(self) -> None:
        """Build the first snapshot, so that the first visitor need not wait for all of it. Damage is met by them."""
        with contextlib.suppress(SeatrialError):
            self.current()

    def shown(self, session: str) -> None:
        """Make sure that a session, or an attempt, is here and may be shown.

        Raises:
            InputError: it is not, or may not: nobody is told which.
        """
        snapshot = self.current()
        if snapshot.row(session) is not None:
            return
        attempt = self._store.table(ATTEMPTS.name, ordered=False).filter(pl.col("session") == session)
        stored = self._store.table(SESSIONS.name, ordered=False).filter(pl.col("session") == session)
        known = any(t.select("session").head(1).collect().height for t in (attempt, stored))
        if not known or not _may(self._store, self._consent).allows(session):
            raise InputError("there is no such session here, or it may not be shown")

    def _keep(self, now: tuple[object, ...]) -> None:
        snapshot = build(self._store, self._consent)
        with self._guard:
            self._kept = (now, snapshot)

    def _rebuild(self) -> None:
        if not self._building.acquire(blocking=False):
            return
        try:
            self._keep(state.watched(self._store.versions.head()))
        except SeatrialError:
            return  # the next request meets it and tells it
        finally:
            self._building.release()


def build(store: Store, consent: Literal["assume", "require"]) -> Snapshot:
    """Read a snapshot from the store."""
    began = time.monotonic()
    head = store.versions.head()
    version = head.stamp
    may = _may(store, consent)
    frame = columns.read(store, version)
    all_of_them, extracted = frame.height, bool(frame["extracted"].any())
    if may.denied:
        frame = frame.filter(~pl.col("session").is_in(pl.Series(list(may.denied)).implode()))
    return Snapshot(
        data_version=version,
        frame=frame,
        may=may,
        withheld=all_of_them - frame.height,
        built_s=time.monotonic() - began,
        sessions=state.sessions(head),
        extracted=extracted,
        orders={},
        found={},
        tallies={},
        rows={},
        labels={},
        subagents=[],
    )


def _may(store: Store, consent: Literal["assume", "require"]) -> Permission:
    """What may be shown. A consent can also name an attempt, which is no row of the sessions."""
    may = permission(store, "serve", consent)
    named = {c.subject: "its consent says so" for c in consents(store)
             if c.withdrawn is not None or "serve" not in c.purposes}  # fmt: skip
    return msgspec.structs.replace(may, denied={**named, **may.denied}) if named else may


def _mask(frame: pl.DataFrame, expression: pl.Expr) -> pl.Series:
    return frame.select(expression.alias("hit"))["hit"]


def _both(masks: Iterable[pl.Series | None]) -> pl.Series | None:
    """Rows in all of the masks; None where nothing is masked."""
    out: pl.Series | None = None
    for mask in masks:
        if mask is not None:
            out = mask if out is None else out & mask
    return out


def _sum(mask: pl.Series | None) -> int:
    return 0 if mask is None else int(mask.sum())


def signals_of(store: Store, session: str) -> list[dict[str, object]]:
    """The stored signals of a session, kept and dropped, in step order."""
    rows = store.table(SIGNALS.name, ordered=False).filter(pl.col("session") == session).collect()
    return rows.sort("step", "kind", "span_start").to_dicts()
