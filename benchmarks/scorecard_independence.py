"""How far seven dimensions are independent: the worked agents in the worked domains, and the table of correlations.

python benchmarks/scorecard_independence.py [K] [--quick] [--json]

Six agents, from clean to careless, try every task of three domains K times (default 4). Correlations are over all pairs
of an agent and a task that have both dimensions.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from contract import row, told
from seatrial.dimensions.card import correlations
from seatrial.examples import domains
from seatrial.examples.clerk import HABITS
from seatrial.flows.run import RunOptions, run_suite
from seatrial.flows.scorecard import ScorecardOptions, score_sources
from seatrial.records import DIMENSIONS, Scorecard


def main(k: int) -> None:
    """Run, score, print."""
    cards: list[Scorecard] = []
    for domain in domains():
        suite = f"example:{domain.name}"
        with tempfile.TemporaryDirectory() as folder:
            store = Path(folder)
            runs = [
                run_suite(suite, agent=f"{domain.name}-{habit}", store=store, options=RunOptions(k=k)).run
                for habit in HABITS
            ]
            found = score_sources(runs, ScorecardOptions(store=store, suite=suite)).cards
        for card in found:
            values = [e.value if (e := card.dimensions[d].estimate) is not None else None for d in DIMENSIONS]
            print(f"{card.agent:<22}" + "".join("    -" if v is None else f"{v:5.2f}" for v in values), flush=True)
        cards += found
    table = correlations([c.dimensions for c in cards])
    for pair, r in table.items():
        row(f"correlation {pair}", r, "r")
    print(" " * 4 + "".join(f"{d:>7}" for d in DIMENSIONS))
    for a in DIMENSIONS:
        cells = [1.0 if a == b else table.get(f"{a}~{b}", table.get(f"{b}~{a}")) for b in DIMENSIONS]
        print(f"{a:<4}" + "".join("    n/a" if r is None else f"{r:+7.2f}" for r in cells))


if __name__ == "__main__":
    with told("scorecard_independence") as small:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 1 if small else 4)
