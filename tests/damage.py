"""Files of every format, and damage done to them: for the property tests and for ``scripts/fuzz``.

Seeds are small: hand-made ones for every format, and real files (cut down) where they are at hand.
"""

from __future__ import annotations

import io
import json
import random
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

TIME = "2026-09-01T10:00:00Z"
_NANO = 1788256800000000000


class Seed(NamedTuple):
    """A file: name and bytes."""

    name: str
    data: bytes


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def _lines(*values: Any) -> bytes:
    return b"".join(_json(value) + b"\n" for value in values)


def _attributes(**values: Any) -> list[dict[str, Any]]:
    return [
        {"key": key.replace("__", "."), "value": {"intValue": str(v)} if isinstance(v, int) else {"stringValue": v}}
        for key, v in values.items()
    ]


_CHAT = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "list the files"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "sh", "arguments": '{"cmd": "ls"}'}}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "a.py"},
    {"role": "assistant", "content": "There is a.py."},
    {"role": "user", "content": "thanks"},
]
_SPOKEN = {
    "gen_ai__operation__name": "chat",
    "gen_ai__request__model": "m",
    "gen_ai__usage__input_tokens": 10,
    "gen_ai__usage__output_tokens": 2,
    "gen_ai__input__messages": '[{"role": "user", "parts": [{"type": "text", "content": "hi"}]}]',
    "gen_ai__output__messages": '[{"role": "assistant", "parts": [{"type": "text", "content": "ho"}]}]',
}
_SPANS = [
    {
        "traceId": "0" * 31 + "1",
        "spanId": "0" * 15 + str(n),
        "parentSpanId": "" if n == 1 else "0" * 15 + "1",
        "name": "chat m" if n > 1 else "invoke_agent a",
        "kind": 1,
        "startTimeUnixNano": str(_NANO + n),
        "endTimeUnixNano": str(_NANO + n + 5),
        "attributes": _attributes(**_SPOKEN) if n > 1 else _attributes(gen_ai__operation__name="invoke_agent"),
        "events": [{"timeUnixNano": str(_NANO), "name": "exception", "attributes": _attributes(x="y")}],
        "status": {"code": 1},
    }
    for n in (1, 2, 3)
]
_OBSERVATION = {
    "id": "o1",
    "traceId": "t1",
    "type": "GENERATION",
    "name": "chat",
    "startTime": TIME,
    "endTime": TIME,
    "parentObservationId": None,
    "model": "m",
    "input": [{"role": "user", "content": "hi"}],
    "output": {"role": "assistant", "content": "ho"},
    "usageDetails": {"input": 10, "output": 2, "total": 12},
    "level": "ERROR",
    "statusMessage": "timed out",
}
_RUN = {
    "id": "r1",
    "trace_id": "r1",
    "parent_run_id": None,
    "name": "ChatModel",
    "run_type": "llm",
    "start_time": TIME,
    "end_time": TIME,
    "inputs": {"messages": [{"role": "user", "content": "hi"}]},
    "outputs": {"generations": [[{"text": "ho", "message": {"role": "assistant", "content": "ho"}}]]},
    "extra": {"invocation_params": {"model": "m"}},
    "total_tokens": 12,
    "error": None,
    "child_runs": [],
    "feedback_stats": {"thumb": {"n": 1, "avg": 1.0}},
}
_PHOENIX = {
    "context": {"trace_id": "t", "span_id": "s"},
    "parent_id": None,
    "name": "llm",
    "span_kind": "LLM",
    "start_time": TIME,
    "end_time": TIME,
    "status_code": "OK",
    "attributes": {
        "openinference.span.kind": "LLM",
        "llm.model_name": "m",
        "llm.input_messages": [{"message": {"role": "user", "content": "hi"}}],
        "llm.output_messages": [{"message": {"role": "assistant", "content": "ho"}}],
        "llm.token_count.prompt": 10,
    },
    "events": [],
}
_ASKED = {
    "model": "m",
    "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
    "tools": [{"name": "sh", "input_schema": {}}],
}
_ANSWERED = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [{"type": "text", "text": "ho"}, {"type": "tool_use", "id": "t1", "name": "sh", "input": {"a": 1}}],
    "usage": {"input_tokens": 5, "cache_read_input_tokens": 3, "output_tokens": 2},
}
_SAMPLE = {
    "id": 1,
    "epoch": 1,
    "input": "hi",
    "target": "ho",
    "messages": _CHAT,
    "scores": {"match": {"value": "C", "answer": "ho"}},
    "model_usage": {"m": {"input_tokens": 10, "output_tokens": 2, "total_tokens": 12}},
    "limit": {"type": "token", "limit": 5},
    "events": [],
}
_INSPECT = {
    "version": 2,
    "status": "success",
    "eval": {"task": "t", "task_id": "x", "run_id": "r", "created": TIME, "model": "m", "dataset": {}, "config": {}},
    "plan": {},
    "results": {"scores": []},
    "stats": {},
    "samples": [_SAMPLE],
}


