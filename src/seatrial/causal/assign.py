"""Make it randomised: draw the arm when a task starts, record it before the session begins (METHODS 3.6b)."""

from __future__ import annotations

import csv
import dataclasses
import hashlib
import hmac
import os
import time as clock
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import numpy as np

from seatrial.errors import InputError, SchemaError, UsageError
from seatrial.records import Assignment

Method = Literal["blocks", "hash"]
MAX_BLOCK = 64
_FIXED = ("unit", "arm", "stratum", "epoch", "time")


@dataclasses.dataclass(slots=True)
class _Block:
    left: list[str]
    number: int


class Assigner:
    """Draws arms with recorded probabilities; one unit always keeps its arm inside an epoch.

    `method` "blocks": randomly permuted blocks inside every stratum (task type x difficulty), so that arms stay
    balanced there; "hash": a keyed hash of the unit, which needs no memory and gives every process the same answer.
    Give the user as the unit to make assignment sticky by user. `probabilities` maps every arm to a chance above 0;
    blocks need chances that are whole multiples of 1/64 or coarser fractions (thirds, fifths, ... up to 64). `key`
    is secret: whoever knows it can predict arms. `record` is the CSV file to append to before `assign` returns (None:
    keep the record in memory); an existing file is read back, so that a restart repeats no draw; one process writes
    one record. A new roster or new probabilities need a new `epoch`.

    Raises:
        UsageError: fewer than two arms, chances that are not above 0 or do not sum to 1, or no key.
        InputError: the record cannot be read or written, or contradicts the probabilities of its epoch.
    """

    def __init__(
        self,
        probabilities: Mapping[str, float],
        *,
        key: str | bytes,
        method: Method = "blocks",
        epoch: str = "1",
        record: str | Path | None = None,
    ) -> None:
        self.arms = tuple(sorted(probabilities))
        chances = [float(probabilities[a]) for a in self.arms]
        if len(self.arms) < 2:
            raise UsageError("an assignment needs at least two arms")
        if any(not a or not a.isprintable() for a in self.arms):
            raise UsageError("arm names must be printable and not empty")
        if min(chances) <= 0 or not np.isfinite(chances).all() or abs(sum(chances) - 1.0) > 1e-9:
            raise UsageError("every arm needs a probability above 0, and they must sum to 1")
        if method not in ("blocks", "hash"):
            raise UsageError(f"unknown method {method!r}", hint="blocks or hash")
        self._key = key.encode() if isinstance(key, str) else bytes(key)
        if not self._key:
            raise UsageError("the key must not be empty: whoever can guess it can predict arms")
        self.probabilities = dict(zip(self.arms, chances, strict=True))
        self.method: Method = method
        self.epoch = epoch
        self._counts = _block_counts(chances) if method == "blocks" else None
        self._blocks: dict[str, _Block] = {}
        self._drawn: dict[tuple[str, str], Assignment] = {}
        self._path = Path(record) if record is not None else None
        if self._path is not None and self._path.exists() and self._path.stat().st_size:
            self._resume(read_assignments(self._path))

    def assign(
        self, unit: str, *, task_type: str | None = None, difficulty: str | None = None, time: float | None = None
    ) -> Assignment:
        """The arm of `unit`, drawn on first sight in this epoch and repeated ever after; recorded before it returns.

        `time` is the moment of the draw, seconds since the epoch, UTC (None: now). The stratum is that of the first
        draw: a sticky user keeps the arm across task types.

        Raises:
            UsageError: an empty unit. InputError: the record cannot be written, and then nothing was drawn.
        """
        if not unit:
            raise UsageError("the assignment unit must not be empty")
        known = self._drawn.get((self.epoch, unit))
        if known is not None:
            return known
        stratum = f"{task_type or 'unknown'}/{difficulty or 'unknown'}"
        if self.method == "hash":
            arm = self._hashed(unit)
        else:
            arm = self._peek(stratum)
        drawn = Assignment(
            arm=arm, probability=self.probabilities[arm], probabilities=dict(self.probabilities), stratum=stratum,
            epoch=self.epoch, unit=unit, time=round(clock.time() if time is None else time, 6),
        )  # fmt: skip
        self._append(drawn)
        if self.method == "blocks":
            self._blocks[stratum].left.pop()
        self._drawn[self.epoch, unit] = drawn
        return drawn

    def records(self) -> list[Assignment]:
        """Every draw so far, in order."""
        return list(self._drawn.values())

    def new_epoch(self, epoch: str, probabilities: Mapping[str, float]) -> Assigner:
        """The assigner of the next roster, on the same record; units are drawn anew there.

        Raises:
            UsageError: the epoch was already used, or as in the constructor.
        """
        if epoch == self.epoch or any(e == epoch for e, _ in self._drawn):
            raise UsageError(f"epoch {epoch!r} was already used")
        later = Assigner(probabilities, key=self._key, method=self.method, epoch=epoch, record=None)
        later._path = self._path
        later._drawn = dict(self._drawn)
        return later

    def _digest(self, *parts: str) -> bytes:
        text = "\x1f".join((self.epoch, *parts)).encode()
        return hmac.new(self._key, text, hashlib.sha256).digest()

    def _hashed(self, unit: str) -> str:
        u = int.from_bytes(self._digest("unit", unit)[:8], "big") / 2.0**64
        for arm in self.arms:
            u -= self.probabilities[arm]
            if u < 0:
                return arm
        return self.arms[-1]

    def _peek(self, stratum: str) -> str:
        block = self._blocks.get(stratum)
        if block is None:
            block = self._blocks[stratum] = _Block(self._permuted(stratum, 0), 0)
        if not block.left:
            block.number += 1
            block.left = self._permuted(stratum, block.number)
        return block.left[-1]

    def _permuted(self, stratum: str, number: int) -> list[str]:
        assert self._counts is not None
        labels = [a for a, n in zip(self.arms, self._counts, strict=True) for _ in range(n)]
        seed = int.from_bytes(self._digest("block", stratum, str(number)), "big")
        order = np.random.default_rng(seed).permutation(len(labels))
        return [labels[i] for i in order]

    def _append(self, drawn: Assignment) -> None:
        if self._path is None:
            return
        try:
            every = sorted({a for r in self._drawn.values() for a in r.probabilities} | set(self.arms))
            columns = columns_of(every)
            if self._header() != columns:
                # A first line, an arm that a new epoch added, or somebody else's order of columns.
                beside = self._path.with_name(self._path.name + ".new")
                write_assignments(beside, list(self._drawn.values()), every)
                os.replace(beside, self._path)
            with self._path.open("a", encoding="utf-8", newline="") as file:
                csv.DictWriter(file, columns, restval="0", lineterminator="\n").writerow(_row(drawn))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise InputError(f"cannot write the assignment record: {error.strerror}", file=str(self._path)) from None

    def _header(self) -> list[str] | None:
        """The record's columns, None before it exists."""
        assert self._path is not None
        if not self._path.exists():
            return None
        with self._path.open(encoding="utf-8-sig", newline="") as file:
            return next(csv.reader(file), None)

    def _resume(self, rows: list[Assignment]) -> None:
        for row in rows:
            if row.epoch == self.epoch and any(
                abs(row.probabilities.get(a, 0.0) - p) > 1e-6 for a, p in self.probabilities.items()
            ):
                raise InputError(
                    f"the record's epoch {self.epoch!r} has other probabilities", file=str(self._path),
                    hint="give a new epoch when the roster or the probabilities change",
                )  # fmt: skip
            self._drawn.setdefault((row.epoch or "", row.unit or ""), row)
            if self.method == "blocks" and row.epoch == self.epoch:
                self._peek(row.stratum or "")
                left = self._blocks[row.stratum or ""].left
                if row.arm in left:
                    left.remove(row.arm)


