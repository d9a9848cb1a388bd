"""Coverage, type I error and power of every estimator over a grid of designs, ours and peers' on the same samples.

    python benchmarks/validity.py [--runs 400] [--table NAME] [--json] [--quick] [--write] [--from-cache]

Every cell has fixed seeds and is kept when it is done (out/validity), so that a run that stopped goes on where it was;
`--runs` is how many samples a cell draws with an effect and as many without (cheap cells draw more); `--from-cache`
takes of every cell the kept run with the most samples. Peers that are not
installed are named. SEATRIAL_PEERS may name a folder with more packages (`benchmarks/run_all.py --peers`). `--write`
puts the page into docs/reference/validity-grid.md.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "quality"))

from grid import families, gates, labels, page, paired, ranking, shares
from grid.cell import Cell, Rates, eager, run, short

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "validity-grid.md"
CACHE = ROOT / "out" / "validity"
QUICK = 40


def cells() -> list[Cell]:
    """The whole grid, in the order of the page."""
    return [c for room in (shares, paired, gates, ranking, labels, families) for c in room.cells()]


def path(cell: Cell, runs: int) -> Path:
    """Where a cell's rates are kept: under its name and its methods', and apart by how many samples each sees."""
    name = "|".join([cell.table, cell.design, *(m.name for m in cell.methods)])
    size = "|".join([*(str(m.share) for m in cell.methods), str(cell.times), str(runs)])
    folder, file = (hashlib.sha256(text.encode()).hexdigest()[:16] for text in (name, size))
    return CACHE / folder / f"{file}.json"


def rates(cell: Cell, runs: int, *, only_kept: bool = False) -> list[Rates] | None:
    """A cell's rates, from the cache or by running it. A cell in which a peer was missing is run again. `only_kept`:
    the kept ones with the most samples, whatever `runs` is."""
    kept = path(cell, runs)
    if only_kept:
        found = [[Rates(*row) for row in json.loads(f.read_text())] for f in sorted(kept.parent.glob("*.json"))]
        return max(found, key=lambda rows: sum(r.n for r in rows), default=None)
    if kept.exists():
        held = [Rates(*row) for row in json.loads(kept.read_text())]
        if not any(r.missing for r in held):
            return held
    made = run(cell, runs)
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps(made))
    return made


def _told(c: Cell, r: Rates) -> dict[str, object]:
    return {
        "what": f"{c.table}: {c.design}: {r.method}", "peer": not r.ours, "coverage": r.cover, "type_one": r.type_one,
        "power": r.power, "width": r.width, "missing": r.missing, "short": short(c, r), "eager": eager(c, r),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--table", help="only tables whose name begins so")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} runs")
    parser.add_argument("--json", action="store_true", help="one JSON object with rows")
    parser.add_argument("--write", action="store_true", help="write docs/reference/validity-grid.md")
    parser.add_argument("--from-cache", action="store_true", help="only what was run before")
    asked = parser.parse_args()
    runs = QUICK if asked.quick else asked.runs
    grid = [c for c in cells() if asked.table is None or c.table.startswith(asked.table)]
    done: list[tuple[Cell, list[Rates]]] = []
    began = time.perf_counter()
    for i, cell in enumerate(grid):
        found = rates(cell, runs, only_kept=asked.from_cache)
        if found is not None:
            done.append((cell, found))
        print(f"{i + 1} of {len(grid)} cells, {time.perf_counter() - began:.0f} s: {cell.table}, {cell.design}",
              file=sys.stderr, flush=True)  # fmt: skip
    text = page.render(done, None if asked.from_cache else runs, [c for c in grid if c not in [d for d, _ in done]])
    if asked.json:
        print(json.dumps({"benchmark": "validity", "rows": [_told(c, r) for c, found in done for r in found]}))
    else:
        print(text)
    if asked.write:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
