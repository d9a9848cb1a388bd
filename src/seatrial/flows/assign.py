"""Drawing arms and evaluation sets from the command line (METHODS 3.6b)."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import polars as pl

from seatrial import causal, scoring
from seatrial.causal.assign import Method
from seatrial.errors import InputError, UsageError
from seatrial.flows.extract import extract_store
from seatrial.records import Assignment
from seatrial.settings import load
from seatrial.store import Store


def draw(
    unit: str,
    *,
    record: Path,
    arms: str,
    task_type: str | None,
    difficulty: str | None,
    method: Method,
    epoch: str,
    key_file: Path | None,
) -> Assignment:
    """The arm of a unit, written to the record before it returns.

    `arms` is ``a=.5,b=.5`` or ``a,b`` for equal chances. The secret key is read from `key_file` (None: the
    record's name with ``.key`` behind it) and made there on first use, readable by its owner alone.

    Raises:
        UsageError: arms or chances that make no sense.
        InputError: record or key cannot be read or written.
    """
    if record.is_dir():
        raise InputError("the record must be a file, not a folder", file=str(record))
    path = key_file or record.with_name(record.name + ".key")
    assigner = causal.Assigner(chances(arms), key=_key(path), method=method, epoch=epoch, record=record)
    return assigner.assign(unit, task_type=task_type, difficulty=difficulty)


def chances(arms: str) -> dict[str, float]:
    """``a=.5,b=.5`` or ``a,b`` as arm to probability.

    Raises:
        UsageError: some arms have a chance and some have none, a chance is no number, or an arm is named twice.
    """
    parts = [part.strip() for part in arms.split(",") if part.strip()]
    named: dict[str, float | None] = {}
    for part in parts:
        name, equals, chance = part.rpartition("=")
        if not equals:
            name, chance = part, ""
        if name in named:
            raise UsageError(f"arm {name!r} is named twice")
        try:
            named[name] = float(chance) if equals else None
        except ValueError:
            raise UsageError(f"arm {name!r}: {chance!r} is no probability", hint="write A=0.5,B=0.5") from None
    given = {name: p for name, p in named.items() if p is not None}
    if given and len(given) < len(named):
        raise UsageError("give every arm a probability, or none", hint="write A=0.5,B=0.5 or A,B")
    return given or {name: 1 / len(named) for name in named}


def _key(path: Path) -> bytes:
    try:
        if path.exists():
            return path.read_bytes().strip()
        path.parent.mkdir(parents=True, exist_ok=True)
        made = secrets.token_hex(32).encode()
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(made + b"\n")
    except FileExistsError:
        return path.read_bytes().strip()
    except OSError as error:
        raise InputError(f"the key cannot be read or made: {error.strerror}", file=str(path)) from error
    return made


def draw_sample(n: int, *, store: str | None, by: tuple[str, ...], seed: int) -> tuple[pl.DataFrame, str]:
    """`n` stored sessions spread evenly over strata, with inclusion probabilities, and the data version."""
    opened = Store.open(store or load().store)
    extract_store(opened, scoring.UNIT)
    wanted = ["session", "arm", *by]
    rows = opened.table("outcomes").filter(pl.col("parent").is_null()).collect()
    for column in by:
        if column not in rows.columns:
            raise UsageError(f"no column {column!r} to sample by", hint=f"columns: {', '.join(rows.columns)}")
    drawn = causal.sample(rows.select(list(dict.fromkeys(wanted))), n, strata=by, seed=seed)
    return drawn, opened.data_version