def _archive(members: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data)
    return stream.getvalue()


def _claude() -> bytes:
    base = {"sessionId": "s", "version": "2.1", "cwd": "/w", "isSidechain": False, "timestamp": TIME}
    usage = {"input_tokens": 5, "cache_read_input_tokens": 3, "output_tokens": 2}
    call = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}
    said = {"id": "m1", "role": "assistant", "model": "m", "content": [{"type": "text", "text": "ok"}, call]}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "Exit code 1", "is_error": True}
    return _lines(
        {"type": "user", "uuid": "u1", "parentUuid": None, **base, "message": {"role": "user", "content": "go"}},
        {"type": "assistant", "uuid": "u2", "parentUuid": "u1", **base, "message": said | {"usage": usage}},
        {
            "type": "user",
            "uuid": "u3",
            "parentUuid": "u2",
            **base,
            "message": {"role": "user", "content": [result]},
            "toolUseResult": {"stdout": "", "stderr": "no", "interrupted": False, "agentId": "a1"},
        },
        {"type": "user", "uuid": "u4", **base, "isSidechain": True, "message": {"role": "user", "content": "sub"}},
        {"type": "progress", "uuid": "u5", **base, "data": {"type": "agent_progress", "agentId": "a1"}},
        {"type": "attachment", "uuid": "u6", **base, "attachment": {"type": "queued_command", "prompt": "x"}},
        {"type": "queue-operation", "operation": "enqueue", "content": "y", "sessionId": "s", "timestamp": TIME},
        {"type": "system", "subtype": "stop_hook_summary", "uuid": "u7", **base, "content": "h", "hookErrors": [1]},
    )


def _codex() -> bytes:
    def record(envelope: str, **payload: Any) -> dict[str, Any]:
        return {"timestamp": TIME, "type": envelope, "payload": payload}

    count = {"input_tokens": 5, "cached_input_tokens": 1, "output_tokens": 2, "total_tokens": 7}
    said = [{"type": "output_text", "text": "ho"}]
    return _lines(
        record("session_meta", id="01990000-0000-7000-8000-000000000001", cwd="/w", cli_version="0.1"),
        record("turn_context", turn_id="01990000-0100-7000-8000-000000000001", model="m"),
        record("response_item", type="message", role="user", content=[{"type": "input_text", "text": "hi"}]),
        record("event_msg", type="user_message", message="hi"),
        record("response_item", type="function_call", name="sh", arguments='{"cmd": "ls"}', call_id="call_1"),
        record("response_item", type="function_call_output", call_id="call_1", output="Exit code: 1\nOutput:\nx"),
        record("event_msg", type="token_count", info={"total_token_usage": count, "last_token_usage": count}),
        record("response_item", type="message", role="assistant", content=said),
        record("compacted", message="sum", replacement_history=[{"type": "message"}]),
        record("event_msg", type="turn_aborted", reason="interrupted"),
    )


