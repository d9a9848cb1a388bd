"""Readers to verdicts: small files that break readers, each with the right answer, and the judge.

The kit is plain data (``files/<format>/<trap>/``: the trap's files and ``answer.json``). Any reader can be scored:
what it shows of a trap's files is written as lines of `shown`, and `judge` compares them with the answer.
"""

from __future__ import annotations

from seatrial.ingest.traps.adapter import run_adapter
from seatrial.ingest.traps.judge import Verdict, judge
from seatrial.ingest.traps.kit import Trap, formats, lay_out, traps
from seatrial.ingest.traps.shown import Shown, ShownTurn, parse, shown_report, shown_trace

__all__ = [
    "Shown",
    "ShownTurn",
    "Trap",
    "Verdict",
    "formats",
    "judge",
    "lay_out",
    "parse",
    "run_adapter",
    "shown_report",
    "shown_trace",
    "traps",
]
