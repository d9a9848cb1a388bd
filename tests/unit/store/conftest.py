"""Small traces and a way to put them into a store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from seatrial.records import Agent, Provenance, Step, Totals, Trace, Usage
from seatrial.store import Store, frames, session_row, step_rows


def make(name: str, steps: int = 2, user: str | None = None, mark: str = "") -> Trace:
    return Trace(
        id=name,
        agent=Agent(name="a"),
        provenance=Provenance(format="f", reader="r", reader_version="1", file=f"{name}.jsonl"),
        user=user,
        steps=tuple(
            Step(
                index=i,
                event_class="human" if i % 2 == 0 else "agent",
                text=f"{name} {i} {mark}",
                model="m" if i % 2 else None,
                source_ids=(f"{name}-{i}",),
            )
            for i in range(steps)
        ),
        totals=Totals(usage=Usage(input_tokens=steps)),
    )


def keep(store: Store, traces: Sequence[Trace]) -> str:
    blobs = [store.put(t) for t in traces]
    return store.commit(
        frames(
            [session_row(t, b) for t, b in zip(traces, blobs, strict=True)], [r for t in traces for r in step_rows(t)]
        )
    )


@pytest.fixture
def trace() -> Callable[..., Trace]:
    return make


@pytest.fixture
def put() -> Callable[[Store, Sequence[Trace]], str]:
    return keep


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path / "store", create=True)
