"""Rates to the page: a table for each family of estimators, flags, and in words where ours fall short."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime

from grid.cell import Cell, Rates, eager, error, short, version
from grid.words import ABOUT, OPENING, WHY
from seatrial._version import __version__

PACKAGES = ("numpy", "scipy", "statsmodels", "tea-tasting", "ppi-python")
Done = list[tuple[Cell, list[Rates]]]


def machine() -> str:
    """Processor, cores and Python."""
    return f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"


def render(done: Done, runs: int | None, left: list[Cell]) -> str:
    """The page; `left` are the cells that were not run, `runs` how many were asked for (None: what was kept)."""
    how = "--from-cache" if runs is None else f"--runs {runs}"
    kept = " Of every cell, the kept run with the most samples." if runs is None else ""
    versions = ", ".join(f"{p} {version(p) or 'not installed'}" for p in PACKAGES)
    lines = [
        "# Validity grid", "",
        f"Made by `benchmarks/validity.py {how} --write` on {datetime.now(UTC):%Y-%m-%d} with seatrial "
        f"{__version__} ({machine()}; {versions}). {len(done)} of {len(done) + len(left)} cells.{kept}", "",
        *_left(left),
        *OPENING, "", "## Where ours fall short", "", *_failures(done), "", "## How to rerun it", "",
        "```text", "python benchmarks/validity.py --runs 400 --write     # a stopped run goes on",
        "python benchmarks/validity.py --quick --table pass^k  # one table", "```", "",
    ]  # fmt: skip
    for table in dict.fromkeys(cell.table for cell, _ in done):
        mine = [(c, r) for c, r in done if c.table == table]
        lines += [f"## {table}", "", *ABOUT.get(table, []), "", *_table(mine), ""]
    return "\n".join(lines).rstrip() + "\n"


def _left(left: list[Cell]) -> list[str]:
    tables = dict.fromkeys(c.table for c in left)
    named = "; ".join(f"{t} ({sum(c.table == t for c in left)})" for t in tables)
    return [f"Cells not run yet: {named}.", ""] if left else []


def _failures(done: Done) -> list[str]:
    """One sentence per method of ours that is short of its coverage or above its level, foils and the impossible
    aside."""
    out = []
    held = 0
    for cell, found in done:
        for r in found:
            if not r.ours or r.foil or cell.impossible:
                continue
            held += 1
            said = []
            if short(cell, r):
                said.append(f"covers {_percent(r.cover, r.n)} where {cell.nominal:.0%} is promised ({r.n} samples)")
            if eager(cell, r):
                said.append(
                    f"rejects {_percent(r.type_one, r.n_null)} of true nulls, not {cell.alpha:.0%} ({r.n_null} samples)"
                )
            if said:
                why = WHY.get((cell.table, cell.design, r.method)) or WHY.get((cell.table, "", r.method), "")
                out.append(f"- {cell.table}, {cell.design}: {r.method} {' and '.join(said)}. {why}".rstrip())
    measured = sum(c.impossible for c, _ in done)
    head = [f"{held} pairs of a design and a method of ours are held to their promise; {len(out)} are outside by "
            f"more than two Monte Carlo errors; of a hundred right ones two or three would be, by chance."]  # fmt: skip
    if measured:
        head.append("A design in which what no column holds decides the model is shown, and no method is right there: "
                    "rank calls such data observational and prints how little would undo it.")  # fmt: skip
    return [*head, "", *out] if out else head


def _percent(share: float | None, n: int) -> str:
    if share is None or not n:
        return "–"
    return f"{share:.1%} ± {error(share, n):.1%}"


def _table(cells: Done) -> list[str]:
    tested = any(c.without for c, _ in cells)
    heads = ["design", "method", "coverage"] + (["type I error", "power"] if tested else []) + ["mean width", "refused"]
    if not tested and any(r.power is not None for _, found in cells for r in found):
        heads.insert(3, "power")
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for cell, found in cells:
        for i, r in enumerate(found):
            lines.append("| " + " | ".join(_row(cell, r, heads, first=i == 0)) + " |")
    return lines


def _row(cell: Cell, r: Rates, heads: list[str], *, first: bool) -> list[str]:
    name = f"**{r.method}**" if r.ours and not r.foil else f"{r.method} (foil)" if r.foil else r.method
    design = cell.design if first else ""
    if r.missing:
        return [design, name, r.missing, *[""] * (len(heads) - 3)]
    cells = {
        "design": design,
        "method": name,
        "coverage": _percent(r.cover, r.n) + (" **low**" if short(cell, r) else ""),
        "type I error": _percent(r.type_one, r.n_null) + (" **high**" if eager(cell, r) else ""),
        "power": _percent(r.power, r.n),
        "mean width": "–" if r.width is None else f"{r.width:.3f}",
        "refused": f"{r.refused:.0%}" if r.refused else "",
    }
    return [cells[h] for h in heads]
