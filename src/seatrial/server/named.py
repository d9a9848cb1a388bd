"""What is about to be sent, to the sessions and attempts that it names: the audit log has them first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from seatrial.records.tables import ATTEMPTS
from seatrial.server.index import Snapshot
from seatrial.server.withheld import BREAKS
from seatrial.store import Store

TABLES = (ATTEMPTS.name,)
"""What `sessions_in` reads, beside the sessions."""

_LONGEST_LINE = 20_000


def sessions_in(store: Store, snapshot: Snapshot, value: Any) -> list[str]:
    """The sessions and attempts of a store that plain values name: as a value, a key, or a word of a sentence."""
    words = sorted(set(_words(value)))
    if not words:
        return []
    some = pl.Series(words, dtype=pl.String).implode()
    known = snapshot.frame.lazy().select("session").filter(pl.col("session").is_in(some)).collect()["session"]
    attempts = store.table(ATTEMPTS.name, ordered=False).select("session").filter(pl.col("session").is_in(some))
    return sorted({*known.to_list(), *attempts.collect()["session"].to_list()})


def _words(value: Any) -> Iterator[str]:
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            waiting += one.keys()
            waiting += one.values()
        elif isinstance(one, list | tuple):
            waiting += one
        elif isinstance(one, str):
            yield one
            if BREAKS.search(one):
                yield from (word.rstrip(".") for word in BREAKS.split(one[:_LONGEST_LINE]))
