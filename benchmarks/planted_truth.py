"""Recompute the truth that `seatrial demo` prints: every agent on the same sessions, true labels.

Run after a change to the agents, the workspace, the users or the outcomes: python benchmarks/planted_truth.py
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

import seatrial.examples
from seatrial.flows.planted import simulate

POPULATIONS = 1_000


def main() -> None:
    """Write planted.json beside the examples."""

    def show(done: int, total: int) -> None:
        if done % 100 == 0:
            print(f"{done} of {total} populations", file=sys.stderr)

    planted = simulate(POPULATIONS, progress=show)
    path = Path(seatrial.examples.__file__).with_name("planted.json")
    path.write_bytes(msgspec.json.format(msgspec.json.encode(planted), indent=1) + b"\n")
    for name, values in planted.agents.items():
        print(name, {outcome: (v.mean, v.net, v.se) for outcome, v in values.items()})


if __name__ == "__main__":
    main()
