"""Whatever a log holds, fidelity and replay answer with a value or a reason, and never break (METHODS 0.2)."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from seatrial.dimensions.fidelity import Fidelity
from seatrial.dimensions.replay import ReplayIntegrity
from seatrial.records import DimensionValue

_spec = importlib.util.spec_from_file_location("shelf", Path(__file__).resolve().parents[1] / "shelf.py")
assert _spec is not None
assert _spec.loader is not None
shelf: Any = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(shelf)

JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.text(max_size=6)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=6,
)
EXTRA = st.dictionaries(
    st.sampled_from(["start", "start_seed", "seed", "world", "final", "final_hash", "gates", "changes"]),
    JSON,
    max_size=4,
)
INTENT = st.one_of(
    st.none(), st.dictionaries(st.sampled_from(["allowed", "required", "prohibited", "text", "odd"]), JSON, max_size=3)
)
CALLS: Any = [
    ("read", {"key": "source"}), ("put", {"key": "lamp", "value": "on"}), ("put", {"key": 3}), ("remove", {"key": "x"}),
]  # fmt: skip
RUN = shelf.run(CALLS)
D2, D5 = Fidelity(), ReplayIntegrity()


def sound(value: DimensionValue) -> None:
    assert value.why
    assert value.value is None or 0.0 <= value.value <= 1.0


@given(EXTRA, INTENT)
@settings(max_examples=150, deadline=None)
def test_a_log_with_anything_in_it(extra: dict[str, Any], intent: Any) -> None:
    trace = replace(RUN.trace, extra={**RUN.trace.extra, **extra})
    run = replace(RUN, trace=trace, task=replace(RUN.task, intent=intent))
    sound(D2.measure(run))
    sound(D5.measure(run))


@given(st.lists(st.sampled_from(["drop", "unnamed", "twice", "truncated"]), max_size=3), st.text(max_size=20))
@settings(max_examples=60, deadline=None)
def test_results_that_are_missing_unnamed_or_doubled(damage: list[str], text: str) -> None:
    steps = list(RUN.trace.steps)
    for n, kind in enumerate(damage):
        at = 1 + n
        results = steps[at].results
        if kind == "drop":
            results = ()
        elif kind == "unnamed":
            results = tuple(replace(r, call_id=None, text=text) for r in results)
        elif kind == "twice":
            results = (*results, *results)
        else:
            results = tuple(replace(r, text=r.text[:2], truncated=True) for r in results)
        steps[at] = replace(steps[at], results=results)
    run = replace(RUN, trace=replace(RUN.trace, steps=tuple(steps)))
    sound(D2.measure(run))
    sound(D5.measure(run))
