"""Sessions: a list with facets and search over all of them, one session step by step, and pieces of it."""

from __future__ import annotations

import time
from typing import cast

import msgspec
from starlette.responses import Response

from seatrial.errors import InputError, StoreError
from seatrial.server import decisions, drafted
from seatrial.server.index import FACETS, ORDERS, SIGNS, Order, Query, Snapshot
from seatrial.server.rendering import prose
from seatrial.server.site import Asked, Page
from seatrial.server.traces import CHUNK, PIECE, field_text
from seatrial.store import Store

PER_PAGE = 50
_SEARCH_S = 0.25
_SEARCH_LEAST = 16
_SEARCH_MOST = 2048
_SEARCH_HITS = 25
FACET_NAMES = {
    "model": "Model",
    "harness": "Harness",
    "type": "Kind of task",
    "outcome": "Recorded outcome",
    "format": "Source format",
}
SIGN_NAMES = {
    "complaint": "a complaint",
    "correction": "a correction",
    "error": "a failed command",
    "praise": "praise",
    "confirmation": "a confirmation",
}


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """A place in a session where the words stand."""

    session: str
    step: int
    field: str
    left: str
    found: str
    right: str


class Searched(msgspec.Struct, frozen=True, kw_only=True):
    """What a look into the texts found: `read` of the `of` sessions, from the one at `begun` on; `after` is where to
    go on, None at the end. `lost` are the sessions among them whose stored steps are damaged."""

    hits: list[Hit]
    begun: int
    read: int
    of: int
    after: int | None
    lost: list[str] = []


def query_of(asked: Asked) -> Query:
    """The query in the address."""
    given = asked.request.query_params
    order = given.get("order", "newest")
    agents = given.get("agents", "main")
    return Query(
        words=asked.text("q", most=200),
        facets={name: given.getlist(name)[:50] for name in FACETS if given.getlist(name)},
        signs=[s for s in given.getlist("with") if s in SIGNS],
        agents="sub" if agents == "sub" else "all" if agents == "all" else "main",
        order=cast("Order", order) if order in ORDERS else "newest",
    )


