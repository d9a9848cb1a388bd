"""A sea trial for AI agents: how well they do real work, from the traces they leave.

The door. Names are loaded on first use (PEP 562), so `import seatrial` loads no numerical library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seatrial._version import __version__

if TYPE_CHECKING:
    from seatrial import stats
    from seatrial.causal import Assigner, sample
    from seatrial.errors import SeatrialError
    from seatrial.flows.rank import RankOptions, RankRun, rank
    from seatrial.grading import grade_trajectory
    from seatrial.ingest import read
    from seatrial.records import (
        Agent,
        Attempt,
        Estimate,
        Ranking,
        Signal,
        Step,
        Task,
        ToolCall,
        ToolResult,
        Trace,
        Weights,
    )
    from seatrial.signals import extract
    from seatrial.store import Store

__all__ = [
    "Agent",
    "Assigner",
    "Attempt",
    "Estimate",
    "RankOptions",
    "RankRun",
    "Ranking",
    "SeatrialError",
    "Signal",
    "Step",
    "Store",
    "Task",
    "ToolCall",
    "ToolResult",
    "Trace",
    "Weights",
    "__version__",
    "extract",
    "grade_trajectory",
    "rank",
    "read",
    "sample",
    "stats",
]

_HOMES = {
    "Assigner": "causal",
    "sample": "causal",
    "SeatrialError": "errors",
    "RankOptions": "flows.rank",
    "RankRun": "flows.rank",
    "rank": "flows.rank",
    "grade_trajectory": "grading",
    "read": "ingest",
    "extract": "signals",
    "Store": "store",
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name == "stats":
        value: Any = import_module("seatrial.stats")
    elif name in __all__:
        value = getattr(import_module(f"seatrial.{_HOMES.get(name, 'records')}"), name)
    else:
        raise AttributeError(f"module 'seatrial' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
