"""What a commit says of its content, and which rows it finds that have to give way."""

from __future__ import annotations

import hashlib
import io

import polars as pl
import pytest

from seatrial.records.tables import CORRECTIONS
from seatrial.store import Store
from seatrial.store.delta import frame_digest


def _rows(*sessions: str) -> pl.DataFrame:
    rows = [{"session": s, "step": 1, "ended": "ended", "follow_up": 0} for s in sessions]
    return pl.DataFrame(rows, schema=CORRECTIONS.schema())


def test_the_digest_is_that_of_the_uncompressed_file() -> None:
    frame = pl.concat([_rows("a", "b"), _rows(*(f"s{i}" for i in range(50_000)))])
    whole = io.BytesIO()
    frame.rechunk().write_ipc(whole, compression="uncompressed")
    expected = hashlib.sha256(whole.getvalue() + b"\0x\0y").hexdigest()
    assert frame_digest(frame, ["y", "x"]) == expected


@pytest.mark.parametrize("start", ["p" * 200, "\U0010ffff" * 40, "a" * 63 + "é" * 5])
def test_rows_of_long_names_give_way(store: Store, start: str) -> None:
    """Statistics hold the beginning of a long value only: they must not hide a file that has it."""
    names = [start, *(start + end for end in ("a", "\U0010ffff", "é"))]
    for name in (*names, *names):
        store.commit({CORRECTIONS.name: _rows(name)})
    assert sorted(store.table(CORRECTIONS.name).collect()["session"]) == sorted(names)
