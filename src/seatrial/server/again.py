"""A stored ranking to the options that it was made with: ranking again on the same data gives the same numbers."""

from __future__ import annotations

import re

from seatrial.records import Ranking
from seatrial.server.words import RANKINGS

_COLUMN = re.compile(r"[a-z_]{1,40}")
_PRESETS = ("unit", "emphasis")


def options(ranking: Ranking, name: str) -> list[str]:
    """The options of `seatrial rank` that a ranking tells; `name` is what it is called by (``by model``).

    What a ranking does not tell, such as a file of weights or labels, is not among them.
    """
    outcome = "signals" if ranking.outcome == "signals_mean" else ranking.outcome
    out = ["--outcome", outcome if outcome in RANKINGS else "auto"]
    for option, least in (("seed", 0), ("draws", 999)):
        value = ranking.basis.get(option)
        if isinstance(value, int) and not isinstance(value, bool) and value >= least:
            out.append(f"--{option}={value}")
    level = next((m.net_improvement.level for m in ranking.models if m.net_improvement is not None), None)
    if level is not None and 0.0 < level < 1.0:
        out.append(f"--level={level}")
    if ranking.weights in _PRESETS:
        out.append(f"--weights={ranking.weights}")
    arm = name.partition(",")[0].removeprefix("by ")
    if arm != "model" and _COLUMN.fullmatch(arm):
        out.append(f"--arm={arm}")
    where = ranking.basis.get("where")
    for column, value in where.items() if isinstance(where, dict) else ():
        if _COLUMN.fullmatch(str(column)) and isinstance(value, str) and "\0" not in value:
            out.append(f"--where={column}={value}")
    return out
