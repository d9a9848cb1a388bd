"""Sessions that stay name sessions that go: the one that they continue, or an id that their log quotes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec
import polars as pl

from seatrial.canon import canonical
from seatrial.errors import StoreError
from seatrial.records.tables import SESSIONS, STEPS
from seatrial.records.trace import Trace
from seatrial.store.blobs import pack
from seatrial.store.rows import frames, session_row, step_rows
from seatrial.store.store import Store

ERASED = "(erased)"
_SHORT = 12
_BATCH_BYTES = 16 * 1024 * 1024


class Struck(NamedTuple):
    """A session that stays: the blob that it has, and its trace without the ids."""

    blob: str
    trace: Trace


def naming(store: Store, gone: Sequence[str]) -> dict[str, Struck]:
    """The sessions that stay and name one that goes, with the ids struck out.

    Ids shorter than twelve characters are struck where they are a trace's link only (`continues`).
    """
    erased = frozenset(gone)
    found: dict[str, Struck] = {}
    if not erased:
        return found
    for session, blob, data in _naming(store, erased):
        trace = _struck(data, erased)
        if trace is not None:
            found[session] = Struck(blob, trace)
    return found


def keep(store: Store, found: dict[str, Struck]) -> None:
    """Put these traces in the place of what the store has, in one commit.

    What was derived from them is derived again when it is next asked for. The caller holds the store's lock.

    Raises:
        StoreError: the store is damaged.
    """
    if not found:
        return
    rows, steps = [], []
    for _, trace in found.values():
        name, packed = pack(canonical(trace))
        store.blobs.put(name, packed)
        rows.append(session_row(trace, name))
        steps += step_rows(trace)
    tables = frames(rows, steps)
    store.commit({t.name: tables[t.name] for t in (SESSIONS, STEPS)}, replace_sessions=sorted(found))


def _naming(store: Store, gone: frozenset[str]) -> Iterator[tuple[str, str, bytes]]:
    """Sessions that stay and in whose traces one of these ids stands somewhere, with their blobs."""
    rows = store.table(SESSIONS.name, ordered=False).select("session", "blob").collect().sort("session")
    staying = [(s, b) for s, b in rows.iter_rows() if s not in gone]
    batch: list[tuple[str, str, bytes]] = []
    held = 0
    for session, blob in staying:
        try:
            data = store.blobs.get(blob)
        except StoreError:
            continue  # `verify` tells of it
        batch.append((session, blob, data))
        held += len(data)
        if held >= _BATCH_BYTES:
            yield from _hits(batch, gone)
            batch, held = [], 0
    yield from _hits(batch, gone)


def _hits(batch: list[tuple[str, str, bytes]], gone: frozenset[str]) -> list[tuple[str, str, bytes]]:
    if not batch or not gone:
        return []
    texts = pl.Series([data.decode("utf-8", "replace") for _, _, data in batch])
    named = texts.str.contains_any(sorted(gone)).to_list()
    return [one for one, hit in zip(batch, named, strict=True) if hit]


def _struck(data: bytes, gone: frozenset[str]) -> Trace | None:
    """The trace without these ids; None when it did not hold one as a whole word or link."""
    trace = msgspec.json.decode(data, type=Trace)
    long = [re.escape(i) for i in gone if len(i) >= _SHORT and i.encode() in data]
    text = canonical(msgspec.structs.replace(trace, continues=None if trace.continues in gone else trace.continues))
    if long:
        text = re.sub(rf"(?<![\w-])(?:{'|'.join(long)})(?![\w-])", ERASED, text.decode()).encode()
    return msgspec.json.decode(text, type=Trace) if text != data else None


__all__ = ["ERASED", "Struck", "keep", "naming"]
