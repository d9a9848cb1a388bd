"""Whatever bytes an agent's log is damaged to: no crash, every byte accounted for, the same traces twice."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seatrial.canon import canonical
from seatrial.errors import InputError
from seatrial.ingest import read_file
from seatrial.ingest.catalogue import named
from seatrial.ingest.log import Log

fuzz = settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
LINES = ("codex", "copilot-cli", "gemini-cli", "openhands", "anthropic-messages")
TEXTS = ("swe-agent", "mini-swe-agent", "opencode", "gemini-cli", "openhands", "anthropic-messages")
ALL = sorted({*LINES, *TEXTS, "aider"})

keys = st.sampled_from(
    [
        *("type", "payload", "timestamp", "id", "role", "content", "text", "message", "call_id", "output", "name"),
        *("arguments", "input", "info", "total_token_usage", "last_token_usage", "input_tokens", "output_tokens"),
        *("metadata", "exit_code", "turn_id", "reason", "source", "subagent", "forked_from_id", "model", "summary"),
        *("data", "toolCallId", "toolRequests", "success", "result", "error", "code", "outputTokens", "sessionId"),
        *("parentToolCallId", "modelMetrics", "usage", "kind", "toolCalls", "args", "status", "tokens", "thoughts"),
        *("functionResponse", "response", "messages", "$set", "$rewindTo", "parts", "state", "time", "created"),
        *("history", "trajectory", "action", "observation", "thought", "is_demo", "tool_calls", "function", "extra"),
        *("actions", "cause", "extras", "args", "tool_call_metadata", "model_response", "choices", "llm_metrics"),
        *("accumulated_cost", "test_result", "report", "resolved", "request", "system", "tools", "tool_use_id"),
    ]
)
words = st.sampled_from(
    [
        *("session_meta", "response_item", "event_msg", "turn_context", "compacted", "user_message", "token_count"),
        *("function_call", "function_call_output", "reasoning", "turn_aborted", "user", "assistant", "tool", "system"),
        *("session.start", "user.message", "assistant.message", "tool.execution_complete", "session.shutdown"),
        *("gemini", "info", "text", "tool_use", "tool_result", "thinking", "message", "run", "finish", "recall"),
        *("completed", "error", "cancelled", "Process exited with code 1\nOutput:\nx", '{"output":"","metadata":1}'),
        *("01900000-0000-7000-8000-000000000001", "2026-01-01T00:00:00Z", "<turn_aborted>", "{}", "msg_1", "exit"),
    ]
)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | words | st.text(max_size=8)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=6), max_leaves=25
)


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def as_object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {"content": value}


outlines: dict[str, Callable[[Any], list[Any]]] = {
    "codex": lambda v: [
        {"type": "session_meta", "payload": {"id": "s"} | as_object(v)},
        *({"type": t, "payload": {"type": "message", "role": "user"} | as_object(v)} for t in ("response_item", "x")),
        *({"type": "response_item", "payload": as_object(part)} for part in as_list(v)),
        *({"type": "event_msg", "payload": {"type": "token_count", "info": part}} for part in as_list(v)),
        *({"type": "response_item", "payload": {"type": "f_call", "arguments": part}} for part in as_list(v)),
        {"type": "compacted", "payload": v},
    ],
    "copilot-cli": lambda v: [
        {"type": "session.start", "data": v},
        *({"type": t, "data": as_object(v)} for t in ("user.message", "assistant.message", "session.shutdown")),
        *({"type": t, "data": as_object(v) | {"toolCallId": "c"}} for t in ("tool.execution_start", "x.y")),
        {"type": "tool.execution_complete", "data": {"toolCallId": "c", "result": v, "error": v, "success": v}},
    ],
    "gemini-cli": lambda v: [
        {"sessionId": "s", "projectHash": "h", "messages": as_list(v)},
        {"id": "1", "type": "gemini", "toolCalls": as_list(v), "thoughts": v, "tokens": v, "content": v},
        {"id": "2", "type": "user", "content": v},
        {"$set": as_object(v)},
        {"$rewindTo": v},
        v,
    ],
    "openhands": lambda v: [
        {"history": as_list(v), "metrics": v, "test_result": v, "success": v, "issue": v},
        {"id": 1, "action": "run", "args": v, "tool_call_metadata": v, "llm_metrics": v},
        {"observation": v, "extras": v, "content": v, "cause": 1},
        {"action": "message", "source": "user", "args": v},
        v,
    ],
    "anthropic-messages": lambda v: [
        {"messages": [{"role": "user", "content": v}, *as_list(v)], "system": v, "tools": v, "metadata": v},
        {"request": as_object(v), "response": v},
        {"type": "message", "role": "assistant", "content": v, "usage": v, "model": v},
        v,
    ],
    "swe-agent": lambda v: [
        {
            "history": [{"role": "assistant", "content": v, "tool_calls": v}, *as_list(v)],
            "trajectory": [{"action": v, "observation": v, "response": v, "state": v}, *as_list(v)],
            "info": v,
            "replay_config": v,
        }
    ],
    "mini-swe-agent": lambda v: [
        {
            "messages": [{"role": "assistant", "content": v, "extra": v}, {"role": "user", "content": v}, *as_list(v)],
            "info": v,
        }
    ],
    "opencode": lambda v: [
        {
            "info": v,
            "messages": [
                {"info": {"role": "assistant", "error": v, "tokens": v, "cost": v, "time": v}, "parts": as_list(v)},
                {"info": {"role": "assistant"}, "parts": [{"type": "tool", "tool": v, "callID": v, "state": v}]},
                {"info": {"role": "user"}, "parts": as_list(v)},
                v,
            ],
        }
    ],
}


def check(name: str, data: bytes, suffix: str) -> None:
    """The reader by itself raises nothing but InputError; inside the base every byte is accounted for."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"a{suffix}"
        path.write_bytes(data)
        log = Log(str(path))
        try:
            traces = list(named(name).read(path, log))
        except InputError as error:
            refused: str | None = error.file
        else:
            refused = str(path)
            assert log.accounted == len(data)
            again = list(named(name).read(path, Log(str(path))))
            assert [canonical(trace) for trace in again] == [canonical(trace) for trace in traces]
        assert refused == str(path)
        reading = read_file(path, format=name)
        for trace in reading:
            assert trace.provenance.format == name
            assert [step.index for step in trace.steps] == list(range(len(trace.steps)))
            made = {call.id for step in trace.steps for call in step.tool_calls}
            assert {r.call_id for step in trace.steps for r in step.results} <= made | {None}
        assert reading.report.n_bytes == len(data)
        assert not any(" broke: " in skip.why for skip in reading.report.skipped)


