"""Agents of every kind, with real processes and servers, do one small task in one world."""

from __future__ import annotations

import json
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from seatrial.chat import ChatError, Patience
from seatrial.errors import InfrastructureError, InputError, UsageError
from seatrial.examples.ticketdesk import DOMAIN
from seatrial.records import ToolResult, UserMessage
from seatrial.world import FixedText, Transcript, run_episode
from seatrial.world.agents import ChatAgent, CommandAgent, FunctionAgent, Tools, parse_agent

TASK = "Please close T-101 as done."
CLOSE = {"id": "T-101", "resolution": "done"}


def run(agent: Any, text: str = TASK, replies: tuple[str, ...] = ()) -> Transcript:
    world = DOMAIN.world(1)
    return run_episode(world, agent.begin(world.tools, 5), FixedText(text, replies))


def calls(transcript: Transcript) -> list[str]:
    return [c.name for s in transcript.steps for c in s.tool_calls]


def closed(transcript: Transcript) -> bool:
    return bool(transcript.final["tickets"]["T-101"]["status"] == "closed")


def close_it(text: str, tools: Tools) -> str:
    seen = tools.call("read_ticket", {"id": "T-101"})
    assert "Weber" in seen.text
    tools.memory["n"] = tools.memory.get("n", 0) + 1
    result = tools.call("close_ticket", CLOSE)
    return f"{tools.memory['n']} {result.outcome} {tools.seed}"


def broken(text: str, tools: Tools) -> str:
    tools.call("read_ticket", {"id": "T-101"})
    raise ValueError("lost my way")


def sleepy(text: str, tools: Tools) -> str:
    time.sleep(0.5)
    return "late"


def wordless(text: str, tools: Tools) -> Any:
    return 42


def test_a_function(monkeypatch: pytest.MonkeyPatch) -> None:
    transcript = run(FunctionAgent("closer", close_it), replies=("again",))
    assert calls(transcript) == ["read_ticket", "close_ticket"] * 2
    assert [s.text for s in transcript.steps if s.event_class == "agent" and s.text] == ["1 ok 5", "2 error 5"]
    assert closed(transcript)


@pytest.mark.parametrize(
    ("function", "stopped", "said"),
    [
        (broken, "agent_error", "ValueError: lost my way"),
        (sleepy, "agent_timeout", "0.2 s"),
        (wordless, "agent_error", "int"),
    ],
)
def test_a_function_that_fails_is_an_attempt_all_the_same(
    function: Callable[[str, Tools], str], stopped: str, said: str
) -> None:
    transcript = run(FunctionAgent("f", function, seconds=0.2))
    assert transcript.stopped == stopped
    assert said in str(transcript.failure)
    assert transcript.steps[0].text == TASK


PROGRAM = """
import json, sys
def ask(**what):
    print(json.dumps({"type": "call", **what}), flush=True)
for line in sys.stdin:
    said = json.loads(line)
    if said["type"] == "task":
        assert said["protocol"] == 1 and any(t["name"] == "close_ticket" for t in said["tools"])
        ask(tool="read_ticket", arguments={"id": "T-101"}, reasoning="look first")
    elif said["type"] == "result" and said["id"] == "call-1":
        ask(calls=[{"tool": "close_ticket", "arguments": {"id": "T-101", "resolution": "done"}, "id": "mine"},
                   {"tool": "close_ticket", "arguments": [1]}], usage={"input_tokens": 9, "cost_usd": 0.5})
    elif said["type"] == "result" and said["id"] == "mine":
        assert said["ok"] is True, said
    else:
        print(json.dumps({"type": "answer", "text": "done, seed and all"}), flush=True)
"""


def program(folder: Path, source: str) -> str:
    path = folder / "agent.py"
    path.write_text(textwrap.dedent(source))
    return f"cmd:{sys.executable} {path}"


def test_a_program(tmp_path: Path) -> None:
    transcript = run(parse_agent(program(tmp_path, PROGRAM), seconds=20))
    assert transcript.stopped == "user_left", transcript.failure
    assert calls(transcript) == ["read_ticket", "close_ticket", "close_ticket"]
    assert transcript.steps[1].reasoning == "look first"
    bad = transcript.steps[2].tool_calls[1]
    assert (bad.validity, bad.raw_arguments) == ("invalid", "[1]")
    assert transcript.steps[2].results[1].extra["refused"] == "schema"
    assert transcript.cost_usd == 0.5
    assert closed(transcript)


@pytest.mark.parametrize(
    ("source", "stopped", "said"),
    [
        ("import sys; sys.stdin.readline(); sys.exit('out of ideas')", "agent_error", "out of ideas"),
        ("print('hello', flush=True); input()", "agent_error", "'hello'"),
        ('print(\'{"type": "call"}\', flush=True); input()', "agent_error", "without a tool"),
        ("import time; time.sleep(30)", "agent_timeout", "0.5 s"),
    ],
)
def test_a_program_that_fails(tmp_path: Path, source: str, stopped: str, said: str) -> None:
    agent = parse_agent(program(tmp_path, source), seconds=5.0 if stopped == "agent_error" else 0.5)
    transcript = run(agent)
    assert transcript.stopped == stopped
    assert said in str(transcript.failure)