HAND_MADE: dict[str, tuple[Seed, ...]] = {
    "claude-code": (Seed("s.jsonl", _claude()),),
    "codex": (Seed("rollout-1.jsonl", _codex()),),
    "copilot-cli": (
        Seed(
            "events.jsonl",
            _lines(
                {"type": "session.start", "id": "1", "timestamp": TIME, "data": {"sessionId": "s", "version": 1}},
                {"type": "user.message", "id": "2", "timestamp": TIME, "data": {"content": "hi"}},
                {
                    "type": "assistant.message",
                    "id": "3",
                    "timestamp": TIME,
                    "data": {"content": "ho", "messageId": "m"},
                },
                {"type": "tool.execution_start", "id": "4", "data": {"toolCallId": "c", "toolName": "sh"}},
                {"type": "tool.execution_complete", "id": "5", "data": {"toolCallId": "c", "success": False}},
            ),
        ),
    ),
    "specstory": (
        Seed(
            "a.md",
            b"<!-- Generated by SpecStory -->\n\n_**User (2025-10-04 05:53Z)**_\n\nhi\n\n---\n\n_**Assistant**_\n",
        ),
    ),
    "atif": (
        Seed(
            "a.json",
            _json(
                {
                    "schema_version": "ATIF-v1.6",
                    "session_id": "s",
                    "agent": {"name": "a", "version": "1", "model_name": "m"},
                    "steps": [
                        {"step_id": 1, "source": "user", "message": "hi", "timestamp": TIME},
                        {
                            "step_id": 2,
                            "source": "agent",
                            "message": "ho",
                            "tool_calls": [{"tool_call_id": "c", "function_name": "f", "arguments": {"a": 1}}],
                            "observation": {"results": [{"source_call_id": "c", "content": "x"}]},
                            "metrics": {"prompt_tokens": 5, "completion_tokens": 2, "cost_usd": 0.1},
                        },
                    ],
                    "final_metrics": {"total_steps": 2},
                }
            ),
        ),
    ),
    "gemini-cli": (
        Seed(
            "session-1.json",
            _json(
                {
                    "sessionId": "s",
                    "projectHash": "h",
                    "startTime": TIME,
                    "lastUpdated": TIME,
                    "messages": [
                        {"id": "1", "timestamp": TIME, "type": "user", "content": "hi"},
                        {
                            "id": "2",
                            "timestamp": TIME,
                            "type": "gemini",
                            "content": "ho",
                            "thoughts": [{"subject": "a", "description": "b", "timestamp": TIME}],
                            "tokens": {"input": 5, "output": 2, "cached": 1, "thoughts": 1, "tool": 0, "total": 8},
                            "model": "m",
                            "toolCalls": [{"id": "c", "name": "f", "args": {}, "status": "error", "result": []}],
                        },
                    ],
                }
            ),
        ),
    ),
    "opencode": (
        Seed(
            "e.json",
            _json(
                {
                    "info": {"id": "ses_1", "version": "1", "title": "t"},
                    "messages": [
                        {
                            "info": {"id": "msg_1", "sessionID": "ses_1", "role": "user", "time": {"created": 1}},
                            "parts": [{"type": "text", "text": "hi"}],
                        },
                        {
                            "info": {"id": "msg_2", "sessionID": "ses_1", "role": "assistant", "modelID": "m"},
                            "parts": [
                                {
                                    "type": "tool",
                                    "callID": "c",
                                    "tool": "sh",
                                    "state": {"status": "error", "error": "x"},
                                },
                                {"type": "step-finish", "cost": 0.5, "tokens": {"input": 5, "cache": {"read": 1}}},
                            ],
                        },
                    ],
                }
            ),
        ),
    ),
    "aider": (
        Seed(
            ".aider.chat.history.md",
            b"\n# aider chat started at 2026-10-09 10:00:00\n\n> Aider v0.86.1\n\n#### hi\n\nho\n",
        ),
    ),
    "swe-agent": (
        Seed(
            "a.traj",
            _json(
                {
                    "environment": "e",
                    "trajectory": [
                        {"action": "ls", "observation": "a", "response": "r", "thought": "t", "state": "{}"}
                    ],
                    "history": [{"role": "system", "content": "x", "agent": "p"}, *_CHAT],
                    "info": {"exit_status": "submitted", "model_stats": {"instance_cost": 0.1, "tokens_sent": 5}},
                }
            ),
        ),
    ),
    "mini-swe-agent": (
        Seed(
            "a.traj.json",
            _json(
                {
                    "info": {"exit_status": "Submitted", "mini_version": "1.0", "model_stats": {"instance_cost": 0.1}},
                    "messages": _CHAT,
                    "trajectory_format": "mini-swe-agent-1",
                }
            ),
        ),
    ),
    "openhands": (
        Seed(
            "a.json",
            _json(
                [
                    {"id": 0, "timestamp": TIME, "source": "user", "action": "message", "args": {"content": "hi"}},
                    {"id": 1, "source": "agent", "action": "run", "args": {"command": "ls"}, "llm_metrics": {}},
                    {"id": 2, "source": "agent", "observation": "run", "cause": 1, "content": "a", "extras": {}},
                ]
            ),
        ),
    ),
    "tau-bench": (
        Seed("a.json", _json([{"task_id": 0, "reward": 1.0, "info": {"task": {}}, "traj": _CHAT, "trial": 0}])),
    ),
    "tau2": (
        Seed(
            "a.json",
            _json(
                {
                    "timestamp": TIME,
                    "info": {"agent_info": {"llm": "m"}, "user_info": {"llm": "u"}, "num_trials": 1},
                    "tasks": [{"id": "0"}],
                    "simulations": [
                        {"id": "s", "task_id": "0", "trial": 0, "messages": _CHAT, "reward_info": {"reward": 1.0}}
                    ],
                }
            ),
        ),
    ),
    "inspect": (
        Seed("a.json", _json(_INSPECT)),
        Seed(
            "a.eval",
            _archive(
                {
                    "header.json": _json({k: v for k, v in _INSPECT.items() if k != "samples"}),
                    "samples/1_epoch_1.json": _json(_SAMPLE),
                    "summaries.json": b"[]",
                }
            ),
        ),
    ),
    "otlp": (
        Seed("a.json", _json({"resourceSpans": [{"resource": {}, "scopeSpans": [{"spans": _SPANS}]}]})),
        Seed("a.jsonl", _lines({"resourceSpans": [{"scopeSpans": [{"spans": _SPANS}]}]}, {"resourceLogs": []})),
        Seed("a.pb", b"\n\x10\x12\x0e\x12\x0c\n\x04aaaa\x12\x04bbbb"),
    ),
    "jaeger": (
        Seed(
            "a.json",
            _json(
                {
                    "data": [
                        {
                            "traceID": "t",
                            "processes": {"p1": {"serviceName": "s", "tags": []}},
                            "spans": [
                                {
                                    "traceID": "t",
                                    "spanID": f"s{n}",
                                    "operationName": "chat",
                                    "references": [{"refType": "CHILD_OF", "traceID": "t", "spanID": "s0"}] * bool(n),
                                    "startTime": _NANO // 1000 + n,
                                    "duration": 5,
                                    "processID": "p1",
                                    "tags": [
                                        {"key": k.replace("__", "."), "type": "string", "value": v}
                                        for k, v in _SPOKEN.items()
                                    ],
                                    "logs": [{"timestamp": 1, "fields": [{"key": "event", "value": "x"}]}],
                                }
                                for n in (0, 1)
                            ],
                        }
                    ]
                }
            ),
        ),
    ),
    "langfuse": (
        Seed(
            "a.json",
            _json(
                {
                    "trace": {"id": "t1", "timestamp": TIME, "name": "n", "sessionId": "s", "scores": []},
                    "observations": [_OBSERVATION],
                }
            ),
        ),
    ),
    "langsmith": (Seed("a.json", _json([_RUN])), Seed("a.jsonl", _lines(_RUN, _RUN | {"id": "r2"}))),
    "phoenix": (Seed("a.json", _json([_PHOENIX])), Seed("a.jsonl", _lines(_PHOENIX))),
    "harbor": (
        Seed(
            "result.json",
            _json(
                {
                    "task_name": "t",
                    "trial_name": "t__1",
                    "trial_uri": "file:x",
                    "agent_info": {"name": "a", "version": "1", "model_info": {"name": "m", "provider": "p"}},
                    "agent_result": {"n_input_tokens": 5, "n_output_tokens": 2, "cost_usd": 0.1},
                    "verifier_result": {"rewards": {"reward": 1.0}},
                    "exception_info": None,
                    "started_at": TIME,
                    "finished_at": TIME,
                }
            ),
        ),
    ),
    "junit": (
        Seed(
            "a.xml",
            b'<?xml version="1.0"?><testsuites><testsuite name="s" tests="2"><testcase name="a" time="0.1"/>'
            b'<testcase name="b"><failure message="no">x</failure></testcase></testsuite></testsuites>',
        ),
    ),
    "promptfoo": (
        Seed(
            "a.json",
            _json(
                {
                    "evalId": "e",
                    "results": {
                        "version": 3,
                        "timestamp": TIME,
                        "prompts": [{"raw": "p", "provider": "m"}],
                        "results": [
                            {
                                "promptIdx": 0,
                                "testIdx": 0,
                                "provider": {"id": "m"},
                                "success": False,
                                "score": 0.5,
                                "failureReason": 1,
                                "latencyMs": 5,
                                "cost": 0.1,
                                "tokenUsage": {"prompt": 5, "completion": 2},
                            }
                        ],
                        "stats": {},
                    },
                    "config": {},
                }
            ),
        ),
    ),
    "anthropic-messages": (
        Seed("a.json", _json(_ASKED | {"messages": [*_ASKED["messages"], {"role": "assistant", "content": "ho"}]})),
        Seed("a.jsonl", _lines({"request": _ASKED, "response": _ANSWERED})),
    ),
    "results": (
        Seed("a.csv", b"task,trial,passed,score,cost_usd\na,0,true,0.5,0.1\na,1,false,,\n"),
        Seed("a.jsonl", _lines({"task": "a", "trial": 0, "passed": True}, {"task": "a", "trial": 1, "score": 0.5})),
    ),
    "openai-chat": (
        Seed("a.json", _json({"messages": _CHAT, "model": "m"})),
        Seed("a.jsonl", _lines({"messages": _CHAT}, {"messages": _CHAT})),
    ),
}