def listing(asked: Asked) -> Response:
    """The list."""
    snapshot = asked.site.index.current()
    query = query_of(asked)
    page = asked.number("page", 1, least=1, most=1_000_000)
    found = snapshot.find(query, (page - 1) * PER_PAGE, PER_PAGE)
    text = asked.text("text", most=200).strip()
    searched = None
    if text:
        searched = _searched(asked, snapshot, query, text)
    pages = max(1, -(-found.total // PER_PAGE))
    return asked.page(
        "sessions.html",
        {
            "snapshot": snapshot,
            "query": query,
            "found": found,
            "page": page,
            "pages": pages,
            "per_page": PER_PAGE,
            "orders": ORDERS,
            "facet_names": FACET_NAMES,
            "sign_names": SIGN_NAMES,
            "text": text,
            "searched": searched,
            "same": [(k, v) for k, v in asked.request.query_params.multi_items() if k not in ("page", "after")],
            "state": snapshot.sessions,
            "data_version": snapshot.data_version,
        },
    )


def further(asked: Asked) -> Response:
    """What the next look into the texts finds, to be put into the page."""
    text = asked.text("text", most=200).strip()
    searched = _searched(asked, asked.site.index.current(), query_of(asked), text)
    answer = asked.page("_hits.html", {"searched": searched})
    answer.headers["x-next"] = "" if searched.after is None else str(searched.after)
    answer.headers["x-hits"] = str(len(searched.hits))
    return answer


def _searched(asked: Asked, snapshot: Snapshot, query: Query, text: str) -> Searched:
    found = search(asked.store, snapshot, query, text, asked.number("after", 0))
    asked.site.saw(asked, *(h.session for h in found.hits))
    return found


def search(store: Store, snapshot: Snapshot, query: Query, text: str, after: int) -> Searched:
    """Look for words in the texts of the sessions that a query finds, in its order, from one of them on, until there
    are enough places or a moment has passed: `Searched.after` says where it stopped."""
    places = snapshot.places(query)
    wanted = text.casefold()
    until = time.monotonic() + _SEARCH_S
    hits: list[Hit] = []
    lost: list[str] = []
    begun = at = min(after, len(places))
    size = _SEARCH_LEAST
    while at < len(places) and len(hits) < _SEARCH_HITS and (at == begun or time.monotonic() < until):
        some = places.slice(at, size)
        read = 0
        for session, blob in snapshot.blobs(some):
            there = _hits_now(store, session, blob, wanted)
            hits += there or []
            lost += [session] if there is None else []
            read += 1
            if len(hits) >= _SEARCH_HITS or (read >= _SEARCH_LEAST and time.monotonic() >= until):
                break
        else:
            read = len(some)
        at += read
        size = min(2 * size, _SEARCH_MOST)
    rest = at if at < len(places) else None
    return Searched(hits=hits, begun=begun, read=at - begun, of=len(places), after=rest, lost=lost)


def _hits_now(store: Store, session: str, blob: str, wanted: str) -> list[Hit] | None:
    """Hits in a session whose trace may have been replaced, or erased, since the snapshot was made; None for one that
    is damaged."""
    try:
        return _hits(store, session, blob, wanted)
    except StoreError:
        now = store.blobs_of([session]).get(session)
        if not now:
            return []
        if now == blob:
            return None
        try:
            return _hits(store, session, now, wanted)
        except StoreError:
            return None


def _hits(store: Store, session: str, blob: str, wanted: str, most: int = 3) -> list[Hit]:
    out: list[Hit] = []
    plain = wanted.isascii() and wanted.isprintable() and not set(wanted) & set('"\\/')
    if plain and wanted.encode() not in store.blobs.peek(blob).lower():
        return out  # the bytes of most sessions say so before they are decoded
    for step in store.trace_of(blob).steps:
        texts = [("text", step.text), *((f"results.{i}", r.text) for i, r in enumerate(step.results))]
        for field, body in texts:
            at = body.casefold().find(wanted)
            if at < 0:
                continue
            end = at + len(wanted)
            out.append(
                Hit(
                    session=session,
                    step=step.index,
                    field=field,
                    left=body[max(at - 60, 0) : at],
                    found=body[at:end],
                    right=body[end : end + 80],
                )
            )
            if len(out) == most:
                return out
    return out


def session(asked: Asked) -> Response:
    """One session: a window of its steps around the one that is asked for, and the way to all others."""
    ident = asked.text("id")
    asked.site.index.shown(ident)
    asked.site.saw(asked, ident)
    shown = asked.site.sessions.get(ident)
    snapshot = asked.site.index.current()
    row = snapshot.row(ident)
    total = len(shown.trace.steps)
    wanted = asked.text("step")
    at = shown.position(asked.number("step", 0)) if wanted else 0
    first = at - at % CHUNK
    chunks = [(a, min(a + CHUNK, total)) for a in range(0, total, CHUNK)]
    fates = {f: sum(s.fate == f for s in shown.signals) for f in ("kept", "merged", "dropped")}
    row_of = decisions.on(asked.store, ident)
    return asked.page(
        "session.html",
        {
            "id": ident,
            "trace": shown.trace,
            "row": row,
            "signals": shown.signals,
            "fates": fates,
            "chunks": chunks,
            "first": first,
            "views": shown.window(first, min(first + CHUNK, total)),
            "total": total,
            "target": shown.trace.steps[at].index if wanted and total else None,
            "last_index": shown.trace.steps[-1].index if total else 0,
            "chunk": CHUNK,
            "piece": PIECE,
            "overview": shown.overview(),
            "children": snapshot.below(ident),
            "made": _made(asked, ident) if asked.who.may("labeller") else None,
            "dismissed": row_of if row_of is not None and row_of["state"] == "dismissed" else None,
            "was": decisions.decided(row_of),
            "extracted": bool(shown.signals) or (row is not None and bool(row["extracted"])),
            "data_version": snapshot.data_version,
        },
    )


def _made(asked: Asked, session: str) -> drafted.Draft | None:
    """What this session became in the suite."""
    may = asked.site.index.current().may
    return drafted.read(asked.site.suite, may, lambda other: other == session).of(session)


def steps(asked: Asked) -> Response:
    """Some steps of a session, to be put into its page."""
    ident = asked.text("id")
    asked.site.index.shown(ident)
    asked.site.saw(asked, ident)
    shown = asked.site.sessions.get(ident)
    first = asked.number("from", 0)
    last = min(asked.number("to", first + CHUNK), first + 4 * CHUNK, len(shown.trace.steps))
    return asked.page("_steps.html", {"id": ident, "views": shown.window(first, last), "piece": PIECE, "target": None})


def text(asked: Asked) -> Response:
    """A piece of one text of a step, as markup to be put into the page, or alone on a page."""
    ident = asked.text("id")
    asked.site.index.shown(ident)
    asked.site.saw(asked, ident)
    shown = asked.site.sessions.get(ident)
    index = asked.number("step", 0)
    if index not in shown.places:
        raise InputError(f"the session has no step {index}")
    step = shown.trace.steps[shown.places[index]]
    field = asked.text("field")
    body = field_text(step, field)
    at = asked.number("from", 0, most=len(body))
    piece = body[at : at + PIECE]
    after = at + len(piece)
    if asked.text("alone") == "no":
        answer = Response(str(prose(piece)), media_type="text/html")
        answer.headers["x-next"] = str(after if after < len(body) else "")
        return answer
    return asked.page(
        "text.html",
        {
            "id": ident,
            "step": index,
            "field": field,
            "piece": piece,
            "at": at,
            "after": after,
            "total": len(body),
            "size_of": PIECE,
        },
    )


PAGES = (
    Page("/sessions", listing),
    Page("/sessions/further", further),
    Page("/session", session),
    Page("/session/steps", steps),
    Page("/session/text", text),
)
