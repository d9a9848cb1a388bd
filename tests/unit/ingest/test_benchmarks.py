"""tau-bench and tau2: who spoke, what succeeded, how an attempt ended, and what is wrong with a bad file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from seatrial.errors import FormatError
from seatrial.ingest import read_file
from seatrial.ingest.log import Log
from seatrial.ingest.tau2 import READER as TAU2
from seatrial.ingest.tau_bench import READER as TAU_BENCH
from seatrial.records import FileReport, Trace

CALL = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"a": 1}'}}
TRAJ: list[Any] = [
    {"role": "system", "content": "# Retail agent policy\n..."},
    {"role": "user", "content": "hello"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "name": "find", "content": "Error: none"},
    {"role": "assistant", "content": "sorry"},
    {"role": "user", "content": "bye ###STOP###"},
    {"role": "user", "content": "###STOP###"},
]


def attempt(**changes: Any) -> dict[str, Any]:
    return {"task_id": 3, "reward": 1.0, "info": {"user_cost": 0.1, "new": 1}, "traj": TRAJ, "trial": 2} | changes


def load(path: Path, value: Any, *, text: str | None = None) -> tuple[list[Trace], FileReport]:
    path.write_text(json.dumps(value) if text is None else text)
    reading = read_file(path)
    traces = list(reading)
    assert reading.report.n_bytes == path.stat().st_size
    return traces, reading.report


def test_a_tau_bench_attempt(tmp_path: Path) -> None:
    (trace,), report = load(tmp_path / "gpt-4o-retail.json", [attempt()])
    assert report.format == "tau-bench"
    assert [(s.event_class, s.kind, s.text) for s in trace.steps] == [
        ("harness", "system_prompt", "# Retail agent policy\n..."),
        ("simulated_user", None, "hello"),
        ("agent", None, ""),
        ("agent", None, "sorry"),
        ("simulated_user", None, "bye"),
        ("harness", "control", ""),
    ]
    (call,) = trace.steps[2].tool_calls
    (result,) = trace.steps[2].results
    assert (call.arguments, result.call_id, result.outcome) == ({"a": 1}, "c1", "error")
    assert (trace.task.id, trace.task.type, trace.task.suite, trace.attempt) == (
        "3",
        "retail",
        "tau-bench/retail",
        2,
    )
    assert trace.outcome is not None
    assert (trace.outcome.status, trace.outcome.score, trace.outcome.by) == ("passed", 1.0, "tau-bench")
    assert trace.model == "gpt-4o"
    assert trace.extra["model_by"] == "file name"
    assert trace.extra["info"]["new"] == 1
    assert trace.totals.extra == {"user_cost": 0.1}


def test_a_run_names_its_models_in_its_file_name(tmp_path: Path) -> None:
    name = "tool-calling-claude-3-5-sonnet-0.0_range_0--1_user-gpt-4o-llm_0515.json"
    (trace,), _ = load(tmp_path / name, [attempt()])
    assert (trace.model, trace.extra["simulator"]) == ("claude-3-5-sonnet", "gpt-4o")


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"reward": 1}, "passed"),
        ({"reward": 0.0}, "failed"),
        ({"reward": 0.5}, "failed"),
        ({"reward": None}, "unscored"),
        ({"reward": 0.0, "info": {"error": "Rate limit exceeded"}, "traj": []}, "error_infra"),
        ({"reward": 0.0, "info": {"error": "context window exceeded"}, "traj": []}, "error_agent"),
    ],
)
def test_tau_bench_outcomes(tmp_path: Path, changes: dict[str, Any], status: str) -> None:
    (trace,), _ = load(tmp_path / "m.json", [attempt(**changes)])
    assert trace.outcome is not None
    assert trace.outcome.status == status


def test_an_unknown_action_is_a_tool_that_does_not_exist(tmp_path: Path) -> None:
    traj = [*TRAJ[:3], {"role": "tool", "tool_call_id": "c1", "name": "find", "content": "Unknown action find"}]
    (trace,), _ = load(tmp_path / "m.json", [attempt(traj=traj)])
    assert trace.steps[2].tool_calls[0].validity == "unknown_tool"
    assert trace.steps[2].results[0].outcome == "error"


def test_one_bad_attempt_loses_one(tmp_path: Path) -> None:
    text = f"[\n{json.dumps(attempt())},\n7,\n{json.dumps(attempt(trial=3))}\n]"
    traces, report = load(tmp_path / "m.json", None, text=text)
    assert [t.attempt for t in traces] == [2, 3]
    (skip,) = report.skipped
    assert (skip.line, skip.bytes) == (3, 1)
    assert "found a number" in skip.why


def test_equal_attempts_are_both_kept(tmp_path: Path) -> None:
    traces, _ = load(tmp_path / "m.json", [attempt(), attempt()])
    assert len({t.id for t in traces}) == 2


@pytest.mark.parametrize("reader", [TAU_BENCH, TAU2])
def test_a_torn_file_names_file_line_and_what_was_expected(tmp_path: Path, reader: Any) -> None:
    path = tmp_path / "torn.json"
    path.write_text('{\n "info": {},\n "simulations": [{\n')
    with pytest.raises(FormatError) as caught:
        list(reader.read(path, Log(str(path))))
    assert caught.value.file == str(path)
    assert caught.value.line in (3, 4)
    assert "expected a" in caught.value.message


def run(**changes: Any) -> dict[str, Any]:
    user_call = {"id": "u1", "name": "toggle", "arguments": {}, "requestor": "user"}
    messages = [
        {"role": "assistant", "content": "Hi!", "turn_idx": 0},
        {"role": "user", "content": "help", "tool_calls": [user_call], "timestamp": "2025-01-01T00:00:01"},
        {
            "role": "assistant",
            "content": None,
            "cost": 0.5,
            "usage": {"prompt_tokens": 7, "completion_tokens": 2},
            "tool_calls": [{"id": "c1", "name": "find", "arguments": {"a": 1}, "requestor": "assistant"}],
        },
        {"role": "tool", "id": "c1", "content": "{}", "error": False, "requestor": "assistant"},
    ]
    simulation = {
        "id": "sim-1",
        "task_id": "t1",
        "trial": 1,
        "messages": messages,
        "duration": 9.5,
        "agent_cost": 0.25,
        "user_cost": 0.1,
        "termination_reason": "user_stop",
        "reward_info": {"reward": 1.0},
        "novel": "kept",
    } | changes
    return {
        "timestamp": "2025-01-01T00:00:00",
        "info": {
            "git_commit": "abc",
            "num_trials": 1,
            "user_info": {"implementation": "user_simulator", "llm": "sim-model"},
            "agent_info": {"implementation": "llm_agent", "llm": "agent-model", "llm_args": {"t": 0}},
            "environment_info": {"domain_name": "telecom", "policy": "be kind"},
        },
        "tasks": [{"id": "t1", "ticket": "x"}],
        "simulations": [simulation],
    }


def test_a_tau2_simulation(tmp_path: Path) -> None:
    (trace,), report = load(tmp_path / "r.json", run())
    assert report.format == "tau2"
    assert (trace.id, trace.model, trace.attempt) == ("sim-1", "agent-model", 1)
    assert (trace.agent.name, trace.agent.version, trace.agent.extra) == ("llm_agent", "abc", {"llm_args": {"t": 0}})
    assert trace.extra["simulator"] == "sim-model"
    assert trace.extra["environment"]["policy"] == "be kind"
    assert trace.extra["task"] == {"id": "t1", "ticket": "x"}
    assert trace.extra["novel"] == "kept"
    assert (trace.totals.wall, trace.totals.usage.cost_usd, trace.totals.usage.input_tokens) == (9.5, 0.25, 7)
    agent, user, calling = trace.steps
    assert (agent.event_class, user.event_class, user.time) == ("agent", "simulated_user", 1735689601.0)
    assert user.tool_calls == ()
    assert user.extra["user_tool_calls"][0]["name"] == "toggle"
    assert calling.results[0].outcome == "ok"
    assert calling.usage is not None
    assert calling.usage.cost_usd == 0.5


@pytest.mark.parametrize(
    ("reason", "reward", "status"),
    [
        ("user_stop", 1.0, "passed"),
        ("user_stop", 0.0, "failed"),
        ("agent_stop", None, "unscored"),
        ("max_steps", 0.0, "timeout"),
        ("too_many_errors", 0.0, "error_agent"),
        ("agent_error", None, "error_agent"),
        ("user_error", 0.0, "error_infra"),
        ("infrastructure_error", None, "error_infra"),
    ],
)
def test_tau2_endings(tmp_path: Path, reason: str, reward: float | None, status: str) -> None:
    value = run(termination_reason=reason, reward_info=None if reward is None else {"reward": reward})
    (trace,), _ = load(tmp_path / "r.json", value)
    assert trace.outcome is not None
    assert trace.outcome.status == status
    assert trace.outcome.extra["termination_reason"] == reason


def test_a_number_that_is_not_finite_is_repaired_and_noted(tmp_path: Path) -> None:
    text = json.dumps(run(agent_cost=float("nan")))
    (trace,), report = load(tmp_path / "r.json", None, text=text)
    assert trace.totals.usage.cost_usd == 0.5
    assert any("not finite" in s.why and s.noted for s in report.skipped)
