"""Triage: failing sessions and incidents become drafts of tasks, or are set aside with a reason."""

from __future__ import annotations

import time
from typing import Any

import msgspec
import polars as pl
from starlette.responses import Response

from seatrial.canon import content_hash
from seatrial.errors import InputError, UsageError
from seatrial.records.tables import TRIAGE
from seatrial.server import movers, waiting
from seatrial.server.pages.drafts import drafts, posted
from seatrial.server.site import Asked, Page
from seatrial.server.waiting import BAD
from seatrial.server.words import KINDS
from seatrial.store import Store

STATES = ("new", "task", "dismissed")
PER_PAGE = 25


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """One session or incident with what speaks against it."""

    session: str
    state: str
    why: dict[str, int]
    reason: str | None
    task: str | None
    by: str | None
    model: str | None
    time: float | None
    incident: bool


def board(asked: Asked) -> pl.DataFrame:
    """What there is to decide on, and what was decided, worst first."""
    index, store = asked.site.index, asked.store
    return index.derived("triage", waiting.TABLES, lambda snapshot: waiting.board(store, snapshot))


def _item(row: dict[str, Any]) -> Item:
    why = {KINDS.get(kind, kind): row[kind] for kind in sorted(BAD) if row[kind]}
    if row["status"] is not None:
        why[row["status"].replace("_", " ")] = 1
    if row["incident"]:
        why["incident"] = 1
    return Item(
        session=row["session"],
        state=row["state"],
        why=why,
        reason=row["reason"],
        task=row["task"],
        by=row["by"],
        model=row["arm"],
        time=row["start"],
        incident=row["incident"],
    )


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One page of the list, with a sentence from each session, and how many there are in each state."""

    items: list[Item]
    context: movers.Context
    counts: dict[str, int]


def _part(store: Store, every: pl.DataFrame, state: str, page: int) -> Part:
    there = dict(every["state"].value_counts().iter_rows())
    chosen = every.filter(pl.col("state") == state).slice((page - 1) * PER_PAGE, PER_PAGE)
    items = [_item(row) for row in chosen.iter_rows(named=True)]
    named = [i.session for i in items if not i.incident]
    context = movers.in_context(store, movers.sentences_of(store, named, BAD, len(named)))
    return Part(items=items, context=context, counts={s: there.get(s, 0) for s in STATES})


def triage(asked: Asked) -> Response:
    """The list."""
    every = board(asked)
    state = asked.text("state", "new")
    state = state if state in STATES else "new"
    page = asked.number("page", 1, least=1)
    index, store = asked.site.index, asked.store
    part = index.derived(
        ("triage", state, page),
        waiting.TABLES,
        lambda snapshot: _part(store, every, state, page),
        lambda made: made.context.whole,
    )
    counts = part.counts
    quotes = {s.session: s for s in part.context.sentences}
    for session in quotes:
        asked.site.saw(asked, session)
    return asked.page(
        "triage.html",
        {
            "items": part.items,
            "quotes": quotes,
            "total": counts[state],
            "page": page,
            "pages": max(1, -(-counts[state] // PER_PAGE)),
            "state": state,
            "counts": counts,
            "looked": index.current().extracted,
            "drafts": drafts(asked),
            "suite": str(asked.site.suite),
        },
    )


def dismiss(asked: Asked) -> Response:
    """Set a session or an incident aside, with the reason."""
    session, reason = posted(asked), asked.form.get("reason", "").strip()
    if not reason:
        raise UsageError("a dismissal needs a reason")
    found = board(asked).filter(pl.col("session") == session)
    if not found.height:
        raise InputError("there is no such session or incident")
    _decide(asked, session, "dismissed", reason[:2000], incident=found["incident"][0])
    asked.did("dismissed", session=session)
    return asked.back("/triage")


def incident(asked: Asked) -> Response:
    """Write down something that went wrong outside any stored session."""
    text = asked.form.get("text", "").strip()
    if not text:
        raise UsageError("an incident needs a description")
    _decide(asked, f"incident-{content_hash([text, time.time()])[:10]}", "new", text[:2000], incident=True)
    asked.did("noted an incident")
    return asked.back("/triage")


def _decide(asked: Asked, session: str, state: str, reason: str, *, incident: bool) -> None:
    row = {
        "session": session,
        "state": state,
        "reason": reason,
        "task": None,
        "kind": "incident" if incident else "session",
        "by": asked.who.name,
        "time": time.time(),
    }
    asked.store.commit({TRIAGE.name: pl.DataFrame([row], schema=TRIAGE.schema())}, replace_sessions=[session])


PAGES = (
    Page("/triage", triage),
    Page("/triage/dismiss", dismiss, "labeller", ("POST",)),
    Page("/triage/incident", incident, "labeller", ("POST",)),
)
