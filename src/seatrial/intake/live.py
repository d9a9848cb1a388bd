"""Received spans to a store: a conversation that is still growing replaces its earlier state, and nothing doubles.

What is kept follows from the spans alone, so that giving the same spans again, after a crash or because a client
sent them twice, changes nothing. Each stored conversation lists the spans it was made of. Where the store holds one
with spans that are no longer at hand (it was settled, and they came late), it stays as it is and what is new becomes
a trace of its own beside it, named ``<trace id>~late-<span id>``, whose parent it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import polars as pl

from seatrial.errors import SeatrialError
from seatrial.ingest.otlp import READER
from seatrial.ingest.span_traces import assemble
from seatrial.ingest.spans import Span
from seatrial.intake.assignments import AssignmentReport, Assignments, Join, stored
from seatrial.intake.prepare import Prepared, as_prepared, pseudonymise
from seatrial.intake.settle import join, rename
from seatrial.privacy import redact
from seatrial.records import Provenance, Trace
from seatrial.records.tables import TABLES
from seatrial.store import Store, frames

SOURCE = "otlp:received"
"""What stands as the file of sessions that were received rather than read."""

_SPANS = "spans"
_MEMBER_OF = "member_of"
_LATE = "~late-"
_TRACE_ID = 32

_BROKEN = (ValueError, TypeError, KeyError, OverflowError, RecursionError)

SpanKey = tuple[str, str]


class LiveResult(msgspec.Struct, frozen=True, kw_only=True):
    """What became of some groups of spans. `failed` maps a group's position to why it could not be kept;
    `without_agent` counts groups in which no span tells of an agent, which make no session."""

    added: int = 0
    replaced: int = 0
    known: int = 0
    without_agent: int = 0
    failed: dict[int, str] = {}
    redacted: dict[str, int] = {}


class Live:
    """Keeps groups of spans, each all the spans at hand of one conversation in the order of their arrival."""

    def __init__(
        self, store: Store, *, redact: bool = True, assignments: Assignments | None = None, user: str | None = None
    ) -> None:
        self._store = store
        self._redact = redact
        self._user = user
        self._pseudonyms, _ = store.pseudonyms()
        self._join = None if assignments is None else Join(assignments, self._pseudonyms)

    @property
    def assignments(self) -> AssignmentReport | None:
        """How the assignments met the conversations so far; None where none were given."""
        return None if self._join is None else self._join.report(stored(self._store))

    def keep(self, groups: Sequence[Sequence[Span]]) -> LiveResult:
        """Commit the present state of these groups, all at once.

        Raises:
            StoreError: the store is locked or damaged.
        """
        with self._store.writing():
            stored = self._stored({span.trace_id for group in groups for span in group})
            kept: dict[str, dict[str, Trace]] = {}
            for trace in stored:
                for trace_id in trace.extra["trace_ids"]:
                    kept.setdefault(trace_id, {})[trace.id] = trace
            counts = {"added": 0, "replaced": 0, "known": 0, "without_agent": 0}
            failed: dict[int, str] = {}
            redacted: dict[str, int] = {}
            pending: dict[str, Prepared] = {}
            stale: set[str] = set()
            for at, group in enumerate(groups):
                ids = {span.trace_id for span in group}
                there = {name: trace for i in sorted(ids) for name, trace in kept.get(i, {}).items()}
                try:
                    traces, gone = _plan(group, list(there.values()))
                    made = [self._prepare(trace, there.get(trace.id)) for trace in traces]
                except (SeatrialError, msgspec.MsgspecError, *_BROKEN) as error:
                    failed[at] = f"{type(error).__name__}: {error}"
                    continue
                counts["without_agent"] += not traces and not there
                stale |= gone
                for prepared in made:
                    old = there.get(prepared.session)
                    same = old is not None and self._blobs[prepared.session] == prepared.blob
                    counts["known" if same else "added" if old is None else "replaced"] += 1
                    if not same:
                        pending[prepared.session] = prepared
                        for kind, n in prepared.redacted.items():
                            redacted[kind] = redacted.get(kind, 0) + n
            self._commit(list(pending.values()), stale - set(pending))
        return LiveResult(**counts, failed=failed, redacted=redacted)

    def _stored(self, trace_ids: set[str]) -> list[Trace]:
        wanted = pl.Series("id", sorted(trace_ids), dtype=pl.String()).implode()
        rows = (
            self._store.table("sessions", ordered=False)
            .filter(pl.col("trace_ids").is_not_null())
            .explode("trace_ids")
            .filter(pl.col("trace_ids").is_in(wanted))
            .select("session", "blob")
            .unique()
            .sort("session")
            .collect()
        )
        self._blobs: dict[str, str] = dict(rows.iter_rows())
        return [self._store.trace_of(blob) for blob in self._blobs.values()]

    def _prepare(self, trace: Trace, old: Trace | None) -> Prepared:
        listed = trace.provenance.extra
        trace = pseudonymise(trace, self._pseudonyms, self._user)
        counts: dict[str, int] = {}
        if self._redact:
            trace, counts = redact(trace)
        # Span ids are ids: sixteen hex digits may look like a card's number to the redactor.
        source = msgspec.structs.replace(trace.provenance, extra=listed)
        whole = msgspec.structs.replace(trace, provenance=source)
        return join(as_prepared(whole, SOURCE, counts, check=True), self._join, old)

    def _commit(self, pending: list[Prepared], stale: set[str]) -> None:
        if not pending and not stale:
            return
        for prepared in pending:
            self._store.blobs.put(prepared.blob, prepared.packed)
        tables = frames([p.row for p in pending], [s for p in pending for s in p.steps])
        if stale or any(p.session in self._blobs for p in pending):
            # What was derived from a replaced session is no longer about it.
            derived = [t for t in TABLES if t.by == "session"]
            tables = {t.name: pl.DataFrame(schema=t.schema()) for t in derived} | tables
        self._store.commit(tables, replace_sessions=[*(p.session for p in pending), *sorted(stale)])


def _plan(group: Sequence[Span], stored: list[Trace]) -> tuple[list[Trace], set[str]]:
    """The traces that the store should hold of these spans, and the stored ones that they take the place of."""
    at_hand = {(span.trace_id, span.span_id) for span in group}
    closed: set[str] = set()
    known: set[SpanKey] = set()
    for trace in stored:
        made_of = _made_of(trace)
        if made_of is not None and not made_of <= at_hand:
            closed.add(trace.id)
            known |= made_of
    ours = {t.id for t in stored if t.provenance.extra.get(_MEMBER_OF, t.id) not in closed}
    fresh = [span for span in group if (span.trace_id, span.span_id) not in known] if closed else list(group)
    if not fresh:
        return [], ours - closed
    traces = list(_marked(assemble(fresh, _ORIGIN).traces, fresh))
    settled = {i: t.id for t in stored if t.id in closed and _LATE not in t.id for i in t.extra["trace_ids"]}
    late: dict[str, str] = {}
    below: dict[str, str] = {}
    for trace in traces:
        head = trace.provenance.extra.get(_MEMBER_OF, trace.id)
        above = below.get(head) or next((settled[i] for i in trace.extra["trace_ids"] if i in settled), None)
        if above is not None:
            below[head] = above
            late[trace.id] = f"{trace.id[:_TRACE_ID]}{_LATE}{fresh[0].span_id}{trace.id[_TRACE_ID:]}"
    traces = [_beside(t, late, below) if t.id in late else t for t in traces]
    return traces, ours - {t.id for t in traces}


_ORIGIN = Provenance(format=READER.name, reader=READER.name, reader_version=READER.version, file=SOURCE)


def _marked(traces: list[Trace], spans: Sequence[Span]) -> Iterator[Trace]:
    """The first trace of each conversation lists the spans of all its traces; the others name it."""
    by_trace: dict[str, list[str]] = {}
    for span in spans:
        by_trace.setdefault(span.trace_id, []).append(span.span_id)
    families: list[list[Trace]] = []
    for trace in traces:
        if families and trace.parent is not None and trace.id[:_TRACE_ID] == families[-1][0].id[:_TRACE_ID]:
            families[-1].append(trace)
        else:
            families.append([trace])
    for first, *others in families:
        ids = {i for trace in (first, *others) for i in trace.extra["trace_ids"]}
        listed = {i: sorted(set(by_trace[i])) for i in sorted(ids)}
        own = first.extra["trace_ids"]
        first = msgspec.structs.replace(
            first, extra={**first.extra, "trace_ids": [*own, *(i for i in listed if i not in own)]}
        )
        yield _with(first, {_SPANS: listed})
        for other in others:
            yield _with(other, {_MEMBER_OF: first.id})


def _with(trace: Trace, extra: dict[str, Any]) -> Trace:
    source = msgspec.structs.replace(trace.provenance, extra={**trace.provenance.extra, **extra})
    return msgspec.structs.replace(trace, provenance=source)


def _beside(trace: Trace, names: dict[str, str], below: dict[str, str]) -> Trace:
    """A late trace under its own name, below the conversation that it came too late for: it is no row of its own."""
    late = rename(trace, names)
    head = trace.provenance.extra.get(_MEMBER_OF)
    if head is not None:
        late = _with(late, {_MEMBER_OF: names[head]})
    return msgspec.structs.replace(late, parent=below[trace.id]) if trace.parent is None else late


def _made_of(trace: Trace) -> set[SpanKey] | None:
    """The spans behind a stored trace; None for a member of another's list."""
    extra = trace.provenance.extra
    if trace.provenance.file == SOURCE:
        listed = extra.get(_SPANS)
        return None if listed is None else {(i, span) for i, spans in listed.items() for span in spans}
    # Read from a file: its model calls and what it keeps of other spans.
    ids = [*trace.extra["trace_ids"]]
    spans = [s for step in trace.steps for s in step.source_ids]
    spans += [s["id"] for s in trace.extra.get("spans", []) if isinstance(s, dict) and "id" in s]
    return {(i, span) for i in ids for span in spans}


__all__ = ["SOURCE", "Live", "LiveResult"]
