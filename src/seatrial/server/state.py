"""A data version to what has changed since: sessions as pages list them, and what a ranking is made from."""

from __future__ import annotations

from seatrial.canon import content_hash
from seatrial.errors import StoreError
from seatrial.records.tables import CALLS, CONSENTS, CORRECTIONS, OUTCOMES_TABLE, SESSIONS, SIGNALS, STEPS
from seatrial.store import Store
from seatrial.store.versions import Version

WATCHED = (SESSIONS.name, OUTCOMES_TABLE.name, CONSENTS.name)
"""Tables that the list of sessions is read from."""

RANKED = (
    SESSIONS.name, STEPS.name, SIGNALS.name, CALLS.name, CORRECTIONS.name, OUTCOMES_TABLE.name, CONSENTS.name,
)  # fmt: skip
"""Tables that a ranking is made from; labels and decisions are not among them."""


def watched(head: Version) -> tuple[object, ...]:
    """What tells whether sessions have to be read anew."""
    return (*(head.tables.get(name) for name in WATCHED), head.erased)


def sessions(head: Version) -> str:
    """A short name for the sessions of a data version and what pages list of them."""
    return content_hash(list(watched(head)))[:12]


def has_changed(store: Store, since: str) -> bool:
    """Whether anything that models are ranked by was committed since a data version, or that version is gone."""
    try:
        before = store.versions.find(since)
    except StoreError:
        return True
    now = store.versions.head()
    return before.erased is not None or any(before.tables.get(name) != now.tables.get(name) for name in RANKED)
