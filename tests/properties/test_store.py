"""Laws of the store, for any trace that the records allow."""

from __future__ import annotations

import tempfile
from pathlib import Path
from types import ModuleType

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seatrial.canon import canonical, content_hash
from seatrial.records import Trace
from seatrial.store import Store, frames, session_row, step_rows


def keep(store: Store, traces: list[Trace]) -> str:
    rows = [session_row(t, store.put(t)) for t in traces]
    return store.commit(frames(rows, [r for t in traces for r in step_rows(t)]))


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.data())
def test_any_sessions_come_back_and_repeating_them_changes_nothing(strategies: ModuleType, data: st.DataObject) -> None:
    traces: list[Trace] = data.draw(strategies.families())
    with tempfile.TemporaryDirectory() as folder:
        store = Store.open(Path(folder) / "s", create=True)
        keep(store, traces)
        for trace in traces:
            back = store.trace(trace.id)
            assert canonical(back) == canonical(trace)
            assert content_hash(back) == store.blobs_of([trace.id])[trace.id]
        tables = [store.table(n).collect() for n in ("sessions", "steps")]
        assert store.session_ids() == sorted(t.id for t in traces)
        keep(store, traces[::-1])
        for name, before in zip(("sessions", "steps"), tables, strict=True):
            assert store.table(name).collect().equals(before, null_equal=True)
        verified = store.verify()
        assert verified.ok, verified.problems
        assert verified.blobs == len(traces)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.data())
def test_a_row_counts_what_is_not_copied(strategies: ModuleType, data: st.DataObject) -> None:
    trace: Trace = data.draw(strategies.traces())
    row = session_row(trace, "b")
    own = msgspec.structs.replace(trace, steps=tuple(s for s in trace.steps if not s.copied))
    assert row["steps"] == len(own.steps)
    assert row["tool_calls"] == sum(len(s.tool_calls) for s in own.steps)
    assert row["mixed"] == (len(set(row["models"])) > 1)
    assert row["arm"] is None or row["arm"] == row["models"][0]
    assert len(step_rows(trace)) == len(trace.steps)