def _block_counts(chances: list[float]) -> list[int]:
    """Smallest block in which every chance is a whole count."""
    for size in range(len(chances), MAX_BLOCK + 1):
        counts = [round(p * size) for p in chances]
        if min(counts) > 0 and all(abs(c / size - p) <= 1e-6 for c, p in zip(counts, chances, strict=True)):
            # Blocks of one round are easy to foresee near their end; two rounds are not, at little cost in balance.
            return [2 * c for c in counts] if size <= MAX_BLOCK // 2 else counts
    raise UsageError(
        f"no block of at most {MAX_BLOCK} gives these probabilities exactly",
        hint="method='hash' takes any probabilities",
    )


def columns_of(arms: tuple[str, ...] | list[str]) -> list[str]:
    """Header of the assignments file: ``unit, arm, p_<arm>..., stratum, epoch, time``."""
    return ["unit", "arm", *(f"p_{a}" for a in arms), "stratum", "epoch", "time"]


def _row(drawn: Assignment) -> dict[str, str]:
    row = {"unit": drawn.unit or "", "arm": drawn.arm, "stratum": drawn.stratum or "", "epoch": drawn.epoch or ""}
    row["time"] = "" if drawn.time is None else repr(drawn.time)
    return row | {f"p_{a}": repr(p) for a, p in drawn.probabilities.items()}


