"""SWE-agent, mini-swe-agent and OpenHands beyond what the real files show."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from seatrial.errors import FormatError
from seatrial.ingest import read_file
from seatrial.ingest.log import Log
from seatrial.ingest.swe_agent import READER
from seatrial.records import Trace


def load(path: Path, value: Any, name: str) -> Trace:
    path.write_text(json.dumps(value))
    reading = read_file(path)
    (trace,) = reading
    assert reading.report.format == name
    assert reading.report.n_bytes == path.stat().st_size
    return trace


def test_demonstrations_are_the_harnesss_and_retries_keep_their_place(tmp_path: Path) -> None:
    history = [
        {"role": "system", "content": "s", "agent": "main"},
        {"role": "user", "content": "a demo", "is_demo": True, "agent": "main"},
        {"role": "assistant", "content": "demo answer", "is_demo": True, "agent": "main"},
        {"role": "user", "content": "the task", "agent": "main"},
        {"role": "assistant", "content": "second", "action": "ls", "thought": "t", "agent": "main"},
        {"role": "user", "content": "files\n(Open file: n/a)", "agent": "main"},
        {"role": "assistant", "content": "third", "action": "submit", "agent": "main"},
    ]
    trajectory = [
        {"action": "edit bad", "observation": "refused", "response": "first", "thought": "t"},
        {"action": "ls", "observation": "files", "response": "second", "state": {"cwd": "/"}},
        {"action": "submit", "observation": "diff", "response": "third", "execution_time": 0.5},
    ]
    info = {"exit_status": "submitted", "model_stats": {"tokens_sent": 7, "tokens_received": 2, "instance_cost": 0.5}}
    trace = load(tmp_path / "x__y-1.traj", {"history": history, "trajectory": trajectory, "info": info}, "swe-agent")
    assert [(s.event_class, s.kind, s.text) for s in trace.steps] == [
        ("harness", "system_prompt", "s"),
        ("harness", "demonstration", "a demo"),
        ("harness", "demonstration", "demo answer"),
        ("harness", "task_prompt", "the task"),
        ("agent", None, "first"),
        ("agent", None, "second"),
        ("agent", None, "third"),
    ]
    agents = trace.steps[4:]
    assert [s.results[0].text for s in agents] == ["refused", "files", "diff"]
    assert agents[1].extra["shown"] == "files\n(Open file: n/a)"
    usage = trace.totals.usage
    assert (usage.input_tokens, usage.output_tokens, usage.cost_usd) == (7, 2, 0.5)
    assert (trace.task.id, trace.outcome) == ("x__y-1", None)


def test_a_torn_trajectory_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.traj"
    path.write_text('{"history": [\n{"role": "system", "con')
    reading = read_file(path)
    assert list(reading) == []
    assert "line 2" in str(reading.report.why)
    with pytest.raises(FormatError, match="line 2"):
        list(READER.read(path, Log(str(path))))


def test_mini_swe_agent_refuses_two_actions_and_reads_tool_calls(tmp_path: Path) -> None:
    asked = {"id": "c", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
    messages = [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "Please solve"},
        {"role": "assistant", "content": "```mswea_bash_command\na\n```\n```mswea_bash_command\nb\n```"},
        {"role": "user", "content": "Please always provide EXACTLY ONE action"},
        {"role": "assistant", "content": "", "tool_calls": [asked], "extra": {"cost": 0.1, "timestamp": 5.0}},
        {"role": "tool", "tool_call_id": "c", "content": "<returncode>1</returncode>\n<output>\n</output>"},
        {"role": "exit", "content": "Submitted", "extra": {"exit_status": "Submitted"}},
    ]
    raw = {"info": {"mini_version": "2.0"}, "messages": messages, "trajectory_format": "mini-swe-agent-1.1"}
    trace = load(tmp_path / "a.traj.json", raw, "mini-swe-agent")
    assert [step.kind for step in trace.steps] == ["system_prompt", "task_prompt", None, "format_error", None, "exit"]
    assert trace.steps[2].tool_calls == ()
    step = trace.steps[4]
    assert (step.tool_calls[0].arguments, step.time) == ({"command": "ls"}, 5.0)
    assert (step.results[0].outcome, step.results[0].exit_code) == ("error", 1)
    assert trace.totals.usage.cost_usd == 0.1


def openhands_call(event_id: int, call_id: str, response: str, cost: float) -> dict[str, Any]:
    function = {"id": call_id, "function": {"name": "execute_bash", "arguments": '{"command": "ls"}'}}
    made = {"id": response, "model": "m", "usage": {"prompt_tokens": 10, "completion_tokens": 1}}
    made["choices"] = [{"message": {"content": "looking", "tool_calls": [function]}}]
    return {
        "id": event_id,
        "source": "agent",
        "timestamp": f"2026-01-01T00:00:0{event_id}",
        "action": "run",
        "args": {"command": "ls", "thought": "looking"},
        "tool_call_metadata": {"function_name": "execute_bash", "tool_call_id": call_id, "model_response": made},
        "llm_metrics": {"accumulated_cost": cost},
    }


def test_openhands_calls_of_one_response_are_one_step(tmp_path: Path) -> None:
    events = [
        {"id": 0, "source": "user", "action": "message", "args": {"content": "list"}},
        openhands_call(1, "a", "r", 0.5),
        openhands_call(2, "b", "r", 0.5),
        {"id": 3, "source": "agent", "cause": 2, "observation": "user_rejected", "content": "no"},
        {"id": 4, "source": "agent", "cause": 1, "observation": "run", "content": "x", "extras": {"exit_code": 1}},
        {"id": 5, "source": "user", "action": "change_agent_state", "args": {"agent_state": "stopped"}},
        {"id": 6, "source": "user", "action": "message", "args": {"content": "why?"}},
    ]
    trace = load(tmp_path / "a.json", events, "openhands")
    assert [step.event_class for step in trace.steps] == ["human", "agent", "interrupted", "human"]
    step = trace.steps[1]
    assert step.text == "looking"
    assert [(r.call_id, r.outcome) for r in step.results] == [("b", "rejected"), ("a", "error")]
    assert (trace.totals.usage.input_tokens, trace.totals.usage.cost_usd) == (10, 0.5)


def test_openhands_pairs_and_verdicts(tmp_path: Path) -> None:
    pair = [
        {"action": "run", "args": {"command": "ls"}},
        {"observation": "run", "content": "x", "extras": {"exit_code": 0}},
    ]
    raw = {
        "instance_id": "x__y-1",
        "instruction": "fix",
        "history": [
            [{"action": "message", "source": "user", "args": {"content": "fix"}}, {"observation": "null"}],
            pair,
        ],
        "test_result": {"report": {"resolved": False}, "git_patch": ""},
        "success": True,
        "metrics": {"accumulated_cost": 0.25},
    }
    trace = load(tmp_path / "a.json", raw, "openhands")
    assert [step.kind for step in trace.steps] == ["task_prompt", None]
    assert trace.steps[1].results[0].outcome == "ok"
    assert trace.outcome is not None
    assert (trace.outcome.status, trace.outcome.by) == ("failed", "test_result.report.resolved")
    assert trace.task.id == "x__y-1"


def test_openhands_without_a_verdict_has_no_outcome(tmp_path: Path) -> None:
    raw = {"instance_id": "a", "instruction": "fix", "history": [{"action": "finish", "thought": "t"}], "success": None}
    raw["error"] = "stuck in a loop"
    trace = load(tmp_path / "a.json", raw, "openhands")
    assert trace.outcome is None
    assert trace.extra["error"] == "stuck in a loop"