def test_a_program_and_its_children_are_gone_afterwards(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    source = f"""
    import subprocess, sys
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3); open({str(mark)!r}, 'w')"])
    print('{{"type": "answer", "text": "left a child"}}', flush=True)
    input()
    """
    assert run(parse_agent(program(tmp_path, source), seconds=20)).stopped == "user_left"
    time.sleep(3.3)
    assert not mark.exists()


def test_a_program_that_is_not_there_is_infrastructure() -> None:
    agent = parse_agent("cmd:no-such-program-at-all --x")
    with pytest.raises(InfrastructureError, match="no-such-program"):
        agent.begin((), 0)


@pytest.fixture
def http_agent() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    seen: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            seen.append(body)
            if self.path == "/broken":
                self.send_error(500, "my own fault")
                return
            if self.path == "/away":
                self.send_error(503)
                return
            first = body["messages"][0]
            out = (
                {"type": "call", "tool": "close_ticket", "arguments": CLOSE}
                if first["type"] == "task"
                else {"type": "answer", "text": first["text"], "model": "m-1"}
            )
            data = json.dumps(out).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            """Quiet."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}", seen
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_server(http_agent: tuple[str, list[dict[str, Any]]]) -> None:
    url, seen = http_agent
    transcript = run(parse_agent(url + "/agent"))
    assert (transcript.stopped, transcript.steps[-1].text) == ("user_left", "T-101 is closed")
    assert closed(transcript)
    assert len({body["session"] for body in seen}) == 1
    assert run(parse_agent(url + "/broken")).stopped == "agent_error"
    assert run(parse_agent(url + "/away")).stopped == "infra_error"
    assert run(parse_agent("http://127.0.0.1:9/x")).stopped == "infra_error"


@pytest.mark.parametrize("stream", [False, True])
def test_a_chat_model(chat_server: Any, stream: bool) -> None:
    used = {"prompt_tokens": 10, "completion_tokens": 2}
    server = chat_server(
        [
            {"calls": [("read_ticket", '{"id": "T-101"}'), ("fly", "{}")], "usage": used},
            {"text": "closing", "calls": [("close_ticket", json.dumps(CLOSE))], "usage": used},
            {"text": "T-101 is closed.", "usage": used},
        ]
    )
    transcript = run(ChatAgent("toy", server.url, stream=stream))
    assert transcript.stopped == "user_left", transcript.failure
    assert closed(transcript)
    assert transcript.steps[-1].model == "toy-1"
    assert transcript.steps[1].tool_calls[1].validity == "unknown_tool"
    ids = [c.id for s in transcript.steps for c in s.tool_calls]
    assert len(set(ids)) == 3, "the server gives every call the same id"
    last = server.requests[-1]["messages"]
    assert [m["role"] for m in last] == ["system", "user", "assistant", "tool", "tool", "assistant", "tool"]
    assert {m["tool_call_id"] for m in last if m["role"] == "tool"} == set(ids)
    assert all(r["seed"] == 5 for r in server.requests)
    assert transcript.cost_usd is None, "no price is known"


@pytest.mark.parametrize(
    ("answer", "stopped"),
    [
        ({"status": 500}, "infra_error"),
        ({"status": 401}, "infra_error"),
        ({"status": 400, "error": "context length exceeded"}, "agent_error"),
        ({"delay": 0.6, "text": "x"}, "agent_timeout"),
    ],
)
def test_a_chat_model_that_fails(chat_server: Any, answer: dict[str, Any], stopped: str) -> None:
    patience = Patience(tries=2, backoff=0.01, read=0.3)
    assert run(ChatAgent("toy", chat_server([answer]).url, patience=patience)).stopped == stopped


def test_specs() -> None:
    here = "seatrial.examples.ticketdesk:AGENTS"
    assert parse_agent("chat:org/model@http://h/v1").name == "org/model"
    assert parse_agent("cmd:/usr/bin/agent --fast").name == "agent"
    assert parse_agent("python:json:dumps").name == "json:dumps"
    assert parse_agent("python:seatrial.examples.coderepo:messy").name == "coderepo-messy"
    with pytest.raises(UsageError, match="tuple"):
        parse_agent("python:" + here)
    with pytest.raises(InputError, match="cannot be loaded"):
        parse_agent("python:seatrial.examples:nobody")
    for wrong in ("", "gpt", "chat:model", "cmd:", "ftp://x", "mcp: "):
        with pytest.raises(UsageError, match="python:module:function"):
            parse_agent(wrong)


def test_every_agent_says_what_makes_it_another() -> None:
    one, other = ChatAgent("a", "http://h/v1").parts, ChatAgent("a", "http://h/v1", prompt="Be quick.").parts
    assert set(one) == {"model", "prompt", "harness", "sampling"}
    assert {k for k in one if one[k] != other[k]} == {"prompt"}
    assert "lost my way" in FunctionAgent("f", broken).parts["harness"]
    assert CommandAgent("agent --level 1").parts != CommandAgent("agent --level 2").parts


def test_a_chat_error_says_what_to_do(chat_server: Any) -> None:
    agent = ChatAgent("toy", chat_server([{"status": 404, "error": "no such model"}]).url)
    conversation = agent.begin((), 0)
    with pytest.raises(ChatError, match=r"no such model.*check the model"):
        conversation.send(UserMessage(text="x"))
    conversation.close()
    assert ToolResult().outcome == "unknown"
