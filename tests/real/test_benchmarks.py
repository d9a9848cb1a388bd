"""tau-bench and tau2 result files: published pass rates come out of the traces as they do of the raw files."""

from __future__ import annotations

import json
from collections import defaultdict
from fractions import Fraction
from itertools import combinations
from math import comb
from pathlib import Path
from typing import Any

import pytest

from seatrial.ingest import read, read_file
from seatrial.records import FileReport, Trace

pytestmark = pytest.mark.real

AIRLINE = {
    "qwen2.5-7b": (0.18, "gpt-4.1-2025-04-14"),
    "gpt-4o": (0.46, "azure/gpt-4o-2024-11-20"),
    "gpt-4.1-mini-toolorchestra": (0.56, "gpt-4.1-2025-04-14"),
    "claude-sonnet-4-5": (0.72, "gpt-4.1"),
}


def load(path: Path) -> tuple[list[Trace], FileReport]:
    reading = read_file(path)
    return list(reading), reading.report


def by_task(pairs: list[tuple[str, bool]]) -> dict[str, list[bool]]:
    tasks: dict[str, list[bool]] = defaultdict(list)
    for task, passed in pairs:
        tasks[task].append(passed)
    return tasks


def of_traces(traces: list[Trace]) -> dict[str, list[bool]]:
    return by_task([(str(t.task.id), t.outcome is not None and t.outcome.status == "passed") for t in traces])


def pass_hat(tasks: dict[str, list[bool]], k: int) -> float:
    """Mean over tasks of C(c, k) / C(n, k), the benchmark's own formula."""
    shares = [Fraction(comb(sum(t), k), comb(len(t), k)) for t in tasks.values()]
    return float(sum(shares) / len(shares))


def pass_hat_by_enumeration(tasks: dict[str, list[bool]], k: int) -> float:
    """The share of k-subsets of a task's trials that all passed, counted one by one."""
    shares = [sum(map(all, subsets)) / len(subsets) for t in tasks.values() if (subsets := [*combinations(t, k)])]
    return sum(shares) / len(shares)


def test_tau_bench_reproduces_the_published_pass_rates(data: Path) -> None:
    path = data / "tau-bench" / "gpt-4o-airline.json"
    traces, report = load(path)
    raw = by_task([(str(r["task_id"]), r["reward"] == 1) for r in json.loads(path.read_text())])
    tasks = of_traces(traces)
    assert tasks == raw
    for k, published in enumerate((0.420, 0.273, 0.220, 0.200), 1):
        assert pass_hat(tasks, k) == pytest.approx(published, abs=5e-4)
        assert pass_hat_by_enumeration(raw, k) == pytest.approx(pass_hat(tasks, k), abs=1e-12)
    assert (report.format, report.traces, report.kept_bytes) == ("tau-bench", 200, path.stat().st_size)
    assert {t.attempt for t in traces} == {0, 1, 2, 3}
    assert {t.model for t in traces} == {"gpt-4o"}
    assert len({t.id for t in traces}) == 200


def test_nobody_in_a_benchmark_is_human(data: Path) -> None:
    for path in [data / "tau-bench" / "gpt-4o-airline.json", *sorted((data / "tau2").rglob("*.json"))]:
        for trace in read(path):
            classes = {step.event_class for step in trace.steps}
            assert classes <= {"agent", "simulated_user", "harness"}
            assert not any("###" in step.text for step in trace.steps if step.event_class == "simulated_user")


def test_every_message_and_result_of_tau_bench_is_in_its_place(data: Path) -> None:
    path = data / "tau-bench" / "gpt-4o-airline.json"
    for raw, trace in zip(json.loads(path.read_text()), read(path), strict=True):
        spoken = [m for m in raw["traj"] if m["role"] != "tool"]
        assert len(trace.steps) == len(spoken)
        assert trace.steps[0].kind == "system_prompt"
        assert trace.steps[0].event_class == "harness"
        results = [(r.call_id, r.text) for s in trace.steps for r in s.results]
        assert results == [(m["tool_call_id"], m["content"]) for m in raw["traj"] if m["role"] == "tool"]
        for step in trace.steps:
            calls = {c.id for c in step.tool_calls}
            assert {r.call_id for r in step.results} <= calls
            assert not step.tool_calls or step.event_class == "agent"
            assert all(c.validity != "invalid" for c in step.tool_calls)


@pytest.mark.parametrize("name", AIRLINE)
def test_tau2_airline_reproduces_the_published_pass_rates(data: Path, name: str) -> None:
    path = data / "tau2" / "airline" / f"{name}.json"
    traces, report = load(path)
    published, simulator = AIRLINE[name]
    tasks = of_traces(traces)
    assert len(tasks) == 50
    assert pass_hat(tasks, 1) == pytest.approx(published)
    assert {t.extra["simulator"] for t in traces} == {simulator}
    assert {t.task.suite for t in traces} == {"tau2/airline"}
    assert (report.format, report.traces, report.kept_bytes) == ("tau2", 50, path.stat().st_size)
    raw: dict[str, Any] = json.loads(path.read_text())
    assert {t.model for t in traces} == {raw["info"]["agent_info"]["llm"]}
    for simulation, trace in zip(raw["simulations"], traces, strict=True):
        assert trace.id == simulation["id"]
        assert trace.totals.wall == simulation["duration"]
        assert trace.totals.usage.cost_usd == simulation.get("agent_cost")
        assert trace.extra["task"]["id"] == trace.task.id
        errors = sum(m.get("error") is True for m in simulation["messages"])
        found = sum(r.outcome == "error" for s in trace.steps for r in s.results)
        assert found >= errors
        if all("error" in m for m in simulation["messages"] if m["role"] == "tool"):
            assert found == errors


def test_tau2_endings_are_statuses(data: Path) -> None:
    traces, _ = load(data / "tau2" / "airline" / "qwen2.5-7b.json")
    statuses = [t.outcome.status for t in traces if t.outcome is not None]
    assert {s: statuses.count(s) for s in set(statuses)} == {"passed": 9, "failed": 31, "error_agent": 10}


@pytest.mark.parametrize(("name", "published"), [("grok-3_airline", 0.4375), ("grok-3_airline_tighter_policy", 0.5625)])
def test_tau2_before_and_after_a_policy_change(data: Path, name: str, published: float) -> None:
    traces, _ = load(data / "tau2" / "policy-change" / f"{name}.json")
    assert pass_hat(of_traces(traces), 1) == pytest.approx(published)
    assert {len(t) for t in of_traces(traces).values()} == {4}
