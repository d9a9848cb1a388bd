"""Coverage of the 95% intervals of METHODS 3.4 over a grid of designs, with CR1 and z for comparison.

Usage: python benchmarks/interval_coverage.py [REPLICATES] [--quick] [--json]

The default is 2000; a design takes 10-20 s on one core.
"""

from __future__ import annotations

import math
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "quality"))

from coverage_designs import grid, measure

from contract import row, told


def main(quick: bool) -> None:
    replicates = int(sys.argv[1]) if len(sys.argv) > 1 else 60 if quick else 2000
    print(f"{replicates} replicates; Monte Carlo error of a coverage of 95%: {math.sqrt(0.0475 / replicates):.2%}")
    heads = ("CR3 t", "CR1 z", "width", "G*_k", "warned", "refused", "s")
    print(f"{'design':30s}" + "".join(f"{head:>8s}" for head in heads))
    for design in grid():
        start = time.perf_counter()
        m = measure(design, replicates, seed=1)
        seconds = time.perf_counter() - start
        row(f"coverage, {m.name}", 100 * m.cover, "%", note=f"CR1 with z {m.cr1:.1%}")
        print(
            f"{m.name:30s}{m.cover:8.1%}{m.cr1:8.1%}{m.width:8.3f}{m.g_thinnest:8.1f}"
            f"{m.warned / replicates:8.0%}{m.refused / replicates:8.0%}{seconds:8.0f}",
            flush=True,
        )


if __name__ == "__main__":
    with told("interval_coverage") as small:
        main(small)
