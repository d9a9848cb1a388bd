"""Two traces to their difference: aligned steps, the first divergence, and what followed from it (METHODS 6.6)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal

import msgspec
import numpy as np

from seatrial.canon import canonical
from seatrial.records import ToolCall, ToolResult, Trace
from seatrial.stats import align

Kind = Literal["call", "agent", "user"]
Change = Literal["same", "arguments", "result", "words", "only baseline", "only candidate"]

MOST_ITEMS = 1500
MOST_TEXT = 600
_WORD = re.compile(r"\w+")


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that happened: a tool call with its result, or words. `step` is the trace's step."""

    step: int
    kind: Kind
    name: str
    text: str = ""
    arguments: dict[str, Any] = {}
    result: str = ""
    outcome: str = ""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the alignment; None on the side that has nothing there."""

    change: Change
    baseline: Item | None
    candidate: Item | None


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """How two traces of one task differ.

    `first` is the index in `rows` of the first divergence: the first call that differs in tool, arguments or
    result; where all calls agree, the first words of the agent that differ; None where nothing differs.
    `consequences` compares what came after it and the ends: ``{name: [baseline, candidate]}``, None where a side did
    not record it. `left_out` counts items beyond the first 1,500 of a trace.
    """

    task: str | None
    baseline: str
    candidate: str
    rows: tuple[Row, ...]
    first: int | None
    summary: str
    consequences: dict[str, tuple[Any, Any]]
    left_out: int = 0


def difference(baseline: Trace, candidate: Trace) -> Difference:
    """Align two traces of one task and say where they part. Copied steps do not count."""
    a, b = items(baseline), items(candidate)
    left_out = max(0, len(a) - MOST_ITEMS) + max(0, len(b) - MOST_ITEMS)
    a, b = a[:MOST_ITEMS], b[:MOST_ITEMS]
    rows = tuple(
        Row(change=_change(a[i] if i is not None else None, b[j] if j is not None else None),
            baseline=a[i] if i is not None else None, candidate=b[j] if j is not None else None)
        for i, j in align(_similarities(a, b)).steps
    )  # fmt: skip
    first = _first(rows)
    return Difference(
        task=candidate.task.id or baseline.task.id,
        baseline=baseline.id,
        candidate=candidate.id,
        rows=rows,
        first=first,
        summary=_summary(rows, first),
        consequences=_consequences(baseline, candidate, rows, first),
        left_out=left_out,
    )


def closest(baselines: Sequence[Trace], candidates: Sequence[Trace], most: int = 5) -> tuple[Trace, Trace] | None:
    """The pair of traces worth showing: a passing baseline and a failing candidate that are most alike; where there
    is no such pair, any. At most `most` of each side are tried. None where a side has no trace."""
    if not baselines or not candidates:
        return None
    good = [t for t in baselines if t.outcome is not None and t.outcome.status == "passed"] or list(baselines)
    bad = [t for t in candidates if t.outcome is None or t.outcome.status != "passed"] or list(candidates)
    pairs = [(x, y) for x in good[:most] for y in bad[:most]]
    prepared = {id(t): items(t)[:MOST_ITEMS] for pair in pairs for t in pair}

    def alike(pair: tuple[Trace, Trace]) -> float:
        a, b = prepared[id(pair[0])], prepared[id(pair[1])]
        return align(_similarities(a, b)).score / max(len(a) + len(b), 1)

    return max(pairs, key=alike)


def items(trace: Trace) -> list[Item]:
    """Calls and words of a trace in order, without what was copied into it and without the harness' own turns."""
    out: list[Item] = []
    for step in trace.steps:
        if step.copied or step.event_class == "harness":
            continue
        who: Kind = "agent" if step.event_class in ("agent", "interrupted") else "user"
        if step.text.strip():
            out.append(Item(step=step.index, kind=who, name=who, text=step.text))
        results = {r.call_id: r for r in step.results if r.call_id is not None}
        for call in step.tool_calls:
            out.append(_call(step.index, call, results.get(call.id)))
    return out


def _call(step: int, call: ToolCall, result: ToolResult | None) -> Item:
    arguments = call.arguments if call.raw_arguments is None else {"(not an object)": call.raw_arguments}
    return Item(
        step=step,
        kind="call",
        name=call.name,
        arguments=arguments,
        result=result.text if result else "",
        outcome=result.outcome if result else "",
    )


def _similarities(a: Sequence[Item], b: Sequence[Item]) -> np.ndarray[Any, np.dtype[np.float64]]:
    words = {id(x): frozenset(_WORD.findall(x.text.lower())) for x in (*a, *b)}
    out = np.zeros((len(a), len(b)))
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            if x.kind == y.kind:
                out[i, j] = _calls_alike(x, y) if x.kind == "call" else 0.1 + 0.4 * _overlap(words[id(x)], words[id(y)])
    return out


def _overlap(x: frozenset[str], y: frozenset[str]) -> float:
    return len(x & y) / max(len(x | y), 1)


def _calls_alike(x: Item, y: Item) -> float:
    """A tool's name counts half: the same tool with other arguments is the same step done otherwise."""
    if x.name != y.name:
        return 0.0
    keys = x.arguments.keys() | y.arguments.keys()
    same = sum(_equal(x.arguments.get(k), y.arguments.get(k)) for k in keys)
    return 1.0 + 0.7 * (same / len(keys) if keys else 1.0) + 0.3 * (x.result == y.result)


def _equal(x: Any, y: Any) -> bool:
    return canonical(x) == canonical(y)