def write_assignments(path: str | Path, rows: list[Assignment], arms: list[str] | None = None) -> None:
    """Write an assignments file whole. Raises: InputError when it cannot be written."""
    every = arms if arms is not None else sorted({a for r in rows for a in r.probabilities})
    try:
        with Path(path).open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, columns_of(every), restval="0", lineterminator="\n")
            writer.writeheader()
            writer.writerows(_row(r) for r in rows)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise InputError(f"cannot write the assignment record: {error.strerror}", file=str(path)) from None


def read_assignments(path: str | Path) -> list[Assignment]:
    """Read an assignments file: ``unit, arm, p_<arm>...`` and optionally ``stratum, epoch, time``.

    Raises:
        InputError: the file cannot be read, or a line is not an assignment (names the line and what was expected).
        SchemaError: a needed column is absent.
    """
    name = str(path)
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            columns = reader.fieldnames or []
            arms = [c[2:] for c in columns if c.startswith("p_")]
            for needed in ("unit", "arm"):
                if needed not in columns:
                    raise SchemaError(f"no column {needed!r}", file=name, line=1, hint="unit, arm, p_<arm>...")
            if len(arms) < 2:
                raise SchemaError("fewer than two p_<arm> columns", file=name, line=1, hint="every arm's probability")
            return [_parse(row, arms, name, reader.line_num) for row in reader]
    except OSError as error:
        raise InputError(f"cannot read assignments: {error.strerror}", file=name) from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"not a CSV text file: {error}", file=name) from None


def _parse(row: dict[str, str | None], arms: list[str], name: str, line: int) -> Assignment:
    unit, arm = row.get("unit") or "", row.get("arm") or ""
    try:
        chances = {a: float(row.get(f"p_{a}") or 0.0) for a in arms}
        moment = float(row["time"]) if row.get("time") else None  # type: ignore[arg-type]
    except ValueError:
        raise InputError("a probability or time is not a number", file=name, line=line) from None
    if not unit or arm not in chances:
        raise InputError(f"expected a unit and one of the arms {', '.join(arms)}", file=name, line=line)
    total = sum(chances.values())
    if min(chances.values()) < 0 or abs(total - 1.0) > 1e-6 or chances[arm] <= 0:
        why = f"probabilities sum to {total:g} and the arm's is {chances[arm]:g}"
        raise InputError(why, file=name, line=line, hint="they must sum to 1, and the drawn arm's be above 0")
    return Assignment(
        arm=arm, probability=chances[arm], probabilities={a: p for a, p in chances.items() if p > 0},
        stratum=row.get("stratum") or None, epoch=row.get("epoch") or None, unit=unit, time=moment,
    )  # fmt: skip
