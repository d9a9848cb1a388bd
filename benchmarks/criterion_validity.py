"""Do signals order systems as their true reward does? On benchmark runs whose reward a program decided (METHODS 2).

    python benchmarks/criterion_validity.py [DATA] [--quick] [--json]

DATA is SEATRIAL_DATA unless given; there is one size.

Reports the AUC of every signal and of the count score for the reward; the order of the systems by signals alone (by the
kinds that may head a report, and by all of them) and with prediction-powered estimates on a random quarter of the
rewards, beside the true order; and escalations against the transfers that the logs hold.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import polars as pl

from contract import row, told
from seatrial import ingest, scoring, signals
from seatrial.flows import criterion
from seatrial.flows.extract import extract_traces, fingerprint
from seatrial.records import Trace


def runs(data: Path) -> dict[str, list[Trace]]:
    """Benchmark name to its traces."""
    out = {"tau2 airline": list(ingest.read(data / "tau2" / "airline"))}
    out["tau-bench airline"] = list(ingest.read(data / "tau-bench"))
    return out


def outcomes(traces: list[Trace], silent: tuple[str, ...] | None = None) -> pl.DataFrame:
    """The outcomes table of some traces; `silent` kinds of signal do not count in the mean (None: the default ones)."""
    stamp = fingerprint(scoring.UNIT, silent)
    return extract_traces(traces, scoring.UNIT, stamp, blobs={}, silent=silent)["outcomes"]


def escalations(traces: list[Trace], tool: str = "transfer_to_human_agents") -> dict[str, int]:
    """Sessions with a transfer call, those in which an escalation was kept, and escalations elsewhere."""
    out = {"transfers": 0, "found": 0, "elsewhere": 0}
    for trace in traces:
        there = any(call.name == tool for step in trace.steps for call in step.tool_calls)
        kept = any(s.kind == "escalation" for s in signals.extract(trace).kept)
        out["transfers"] += there
        out["found"] += there and kept
        out["elsewhere"] += kept and not there
    return out


def main() -> None:
    """Print the tables."""
    data = Path(sys.argv[1] if len(sys.argv) > 1 else os.environ["SEATRIAL_DATA"])
    for name, traces in runs(data).items():
        table = outcomes(traces)
        print(f"\n{name}: {table.height} runs, {escalations(traces)}")
        for found in criterion.aucs(table):
            value = "-" if found.auc is None else f"{found.auc:.2f}"
            row(f"{name}: AUC of {found.signal} for the reward", found.auc, "AUC", note=f"{found.n} runs")
            print(f"  {found.signal:24} AUC {value}  on {found.n} runs")
        systems = criterion.orders(table, seed=0)
        for system in systems:
            both = [
                "-" if e is None else f"{e.value:.2f} [{e.low:.2f}, {e.high:.2f}]"
                for e in (system.powered, system.labelled)
            ]
            shown = "-" if system.signals is None else f"{system.signals:.3f}"
            print(
                f"  {system.system[:34]:34} true {system.truth:.2f}  signals {shown}  PPI {both[0]}  labels {both[1]}"
            )
        print(f"  order by signals against the true order: tau {criterion.agreement(systems)}")
        every = outcomes(traces, silent=())
        loud = criterion.orders(every, seed=0)
        told = ", ".join("-" if one.signals is None else f"{one.signals:.3f}" for one in loud)
        print(
            f"  with every kind of signal: {told}; AUC {criterion.aucs(every)[0].auc}, tau {criterion.agreement(loud)}"
        )
        if len(systems) > 1:
            print(f"  over 100 draws of a quarter of the rewards: {criterion.over_draws(table)}")


if __name__ == "__main__":
    with told("criterion_validity"):
        main()
