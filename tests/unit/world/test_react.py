"""A chat model as an agent: its words to one command, the observation back to it, and copies that part."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from seatrial.chat import Patience
from seatrial.errors import AgentError, UsageError
from seatrial.records import ToolResult, ToolSpec, UserMessage
from seatrial.world.agents.react import ReActAgent, react_agent
from seatrial.world.toolbox import parameters

_spec = importlib.util.spec_from_file_location("chat_server", Path(__file__).resolve().parents[2] / "chat_server.py")
assert _spec is not None
assert _spec.loader is not None
chat: Any = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(chat)

ACT = ToolSpec(name="act", description="Say a command.", parameters=parameters({"command": "string"}))


@pytest.fixture
def served() -> Iterator[Any]:
    made = []

    def start(script: Any) -> Any:
        server = chat.ChatServer(script)
        made.append(server)
        return server

    yield start
    for server in made:
        server.close()


def seen(text: str) -> tuple[ToolResult, ...]:
    return (ToolResult(call_id="act-1", text=text),)


def test_a_thought_and_an_action(served: Any) -> None:
    server = served([
        {"text": "Thought: the mug may be on the desk\nAction: Go to desk 1."},
        {"text": "**Action:** take mug 1 from desk 1"},
        {"text": "Thought: done\nAction: stop"},
    ])  # fmt: skip
    session = ReActAgent("toy", server.url).begin((ACT,), 7)
    first = session.send(UserMessage(text="Put a mug in the sink."))
    assert (first.reasoning, first.calls[0].arguments) == ("the mug may be on the desk", {"command": "go to desk 1"})
    second = session.send(seen("You see a mug 1."))
    assert second.calls[0].arguments == {"command": "take mug 1 from desk 1"}
    assert session.send(seen("Taken.")).calls == ()
    said = server.requests[-1]
    assert [m["role"] for m in said["messages"]] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert said["messages"][3]["content"] == "Observation: You see a mug 1."
    assert (said["seed"], said["temperature"]) == (7, 0.0)
    session.close()


def test_an_answer_without_an_action_is_said_as_it_is_and_then_it_stops(served: Any) -> None:
    server = served([{"text": "I would look around."}])
    session = ReActAgent("toy", server.url, patience=2).begin((ACT,), 1)
    assert session.send(UserMessage(text="Find it.")).calls[0].arguments == {"command": "I would look around."}
    assert session.send(seen("Nothing happens.")).calls == ()
    session.close()


def test_copies_part_and_have_their_own_seed(served: Any) -> None:
    server = served([{"text": "Action: look"}])
    session = ReActAgent("toy", server.url).begin((ACT,), 1)
    session.send(UserMessage(text="Find it."))
    other = session.copy()
    other.reseed(99)
    other.send(seen("You see nothing."))
    session.send(seen("You see a mug 1."))
    theirs, ours = server.requests[-2:]
    assert (theirs["seed"], ours["seed"]) == (99, 1)
    assert theirs["messages"][:-1] == ours["messages"][:-1]
    assert "mug" in ours["messages"][-1]["content"]
    session.close()


def test_what_cannot_be(served: Any) -> None:
    with pytest.raises(UsageError, match="one string"):
        ReActAgent("toy", "http://localhost:1/v1").begin((ACT, ACT), 1)
    with pytest.raises(UsageError, match="MODEL@"):
        react_agent("toy")
    server = served([{"status": 400, "error": "context too long"}])
    session = ReActAgent("toy", server.url, waiting=Patience(tries=1)).begin((ACT,), 1)
    with pytest.raises(AgentError):
        session.send(UserMessage(text="x"))
    session.close()
