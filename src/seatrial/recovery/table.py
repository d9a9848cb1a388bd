"""Rows of a pairs table to columns, each cell checked (DESIGN 5: the pairs table).

Columns: `task, condition, operation, delay, y0, y1`; optional `replay`, `placebo`, `cohort`, `agent`, and
`terminated` (true: the run had ended before the delay was over, and both outcomes are carried forward). Every other
column whose cells are all numbers is a feature, known before the decision; text columns are kept out and named.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seatrial.errors import EvidenceError, SchemaError, UsageError
from seatrial.records import Pair

REQUIRED = ("task", "condition", "operation", "delay", "y0", "y1")
OPTIONAL = ("replay", "placebo", "cohort", "agent", "terminated")
CLEAN = "clean"
"""The condition without an altered observation."""
NONE = "none"
"""The operation that does nothing: a row of it is a placebo pair."""
_TRUE = frozenset({"true", "t", "yes", "y", "1", "1.0"})
_FALSE = frozenset({"false", "f", "no", "n", "0", "0.0", ""})
_EMPTY = frozenset({"", "na", "n/a", "nan", "null", "none"})

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Texts = NDArray[np.str_]


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Pairs by column, one row per pair, all of length n; `x` (n, p) holds the features, NaN where a cell is empty.

    `cohort` and `agent` are empty text where the table has no such column. `ignored` names columns that are neither
    known nor numeric.
    """

    task: Texts
    condition: Texts
    operation: Texts
    delay: Ints
    y0: Floats
    y1: Floats
    replay: Ints
    placebo: Bools
    cohort: Texts
    agent: Texts
    terminated: Bools
    features: tuple[str, ...]
    x: Floats
    ignored: tuple[str, ...] = ()

    def __len__(self) -> int:
        return self.task.size

    def where(self, keep: Bools) -> Pairs:
        """The rows at which `keep` is true."""
        columns = {
            name: getattr(self, name)[keep]
            for name in ("task", "condition", "operation", "delay", "y0", "y1", "replay", "placebo", "cohort", "agent",
                         "terminated", "x")
        }  # fmt: skip
        return Pairs(features=self.features, ignored=self.ignored, **columns)

    def with_features(self, names: Sequence[str]) -> Pairs:
        """The same pairs with these features alone, in this order.

        Raises:
            UsageError: the table has no such feature.
        """
        missing = [n for n in names if n not in self.features]
        if missing:
            raise UsageError(f"the pairs have no feature {', '.join(missing)}",
                             hint=f"they have {', '.join(self.features) or 'none'}")  # fmt: skip
        return replace(self, features=tuple(names), x=self.x[:, [self.features.index(n) for n in names]])


class Row(NamedTuple):
    """One row of a table and its line in the file (None: unknown)."""

    line: int | None
    cells: Mapping[str, Any]


class _Bad(Exception):
    pass


def from_rows(rows: Iterable[Row], file: str = "pairs") -> Pairs:
    """Check rows of a pairs table and turn them into columns.

    Raises:
        SchemaError: a column is missing or a cell is not what its column holds; names file and line.
        EvidenceError: there are no rows.
    """
    listed = list(rows)
    if not listed:
        raise EvidenceError(f"{file}: no pairs, so there is nothing to contrast")
    columns = dict.fromkeys(name for row in listed for name in row.cells)
    missing = [name for name in REQUIRED if name not in columns]
    if missing:
        raise SchemaError(
            f"no column {', '.join(missing)}", file=file,
            hint=f"a pairs table has {', '.join(REQUIRED)}; optional: {', '.join(OPTIONAL)} and feature columns",
        )  # fmt: skip
    others = [name for name in columns if name not in REQUIRED and name not in OPTIONAL]
    features = tuple(name for name in others if _numeric(listed, name, file))
    known, x = [], np.full((len(listed), len(features)), math.nan)
    seen: dict[tuple[object, ...], int | None] = {}
    for i, row in enumerate(listed):
        try:
            pair = _row(row.cells)
            key = tuple(pair[name] for name in ("agent", "cohort", "task", "condition", "operation", "delay", "replay"))
            key += (pair["placebo"],)
            if key in seen:
                first = f"line {seen[key]}" if seen[key] is not None else "an earlier row"
                raise _Bad(f"the same task, condition, operation, delay and replay as in {first}")
        except _Bad as error:
            raise SchemaError(str(error), file=file, line=row.line) from None
        seen[key] = row.line
        known.append(pair)
        for j, name in enumerate(features):
            cell = row.cells.get(name)
            x[i, j] = math.nan if cell is None or _empty(cell) else float(cell)
    return _columns(known, features, x, tuple(n for n in others if n not in features))


