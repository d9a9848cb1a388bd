"""The public names are pinned: adding or removing one is a decision, seen in review."""

from __future__ import annotations

import seatrial

PINNED = {
    "Agent", "Assigner", "Attempt", "Estimate", "RankOptions", "RankRun", "Ranking", "SeatrialError", "Signal",
    "Step", "Store", "Task", "ToolCall", "ToolResult", "Trace", "Weights", "__version__", "extract", "grade_trajectory",
    "rank", "read", "sample", "stats",
}  # fmt: skip


def test_public_names_are_pinned() -> None:
    assert set(seatrial.__all__) == PINNED == set(dir(seatrial))


def test_every_public_name_loads_and_explains_itself() -> None:
    for name in PINNED - {"__version__"}:
        assert getattr(seatrial, name).__doc__, name