REAL: dict[str, tuple[str, ...]] = {
    "claude-code": ("sessions/claude-code/**/*.jsonl",),
    "codex": ("sessions/codex/**/*.jsonl",),
    "copilot-cli": ("sessions/copilot-cli/**/*.jsonl",),
    "specstory": ("sessions/specstory/**/*.md",),
    "atif": ("atif/*.trajectory*.json",),
    "gemini-cli": ("native-examples/gemini*.json",),
    "swe-agent": ("swe/swe-agent/*.traj",),
    "mini-swe-agent": ("swe/mini-swe-agent/*.json", "native-examples/mini*.json"),
    "openhands": ("swe/openhands/*.jsonl", "native-examples/openhands*.json"),
    "tau-bench": ("tau-bench/*.json",),
    "tau2": ("tau2/**/*.json",),
    "inspect": ("inspect/log_*.json", "inspect/log_*.eval", "inspect/*.json"),
    "jaeger": ("otel/jaeger-genai/*.json",),
    "langfuse": ("otel/langfuse-export/*.json",),
}
"""Where real files of a format are under SEATRIAL_DATA."""

_LARGEST = 64 * 1024
_PER_FORMAT = 4


def seeds(name: str, data: Path | None) -> list[Seed]:
    """Files of a format: hand-made, then the smallest real ones, cut down to some 64 kB each."""
    found = list(HAND_MADE[name])
    if data is not None:
        paths = {path for pattern in REAL.get(name, ()) for path in data.glob(pattern)}
        smallest = sorted(paths, key=lambda path: (path.stat().st_size, path.name))[:_PER_FORMAT]
        found += [Seed(path.name, _cut(path)) for path in smallest]
    return found


