"""Agents on tasks (SWE-agent, mini-swe-agent, OpenHands) and Gemini CLI: counts against plain JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from seatrial.ingest import read_file
from seatrial.records import FileReport, Trace

pytestmark = pytest.mark.real


def load(path: Path) -> tuple[list[Trace], FileReport]:
    reading = read_file(path)
    traces = list(reading)
    assert reading.report.status == "kept"
    assert (reading.report.kept_bytes, reading.report.skipped_bytes) == (path.stat().st_size, 0)
    return traces, reading.report


def swe_agent(data: Path) -> list[Path]:
    found = sorted((data / "swe" / "swe-agent").glob("*.traj"))
    assert len(found) >= 12
    return found


def test_swe_agent_actions_and_observations(data: Path) -> None:
    for path in swe_agent(data):
        (trace,), report = load(path)
        raw = json.loads(path.read_text())
        agents = [step for step in trace.steps if step.event_class == "agent"]
        assert report.format == "swe-agent"
        assert {step.event_class for step in trace.steps} == {"harness", "agent"}
        if "trajectory" in raw:
            assert len(agents) == len(raw["trajectory"])
            assert [step.results[0].text for step in agents] == [t["observation"] for t in raw["trajectory"]]
            actions = [step.tool_calls[0].arguments.get("command", step.extra.get("action")) for step in agents]
            assert [str(a).strip() for a in actions] == [t["action"].strip() for t in raw["trajectory"]]
        else:
            assistants = [m for m in raw["history"] if m["role"] == "assistant"]
            assert [step.text for step in agents] == [m["content"] for m in assistants]
            asked = [call["id"] for m in assistants for call in m["tool_calls"]]
            assert [result.call_id for step in agents for result in step.results] == asked
        before = [m["content"] for m in raw["history"][:2]]
        assert [step.text for step in trace.steps[:2]] == before


def test_an_exit_status_is_no_verdict(data: Path) -> None:
    for path in swe_agent(data):
        (trace,), _ = load(path)
        raw = json.loads(path.read_text())
        assert trace.outcome is None
        assert trace.extra.get("info") == raw.get("info")
        stats = raw.get("info", {}).get("model_stats", {})
        assert not any(stats.get(name) for name in ("tokens_sent", "tokens_received", "instance_cost"))
        assert (trace.totals.usage.input_tokens, trace.totals.usage.cost_usd) == (None, None)


def test_mini_swe_agent(data: Path) -> None:
    paths = [
        *(data / "swe" / "mini-swe-agent").glob("*.json"),
        data / "native-examples" / "mini-swe-agent-trajectory.json",
    ]
    assert len(paths) == 3
    for path in paths:
        (trace,), report = load(path)
        raw = json.loads(path.read_text())
        messages = raw if isinstance(raw, list) else raw["messages"]
        assert report.format == "mini-swe-agent"
        agents = [step for step in trace.steps if step.event_class == "agent"]
        assert [step.text for step in agents] == [m["content"] for m in messages if m["role"] == "assistant"]
        answers = [m["content"] for m in messages[3:] if m["role"] == "user"]
        texts = [a if isinstance(a, str) else a[0]["text"] for a in answers]
        results = [result for step in agents for result in step.results]
        assert [result.text for result in results] == texts
        codes = [re.match(r"<returncode>(\d+)", text) for text in texts]
        assert [result.exit_code for result in results] == [int(c.group(1)) if c else None for c in codes]
        assert [r.outcome == "error" for r in results] == [c is not None and c.group(1) != "0" for c in codes]
        assert trace.outcome is None
        if isinstance(raw, dict):
            used = [m["extra"]["response"]["usage"] for m in messages if m["role"] == "assistant"]
            assert trace.totals.usage.input_tokens == sum(u["prompt_tokens"] for u in used)
            assert trace.totals.usage.output_tokens == sum(u["completion_tokens"] for u in used)
            assert trace.totals.usage.cost_usd == raw["info"]["model_stats"]["instance_cost"]
            assert trace.agent.version == raw["info"]["mini_version"]


def test_openhands_attempts_carry_their_verdict(data: Path) -> None:
    path = data / "swe" / "openhands" / "output.jsonl"
    traces, report = load(path)
    raws = [json.loads(line) for line in path.read_bytes().split(b"\n") if line.strip()]
    assert (report.format, len(traces)) == ("openhands", len(raws))
    for trace, raw in zip(traces, raws, strict=True):
        events: list[dict[str, Any]] = raw["history"]
        acts = [e for e in events if e.get("action") in ("run", "run_ipython")]
        assert sum(len(step.tool_calls) for step in trace.steps) == len(acts)
        results = [result for step in trace.steps for result in step.results]
        seen = [e for e in events if "observation" in e]
        assert [(r.text, r.exit_code) for r in results] == [(e["content"], e.get("exit_code")) for e in seen]
        assert trace.outcome is not None
        assert (trace.outcome.status == "passed", trace.outcome.by) == (raw["success"], "success")
        assert trace.totals.usage.cost_usd == raw["metrics"]["accumulated_cost"]
        assert not any(step.event_class == "human" for step in trace.steps)


def test_openhands_events_of_a_conversation(data: Path) -> None:
    path = data / "native-examples" / "openhands_trajectory.json"
    (trace,), report = load(path)
    events = json.loads(path.read_text())
    responses = {
        e["tool_call_metadata"]["model_response"]["id"]: e["tool_call_metadata"]["model_response"]["usage"]
        for e in events
        if "tool_call_metadata" in e
    }
    assert report.format == "openhands"
    assert [step.text for step in trace.steps if step.event_class == "human"] == [events[1]["args"]["content"]]
    assert trace.totals.usage.input_tokens == sum(u["prompt_tokens"] for u in responses.values())
    assert trace.totals.usage.output_tokens == sum(u["completion_tokens"] for u in responses.values())
    costs = [e["llm_metrics"]["accumulated_cost"] for e in events if "llm_metrics" in e]
    assert trace.totals.usage.cost_usd == pytest.approx(max(costs))
    (result,) = [result for step in trace.steps for result in step.results]
    assert (result.outcome, result.exit_code, result.text) == ("ok", 0, events[5]["content"])
    assert trace.agent.version == events[0]["args"]["openhands_version"]


def test_gemini_cli(data: Path) -> None:
    path = data / "native-examples" / "gemini-cli-trajectory.json"
    (trace,), report = load(path)
    raw = json.loads(path.read_text())
    tokens = [m["tokens"] for m in raw["messages"] if m["type"] == "gemini"]
    assert (report.format, trace.id) == ("gemini-cli", raw["sessionId"])
    assert [step.text for step in trace.steps] == [m["content"] for m in raw["messages"]]
    assert [step.event_class for step in trace.steps] == ["human", "agent"]
    assert trace.totals.usage.input_tokens == sum(t["input"] for t in tokens)
    assert trace.totals.usage.output_tokens == sum(t["output"] + t["thoughts"] for t in tokens)
    assert trace.steps[1].model == "gemini-2.0-flash"
