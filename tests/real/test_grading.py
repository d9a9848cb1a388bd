"""Checks on agents that we did not write: tau2 systems and coding agents, graded mechanically (METHODS 6.2)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from seatrial.flows.grade import Graded, grade_paths

pytestmark = pytest.mark.real

SYSTEMS = ("azure/gpt-4o-2024-11-20", "claude-sonnet-4-5", "gpt-4.1-mini-2025-04-14", "ollama_chat/qwen2.5:7b")


def table(graded: Graded) -> dict[str, dict[str, tuple[int, int]]]:
    return {s.system: {m.metric: (m.passed, m.n) for m in s.result.metrics} for s in graded.systems}


@pytest.fixture(scope="module")
def airline(data: Path) -> Graded:
    return grade_paths([data / "tau2" / "airline"], max_turns=30)


def test_what_differs_between_four_systems_on_one_benchmark(airline: Graded) -> None:
    found = table(airline)
    assert tuple(found) == SYSTEMS
    assert {s: found[s]["passed"] for s in SYSTEMS} == dict(
        zip(SYSTEMS, [(23, 50), (36, 50), (28, 50), (9, 50)], strict=True)
    )
    assert {s: found[s]["no_verbatim_retries"] for s in SYSTEMS} == dict(
        zip(SYSTEMS, [(50, 50), (50, 50), (49, 50), (42, 50)], strict=True)
    )
    assert {s: found[s]["within_budget"][0] for s in SYSTEMS} == dict(zip(SYSTEMS, [50, 50, 50, 47], strict=True))
    small = found["ollama_chat/qwen2.5:7b"]["error_recovery"]
    assert small[0] / small[1] < 0.8
    assert all("required_present" not in metrics for metrics in found.values()), (
        "no task was given: nothing is required"
    )


def test_verbatim_retries_are_those_that_a_plain_reading_finds(data: Path, airline: Graded) -> None:
    """An independent count on the raw file: an error, then the same call with only failed calls in between."""
    raw = json.loads((data / "tau2" / "airline" / "qwen2.5-7b.json").read_text())
    guilty = 0
    for run in raw["simulations"]:
        failed: set[str] = set()
        names: dict[str, str] = {}
        again = False
        for message in run["messages"]:
            if message.get("role") == "assistant":
                for call in message.get("tool_calls") or []:
                    names[call["id"]] = json.dumps([call["name"], call["arguments"]], sort_keys=True)
            elif message.get("role") == "tool" and message.get("requestor", "assistant") == "assistant":
                key = names.get(message["id"], "")
                again = again or key in failed
                if message.get("error") or str(message.get("content")).startswith("Error"):
                    failed.add(key)
                else:
                    failed.clear()
        guilty += again
    assert 50 - table(airline)["ollama_chat/qwen2.5:7b"]["no_verbatim_retries"][0] == guilty


def test_reference_actions_agree_with_the_benchmarks_own_verdict(data: Path) -> None:
    """tau2 recorded for each expected action whether it was made; where it compared, we say the same."""
    from seatrial import ingest
    from seatrial.flows.grade import _task, grade_trace

    agree = n = 0
    for trace in ingest.read(data / "tau2" / "airline" / "claude-sonnet-4-5.json"):
        recorded = trace.outcome.extra["reward_info"] if trace.outcome else {}
        checks = recorded.get("action_checks") or []
        if not checks:
            continue
        task = _task(trace, None, {})
        assert task is not None
        (ours,) = [v for v in grade_trace(task, trace) if v.metric == "matches_reference"]
        agree += ours.passed is all(c["action_match"] for c in checks)
        n += 1
    assert n > 30
    assert agree / n >= 0.95


def test_coding_agents_are_graded_from_their_own_logs(data: Path) -> None:
    found = table(grade_paths([data / "swe"], by="agent"))
    assert set(found) == {"mini-swe-agent", "openhands", "swe-agent"}
    for metrics in found.values():
        assert metrics["no_verbatim_retries"][1] > 0
        assert metrics["no_invalid_args"][1] > 0
