"""What becomes of a prepared session: new, grown, known, an older copy, or another one of the same name."""

from __future__ import annotations

from typing import Literal

import msgspec

from seatrial.intake.assignments import Join
from seatrial.intake.prepare import Prepared, as_prepared
from seatrial.records import Step, Totals, Trace, Usage
from seatrial.store.blobs import unpack

Verdict = Literal["new", "changed", "known", "older", "twin", "other"]


def trace_of(prepared: Prepared) -> Trace:
    """The trace behind a prepared session."""
    return msgspec.json.decode(unpack(prepared.blob, prepared.packed), type=Trace)


def repack(prepared: Prepared, trace: Trace) -> Prepared:
    """The same session with another trace; what was redacted stays counted."""
    return as_prepared(trace, prepared.file, prepared.redacted)


def compare(new: Prepared, old: Prepared) -> Verdict:
    """How a session relates to the one that is kept under its name.

    Two traces are one session when they come from the same bytes, share source records, or one begins with
    all of the other's steps. The one with less in it is the older copy. Of two files that hold as much of it, one
    is kept whichever comes first: `twin` says that it is the other one.
    """
    if new.blob == old.blob:
        return "known"
    same_source = new.row["source_hash"] is not None and new.row["source_hash"] == old.row["source_hash"]
    same_file = new.row["file"] == old.row["file"]
    if same_source or (same_file and new.row["reader_version"] != old.row["reader_version"]):
        return "changed"
    mine, theirs = set(new.records(copied=True)), set(old.records(copied=True))
    if mine and theirs:
        if not mine & theirs:
            return "other"
        if mine < theirs or (not mine >= theirs and len(mine) < len(theirs)):
            return "older"
        equal = len(mine) == len(theirs)
    else:
        a, b = trace_of(new).steps, trace_of(old).steps
        n = min(len(a), len(b))
        if not n or [_gist(s) for s in a[:n]] != [_gist(s) for s in b[:n]]:
            return "other"
        if len(a) < len(b):
            return "older"
        equal = len(a) == len(b)
    return "twin" if equal and not same_file and _richness(new) < _richness(old) else "changed"


def _richness(prepared: Prepared) -> tuple[int, int, int, int, int, str, str]:
    """What a session has in it, by its rows; hash and path decide between equals. Copying and joining change none."""
    row, steps = prepared.row, prepared.steps
    return (
        len(steps),
        row["outcome_status"] is not None,
        sum(s["chars"] for s in steps),
        sum(s["tool_calls"] for s in steps),
        sum((s["time"] is not None) + (s["model"] is not None) for s in steps),
        row["source_hash"] or "",
        row["file"] or "",
    )


def at_home(new: Prepared, old: Prepared) -> Prepared:
    """The session as if it were read from the file that the kept one names, where both come from the same bytes."""
    source = new.row["source_hash"]
    same = source is not None and source == old.row["source_hash"]
    if not same or new.row["file"] == old.row["file"] or new.row["reader_version"] != old.row["reader_version"]:
        return new
    trace = trace_of(new)
    source_of = msgspec.structs.replace(trace.provenance, file=old.row["file"])
    return repack(new, msgspec.structs.replace(trace, provenance=source_of))


def _gist(step: Step) -> tuple[str, str, float | None]:
    return step.event_class, step.text, step.time


def mark_copied(trace: Trace, elsewhere: frozenset[str]) -> Trace:
    """Steps made of records that another session counts become copies, and leave the totals."""
    fresh = [s for s in trace.steps if not s.copied and not elsewhere.isdisjoint(s.source_ids)]
    if not fresh:
        return trace
    indices = {s.index for s in fresh}
    steps = tuple(msgspec.structs.replace(s, copied=True) if s.index in indices else s for s in trace.steps)
    return msgspec.structs.replace(trace, steps=steps, totals=_less(trace.totals, fresh, steps))


def _less(totals: Totals, gone: list[Step], steps: tuple[Step, ...]) -> Totals:
    usage = totals.usage
    left = {}
    for field in ("input_tokens", "output_tokens", "cached_tokens", "cost_usd"):
        total = getattr(usage, field)
        if total is not None:
            spent = sum(getattr(s.usage, field) or 0 for s in gone if s.usage is not None)
            left[field] = max(total - spent, 0)
    times = [s.time for s in steps if not s.copied and s.time is not None]
    wall = totals.wall if totals.wall is None else max(times) - min(times) if times else 0.0
    return msgspec.structs.replace(
        totals, usage=Usage(extra=usage.extra, **left), wall=None if wall is None else round(wall, 6)
    )


def rename(trace: Trace, names: dict[str, str]) -> Trace:
    """Another session id, in the trace's own id and wherever the same file refers to it."""
    steps = tuple(
        msgspec.structs.replace(
            s,
            results=tuple(
                msgspec.structs.replace(r, subagents=tuple(names.get(a, a) for a in r.subagents)) for r in s.results
            ),
        )
        for s in trace.steps
    )
    return msgspec.structs.replace(
        trace,
        id=names.get(trace.id, trace.id),
        parent=names.get(trace.parent or "", trace.parent),
        continues=names.get(trace.continues or "", trace.continues),
        steps=steps,
    )


def join(prepared: Prepared, assignments: Join | None, old: Trace | None) -> Prepared:
    """Give the session its assignment and user: from the file, else what the store holds for it already."""
    found = None
    row = prepared.row
    if assignments is not None:
        found = assignments.find(
            session=prepared.session,
            user=row["user"],
            task=row["task"],
            start=row["start"],
            served=row["arm"],
            sub_agent=row["parent"] is not None,
        )
    drawn, user = found if found is not None else (None, None)
    if drawn is None and old is not None and row.get("assigned_arm") is None:
        drawn = old.assignment
    if user is None and old is not None:
        user = old.user
    user = row["user"] if row["user"] is not None else user
    if drawn is None and user == row["user"]:
        return prepared
    trace = trace_of(prepared)
    changed = msgspec.structs.replace(trace, user=user, assignment=drawn if drawn is not None else trace.assignment)
    return prepared if changed == trace else repack(prepared, changed)