def _change(x: Item | None, y: Item | None) -> Change:
    if x is None or y is None:
        return "only candidate" if x is None else "only baseline"
    if x.kind != "call":
        return "same" if " ".join(x.text.split()) == " ".join(y.text.split()) else "words"
    if not _equal(x.arguments, y.arguments):
        return "arguments"
    return "same" if (x.result, x.outcome) == (y.result, y.outcome) else "result"


def _first(rows: Sequence[Row]) -> int | None:
    calls = [i for i, r in enumerate(rows) if r.change != "same" and (r.baseline or r.candidate).kind == "call"]  # type: ignore[union-attr]
    if calls:
        return calls[0]
    said = [i for i, r in enumerate(rows) if r.change != "same" and (r.baseline or r.candidate).kind == "agent"]  # type: ignore[union-attr]
    return said[0] if said else None


def _summary(rows: Sequence[Row], first: int | None) -> str:
    if first is None:
        return "the agent did the same on both sides"
    row = rows[first]
    x, y = row.baseline, row.candidate
    if x is not None and y is not None:
        if x.kind != "call":
            return f"the calls agree; the agent's words part at step {y.step}"
        what = {"arguments": "with other arguments", "result": "and got another result"}[row.change]
        if row.change == "arguments":
            keys = sorted(k for k in x.arguments.keys() | y.arguments.keys()
                          if not _equal(x.arguments.get(k), y.arguments.get(k)))  # fmt: skip
            what += f" ({', '.join(keys[:5])})"
        return f"the candidate called {y.name} {what} at step {y.step}"
    swapped = _instead(rows, first)
    if swapped is not None:
        old, new = swapped
        return f"the candidate called {new.name} at step {new.step}, where the baseline called {old.name}"
    if x is not None:
        other = _next_call(rows, first, "candidate")
        instead = f"; it went on with {other.name}" if other else "; it made no further call"
        if x.kind != "call":
            return f"the candidate did not say what the baseline said at step {x.step}"
        return f"the candidate did not call {x.name} (step {x.step} of the baseline){instead}"
    assert y is not None
    if y.kind != "call":
        return f"the candidate said more at step {y.step}"
    return f"the candidate called {y.name} at step {y.step}, which the baseline did not"


def _instead(rows: Sequence[Row], first: int) -> tuple[Item, Item] | None:
    """The two calls where one side's call stands alone and, before they meet again, another of the other side does."""
    alone: dict[str, Item] = {}
    for row in rows[first:]:
        if row.change not in ("only baseline", "only candidate"):
            break
        item = row.baseline or row.candidate
        if item is not None and item.kind == "call":
            alone.setdefault(row.change, item)
    if len(alone) < 2:
        return None
    return alone["only baseline"], alone["only candidate"]


def _next_call(rows: Sequence[Row], start: int, side: Literal["baseline", "candidate"]) -> Item | None:
    for row in rows[start + 1 :]:
        item: Item | None = getattr(row, side)
        if item is not None and item.kind == "call":
            return item
    return None


def _consequences(
    baseline: Trace, candidate: Trace, rows: Sequence[Row], first: int | None
) -> dict[str, tuple[Any, Any]]:
    after = rows[first:] if first is not None else ()
    sides: tuple[Literal["baseline"], Literal["candidate"]] = ("baseline", "candidate")
    kept: list[list[Item]] = [[i for r in after if (i := getattr(r, side)) is not None] for side in sides]
    out: dict[str, tuple[Any, Any]] = {
        "outcome": tuple(t.outcome.status if t.outcome else None for t in (baseline, candidate)),  # type: ignore[dict-item]
        "calls from there": (_calls(kept[0]), _calls(kept[1])),
        "failed calls from there": (_failed(kept[0]), _failed(kept[1])),
        "steps": (len(baseline.steps), len(candidate.steps)),
        "cost, USD": (baseline.totals.usage.cost_usd, candidate.totals.usage.cost_usd),
        "latency, s": (baseline.totals.wall, candidate.totals.wall),
    }
    return {name: pair for name, pair in out.items() if pair != (None, None)}


def _calls(kept: Sequence[Item]) -> int:
    return sum(i.kind == "call" for i in kept)


def _failed(kept: Sequence[Item]) -> int:
    return sum(i.kind == "call" and i.outcome == "error" for i in kept)


def compact(d: Difference, before: int = 2, after: int = 8) -> dict[str, Any]:
    """A difference as plain values for JSON: the rows around the first divergence, long texts cut and marked."""
    start, stop = window(d, before, after)
    return {
        "baseline": d.baseline,
        "candidate": d.candidate,
        "summary": d.summary,
        "first": d.first,
        "consequences": {k: list(v) for k, v in d.consequences.items()},
        "rows": [
            {"change": r.change, "baseline": _plain(r.baseline), "candidate": _plain(r.candidate)}
            for r in d.rows[start:stop]
        ],
        "rows_before": start,
        "rows_after": len(d.rows) - stop,
        "left_out": d.left_out,
    }


def window(d: Difference, before: int, after: int) -> tuple[int, int]:
    """The range of rows around the first divergence; the beginning where there is none."""
    at = d.first if d.first is not None else 0
    return max(0, at - before), min(len(d.rows), at + after)


def _plain(item: Item | None) -> dict[str, Any] | None:
    if item is None:
        return None
    body = {"step": item.step, "kind": item.kind, "name": item.name}
    if item.kind == "call":
        arguments = canonical(item.arguments).decode()
        return body | {
            "arguments": item.arguments if len(arguments) <= MOST_TEXT else cut(arguments),
            "result": cut(item.result),
            "outcome": item.outcome,
        }
    return body | {"text": cut(item.text)}


def cut(text: str, most: int = MOST_TEXT) -> str:
    """`text`, shortened with the number of characters that are left out."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text) - most} characters more)"
