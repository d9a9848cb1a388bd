"""A time that the protocol cannot hold is a loss, never a crash."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.ingest import otlp_write, read_file
from seatrial.records import Agent, Provenance, Step, ToolResult, Trace


@pytest.mark.parametrize("time", [2**64 / 1e9, 1.8e302, -1.0, 0.0])
def test_a_time_outside_64_bits_of_nanoseconds_is_named_as_lost(tmp_path: Path, time: float) -> None:
    step = Step(index=0, event_class="agent", text="done", time=time, results=(ToolResult(call_id=None, time=time),))
    trace = Trace(
        id="a", agent=Agent(name="a"), provenance=Provenance(format="x", reader="x", reader_version="1"), steps=(step,)
    )
    losses = otlp_write.write_file(tmp_path / "a.json", trace)
    (again,) = read_file(tmp_path / "a.json", format="otlp")
    assert again.steps[0].time is None
    assert any("time" in loss.fields for loss in losses)
