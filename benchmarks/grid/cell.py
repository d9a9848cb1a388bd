"""One cell of the validity grid: a design, the methods that analyse its samples, and the rates of what they said."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import math
import os
import sys
import time
import warnings
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

LEVEL = 0.95
ALPHA = 1.0 - LEVEL


class Reply(NamedTuple):
    """What a method said of one sample: whether its interval holds the truth, whether it rejected, and its width.

    None where a method has no interval or no test.
    """

    hit: bool | None = None
    reject: bool | None = None
    width: float | None = None


def limits(low: float | None, high: float | None, truth: float, null: float | None = 0.0) -> Reply | None:
    """An interval as a reply; it rejects where it leaves `null` out. None: refused."""
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
        return None
    reject = None if null is None else not low <= null <= high
    return Reply(low <= truth <= high, reject, high - low)


Analyse = Callable[[Any, Any, int], Reply | None]


@dataclass(frozen=True)
class Method:
    """A way to analyse: sample, truth and seed to a reply, or None where it refuses an answer.

    `share` of the samples are analysed, the first ones: slow methods see fewer; above 1, further ones are drawn.
    `needs` is the module of a peer.
    `foil`: ours on purpose, the wrong way, as a warning.
    """

    name: str
    analyse: Analyse
    ours: bool = True
    share: float = 1.0
    needs: str | None = None
    foil: bool = False


@dataclass(frozen=True)
class Cell:
    """A design under one table. `draw(rng, effect)` gives a sample and its truth, with or without an effect.

    `nominal` is the coverage, `alpha` the type I error that is promised. `times` multiplies the number of runs where
    samples are cheap. `without` False: there is no design without an effect, hence no type I error.
    """

    table: str
    design: str
    draw: Callable[[np.random.Generator, bool], tuple[Any, Any]]
    methods: tuple[Method, ...]
    nominal: float = LEVEL
    alpha: float = ALPHA
    times: float = 1.0
    without: bool = True
    impossible: bool = False
    """No method can be right here: shown as a warning, not held to the level."""


class Rates(NamedTuple):
    """Of one method in one cell. Shares are None where nothing measures them; `n` and `n_null` answered samples."""

    method: str
    ours: bool
    foil: bool
    cover: float | None
    type_one: float | None
    power: float | None
    width: float | None
    n: int
    n_null: int
    refused: float
    missing: str | None
    ms: float


def installed(module: str) -> bool:
    """Whether a peer can be imported; SEATRIAL_PEERS may name a folder that has more of them."""
    folder = os.environ.get("SEATRIAL_PEERS")
    if folder and folder not in sys.path:
        sys.path.append(folder)
    return importlib.util.find_spec(module) is not None


def run(cell: Cell, runs: int, seed: int = 1) -> list[Rates]:
    """Rates of every method of a cell. Cells have seeds of their own: luck in one is no luck in another."""
    own = zlib.crc32(f"{cell.table}|{cell.design}".encode())
    n = max(4, round(runs * cell.times))
    absent = {m.name: f"{m.needs} is not installed" for m in cell.methods if m.needs and not installed(m.needs)}
    said: dict[tuple[str, bool], list[Reply | None]] = {}
    spent = dict.fromkeys((m.name for m in cell.methods), 0.0)
    kinds = (True, False) if cell.without else (True,)
    most = max(max(4, round(n * m.share)) for m in cell.methods if m.name not in absent)
    for effect in kinds:
        for r in range(most):
            sample, truth = cell.draw(np.random.default_rng([seed, own, int(effect), r]), effect)
            for m in cell.methods:
                if m.name in absent or r >= max(4, round(n * m.share)):
                    continue
                began = time.process_time()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    reply = m.analyse(sample, truth, r)
                spent[m.name] += time.process_time() - began
                said.setdefault((m.name, effect), []).append(reply)
    return [_rates(m, said.get((m.name, True), []), said.get((m.name, False), []), absent.get(m.name), spent[m.name])
            for m in cell.methods]  # fmt: skip


def _share(replies: list[Reply], what: str) -> float | None:
    found = [getattr(r, what) for r in replies if getattr(r, what) is not None]
    return float(np.mean(found)) if found else None


def _rates(m: Method, effect: list[Reply | None], null: list[Reply | None], missing: str | None, spent: float) -> Rates:
    with_, without = [r for r in effect if r is not None], [r for r in null if r is not None]
    asked = len(effect) + len(null)
    return Rates(
        m.name, m.ours, m.foil, _share(with_, "hit"), _share(without, "reject"), _share(with_, "reject"),
        _share(with_, "width"), len(with_), len(without),
        (asked - len(with_) - len(without)) / asked if asked else 0.0, missing, 1000 * spent / asked if asked else 0.0,
    )  # fmt: skip


def error(share: float, n: int) -> float:
    """Monte Carlo standard error of a share over n samples."""
    return math.sqrt(share * (1.0 - share) / n) if n else math.inf


def short(cell: Cell, rates: Rates) -> bool:
    """Coverage more than two Monte Carlo errors below what is promised."""
    return rates.cover is not None and rates.cover < cell.nominal - 2.0 * error(cell.nominal, rates.n)


def eager(cell: Cell, rates: Rates) -> bool:
    """Type I error more than two Monte Carlo errors above what is promised."""
    return rates.type_one is not None and rates.type_one > cell.alpha + 2.0 * error(cell.alpha, rates.n_null)


def version(package: str) -> str | None:
    """Version of an installed package, None where it is not there."""
    installed(package.replace("-", "_"))
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
