"""Traces whose source recorded tokens and no money: what they cost by the price table (METHODS 6.7)."""

from __future__ import annotations

from msgspec.structs import replace

from seatrial.records import Trace
from seatrial.records.price import Prices


def priced(trace: Trace, prices: Prices) -> Trace:
    """The trace with its cost in its totals, where the source told none and the price of every agent turn is known.

    Where some turn names no model, its tokens or its price are unknown, so is the cost. A source that has only totals
    is priced by the trace's model.
    """
    total = trace.totals.usage
    if not prices or total.cost_usd is not None:
        return trace
    turns = [s for s in trace.steps if s.event_class == "agent" and not s.copied]
    costs: list[float | None] = []
    for step in turns:
        price = prices.get(step.model or trace.model or "")
        told = None if step.usage is None else step.usage.cost_usd
        costs.append(told if told is not None or price is None or step.usage is None else price.cost(step.usage))
    known = [c for c in costs if c is not None]
    if turns and len(known) == len(turns):
        cost: float | None = sum(known)
    elif all(s.usage is None for s in turns):
        price = prices.get(trace.model or "")
        cost = None if price is None else price.cost(total)
    else:
        cost = None
    if cost is None:
        return trace
    return replace(trace, totals=replace(trace.totals, usage=replace(total, cost_usd=cost)))
