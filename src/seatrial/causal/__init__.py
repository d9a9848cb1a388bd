"""Outcomes to net improvement: the outcomes table goes in, a `records.Ranking` comes out (METHODS 3).

`rank` decides by the design what the numbers may be called, estimates every model's contrast with the baseline
policy, and says how sure it is. `Assigner` and `sample` make a randomised design possible; `plan` says before any
data how much will be needed. Names are loaded on first use (PEP 562), so importing the room costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seatrial.causal.assign import Assigner
    from seatrial.causal.drifting import drift, new_versions
    from seatrial.causal.power import plan
    from seatrial.causal.ranking import rank
    from seatrial.causal.sampling import sample
    from seatrial.causal.watching import monitor

_WHERE = {
    "Assigner": "assign",
    "drift": "drifting",
    "monitor": "watching",
    "new_versions": "drifting",
    "plan": "power",
    "rank": "ranking",
    "sample": "sampling",
}

__all__ = ["Assigner", "drift", "monitor", "new_versions", "plan", "rank", "sample"]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
