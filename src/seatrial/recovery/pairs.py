"""Pairs to a table on disk and in memory: CSV (plain or gzipped) or Parquet (DESIGN 5: the pairs table)."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from seatrial.errors import EvidenceError, InputError, UsageError
from seatrial.records import Pair

COLUMNS = ("task", "agent", "cohort", "condition", "operation", "delay", "replay", "placebo", "terminated", "y0", "y1")
"""The table's own columns, in order; the features follow."""

SUFFIXES = (".csv", ".csv.gz", ".parquet")
DIGITS = 5


def rows(pairs: Sequence[Pair]) -> list[dict[str, Any]]:
    """One mapping per pair, with every feature that any pair has."""
    names = tuple(dict.fromkeys(name for p in pairs for name in p.features))
    out = []
    for p in pairs:
        row: dict[str, Any] = {name: getattr(p, name) for name in COLUMNS}
        row |= {name: round(p.features[name], DIGITS) if name in p.features else None for name in names}
        out.append(row)
    return out


def ordered(pairs: Sequence[Pair]) -> list[Pair]:
    """By cohort, agent, task, condition, delay, operation, placebo and replay: the same pairs, the same file."""
    return sorted(
        pairs,
        key=lambda p: (p.cohort or "", p.agent or "", p.task, p.condition, p.delay, p.operation, p.placebo, p.replay),
    )


def write(pairs: Sequence[Pair], path: Path) -> None:
    """Write a pairs table; equal pairs give equal bytes.

    Raises:
        EvidenceError: there are no pairs.
        UsageError: the file's name has none of the known endings.
        InputError: it cannot be written.
    """
    if not pairs:
        raise EvidenceError("no pairs to write", hint="every task was skipped")
    if not path.name.endswith(SUFFIXES):
        raise UsageError(f"{path.name}: a pairs table ends in {', '.join(SUFFIXES)}")
    found = rows(ordered(pairs))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".parquet":
            import polars as pl

            pl.DataFrame(found, infer_schema_length=None).write_parquet(path, compression="zstd")
            return
        data = _csv(found)
        path.write_bytes(gzip.compress(data, 9, mtime=0) if path.suffix == ".gz" else data)
    except OSError as error:
        raise InputError(f"the table cannot be written: {error.strerror}", file=str(path)) from error


def _csv(found: Sequence[dict[str, Any]]) -> bytes:
    text = io.StringIO(newline="")
    out = csv.DictWriter(text, fieldnames=list(found[0]), lineterminator="\n")
    out.writeheader()
    for row in found:
        out.writerow({name: _cell(value) for name, value in row.items()})
    return text.getvalue().encode()


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) else value
