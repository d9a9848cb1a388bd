"""A suite for the tests of attempts on a cluster: an agent whose luck is its seed's, and whose work can be met."""

from __future__ import annotations

import os
import time
from pathlib import Path

from seatrial.records import Task, ToolSpec, WorldStart
from seatrial.suites import Suite
from seatrial.world import MemoryWorld, Output, Tool
from seatrial.world.agents.function import FunctionAgent, Tools

SCHEMA = {"type": "object", "properties": {"by": {"type": "integer"}}, "required": ["by"]}


def _put(state, args, draws):
    state["n"] += args["by"] + draws.randrange(2)
    return Output(text=str(state["n"]))


def world(seed: int) -> MemoryWorld:
    made = MemoryWorld("counter", "1", [Tool(ToolSpec(name="add", description="add", parameters=SCHEMA), _put)])
    made.reset(WorldStart(state={"n": 0}, seed=seed))
    return made


def adds(text: str, tools: Tools) -> str:
    """Leaves a mark in the folder that the environment names, if one does; works for a while; adds one."""
    folder = os.environ.get("CLUSTER_MARKS")
    name = "".join(c for c in f"{text}{tools.seed}" if c.isalnum())
    if folder:
        (Path(folder) / f"busy-{os.getpid()}-{name}").touch()
        time.sleep(0.4)
        fatal = Path(folder).parent / "fatal"
        if fatal.exists() and fatal.read_text() == text:
            os._exit(9)
    said = tools.call("add", {"by": 1}).text
    if folder:
        (Path(folder) / f"done-{name}").touch()
    return said


SUITE = Suite(
    "adding",
    tuple(
        Task(id=f"t{i}", input=f"add one ({i})", expected_tools=["add"],
             check_final=[{"path": "n", "op": "eq", "value": 1}])
        for i in range(6)
    ),
    world=world,
    agents={"adder": FunctionAgent("adder", adds)},
)  # fmt: skip
