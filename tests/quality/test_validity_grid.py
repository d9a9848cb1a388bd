"""Does the validity grid hold at a small size, and does it find what is wrong?

A small version of `benchmarks/validity.py`, fixed seeds: ours must be within three Monte Carlo errors of what they
promise, and what is wrong on purpose must be outside two.
"""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parent))
sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))

from grid import cell as grid
from grid import families, gates, labels, page, paired, ranking, shares

CELLS = {(c.table, c.design): c for room in (shares, paired, gates, ranking, labels, families) for c in room.cells()}
CHEAP = [
    (shares.SHARES, "30 clusters of 5, p = .8", 40),
    (shares.SHARES, "near certain: 30 clusters of 5, p = .97", 40),
    (shares.PASSING, "30 tasks, good agent", 40),
    (shares.CARDS, "D1, 30 tasks x 4, Beta(1, 1)", 40),
    (paired.PAIRED, "75 tasks", 40),
    (paired.RECOVERY, "75 tasks, one run", 30),
    (paired.HARM, "250 clean tasks, harm 2%", 40),
    (paired.HARM, "ten rules, 400 clean tasks, limit 2%", 40),
    (gates.GATE, "design, 30 x 5", 60),
    (gates.PASSES, "steady, 100 x 5, lost by few tasks", 60),
    (ranking.TABLE, "20 even users", 20),
    (ranking.TABLE, "confounded by task type", 20),
    (ranking.TABLE, "sticky: 60 users, one model each", 20),
    (labels.TABLE, "flattered model, 300 labels", 10),
    (families.TABLE, "300 even users", 8),
]
SLOW = ("bootstrap", "randomisation", "AIPW", "Lin", "sign-flip interval", "Rogan", "not the default", "scipy")


def _rates(table: str, design: str, runs: int, keep) -> tuple[grid.Cell, list[grid.Rates]]:
    whole = CELLS[table, design]
    some = dataclasses.replace(whole, methods=tuple(m for m in whole.methods if keep(m)))
    return some, grid.run(some, runs)


@pytest.mark.parametrize(("table", "design", "runs"), CHEAP, ids=lambda x: str(x)[:24])
def test_ours_keep_their_promises(table: str, design: str, runs: int) -> None:
    cell, found = _rates(table, design, runs, lambda m: m.ours and not m.foil and not m.name.startswith(SLOW))
    assert found
    for r in found:
        assert r.missing is None
        assert r.refused < 0.2, r
        if r.cover is not None:
            assert r.cover >= cell.nominal - 3 * grid.error(cell.nominal, r.n), r
        if r.type_one is not None:
            assert r.type_one <= cell.alpha + 3 * grid.error(cell.alpha, r.n_null), r
        if cell.without and r.power is not None and r.type_one is not None:
            assert r.power > r.type_one, r


@pytest.mark.parametrize(
    ("table", "design", "wrong"),
    [
        (shares.SHARES, "30 clusters of 5, p = .8", "scipy binomtest, exact"),
        (paired.HARM, "ten rules, 400 clean tasks, limit 2%", "threshold tuned on the same tasks"),
        (ranking.TABLE, "confounded by task type", "scipy ttest_ind, Welch"),
        (gates.GATE, "design, 30 x 5", "block on a drop of more than 2 points"),
    ],
)
def test_what_is_wrong_is_found(table: str, design: str, wrong: str) -> None:
    cell, (r,) = _rates(table, design, 40, lambda m: m.name == wrong)
    assert grid.short(cell, r) or grid.eager(cell, r), r


def test_the_page_says_which_of_ours_is_outside() -> None:
    cell = CELLS[shares.SHARES, "30 clusters of 5, p = .8"]
    good = grid.Rates("clustered Wilson, t (default)", True, False, 0.951, None, None, 0.2, 1000, 0, 0.0, None, 1.0)
    text = page.render([(cell, [good])], 1000, [])
    assert "1 pairs of a design and a method of ours are held to their promise; 0 are outside" in text
    assert "**low**" not in text.split("## Shares")[1]
    text = page.render(
        [(cell, [good._replace(cover=0.90), good._replace(ours=False, missing="x is not installed")])], 9, [cell]
    )
    assert "covers 90.0% ± 0.9% where 95% is promised" in text
    assert "**low**" in text.split("## Shares")[1]
    assert "x is not installed" in text
    assert "Cells not run yet: Shares over clusters (1)." in text


def test_every_cell_has_a_name_of_its_own() -> None:
    made = [(c.table, c.design) for room in (shares, paired, gates, ranking, labels, families) for c in room.cells()]
    assert len(made) == len(set(made)) == len(CELLS)
    for c in CELLS.values():
        assert len({m.name for m in c.methods}) == len(c.methods)