def lines_of(name: str, value: Any) -> bytes:
    return "\n".join(json.dumps(record) for record in outlines[name](value)).encode(errors="replace")


@pytest.mark.parametrize("name", ALL)
@fuzz
@given(data=st.binary(max_size=200))
def test_any_bytes(name: str, data: bytes) -> None:
    check(name, data, ".jsonl" if name in LINES else ".json")


@pytest.mark.parametrize("name", LINES)
@fuzz
@given(value=values, cut=st.floats(0, 1))
def test_any_lines_whole_and_torn(name: str, value: Any, cut: float) -> None:
    data = lines_of(name, value)
    check(name, data, ".jsonl")
    check(name, data[: int(len(data) * cut)], ".jsonl")


@pytest.mark.parametrize("name", TEXTS)
@fuzz
@given(value=values, cut=st.floats(0, 1))
def test_any_json_text_whole_and_torn(name: str, value: Any, cut: float) -> None:
    made = outlines[name](value)
    data = json.dumps(made[0] if len(made) == 1 else made).encode(errors="replace")
    check(name, data, ".json")
    check(name, data[: int(len(data) * cut)], ".json")


@pytest.mark.parametrize("name", ["codex", "copilot-cli"])
@fuzz
@given(order=st.data(), values=st.lists(values, min_size=1, max_size=3))
def test_lines_in_any_order_and_twice(name: str, order: st.DataObject, values: list[Any]) -> None:
    records = [line for value in values for line in lines_of(name, value).split(b"\n")]
    shuffled = order.draw(st.lists(st.sampled_from(records), max_size=2 * len(records)))
    check(name, b"\n".join(shuffled), ".jsonl")


@fuzz
@given(
    lines=st.lists(
        st.sampled_from(
            [
                *("# aider chat started at 2026-01-01 00:00:00", "# aider chat started at ?", "#### do it  ", "#### "),
                *("> Tokens: 1.2k sent, 3 received. Cost: $0.1 message, $0.1 session.  ", "> ", ">", "####", "```"),
                *("> Tokens: 1.2.3k sent, . received. Cost: $. message", "text", "", "#### /run x  ", "~~~~", "\xff"),
                *("> ^C again to exit  ", "#### /ask   why  ", "> Main model: x with y  ", "#### <blank>  "),
            ]
        ),
        max_size=30,
    )
)
def test_any_history(lines: list[str]) -> None:
    check("aider", "\n".join(lines).encode("latin-1"), ".md")
