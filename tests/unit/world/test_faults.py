"""Faults of every kind: what the agent sees, and that the world stays what it was."""

from __future__ import annotations

from typing import Any

import pytest

from seatrial.examples.ticketdesk import DOMAIN
from seatrial.records import ToolCall, ToolResult
from seatrial.world import FaultPlan, FaultyWorld
from seatrial.world.faults import EMPTY, ENVIRONMENT, INJECTIONS, SLOW, STALE, Fault

READ = ("read_ticket", {"id": "T-101"})
CLOSE = ("close_ticket", {"id": "T-101", "resolution": "done"})


def struck(fault: Fault, at: int, *calls: tuple[str, dict[str, Any]]) -> tuple[list[ToolResult], FaultyWorld]:
    world = FaultyWorld(DOMAIN.build(), FaultPlan(rate=0.0, seed=0, tools=(), schedule={at: fault}))
    world.reset(DOMAIN.start(1))
    return [world.call(ToolCall(id=f"c{i}", name=n, arguments=a)) for i, (n, a) in enumerate(calls)], world


def clean(*calls: tuple[str, dict[str, Any]]) -> tuple[list[ToolResult], str]:
    world = DOMAIN.world(1)
    results = [world.call(ToolCall(id=f"c{i}", name=n, arguments=a)) for i, (n, a) in enumerate(calls)]
    return results, world.state_hash()


def test_an_error_does_not_reach_the_world() -> None:
    results, world = struck(ENVIRONMENT[0], 1, CLOSE)
    assert (results[0].outcome, results[0].extra["fault"]) == ("error", "network")
    assert world.state_hash() == DOMAIN.world(1).state_hash()


def test_an_empty_result_hides_what_happened() -> None:
    results, world = struck(EMPTY, 1, CLOSE)
    assert (results[0].text, results[0].outcome, results[0].extra["fault"]) == ("", "ok", "empty")
    assert world.state()["tickets"]["T-101"]["status"] == "closed"


def test_a_stale_result_shows_the_start() -> None:
    results, world = struck(STALE, 3, READ, CLOSE, READ)
    assert results[2].text == results[0].text
    assert results[2].extra["fault"] == "stale"
    honest, hashed = clean(READ, CLOSE, READ)
    assert honest[2].text != results[2].text
    assert world.state_hash() == hashed
    written, world = struck(STALE, 1, CLOSE)
    assert "fault" not in written[0].extra, "what writes cannot be stale"
    assert world.state()["tickets"]["T-101"]["status"] == "closed"


def test_latency_takes_time_and_nothing_else() -> None:
    results, _ = struck(SLOW, 1, READ)
    honest, _ = clean(READ)
    assert results[0].text == honest[0].text
    assert results[0].extra["seconds"] == honest[0].extra["seconds"] + 30.0


@pytest.mark.parametrize("fault", INJECTIONS, ids=lambda f: f.name)
def test_an_injection_stands_behind_true_words(fault: Fault) -> None:
    results, world = struck(fault, 1, READ)
    honest, hashed = clean(READ)
    assert results[0].text == honest[0].text + "\n" + fault.text
    assert world.state_hash() == hashed


def test_a_snapshot_holds_the_faults_to_come() -> None:
    plan = FaultPlan(rate=0.5, seed=4, tools=("read_ticket",), faults=(EMPTY, STALE, SLOW, *INJECTIONS))
    world = FaultyWorld(DOMAIN.build(), plan)
    world.reset(DOMAIN.start(1))
    calls = [ToolCall(id=f"c{i}", name=READ[0], arguments=READ[1]) for i in range(30)]
    for call in calls[:5]:
        world.call(call)
    saved = world.snapshot()
    first = [world.call(c) for c in calls[5:]]
    other = FaultyWorld(DOMAIN.build(), plan)
    other.restore(saved)
    assert [other.call(c) for c in calls[5:]] == first
    assert 5 <= sum("fault" in r.extra for r in first) <= 20
