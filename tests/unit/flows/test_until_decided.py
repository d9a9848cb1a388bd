"""Adaptive trials over stored runs, and a stored run in the gate."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from seatrial.errors import InputError
from seatrial.flows.attempts import stored_run
from seatrial.flows.check import CheckOptions, check
from seatrial.flows.run import RunOptions, run_suite
from seatrial.flows.until_decided import run_until_decided
from seatrial.gate import GateSettings
from seatrial.records import AgentTurn, Task, ToolCall, ToolSpec, WorldStart
from seatrial.store import Store
from seatrial.suites import Suite
from seatrial.world import MemoryWorld, Output, Tool

SCHEMA = {"type": "object", "properties": {}}


def ring(state: dict[str, Any], args: dict[str, Any], draws: Any) -> Output:
    state["rung"] += 1
    return Output(text="ding")


def world(seed: int) -> MemoryWorld:
    made = MemoryWorld("bell", "1", [Tool(ToolSpec(name="ring", description="ring", parameters=SCHEMA), ring)])
    made.reset(WorldStart(state={"rung": 0}, seed=seed))
    return made


class Ringer:
    """Rings with a given chance."""

    def __init__(self, name: str, chance: float) -> None:
        self.name, self.version, self.chance = name, "1", chance

    def begin(self, tools: Sequence[ToolSpec], seed: int) -> Any:
        return _Shift(random.Random(f"{self.name}{seed}").random() < self.chance)


class _Shift:
    def __init__(self, rings: bool) -> None:
        self.rings = rings

    def send(self, incoming: Any) -> AgentTurn:
        if self.rings:
            self.rings = False
            return AgentTurn(calls=(ToolCall(id="1", name="ring", arguments={}),))
        return AgentTurn(text="bye")


def suite(n: int = 12) -> Suite:
    check_final = [{"path": "rung", "op": "eq", "value": 1}]
    tasks = tuple(Task(id=f"t{i:02d}", input=f"ring bell {i}", check_final=check_final) for i in range(n))
    return Suite("bells", tasks, world=world)


def test_looks_add_the_same_runs_to_both_arms_until_decided(tmp_path: Path) -> None:
    settings = GateSettings(looks=3)
    found = run_until_decided(
        suite(), baseline=Ringer("old", 0.8), candidate=Ringer("new", 0.75), store=tmp_path / "s", budget=12 * 2 * 4,
        settings=settings, options=RunOptions(k=2),
    )  # fmt: skip
    assert found.plan.runs == (2, 4, 6)
    assert found.step.done
    store = Store.open(tmp_path / "s")
    for name in (found.baseline, found.candidate):
        made = stored_run(store, name)
        assert len(made) == 12 * found.runs
    assert len(found.step.looks) == found.plan.runs.index(found.runs) + 1


def test_a_broken_agent_is_stopped_before_the_budget_is_spent(tmp_path: Path) -> None:
    found = run_until_decided(
        suite(), baseline=Ringer("old", 1.0), candidate=Ringer("new", 0.0), store=tmp_path / "s", budget=12 * 2 * 8,
        settings=GateSettings(looks=5), options=RunOptions(k=2),
    )  # fmt: skip
    assert found.step.comparison.verdict == "REGRESSION"
    assert found.runs < found.plan.runs[-1]
    first = found.step.comparison.regressed_tasks[0]
    assert first.diff is not None
    assert "ring" in first.diff["summary"]


def test_stored_runs_are_compared_by_name_with_their_traces(tmp_path: Path) -> None:
    for name, chance in (("main", 1.0), ("change", 0.3)):
        run_suite(suite(), agent=Ringer(name, chance), store=tmp_path, options=RunOptions(k=3, name=name))
    found = check(Path("main"), Path("change"), CheckOptions(store=tmp_path))
    assert found.comparison.verdict == "REGRESSION"
    assert "agent" in found.comparison.changed
    assert {r.metric for r in found.comparison.metrics} >= {"passed", "world_state"}
    first = found.comparison.regressed_tasks[0]
    assert first.diff is not None
    assert first.diff["summary"].startswith("the candidate did not call ring")
    with pytest.raises(InputError, match="stored run"):
        check(Path("main"), Path("elsewhere"), CheckOptions(store=tmp_path))
