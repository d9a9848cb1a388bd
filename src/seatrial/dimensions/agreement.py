"""How far the sources of relevance agree: raw agreement and Cohen's kappa over actions, tasks as clusters."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

from seatrial.records import DimensionValue
from seatrial.stats import cohen_kappa

REPLAY = ("ablation", "data_flow")
"""Two names of one source: what it says of writes and of reads."""


def agreement(values: Sequence[DimensionValue], level: float) -> dict[str, dict[str, Any]]:
    """By pair of sources (``annotation~ablation``), over the actions that both judged: ``n``, ``agree`` (a share),
    ``kappa`` with ``low`` and ``high`` (None where it is undefined, with ``why``) and ``both`` (how many of each
    combination, first source first)."""
    said: dict[tuple[str, str], list[tuple[bool, bool, str]]] = {}
    for v in values:
        for a in v.actions:
            found = {_joined(s): r for s, r in a.others.items()}
            if a.source is not None and a.relevant is not None:
                found[_joined(a.source)] = a.relevant
            for one, two in combinations(sorted(found, key=_place), 2):
                said.setdefault((one, two), []).append((found[one], found[two], v.task))
    return {f"{one}~{two}": _row(rows, level) for (one, two), rows in sorted(said.items())}


def _row(rows: Sequence[tuple[bool, bool, str]], level: float) -> dict[str, Any]:
    a, b = [int(r[0]) for r in rows], [int(r[1]) for r in rows]
    found = cohen_kappa(a, b, clusters=[r[2] for r in rows], level=level, draws=1999)
    return {
        "n": len(rows),
        "agree": sum(x == y for x, y in zip(a, b, strict=True)) / len(rows),
        "kappa": found.value,
        "low": found.low,
        "high": found.high,
        "why": found.why,
        "both": {
            f"{'relevant' if x else 'extraneous'}, {'relevant' if y else 'extraneous'}": n
            for x in (1, 0)
            for y in (1, 0)
            if (n := sum(p == (x, y) for p in zip(a, b, strict=True)))
        },
    }


def _joined(source: str) -> str:
    return "ablation" if source in REPLAY else source


def _place(source: str) -> int:
    order = ("annotation", "intent", "ablation", "judge")
    return order.index(source) if source in order else len(order)
