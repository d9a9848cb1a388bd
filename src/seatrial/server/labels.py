"""Labels that people give in the browser: queues that a command drew, answers in the store, and how people agree."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec
import polars as pl

from seatrial.canon import canonical
from seatrial.errors import EvidenceError, InputError, UsageError
from seatrial.records.tables import LABELS
from seatrial.report.words import plain_name
from seatrial.server import stored
from seatrial.server.based import Overtaken, stamp
from seatrial.stats import cohen_kappa
from seatrial.stats.agreement import Coefficient
from seatrial.store import Permission, ResultHead, Store

Unit = Literal["turn", "action", "output"]

KEYS: dict[str, dict[str, tuple[str, str]]] = {
    "turn": {
        "c": ("confirmation", "says that the work is right, or done"),
        "i": ("accept_implicit", "goes on from the work without a word on it"),
        "p": ("praise", "likes the work or the agent"),
        "m": ("complaint", "is unhappy with the work or the agent"),
        "x": ("correction", "says what is wrong, or how it should be"),
        "o": ("other", "none of these"),
    },
    "action": {"r": ("relevant", "belongs to the task"), "e": ("extraneous", "does not belong to the task")},
    "output": {"p": ("pass", "meets it"), "f": ("fail", "does not meet it")},
}
"""Key to label and meaning, as on the command line. A turn may get several; ``other`` stands alone."""

QUESTIONS: dict[str, str] = {
    "turn": "What does the person say about the work so far?",
    "action": "Does this action belong to the task?",
    "output": "Is this outcome right?",
}


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """Something to label. Names of models are hidden in it already."""

    id: str
    unit: Unit
    session: str
    step: int
    shown: str
    before: str = ""
    call: int | None = None
    probability: float = 1.0
    drawn: str = "random"
    criterion: str | None = None


class _Held(msgspec.Struct):
    unit: Unit
    items: list[Item]
    criteria: list[str] = []


class Queue(msgspec.Struct, frozen=True, kw_only=True):
    """Items that wait, in the order in which everybody sees them."""

    head: ResultHead
    unit: Unit
    items: list[Item]
    criteria: list[str]

    def find(self, ident: str) -> Item | None:
        """An item by its id."""
        return next((item for item in self.items if item.id == ident), None)


def queues(store: Store) -> list[ResultHead]:
    """Queues in the store, newest first."""
    return [h for h in store.results("label") if h.command == "label queue"]


def queue(store: Store, ident: str, may: Permission) -> Queue:
    """A queue, with the items whose sessions `may` be shown; the newest where none is named.

    Raises:
        InputError: there is none at all, or none of that id.
    """
    head = stored.choose(queues(store), ident)
    if head is None:
        raise InputError("there is no queue of items to label", hint="make one on the page of labels")
    held = stored.as_record(stored.read(store, head.id, may), _Held)
    return Queue(head=head, unit=held.unit, items=held.items, criteria=held.criteria)


def answers(store: Store, items: Sequence[Item] | None = None) -> pl.DataFrame:
    """Stored labels, of some items or all; skipped ones have no labels."""
    rows = store.table(LABELS.name, ordered=False)
    if items is not None:
        rows = rows.filter(pl.col("item").is_in(pl.Series([i.id for i in items], dtype=pl.String).implode()))
    return rows.sort("time", "item").collect()


def check(unit: Unit, labels: Sequence[str]) -> None:
    """Make sure that labels fit their unit.

    Raises:
        UsageError: one that the unit does not have, none, or two that exclude each other.
    """
    known = {label for label, _ in KEYS[unit].values()}
    if not labels or set(labels) - known:
        raise UsageError("choose a label, or skip this item", hint=_plainly(known))
    if len(set(labels)) > 1 and (unit != "turn" or "other" in labels):
        raise UsageError("these labels exclude each other", hint=_plainly(labels))


def _plainly(labels: Iterable[str]) -> str:
    return ", ".join(plain_name(label).lower() for label in sorted(labels))


def said(row: Mapping[str, Any] | None) -> str:
    """A stamp of an answer that is stored; "" for none."""
    return "" if row is None else stamp([row["labels"], row["time"]])


def save(store: Store, item: Item, annotator: str, labels: Sequence[str] | None, was: str = "") -> None:
    """Keep what an annotator said of an item, in the place of what they said before. None: skipped. `was` is the
    stamp (`said`) of the answer that they had before them; saying the same twice is fine.

    Raises:
        InputError: its session is gone.
        Overtaken: another answer of theirs has been stored meanwhile.
        UsageError: the labels do not fit.
    """
    if labels is not None:
        check(item.unit, labels)
    turn = item.unit == "turn"
    row: dict[str, Any] = {
        "session": item.session,
        "item": item.id,
        "annotator": annotator,
        "unit": item.unit,
        "step": item.step,
        "call": item.call,
        "labels": None if labels is None else list(dict.fromkeys(labels)),
        "label": None if labels is None or item.unit != "output" else float("pass" in labels),
        "criterion": item.criterion,
        "probability": item.probability,
        "drawn": item.drawn,
        "turn": item.shown if turn else None,
        "before": item.before if turn else None,
        "time": round(time.time(), 3),
    }
    with store.writing():
        if item.session not in store.blobs_of([item.session]):
            raise InputError("the session of this item is not in the store any more")
        there = store.table(LABELS.name, ordered=False).filter(pl.col("session") == item.session).collect()
        same = (pl.col("item") == item.id) & (pl.col("annotator") == annotator)
        others = there.filter(~same)
        for before in there.filter(same).iter_rows(named=True):
            if said(before) != was and before["labels"] != row["labels"]:
                given = "skipped" if before["labels"] is None else f"labelled {_plainly(before['labels'])}"
                raise Overtaken(f"meanwhile this item was {given} as {annotator}",
                                hint="to put your answer in the place of that one, save it again")  # fmt: skip
        mine = pl.DataFrame([row], schema=LABELS.schema(), orient="row")
        store.commit({LABELS.name: pl.concat([others.select(LABELS.names), mine])}, replace_sessions=[item.session])


class Disagreed(msgspec.Struct, frozen=True, kw_only=True):
    """An item of which people say different things."""

    item: Item
    said: dict[str, list[str]]


class Agreement(msgspec.Struct, frozen=True, kw_only=True):
    """Two annotators on the items that both labelled: how many, the share with equal labels, kappa by label."""

    first: str
    second: str
    n: int
    same: float
    kappa: dict[str, Coefficient | None]


def agreements(found: Queue, given: pl.DataFrame) -> tuple[list[Agreement], list[Disagreed]]:
    """How each two annotators of a queue agree, and the items on which anybody differs."""
    said: dict[str, dict[str, list[str]]] = {}
    for row in given.drop_nulls("labels").iter_rows(named=True):
        said.setdefault(row["item"], {})[row["annotator"]] = sorted(row["labels"])
    people = sorted({who for by in said.values() for who in by})
    pairs = []
    for a, b in itertools.combinations(people, 2):
        both = [(by[a], by[b]) for by in said.values() if a in by and b in by]
        if not both:
            continue
        names = sorted({label for x, y in both for label in (*x, *y)})
        kappa = {label: _kappa([label in x for x, _ in both], [label in y for _, y in both]) for label in names}
        same = sum(x == y for x, y in both) / len(both)
        pairs.append(Agreement(first=a, second=b, n=len(both), same=same, kappa=kappa))
    differ = [
        Disagreed(item=item, said=by)
        for item in found.items
        if (by := said.get(item.id)) is not None and len({tuple(v) for v in by.values()}) > 1
    ]
    return pairs, differ


def _kappa(first: list[bool], second: list[bool]) -> Coefficient | None:
    try:
        return cohen_kappa(first, second)
    except (EvidenceError, UsageError):
        return None


def as_lines(given: pl.DataFrame) -> bytes:
    """Labels as the command line writes them, one JSON object a line: for `signals evaluate` and `rank --labels`."""
    out = []
    for r in given.drop_nulls("labels").iter_rows(named=True):
        line = {
            "id": r["item"], "unit": r["unit"], "session": r["session"], "step": r["step"], "call": r["call"],
            "labels": r["labels"], "annotator": r["annotator"], "probability": r["probability"], "drawn": r["drawn"],
            "turn": r["turn"] or "", "before": r["before"] or "", "source": "", "label": r["label"],
        }  # fmt: skip
        out.append(canonical(line | ({"criterion": r["criterion"]} if r["criterion"] else {})) + b"\n")
    return b"".join(out)
