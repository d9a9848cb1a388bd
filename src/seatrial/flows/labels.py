"""Files of session labels (METHODS 3.4d)."""

from __future__ import annotations

import codecs
from pathlib import Path
from typing import NamedTuple

import msgspec
import polars as pl

from seatrial.errors import InputError


class SessionLabel(msgspec.Struct, frozen=True, kw_only=True):
    """One labelled session: `label` in [0, 1], the recorded chance of being labelled, and who labelled it."""

    session: str
    label: float
    probability: float = 1.0
    annotator: str | None = None


class SessionLabels(NamedTuple):
    """`table` has session, label and probability; `warnings` tell of labels that contradict each other."""

    table: pl.DataFrame
    warnings: tuple[str, ...]


def read(path: Path) -> pl.DataFrame:
    """The table of `read_told` alone."""
    return read_told(path).table


def read_told(path: Path) -> SessionLabels:
    """A label file (JSONL: ``session``, ``label``, optional ``probability``) as session, label, probability.

    A session labelled several times gets the mean; where its labels differ, that is counted and one session named.

    Raises:
        InputError: the file cannot be read, or a line is no label (file and line are named).
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read the labels: {error.strerror}", file=str(path)) from error
    decoder = msgspec.json.Decoder(SessionLabel, strict=False)
    rows = []
    seen: dict[str, list[float]] = {}
    for number, line in enumerate(data.removeprefix(codecs.BOM_UTF8).split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            row = decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InputError(
                f"not a session label: {error}", hint='expected {"session": ..., "label": 0 or 1}', file=str(path),
                line=number,
            ) from error  # fmt: skip
        if not 0 <= row.label <= 1 or not 0 < row.probability <= 1:
            raise InputError(
                "label must lie in [0, 1] and probability in (0, 1]", hint="see docs/how-to/label.md", file=str(path),
                line=number,
            )  # fmt: skip
        seen.setdefault(row.session, []).append(row.label)
        rows.append((row.session, row.label, row.probability))
    if not rows:
        raise InputError("no labels in this file", hint='one {"session": ..., "label": ...} a line', file=str(path))
    table = pl.DataFrame(rows, schema=["session", "label", "probability"], orient="row")
    table = table.group_by("session").agg(pl.col("label").mean(), pl.col("probability").min()).sort("session")
    apart = [(session, labels) for session, labels in seen.items() if len(set(labels)) > 1]
    if not apart:
        return SessionLabels(table, ())
    session, labels = apart[0]
    shown = " and ".join(f"{label:g}" for label in dict.fromkeys(labels))
    return SessionLabels(table, (f"{len(apart)} sessions have labels that contradict each other, such as {session} "
                                 f"({shown}): their mean counts",))  # fmt: skip