def _cut(path: Path) -> bytes:
    data = path.read_bytes()
    if len(data) <= _LARGEST or path.suffix == ".eval":
        return data
    if path.suffix == ".jsonl" or path.suffix == ".md":
        return data[: data.rfind(b"\n", 0, _LARGEST) + 1] or data[:_LARGEST]
    return _json(_shrunk(json.loads(data), 3))


def _shrunk(value: Any, longest: int) -> Any:
    if isinstance(value, list):
        return [_shrunk(v, longest * 3) for v in value[:longest]]
    if isinstance(value, dict):
        return {k: _shrunk(v, longest) for k, v in value.items()}
    return value[:2000] if isinstance(value, str) else value


def _cuts(data: bytes, rng: random.Random, n: int) -> list[int]:
    return sorted(rng.randrange(len(data) + 1) for _ in range(n))


def truncate(data: bytes, rng: random.Random) -> bytes:
    """Cut off at the end, or at the beginning."""
    (at,) = _cuts(data, rng, 1)
    return data[at:] if rng.random() < 0.2 else data[:at]


def duplicate(data: bytes, rng: random.Random) -> bytes:
    """A piece, or some lines, twice."""
    if b"\n" in data and rng.random() < 0.7:
        lines = data.splitlines(keepends=True)
        a, b = sorted(rng.randrange(len(lines) + 1) for _ in range(2))
        return b"".join(lines[:b] + lines[a:])
    a, b = _cuts(data, rng, 2)
    return data[:b] + data[a:]


def reorder(data: bytes, rng: random.Random) -> bytes:
    """Lines shuffled, or two pieces swapped."""
    if b"\n" in data and rng.random() < 0.7:
        lines = data.split(b"\n")
        rng.shuffle(lines)
        return b"\n".join(lines)
    a, b, c = _cuts(data, rng, 3)
    return data[:a] + data[b:c] + data[a:b] + data[c:]


