"""Labelling: a queue item by item with keys, blind to the model; who agrees with whom; labels as a file."""

from __future__ import annotations

import polars as pl
from starlette.responses import RedirectResponse, Response

from seatrial.errors import InputError, UsageError
from seatrial.server import labels
from seatrial.server.access import HERE
from seatrial.server.rendering import link
from seatrial.server.site import Asked, Page
from seatrial.store import permission

_MOST_CRITERIA = 20


def annotator_of(asked: Asked, given: str) -> str:
    """Who labels: whoever holds the token; on this machine without tokens, whoever they say they are."""
    return asked.who.name if asked.who.name != HERE else (given.strip()[:40] or "me")


def _queue(asked: Asked, ident: str) -> labels.Queue:
    return labels.queue(asked.store, ident, asked.site.index.current().may)


def overview(asked: Asked) -> Response:
    """Queues, how far people are, and the way to make another."""
    heads = labels.queues(asked.store)
    rows = []
    for head in heads[:20]:
        found = _queue(asked, head.id)
        given = labels.answers(asked.store, found.items).drop_nulls("labels")
        counts = dict(given["annotator"].value_counts(sort=True).iter_rows())
        rows.append((head, found.unit, len(found.items), found.criteria, counts))
    every = labels.answers(asked.store).drop_nulls("labels")
    return asked.page(
        "label.html",
        {
            "rows": rows,
            "total": every.height,
            "here": asked.who.name == HERE,
            "annotator": asked.text("annotator"),
            "lost": asked.lost("label"),
        },
    )


def make(asked: Asked) -> Response:
    """Draw a queue: a child process does."""
    unit = asked.form.get("unit", "")
    if unit not in labels.KEYS:
        raise UsageError(f"there is no unit {unit[:40]!r}", hint=", ".join(labels.KEYS))
    try:
        n = min(max(int(asked.form.get("n", "")), 1), 5000)
    except ValueError:
        raise UsageError("how many must be a whole number") from None
    criteria = [c.strip()[:500] for c in asked.form.get("criteria", "").splitlines() if c.strip()][:_MOST_CRITERIA]
    arguments = ["label", "--keep-queue", f"--unit={unit}", f"--n={n}"]
    if unit == "output":
        arguments += [f"--criterion={c}" for c in criteria]
    asked.did("started", about=f"a queue of {n} {unit}s")
    job = asked.site.jobs.start(f"Draw {n} {unit}s to label", arguments, asked.who.name)
    return asked.back("/jobs", {"started": job.id})


def item(asked: Asked) -> Response:
    """The next item that this annotator has not seen, or the one that is asked for."""
    return _item(asked, asked.text("queue"), asked.text("annotator"), asked.text("item"))


def _item(asked: Asked, queue: str, annotator: str, wanted: str) -> Response:
    found = _queue(asked, queue)
    who = annotator_of(asked, annotator)
    given = labels.answers(asked.store, found.items)
    mine = given.filter(pl.col("annotator") == who)
    done = set(mine["item"].to_list())
    may = permission(asked.store, "label", asked.site.consent)
    open_ones = [i for i in found.items if may.allows(i.session)]
    chosen = found.find(wanted) if wanted else None
    if wanted and chosen is None:
        raise InputError("there is no such item in this queue", hint="it may be gone: go on with the queue")
    if chosen is not None and not may.allows(chosen.session):
        raise InputError("this item may not be labelled any more")
    chosen = chosen or next((i for i in open_ones if i.id not in done), None)
    if chosen is None:
        return asked.page("label_done.html", {"queue": found, "annotator": who, "n": len(done)})
    asked.site.saw(asked, chosen.session)
    stored = next(mine.filter(pl.col("item") == chosen.id).iter_rows(named=True), None)
    kept = [] if stored is None else stored["labels"] or []
    return asked.page(
        "label_item.html",
        {
            "queue": found,
            "item": chosen,
            "annotator": who,
            "keys": labels.KEYS[found.unit],
            "question": labels.QUESTIONS[found.unit],
            "done": len(done),
            "total": len(open_ones),
            "chosen": kept if asked.refused is None else asked.lists.get("label", []),
            "was": labels.said(stored),
            "last": _before(mine, chosen.id, {i.id for i in open_ones}),
            "lost": [] if queue else asked.lost("label"),
        },
    )


def _before(mine: pl.DataFrame, item: str, may: set[str]) -> str | None:
    """The item that an annotator answered before this one: the last of all where this one has no answer yet."""
    order = [i for i in mine.sort("time", "item")["item"].to_list() if i in may]
    at = order.index(item) if item in order else len(order)
    return order[at - 1] if at else None


def again(asked: Asked) -> Response:
    """An item whose answer is refused, with what was chosen."""
    form = asked.form
    return _item(asked, form.get("queue", ""), form.get("annotator", ""), form.get("item", ""))


def answer(asked: Asked) -> Response:
    """Take an answer, and go on."""
    form = asked.form
    found = _queue(asked, form.get("queue", ""))
    chosen = found.find(form.get("item", ""))
    if chosen is None or found.head.id != form.get("queue"):
        raise InputError("there is no such item in this queue")
    if not permission(asked.store, "label", asked.site.consent).allows(chosen.session):
        raise InputError("this item may not be labelled any more")
    who = annotator_of(asked, form.get("annotator", ""))
    given = None if form.get("skip") else asked.lists.get("label", [])
    labels.save(asked.store, chosen, who, given, form.get("was", ""))
    asked.did("skipped" if given is None else "labelled", session=chosen.session)
    return RedirectResponse(link("/label/item", {"queue": found.head.id, "annotator": who}), 303)


def agreement(asked: Asked) -> Response:
    """Who agrees with whom, and where they do not: what others said of an item is for those who have labelled it."""
    found = _queue(asked, asked.text("queue"))
    given = labels.answers(asked.store, found.items)
    pairs, differ = labels.agreements(found, given)
    may = permission(asked.store, "label", asked.site.consent)
    differ = [d for d in differ if may.allows(d.item.session)]
    seen = differ if asked.who.may("admin") else [d for d in differ if asked.who.name in d.said]
    asked.site.saw(asked, *(one.item.session for one in seen[:100]))
    return asked.page(
        "label_agreement.html",
        {"queue": found, "pairs": pairs, "differ": seen[:100], "n": len(differ), "unseen": len(differ) - len(seen)},
    )


def download(asked: Asked) -> Response:
    """All labels of a unit as a file for the command line."""
    unit = asked.text("unit", "turn")
    given = labels.answers(asked.store).filter(pl.col("unit") == unit)
    may = permission(asked.store, "label", asked.site.consent)
    denied = [*may.denied, *asked.site.index.current().may.denied]
    kept = given.filter(~pl.col("session").is_in(pl.Series(denied, dtype=pl.String).implode()))
    asked.site.saw(asked, *kept.drop_nulls("labels")["session"].to_list())
    asked.did("took labels", about=unit[:20])
    answer = Response(labels.as_lines(kept), media_type="application/x-ndjson")
    answer.headers["content-disposition"] = 'attachment; filename="labels.jsonl"'
    return answer


PAGES = (
    Page("/label", overview, "labeller"),
    Page("/label/make", make, "labeller", ("POST",), form=overview),
    Page("/label/item", item, "labeller"),
    Page("/label/answer", answer, "labeller", ("POST",), form=again),
    Page("/label/agreement", agreement, "labeller"),
    Page("/label/answers", download, "admin"),
)
