"""A file of human and judge verdicts to ratings by criterion: CSV, JSON or JSON lines, a row per item (METHODS 6.4)."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from seatrial.errors import FormatError, InputError, SchemaError, UsageError

_HUMAN = re.compile(r"^(human|annotator|rater|expert|gold|reviewer|person)([\s_-]?\w+)?$", re.I)
_JUDGE = ("judge", "judge_verdict", "verdict", "model_verdict")
_SWAPPED = ("judge_swapped", "swapped")
_ITEM = ("item", "item_id", "id", "idx", "trace", "simulation_id")
_TASK = ("task", "task_id", "cluster")
_WRAPPERS = ("rows", "items", "entries", "verdicts", "results")
OVERALL = "overall"

PASS_WORDS = frozenset(
    {"pass", "passed", "true", "yes", "y", "t", "1", "1.0", "met", "success", "successful", "satisfied", "satisfactory",
     "compliant", "correct", "good", "ok", "accept", "accepted"}
)  # fmt: skip
FAIL_WORDS = frozenset(
    {"fail", "failed", "false", "no", "n", "f", "0", "0.0", "unmet", "not met", "failure", "unsuccessful",
     "unsatisfied", "dissatisfied", "unsatisfactory", "not satisfied", "non-compliant", "noncompliant", "not compliant",
     "incorrect", "violation", "bad", "reject", "rejected"}
)  # fmt: skip
_UNSCORED = frozenset({"", "unscored", "n/a", "na", "none", "null", "nan", "unparseable", "error"})


class Ratings(NamedTuple):
    """One criterion's ratings, in parallel lists over items; None: no rating.

    `binary` says that every word meant pass or fail, and ratings are then ``pass`` or ``fail``; else they are classes
    as written. `judge_swapped` is the judge's verdict with the pair in the other order, in the same terms. `length`
    is in characters, `agent` the model that made the output. `mapped` lists words that were read as pass or fail.
    """

    criterion: str
    items: tuple[str, ...]
    tasks: tuple[str | None, ...]
    humans: Mapping[str, tuple[str | None, ...]]
    judge: tuple[str | None, ...]
    judge_swapped: tuple[str | None, ...] | None
    length: tuple[float | None, ...] | None
    agent: tuple[str | None, ...] | None
    binary: bool
    mapped: Mapping[str, str]


class Columns(NamedTuple):
    """Which column holds what; None or empty: found by the usual names."""

    item: str | None = None
    judge: str | None = None
    humans: tuple[str, ...] = ()
    task: str | None = None
    criterion: str = "criterion"
    length: str = "length"
    output: str = "output"
    agent: str = "agent_model"


def read_ratings(path: Path, columns: Columns | None = None) -> tuple[Ratings, ...]:
    """The ratings of a file, one entry per criterion in order of appearance (one named ``overall`` without a column
    of criteria).

    Raises:
        InputError: the file cannot be read, or an item occurs twice for one criterion.
        FormatError: it is no table.
        SchemaError: no column of a judge or of a human, or one that is named is not there.
        UsageError: the judge's column is among the humans'.
    """
    columns = columns or Columns()
    rows = _rows(path)
    if not rows:
        raise SchemaError(
            "the file holds no rows", hint="one row per item: item, judge, human_1, human_2", file=str(path)
        )
    names = list(dict.fromkeys(n for row in rows for n in row))
    judge = _one(columns.judge, _JUDGE, names, path, "judge")
    humans = columns.humans or tuple(n for n in names if _HUMAN.match(n))
    if judge in humans:
        raise UsageError(f"column {judge!r} holds the judge's verdicts, and cannot be a human's at once",
                         hint="--judge-column JUDGE --human HUMAN: different columns")  # fmt: skip
    for name in (judge, *humans, *(n for n in (columns.item, columns.task) if n is not None)):
        if name not in names:
            raise SchemaError(f"there is no column {name!r}; the columns are {', '.join(names[:20])}", file=str(path))
    if not humans:
        raise SchemaError(
            f"no column holds a human's verdict; the columns are {', '.join(names[:20])}",
            hint="name columns human_1, human_2 or give --human COLUMN", file=str(path),
        )  # fmt: skip
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault(_word(row.get(columns.criterion)) or OVERALL, []).append(row)
    return tuple(_ratings(c, group, columns, judge, humans, names, path) for c, group in groups.items())


def _ratings(
    criterion: str, rows: Sequence[Mapping[str, Any]], columns: Columns, judge: str, humans: Sequence[str],
    names: Sequence[str], path: Path,
) -> Ratings:  # fmt: skip
    item = columns.item or next((n for n in _ITEM if n in names), None)
    task = columns.task or next((n for n in _TASK if n in names), None)
    swapped = next((n for n in _SWAPPED if n in names), None)
    items = [_word(r.get(item)) or str(n) for n, r in enumerate(rows)] if item else [str(n) for n in range(len(rows))]
    twice = {i for i in items if items.count(i) > 1} if len(set(items)) < len(items) else set()
    if twice:
        raise InputError(
            f"item {sorted(twice)[0]!r} occurs twice for criterion {criterion!r}",
            hint="one row per item and criterion; a task may repeat", file=str(path),
        )  # fmt: skip
    rated = [judge, *humans, *([swapped] if swapped else [])]
    words = {w for n in rated for r in rows if (w := _word(r.get(n))) is not None and w.lower() not in _UNSCORED}
    # Judges write satisfied or compliant where people write true: both are words for pass.
    meaning = {w: "pass" if w.lower() in PASS_WORDS else "fail" for w in words
               if w.lower() in PASS_WORDS or w.lower() in FAIL_WORDS}  # fmt: skip
    binary = len(meaning) == len(words) and bool(words)

    def column(name: str) -> tuple[str | None, ...]:
        found = [_word(r.get(name)) for r in rows]
        return tuple(None if w is None or w.lower() in _UNSCORED else meaning[w] if binary else w for w in found)

    lengths = [_length(r, columns) for r in rows]
    agents = tuple(_word(r.get(columns.agent)) for r in rows)
    return Ratings(
        criterion=criterion,
        items=tuple(items),
        tasks=tuple(_word(r.get(task)) for r in rows) if task else tuple(None for _ in rows),
        humans={h: column(h) for h in humans},
        judge=column(judge),
        judge_swapped=column(swapped) if swapped else None,
        length=tuple(lengths) if any(x is not None for x in lengths) else None,
        agent=agents if any(agents) else None,
        binary=binary,
        mapped=dict(sorted(meaning.items())) if binary else {},
    )


def _length(row: Mapping[str, Any], columns: Columns) -> float | None:
    given = row.get(columns.length)
    try:
        if given not in (None, ""):
            return float(given)
    except (TypeError, ValueError):
        return None
    text = row.get(columns.output)
    return float(len(text)) if isinstance(text, str) else None


def _one(given: str | None, usual: Sequence[str], names: Sequence[str], path: Path, what: str) -> str:
    if given is not None:
        return given
    found = next((n for n in usual if n in names), None)
    if found is None:
        raise SchemaError(
            f"no column holds the {what}'s verdict; the columns are {', '.join(names[:20])}",
            hint=f"name it {usual[0]} or give --{what}-column COLUMN", file=str(path),
        )  # fmt: skip
    return found


def _word(cell: Any) -> str | None:
    if cell is None or isinstance(cell, dict | list):
        return None
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float):
        if cell != cell:
            return None
        if cell.is_integer():
            cell = int(cell)
    return str(cell).strip() or None


def _rows(path: Path) -> list[Mapping[str, Any]]:
    try:
        text = path.read_text("utf-8-sig")
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=str(path)) from error
    except UnicodeDecodeError:
        raise FormatError("not text in UTF-8", hint="give CSV, JSON or JSON lines", file=str(path)) from None
    start = text.lstrip()[:1]
    if start not in ("[", "{"):
        return [
            {k: v for k, v in row.items() if k is not None} for row in csv.DictReader(io.StringIO(text, newline=""))
        ]
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return _json_lines(text, path)
    if isinstance(value, dict):
        value = next((value[w] for w in _WRAPPERS if isinstance(value.get(w), list)), [value])
    if not all(isinstance(row, dict) for row in value):
        raise FormatError("expected a list of row objects", file=str(path))
    return list(value)


def _json_lines(text: str, path: Path) -> list[Mapping[str, Any]]:
    rows: list[Mapping[str, Any]] = []
    for n, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            raise FormatError("not a JSON object", hint="one row object per line", file=str(path), line=n) from None
        if not isinstance(row, dict):
            raise FormatError("not a JSON object", hint="one row object per line", file=str(path), line=n)
        rows.append(row)
    return rows