def from_pairs(pairs: Sequence[Pair]) -> Pairs:
    """Records to columns.

    Raises:
        EvidenceError: there are no pairs.
    """
    return from_rows(
        Row(None, {name: getattr(p, name) for name in (*REQUIRED, *OPTIONAL)} | dict(p.features)) for p in pairs
    )


def _columns(known: Sequence[Mapping[str, Any]], features: tuple[str, ...], x: Floats, ignored: tuple[str, ...]
             ) -> Pairs:  # fmt: skip
    def of(name: str, kind: Any) -> NDArray[Any]:
        return np.array([p[name] for p in known], dtype=kind)

    texts = {name: of(name, np.str_) for name in ("task", "condition", "operation", "cohort", "agent")}
    return Pairs(
        **texts, delay=of("delay", np.int64), y0=of("y0", np.float64), y1=of("y1", np.float64),
        replay=of("replay", np.int64), placebo=of("placebo", np.bool_), terminated=of("terminated", np.bool_),
        features=features, x=x, ignored=ignored,
    )  # fmt: skip


def _row(cells: Mapping[str, Any]) -> dict[str, Any]:
    operation = _text(cells, "operation")
    return {
        "task": _text(cells, "task"),
        "condition": _text(cells, "condition"),
        "operation": operation,
        "delay": _whole(cells, "delay"),
        "y0": _share(cells, "y0"),
        "y1": _share(cells, "y1"),
        "replay": 0 if _empty(cells.get("replay")) else _whole(cells, "replay"),
        "placebo": _flag(cells, "placebo") or operation == NONE,
        "cohort": "" if _empty(cells.get("cohort")) else str(cells["cohort"]),
        "agent": "" if _empty(cells.get("agent")) else str(cells["agent"]),
        "terminated": _flag(cells, "terminated"),
    }


def _empty(cell: object) -> bool:
    if isinstance(cell, float):
        return math.isnan(cell)
    return cell is None or (isinstance(cell, str) and cell.strip().lower() in _EMPTY)


def _text(cells: Mapping[str, Any], name: str) -> str:
    cell = cells.get(name)
    text = "" if cell is None else str(cell).strip()
    if not text:
        raise _Bad(f"{name} is empty")
    return text


def _number(cells: Mapping[str, Any], name: str) -> float:
    cell = cells.get(name)
    if isinstance(cell, str) and cell.strip().lower() in ("true", "false"):
        return float(cell.strip().lower() == "true")
    try:
        value = float(cell)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise _Bad(f"{name}: expected a number, found {cell!r}"[:200]) from None
    if not math.isfinite(value):
        raise _Bad(f"{name}: expected a finite number, found {cell!r}"[:200])
    return value


def _whole(cells: Mapping[str, Any], name: str) -> int:
    value = _number(cells, name)
    if value < 0 or value != math.floor(value):
        raise _Bad(f"{name}: expected a whole number of at least 0, found {value:g}")
    return int(value)


def _share(cells: Mapping[str, Any], name: str) -> float:
    value = _number(cells, name)
    if not 0.0 <= value <= 1.0:
        raise _Bad(f"{name}: expected an outcome between 0 and 1, found {value:g}")
    return value


def _flag(cells: Mapping[str, Any], name: str) -> bool:
    cell = cells.get(name)
    text = "" if cell is None else str(cell).strip().lower()
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise _Bad(f"{name}: expected true or false, found {cell!r}"[:200])


def _numeric(rows: Sequence[Row], name: str, file: str) -> bool:
    """Every cell that is not empty is a number, and there is one.

    Raises:
        SchemaError: they are all numbers, and one is infinite: a feature that nothing can be fitted on.
    """
    found, endless = False, None
    for row in rows:
        cell = row.cells.get(name)
        if _empty(cell):
            continue
        try:
            value = float(cell)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            return False
        if math.isinf(value) and endless is None:
            endless = row.line, cell
        found = True
    if endless is not None:
        raise SchemaError(f"{name}: expected a finite number, found {endless[1]!r}"[:200], file=file, line=endless[0],
                          hint="leave the cell empty, cap the value, or leave the column out")  # fmt: skip
    return found
