"""Attempts that only the ledger of a run holds: of a run that was cut short, and of one that is going on.

They are in no table yet, and still somebody's data: what is erased or purged is looked for here too.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

LEDGERS = "runs"
"""The folder of the ledgers of runs (`engine.ledger`), in a store."""


class _Row(msgspec.Struct):
    session: str
    start: float | None = None


class _Value(msgspec.Struct):
    row: _Row
    blob: str | None = None


class _Line(msgspec.Struct):
    value: _Value


class LedgerAttempt(msgspec.Struct, frozen=True):
    """One attempt: its session, when it began (seconds; None: unknown), its trace's blob (None: it left none)."""

    session: str
    start: float | None
    blob: str | None


def ledger_attempts(store: Path) -> dict[str, LedgerAttempt]:
    """The attempts in the ledgers of a store, by session; a line that cannot be read is nobody's."""
    found: dict[str, LedgerAttempt] = {}
    for path in sorted((store / LEDGERS).glob("*.jsonl")):
        for line in path.read_bytes().split(b"\n"):
            try:
                value = msgspec.json.decode(line, type=_Line).value
            except msgspec.DecodeError:
                continue
            found[value.row.session] = LedgerAttempt(value.row.session, value.row.start, value.blob)
    return found
