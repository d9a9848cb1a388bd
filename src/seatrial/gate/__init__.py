"""Baseline and candidate to a decision: per metric, paired by task, with its error rates under control (METHODS 6.5).

Names are loaded on first use, so importing the room costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seatrial.gate.decision import decide, exit_status
    from seatrial.gate.runs import MetricRuns, Run, TaskRuns, run_of
    from seatrial.gate.settings import GateSettings, MetricSettings

_WHERE = {
    "GateSettings": "settings",
    "MetricRuns": "runs",
    "MetricSettings": "settings",
    "Run": "runs",
    "TaskRuns": "runs",
    "decide": "decision",
    "exit_status": "decision",
    "run_of": "runs",
}

__all__ = ["GateSettings", "MetricRuns", "MetricSettings", "Run", "TaskRuns", "decide", "exit_status", "run_of"]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_WHERE[name]}"), name)
