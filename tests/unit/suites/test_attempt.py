"""One attempt: whatever agent or world does ends in a status, and no step is lost (METHODS 0.1)."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from seatrial.errors import InfrastructureError
from seatrial.records import AgentTurn, Task, ToolCall, ToolResult, ToolSpec, Usage, WorldStart
from seatrial.suites import Episode, Limits, Suite, run_attempt
from seatrial.suites.fingerprint import about, fingerprint
from seatrial.world import MemoryWorld, Output, Tool
from seatrial.world.agents import CommandAgent


def put(state: dict[str, Any], args: dict[str, Any], draws: Any) -> Output:
    state["n"] = state.get("n", 0) + args["by"]
    return Output(text=str(state["n"]))


SCHEMA = {"type": "object", "properties": {"by": {"type": "integer"}}, "required": ["by"]}


def world(seed: int) -> MemoryWorld:
    made = MemoryWorld("counter", "1", [Tool(ToolSpec(name="add", description="add", parameters=SCHEMA), put)])
    made.reset(WorldStart(state={"n": 0}, seed=seed))
    return made


class Agent:
    """Says what a list of turns or exceptions tells it to; the last is repeated for ever."""

    name, version = "fixed", "1"

    def __init__(self, *turns: Any) -> None:
        self.turns = turns

    def begin(self, tools: Sequence[ToolSpec], seed: int) -> Agent:
        if self.turns and self.turns[0] is RuntimeError:
            raise RuntimeError("cannot begin")
        self.left = list(self.turns)
        return self

    def send(self, incoming: Any) -> AgentTurn:
        turn = self.left.pop(0) if len(self.left) > 1 else self.left[0]
        if isinstance(turn, Exception):
            raise turn
        if isinstance(turn, float):
            time.sleep(turn)
            return AgentTurn(text="late")
        return turn


def add(by: int = 1, cost: float | None = None) -> AgentTurn:
    usage = None if cost is None else Usage(cost_usd=cost, input_tokens=10)
    return AgentTurn(calls=(ToolCall(id=f"c{by}", name="add", arguments={"by": by}),), usage=usage, model="m")


def tried(*turns: Any, task: Task | None = None, suite: Suite | None = None, **limits: Any) -> Episode:  # type: ignore[no-untyped-def]
    own = task or Task(id="t", input="count")
    return run_attempt(
        suite or Suite("s", (own,), world=world), own, Agent(*turns), trial=0, seed=1, name="r~t~0",
        limits=Limits(**limits),
    )  # fmt: skip


def test_an_attempt_that_ends_is_left_to_be_graded() -> None:
    e = tried(add(2), AgentTurn(text="done"))
    assert (e.status, e.stopped, e.final, e.start) == (None, "user_left", {"n": 2}, {"n": 0})
    assert [c.path for c in e.changes or ()] == [("n",)]
    assert [s.event_class for s in e.trace.steps] == ["simulated_user", "agent", "agent"]
    assert (e.trace.model, e.trace.task.id, e.trace.attempt, e.cost_usd) == ("m", "t", 0, None)


def test_a_crash_keeps_every_step_before_it() -> None:
    e = tried(add(2), ValueError("boom"))
    assert (e.status, e.reason, e.final) == ("error_agent", "ValueError: boom", {"n": 2})
    assert [len(s.tool_calls) for s in e.trace.steps] == [0, 1]
    assert tried(RuntimeError).status == "error_agent"


@pytest.mark.parametrize("error", [InfrastructureError("no network"), ConnectionResetError("gone")])
def test_no_network_is_not_the_agents_fault(error: Exception) -> None:
    assert tried(add(), error).status == "error_infra"


def test_a_world_that_breaks_is_infrastructure() -> None:
    def broken(state: Any, args: Any, draws: Any) -> Output:
        raise OSError("disk")

    def made(seed: int) -> MemoryWorld:
        return MemoryWorld("w", "1", [Tool(ToolSpec(name="add", description="", parameters=SCHEMA), broken)])

    e = tried(add(), AgentTurn(text="done"), suite=Suite("s", (), world=made))
    assert e.status == "error_infra"
    assert "disk" in e.reason
    assert len(e.trace.steps) == 2
    assert tried(add(), suite=Suite("s", (), world=lambda seed: 1 / 0)).status == "error_infra"  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize(
    ("limits", "stopped"),
    [({"turns": 3}, "turn_limit"), ({"calls": 3}, "call_limit"), ({"cost_usd": 0.25}, "cost_limit")],
)
def test_limits_stop_an_agent_that_goes_on(limits: dict[str, Any], stopped: str) -> None:
    e = tried(add(1, cost=0.1), **limits)
    assert (e.status, e.stopped) == ("timeout", stopped)
    assert 3 <= sum(s.event_class == "agent" for s in e.trace.steps) <= 4


def test_the_default_limit_lets_a_budget_be_overrun_and_seen() -> None:
    e = tried(add(), task=Task(id="t", input="", max_turns=4))
    assert (e.stopped, sum(s.event_class == "agent" for s in e.trace.steps)) == ("turn_limit", 8)


def test_a_slow_agent_times_out_between_turns_and_a_hanging_one_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seatrial.suites.attempt.GRACE_S", 0.05)
    e = tried(add(1), 0.15, add(1), seconds=0.1)
    assert e.status == "timeout"
    began = time.perf_counter()
    e = tried(add(1), 3.0, seconds=0.1)
    assert time.perf_counter() - began < 2.0
    assert (e.status, e.stopped) == ("timeout", "time_limit")
    assert [len(s.tool_calls) for s in e.trace.steps] == [0, 1]
    assert e.trace.steps[1].results[0].text == "1"


@pytest.mark.parametrize(
    ("setup", "n"),
    [
        (None, 0),
        ({"n": 5}, 5),
        (lambda: {"n": 6}, 6),
        (lambda seed: WorldStart(state={"n": seed}), 1),
        (lambda world: world.reset(WorldStart(state={"n": 8})), 8),
    ],
)
def test_setups(setup: Any, n: int) -> None:
    assert tried(AgentTurn(text="x"), task=Task(id="t", input="", setup=setup)).start == {"n": n}


def test_a_setup_that_gives_nothing_is_infrastructure_with_the_reason() -> None:
    e = tried(AgentTurn(text="x"), task=Task(id="t", input="", setup=lambda: 3))
    assert e.status == "error_infra"
    assert "setup of task t" in e.reason


def test_a_suite_without_a_world_can_still_ask() -> None:
    def judge(answer: str, state: dict[str, Any]) -> bool:
        return answer == "4"

    task = Task(id="t", input="2 + 2?", check_final=judge)
    e = tried(AgentTurn(text="4"), task=task, suite=Suite("s", (task,)))
    assert (e.status, e.trace.steps[-1].text) == (None, "4")


def test_unknown_prices_stay_unknown_and_known_ones_add_up() -> None:
    assert tried(add(1, 0.1), AgentTurn(text="x", usage=Usage(cost_usd=0.2))).cost_usd == pytest.approx(0.3)
    assert tried(add(1, 0.1), AgentTurn(text="x")).cost_usd is None


def test_fingerprint_parts_change_one_by_one() -> None:
    class Said(Agent):
        parts = {"prompt": "be good", "sampling": {"temperature": 0}}

    class Other(Said):
        parts = {"prompt": "be bad", "sampling": {"temperature": 0}}

    tools = world(0).tools
    first, second = fingerprint(about(Said()), tools), fingerprint(about(Other()), tools)
    assert set(first) == {"harness", "prompt", "sampling", "tools"}
    assert {k for k in first if first[k] != second[k]} == {"harness", "prompt"}
    changed = (ToolSpec(name="add", description="adds", parameters=SCHEMA),)
    assert {k for k in first if fingerprint(about(Said()), changed)[k] != first[k]} == {"tools"}


def test_a_result_of_the_runner_is_never_an_exception() -> None:
    for turn in (None, 3, "text", AgentTurn(calls=(ToolCall(id="x", name="nothing"),))):
        e = tried(turn, turns=2)
        assert e.status in ("error_agent", "timeout", "error_infra")


def test_results_belong_to_their_calls() -> None:
    e = tried(add(2), AgentTurn(text="done"))
    (result,) = e.trace.steps[1].results
    assert isinstance(result, ToolResult)
    assert result.call_id == "c2"


HANGS = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])
with open(sys.argv[1], "w") as out:
    out.write(f"{os.getpid()} {child.pid}")
time.sleep(300)
"""


def gone(pid: int) -> bool:
    """The process has ended; an orphan's end may wait for whoever adopted it."""
    end = time.monotonic() + 5
    while time.monotonic() < end:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            try:
                os.kill(pid, 0)
            except ProcessLookupError:
                return True
            state = "?"
        if state == "Z":
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("text", ["count", "x" * 1_000_000], ids=["waits for its turn", "does not even read"])
def test_a_program_that_hangs_is_ended_with_its_children_at_the_deadline(tmp_path: Path, text: str) -> None:
    script, pids = tmp_path / "hangs.py", tmp_path / "pids"
    script.write_text(HANGS)
    agent = CommandAgent(shlex.join([sys.executable, str(script), str(pids)]))
    own = Task(id="t", input=text)
    e = run_attempt(
        Suite("s", (own,), world=world), own, agent, trial=0, seed=1, name="r~t~0", limits=Limits(seconds=1.0)
    )
    assert (e.status, e.stopped) == ("timeout", "time_limit")
    assert e.seconds < 5
    left = [int(p) for p in pids.read_text().split()]
    assert len(left) == 2
    assert all(gone(p) for p in left)
