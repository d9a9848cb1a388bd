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
from seatrial.server import decisions, movers, waiting
from seatrial.server.pages import sessions
from seatrial.server.pages.drafts import draft, posted, written
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
    pages = max(1, -(-every.filter(pl.col("state") == state).height // PER_PAGE))
    page = asked.number("page", 1, least=1, most=pages)
    index, store = asked.site.index, asked.store
    part = index.derived(
        ("triage", state, page),
        waiting.TABLES,
        lambda snapshot: _part(store, every, state, page),
        lambda made: made.context.whole,
    )
    counts = part.counts
    suite = written(asked)
    quotes = {s.session: s for s in part.context.sentences}
    asked.site.saw(asked, *quotes, *(d.session for d in suite.drafts if d.task is not None and d.session is not None))
    return asked.page(
        "triage.html",
        {
            "items": part.items,
            "quotes": quotes,
            "total": counts[state],
            "page": page,
            "pages": pages,
            "state": state,
            "counts": counts,
            "looked": index.current().extracted,
            "drafts": suite.drafts,
            "made": {i.session: made for i in part.items if (made := suite.of(i.session)) is not None},
            "lost": [*suite.problems, *part.context.lost],
            "here": posted(asked) if asked.refused is not None else None,
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
    with asked.store.writing():
        decisions.unchanged(asked.store, session, asked.form.get("was", "new"))
        _decide(asked, session, "dismissed", reason[:2000], incident=found["incident"][0])
    asked.did("dismissed", session=session)
    return asked.back("/triage", _place(asked))


def _place(asked: Asked) -> dict[str, str | int]:
    """Where in the list somebody was."""
    page = asked.number("page", 1, least=1)
    return {} if page == 1 else {"state": asked.text("state", "new"), "page": page}


def again(asked: Asked) -> Response:
    """The page on which a refused form stood."""
    return sessions.session(asked) if asked.text("id") else triage(asked)


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
    Page("/triage/draft", draft, "labeller", ("POST",), form=again),
    Page("/triage/dismiss", dismiss, "labeller", ("POST",), form=triage),
    Page("/triage/incident", incident, "labeller", ("POST",), form=triage),
)