def corrupt(data: bytes, rng: random.Random) -> bytes:
    """Some bytes overwritten, put in or taken out."""
    for _ in range(rng.randint(1, 8)):
        (at,) = _cuts(data, rng, 1)
        piece = rng.choice([rng.randbytes(rng.randint(1, 4)), *_TORN])
        data = data[:at] + piece + data[at + rng.randint(0, 4) :]
    return data


_TORN = (
    b"\n",
    b"\r\n",
    b"\0",
    b'"',
    b"\\",
    b"}",
    b"]",
    b"{",
    b"\xe2\x80\xa8",
    b"\xff\xfe",
    b"\xed\xa0\x80",
    b"<",
    b"#",
)
_ODD = (
    *("null", "true", "0", "-1", "1.5", "1e308", "1e999", "-1e999", "NaN", "Infinity", "9" * 400, "-" + "9" * 30),
    *("9223372036854775808", "18446744073709551616", "1e-400", '""', '"x"', '"1"', '"-5"', '"1e999"', '"\\ud800"'),
    *('"2026-13-45T99:99:99Z"', '"9999-12-31T23:59:59+00:00"', '"0001-01-01T00:00:00+14:00"', '"\u2028\u0085"'),
    *("[]", "{}", "[[]]", "[null]", '[{}, "x", 1]', '{"": null}', '{"a": {"a": []}}', '{"text": 1, "type": []}'),
    *('"' + "x" * 100_000 + '"', "[" + "0," * 20_000 + "0]"),
    *(opened * depth + "1" + closed * depth for depth in (50, 250, 900, 5_000, 100_000) for opened, closed in (
        ("[", "]"), ('{"a":', "}"), ('[{"content":', "}]"), ('{"child_runs":[', "]}"),
    )),
)  # fmt: skip
_HOLE = "\uf8ffhole\uf8ff"


def wrong_values(data: bytes, rng: random.Random) -> bytes:
    """Values inside the JSON replaced by ones of a wrong type, huge, or deeply nested; members taken out."""
    lines = data.split(b"\n")
    place = rng.randrange(len(lines))
    try:
        value = json.loads(lines[place])
        done = _spoiled(value, rng)
        lines[place] = done
        return b"\n".join(lines)
    except (ValueError, RecursionError):
        pass
    try:
        return _spoiled(json.loads(data), rng)
    except (ValueError, RecursionError):
        return corrupt(data, rng)


def _spoiled(value: Any, rng: random.Random) -> bytes:
    places: list[tuple[Any, Any]] = []
    todo = [value]
    while todo:
        node = todo.pop()
        for key, inner in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
            places.append((node, key))
            todo.append(inner)
    odd = rng.choice(_ODD)
    if not places:
        return odd.encode(errors="surrogatepass")
    holes = 0
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        node, key = rng.choice(places)
        if isinstance(node, dict) and rng.random() < 0.2:
            node.pop(key, None)
        elif isinstance(node, dict) or key < len(node):
            node[key] = _HOLE
            holes += 1
    text = json.dumps(value, ensure_ascii=False)
    hole = json.dumps(_HOLE, ensure_ascii=False)
    # Big values once: several would make each example slow rather than odd.
    text = text.replace(hole, odd, 1).replace(hole, "null" if len(odd) > 1000 else odd)
    return text.encode(errors="surrogatepass")


def inside_archive(data: bytes, rng: random.Random) -> bytes:
    """A member of a zip archive damaged and packed again; other files are corrupted."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {info.filename: archive.read(info) for info in archive.infolist()[:20]}
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, OSError, ValueError, EOFError, RuntimeError):
        return corrupt(data, rng)
    if not members:
        return corrupt(data, rng)
    name = rng.choice(sorted(members))
    members[name] = rng.choice(_TEXTUAL)(members[name], rng)
    return _archive(members)


Damage = Callable[[bytes, random.Random], bytes]
_TEXTUAL: tuple[Damage, ...] = (truncate, duplicate, reorder, corrupt, wrong_values, wrong_values, wrong_values)
KINDS: tuple[Damage, ...] = (*_TEXTUAL, inside_archive)


def damage(data: bytes, kinds: list[tuple[int, int]]) -> bytes:
    """The bytes after each kind of damage in turn: (number of the kind, seed)."""
    for kind, seed in kinds:
        apply = KINDS[kind % len(KINDS)]
        if apply is inside_archive and data[:2] != b"PK":
            apply = wrong_values
        data = apply(data, random.Random(seed))
    return data
