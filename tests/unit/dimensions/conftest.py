"""A till with one gate, and runs at it from lists of calls: tests are no package, so it comes as a fixture."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

from seatrial.dimensions.audit_record import sealed, task_spec
from seatrial.records import (
    Agent,
    AgentTurn,
    Approver,
    Attempt,
    Evidence,
    Risk,
    Task,
    TaskRef,
    ToolCall,
    ToolSpec,
    WorldStart,
)
from seatrial.world import (
    Approve,
    FixedText,
    MemoryWorld,
    Output,
    ScriptedAgent,
    SimulatedClock,
    Tool,
    offered,
    rules,
    run_episode,
    trace_of,
)
from seatrial.world.toolbox import parameters

BIG: dict[str, Any] = {
    "name": "big", "severity": "high", "why": "much money", "tool": "pay",
    "when": [{"path": "amount", "op": "gt", "value": 100}], "mode": "advisory",
}  # fmt: skip
NOTED: dict[str, Any] = {"name": "noted", "severity": "low", "why": "seen by all", "tool": "note", "mode": "advisory"}
INTENT: dict[str, Any] = {
    "allowed": [
        {"tool": "pay", "arguments": [{"path": "to", "op": "eq", "value": "Weber"}], "paths": ["paid"]},
        {"tool": "look", "arguments": [], "paths": []},
    ],
    "required": [{"path": "paid.Weber", "op": "exists"}],
    "prohibited": [{"tool": "burn", "arguments": [], "paths": []}],
}


def _pay(state: dict[str, Any], a: dict[str, Any], draws: random.Random) -> Output:
    if a["to"] == "Nobody":
        return Output(text="there is no such person", outcome="error", cause="model")
    state["paid"][a["to"]] = state["paid"].get(a["to"], 0) + a["amount"]
    return Output(text=f"paid {a['amount']}")


def _note(state: dict[str, Any], a: dict[str, Any], draws: random.Random) -> Output:
    state["notes"][str(len(state["notes"]) + 1)] = {"text": a["text"], "by": "agent"}
    return Output(text="noted")


def _broken(state: dict[str, Any], a: dict[str, Any], draws: random.Random) -> Output:
    return Output(text="could not resolve host", outcome="error", cause="environment")


def _look(state: dict[str, Any], a: dict[str, Any], draws: random.Random) -> Output:
    return Output(text=str(state["paid"]))


def _burn(state: dict[str, Any], a: dict[str, Any], draws: random.Random) -> Output:
    state["paid"].clear()
    return Output(text="gone")


def _tool(name: str, run: Any, effect: Any = "write", risk: Risk = Risk(), **given: str) -> Tool[dict[str, Any]]:
    return Tool(ToolSpec(name=name, description=name, parameters=parameters(given), effect=effect, risk=risk), run)


TOOLS = (
    _tool("pay", _pay, risk=Risk(irreversible=True), to="string", amount="integer"),
    _tool("note", _note, text="string"),
    _tool("fetch", _broken, effect="read"),
    _tool("look", _look, effect="read"),
    _tool("burn", _burn),
)
START: dict[str, Any] = {"paid": {"Okafor": 5}, "notes": {}}


def till(state: dict[str, Any] | None = None) -> MemoryWorld:
    """A fresh till in its start."""
    made = MemoryWorld("till", "1", TOOLS)
    made.reset(WorldStart(state=START if state is None else state, seed=1))
    return made


def work(
    calls: Sequence[tuple[str, dict[str, Any]]],
    *,
    gates: Sequence[dict[str, Any]] = (BIG,),
    approver: Approver | None = None,
    status: Any = "passed",
    intent: dict[str, Any] | None = None,
    answer: str = "Done.",
    task: str = "t",
    trial: int = 0,
    reason: str | None = None,
    seal: bool = True,
    known: bool = True,
    **more: Any,
) -> Evidence:
    """One run at the till. `known` False: the log comes from elsewhere, without task and world."""
    made = till()
    ruled = rules(list(gates))
    asked = Task(id=task, input="Please pay Weber.", gates=list(gates), intent=intent, **more)

    def script(message: Any, tools: Any, draws: random.Random) -> Any:
        for n, (name, arguments) in enumerate(calls):
            yield AgentTurn(calls=(ToolCall(id=f"c{n}", name=name, arguments=arguments),), reasoning="so", seconds=1.0)
        yield AgentTurn(text=answer, seconds=1.0)

    talk = ScriptedAgent("hand", "1", script).begin(offered(made.tools, ruled), 0)
    done = run_episode(
        made, talk, FixedText(asked.input), approver=approver or Approve(), gates=ruled, clock=SimulatedClock(0.0),
        who="simulated_user", hashes=True,
    )  # fmt: skip
    trace = trace_of(
        done, id=f"{task}~{trial}", agent=Agent(name="hand", version="1"), world=made, task=TaskRef(id=task),
        attempt=trial, start=WorldStart(state=START, seed=1), extra={"task_spec": task_spec(asked), "seed": 1},
    )  # fmt: skip
    if seal:
        trace = sealed(trace, {"status": status, "score": None, "reason": reason})
    trace = msgspec.json.decode(msgspec.json.encode(trace), type=type(trace))  # as a store gives it back
    attempt = Attempt(task=task, trial=trial, status=status, trace=trace.id, reason=reason)
    if not known:
        return Evidence(attempt=attempt, trace=trace)
    return Evidence(attempt=attempt, task=asked, trace=trace, world=till, own=True)


class Till:
    """What tests need of the till."""

    work = staticmethod(work)
    world = staticmethod(till)
    BIG, NOTED, INTENT = BIG, NOTED, INTENT


@pytest.fixture
def at_till() -> type[Till]:
    """``at_till.work(calls)`` gives one run's evidence."""
    return Till


@pytest.fixture
def scored() -> Callable[..., list[Evidence]]:
    """``scored({"a": "pppf"})``: runs without logs; p passed, f failed, i infrastructure, x crashed, digits graded."""
    words = {"p": "passed", "f": "failed", "i": "error_infra", "x": "error_agent", "t": "timeout"}

    def make(tasks: dict[str, Any]) -> list[Evidence]:
        out = []
        for task, runs in tasks.items():
            for n, one in enumerate(runs):
                given: Any = {"status": words[one]} if isinstance(one, str) else {"status": "failed", "score": one}
                out.append(Evidence(attempt=Attempt(task=task, trial=n, **given)))
        return out

    return make
