"""A world small enough to know by heart, and runs in it from lists of calls: the truth about each action is plain.

Loaded by path (tests are no package): see the tests of dimensions.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from seatrial.records import AgentTurn, Attempt, Evidence, StateChange, Task, ToolCall, ToolSpec, Trace, WorldStart
from seatrial.records.run import Status
from seatrial.world import (
    FixedText,
    MemoryWorld,
    Output,
    ScriptedAgent,
    SimulatedClock,
    Tool,
    Transcript,
    run_episode,
    trace_of,
)
from seatrial.world.toolbox import parameters

State = dict[str, Any]
Call = tuple[str, dict[str, Any]]


def _put(state: State, a: dict[str, Any], draws: random.Random) -> Output:
    state["items"][a["key"]] = a["value"]
    return Output(text=f"put {a['key']}")


def _add(state: State, a: dict[str, Any], draws: random.Random) -> Output:
    """Fails where the item is not there: later actions can depend on earlier ones."""
    if a["key"] not in state["items"]:
        return Output(text=f"no item {a['key']}", outcome="error", cause="model")
    state["items"][a["key"]] += a["value"]
    return Output(text=f"added to {a['key']}")


def _remove(state: State, a: dict[str, Any], draws: random.Random) -> Output:
    if state["items"].pop(a["key"], None) is None:
        return Output(text=f"no item {a['key']}", outcome="error", cause="model")
    return Output(text=f"removed {a['key']}")


def _read(state: State, a: dict[str, Any], draws: random.Random) -> Output:
    if a["key"] not in state["items"]:
        return Output(text=f"no item {a['key']}", outcome="error", cause="model")
    return Output(text=state["items"][a["key"]])


def _names(state: State, a: dict[str, Any], draws: random.Random) -> Output:
    return Output(text="\n".join(sorted(state["items"])) or "nothing")


def _lucky(state: State, a: dict[str, Any], draws: random.Random) -> Output:
    state["items"][a["key"]] = f"luck {draws.randint(0, 10**6)}"
    return Output(text="drawn")


def _clock(state: State, a: dict[str, Any], draws: random.Random) -> Output:
    state["clock"] += 1
    return Output(text=f'{{"clock": {state["clock"]}, "said": "tick"}}')


def _tool(name: str, effect: str, run: Any, **given: str) -> Tool[State]:
    spec = ToolSpec(name=name, description=name, parameters=parameters(given), effect=effect)  # type: ignore[arg-type]
    return Tool(spec, run)


TOOLS = (
    _tool("put", "write", _put, key="string", value="string"),
    _tool("add", "write", _add, key="string", value="string"),
    _tool("remove", "write", _remove, key="string"),
    _tool("read", "read", _read, key="string"),
    _tool("names", "read", _names),
    _tool("lucky", "write", _lucky, key="string"),
    _tool("clock", "read", _clock),
)
START: State = {"items": {"old": "as it was", "source": "amber-17"}, "clock": 0}


class CountingWorld(MemoryWorld):
    """Counts the calls of real tools that it carried out."""

    executed = 0

    def call(self, call: ToolCall) -> Any:
        """The call, counted."""
        if call.name in {t.name for t in self.tools}:
            type(self).executed += 1
        return super().call(call)


def world(state: State | None = None, kind: type[MemoryWorld] = MemoryWorld, seed: int = 7) -> MemoryWorld:
    """A fresh shelf in its start."""
    made = kind("shelf", "1", TOOLS, (("clock",),))
    made.reset(WorldStart(state=START if state is None else state, seed=seed))
    return made


def from_origin(origin: dict[str, Any]) -> MemoryWorld:
    """For a fresh process."""
    return world()


def transcript(calls: Sequence[Call], answer: str, asked: str, made: MemoryWorld) -> Transcript:
    """What happens when an agent makes these calls, one a turn, and then says `answer`."""

    def script(message: Any, tools: Any, draws: random.Random) -> Any:
        for n, (name, arguments) in enumerate(calls):
            yield AgentTurn(calls=(ToolCall(id=f"c{n}", name=name, arguments=arguments),), seconds=1.0)
        yield AgentTurn(text=answer, seconds=1.0)

    talk = ScriptedAgent("hand", "1", script).begin(made.tools, 0)
    return run_episode(made, talk, FixedText(asked), clock=SimulatedClock(0.0), who="simulated_user", hashes=True)


def run(
    calls: Sequence[Call],
    *,
    asked: str = "please",
    answer: str = "done",
    intent: dict[str, Any] | None = None,
    required: Callable[[State], tuple[bool, ...]] | None = None,
    status: Status = "passed",
    state: State | None = None,
    made: Callable[[], MemoryWorld] | None = None,
    recorded: MemoryWorld | None = None,
    **more: Any,
) -> Evidence:
    """A run's evidence. `made` makes the world that it is re-executed in, `recorded` is the one that it ran in."""
    ran_in = recorded or world(state)
    done = transcript(calls, answer, asked, ran_in)
    from seatrial.records import Agent

    trace = trace_of(done, id="run", agent=Agent(name="hand", version="1"), world=ran_in, start=WorldStart(
        state=START if state is None else state, seed=7))  # fmt: skip
    return Evidence(
        attempt=Attempt(task="t", trial=0, status=status, agent="hand", trace="run"),
        task=Task(id="t", input=asked, intent=intent),
        trace=trace,
        world=made or (lambda: world(state)),
        required=required,
        own=True,
        **more,
    )


def holding(**items: str) -> Callable[[State], tuple[bool, ...]]:
    """Required: these items with these values, one assertion each."""
    return lambda state: tuple(state["items"].get(k) == v for k, v in items.items())


def wants(**items: str) -> dict[str, Any]:
    """The intent that goes with `holding`: these items may be put, added to and read."""
    places = [f"items.{k}" for k in items]
    return {
        "allowed": [
            *({"tool": tool, "arguments": [], "paths": places} for tool in ("put", "add", "remove")),
            {"tool": "read", "arguments": [], "paths": []},
        ],
        "required": [{"path": f"items.{k}", "op": "eq", "value": v} for k, v in items.items()],
        "prohibited": [],
    }  # fmt: skip


__all__ = ["START", "Call", "CountingWorld", "StateChange", "Trace", "holding", "run", "wants", "world"]
