"""Real Claude Code sessions and the trap files, against answers worked out without the reader."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from seatrial import ingest
from seatrial.ingest.claude_code import READER
from seatrial.records import FileReport, Trace

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def sessions(data: Path) -> dict[str, tuple[list[Trace], FileReport]]:
    folder = data / "sessions" / "claude-code"
    if not folder.is_dir():
        pytest.skip("real Claude Code sessions not found")
    out = {}
    for path in ingest.scan([folder]):
        reading = ingest.read_file(path)
        out[str(path.relative_to(data))] = (list(reading), reading.report)
    return out


def _objects(path: Path) -> Iterator[dict[str, Any]]:
    """Every JSON object of a file, by the standard library, glued ones included."""
    decoder = json.JSONDecoder()
    for line in path.read_bytes().decode("utf-8").split("\n"):
        at = 0
        while at < len(line.rstrip()):
            value, at = decoder.raw_decode(line, at)
            yield value


def _blocks(record: dict[str, Any]) -> list[dict[str, Any]]:
    content = record["message"].get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else content or []


def test_every_byte_of_every_file_is_accounted_for(
    data: Path, sessions: dict[str, tuple[list[Trace], FileReport]]
) -> None:
    assert len(sessions) == 86
    for name, (_, report) in sessions.items():
        assert report.kept_bytes + report.skipped_bytes == report.n_bytes == (data / name).stat().st_size
        assert (report.status, report.format, report.skipped_bytes) == ("kept", "claude-code", 0)
        n_records = sum(1 for _ in _objects(data / name))
        assert sum(report.records.values()) == n_records


def test_findings_are_the_two_glued_lines_and_nothing_else(
    sessions: dict[str, tuple[list[Trace], FileReport]],
) -> None:
    found = {(name, s.line) for name, (_, report) in sessions.items() for s in report.skipped}
    assert found == {
        ("sessions/claude-code/cli/2b6f40f5e0e9.jsonl", 115),
        ("sessions/claude-code/cli/26358a69e666.jsonl", 128),
    }


def test_counts_agree_with_the_index(data: Path, sessions: dict[str, tuple[list[Trace], FileReport]]) -> None:
    """The index counts every flagged result as an error, and as a user turn all that is not a wrapper or meta."""
    index = {row["file"]: row for row in json.loads((data / "sessions" / "index.json").read_text())}
    for name, (traces, _) in sessions.items():
        steps = [step for trace in traces if trace.parent is None for step in trace.steps]
        outcomes = Counter(result.outcome for step in steps for result in step.results)
        assert outcomes["error"] + outcomes["rejected"] + outcomes["interrupted"] == index[name]["tool_errors"]
        models = {step.model for step in steps if step.model is not None}
        assert models == set(index[name]["models"]) - {"<synthetic>"}
        typed = sum(step.event_class == "human" and step.kind is None for step in steps)
        others = sum(
            step.event_class == "interrupted"
            or (step.event_class == "harness" and step.kind in ("plan", "hook", "reminder") and step.text != "")
            or step.text.startswith("<bash-")
            for step in steps
        )
        assert typed + others == index[name]["user_turns"], name


def test_messages_calls_results_and_tokens_agree_with_a_plain_count(
    data: Path, sessions: dict[str, tuple[list[Trace], FileReport]]
) -> None:
    for name, (traces, _) in sessions.items():
        usage: dict[str, dict[str, int]] = {}
        calls, results, own, inner = set(), [], set(), set()
        for record in _objects(data / name):
            if record["type"] == "progress" and record["data"]["type"] == "agent_progress":
                inner.add(record["data"]["agentId"])
            if record["type"] not in ("user", "assistant"):
                continue
            for block in _blocks(record):
                if block["type"] == "tool_use":
                    calls.add(block["id"])
                elif block["type"] == "tool_result":
                    results.append(block["tool_use_id"])
            if record["type"] == "assistant" and record["message"]["model"] != "<synthetic>":
                own.add(record["message"]["id"])
                usage[record["message"]["id"]] = record["message"]["usage"]
        (main,) = [trace for trace in traces if trace.parent is None]
        agent = [step for step in main.steps if step.event_class == "agent"]
        assert len(agent) == len(own)
        assert {call.id for step in agent for call in step.tool_calls} == calls
        assert sorted(str(r.call_id) for step in main.steps for r in step.results) == sorted(results)
        keys = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
        assert main.totals.usage.input_tokens == sum(u.get(k) or 0 for u in usage.values() for k in keys)
        assert main.totals.usage.output_tokens == sum(u["output_tokens"] for u in usage.values())
        subs = [trace for trace in traces if trace.parent is not None]
        assert {trace.id.split(":")[-1] for trace in subs} == inner
        assert all(trace.parent == main.id and trace.parent_call in calls for trace in subs)
        linked = {child for step in main.steps for r in step.results for child in r.subagents}
        assert {trace.id for trace in subs if trace.parent_call in results} <= linked


def test_records_that_two_files_share_count_once(data: Path) -> None:
    """A record is its uuid: distinct uuids of agent messages, over all files, by a plain count."""
    folder = data / "sessions" / "claude-code"
    if not folder.is_dir():
        pytest.skip("real Claude Code sessions not found")
    usage: dict[str, int] = {}
    for path in ingest.scan([folder]):
        for record in _objects(path):
            if record["type"] == "assistant" and record["message"]["model"] != "<synthetic>":
                usage.setdefault(record["message"]["id"], 0)
                usage[record["message"]["id"]] = record["message"]["usage"]["output_tokens"]
    main = [trace for trace in ingest.read(folder) if trace.parent is None]
    assert len({trace.id for trace in main}) == len(main) == 86
    counted = [step for trace in main for step in trace.steps if step.event_class == "agent" and not step.copied]
    copied = [step for trace in main for step in trace.steps if step.copied]
    assert len(counted) == len(usage)
    assert copied
    assert sum(trace.totals.usage.output_tokens or 0 for trace in main) == sum(usage.values())


def test_other_agents_files_are_not_taken_for_claude_codes(data: Path) -> None:
    others = ingest.scan([data / "sessions" / name for name in ("codex", "copilot-cli", "specstory")])
    assert others
    for path in others:
        with path.open("rb") as stream:
            assert READER.sniff(path, stream.read(65536)) == 0.0


@pytest.fixture(scope="module")
def traps(data: Path) -> Path:
    folder = data / "traps" / "claude-code"
    if not folder.is_dir():
        pytest.skip("trap files not found")
    return folder


def _human(trace: Trace) -> list[str]:
    return [step.text for step in trace.steps if step.event_class == "human"]


def test_the_first_trap_has_every_answer(traps: Path) -> None:
    reading = ingest.read_file(traps / "s.jsonl")
    main, sub = list(reading)
    assert _human(main) == ["Fix the failing test", "no, that's not right. use make clean", "perfect, thanks!"]
    assert main.steps[2].extra == {"stripped": ["<system-reminder>ctx</system-reminder>"]}
    assert [step.kind for step in main.steps if step.event_class == "harness"] == [
        "meta",
        "command",
        "api_error",
        "compact_summary",
        "task_notification",
        "hook",
    ]
    interrupted = [step.index for step in main.steps if step.event_class == "interrupted"]
    assert [main.steps[i + 1].text for i in interrupted] == ["no, that's not right. use make clean"]
    results = {r.call_id: r for step in main.steps for r in step.results}
    assert {k: (r.outcome, r.exit_code) for k, r in results.items()} == {
        "t1": ("error", 1),
        "t2": ("rejected", None),
        "t3": ("error", 126),
        "t4": ("ok", None),
    }
    assert results["t4"].subagents == (sub.id,)
    assert (sub.parent, sub.parent_call) == (main.id, "t4")
    assert [(s.event_class, s.text) for s in sub.steps] == [("harness", "sub prompt"), ("agent", "sub answer")]
    assert {step.model for step in main.steps} == {None, "claude-opus-4-5"}
    answers = json.loads((traps.parent / "answers.json").read_text())["claude-code/s.jsonl"]
    assert main.totals.usage.input_tokens == answers["tokens_input_main_chain"] == 500
    harness = main.totals.extra["harness_usage"].input_tokens
    assert main.totals.usage.input_tokens + harness == answers["with_synthetic"] == 600
    merged = next(step for step in main.steps if step.event_class == "agent")
    assert (merged.reasoning, merged.text, [c.id for c in merged.tool_calls]) == ("hmm", "Let me look", ["t1"])
    assert merged.usage is not None
    assert merged.usage.output_tokens == 50
    (torn,) = reading.report.skipped
    assert (torn.line, torn.bytes, torn.noted) == (25, 54, False)
    assert sum(reading.report.records.values()) == 24


def test_the_last_human_turn_and_a_line_separator_survive(traps: Path) -> None:
    (second,) = ingest.read(next(traps.glob("proj2_*.jsonl")))
    assert _human(second) == ["Fix the test", "perfect, thanks!"]
    (third,) = ingest.read(next(traps.glob("proj3_*.jsonl")))
    assert _human(third) == ["Here:\u2028TypeError \x85 x"]


def test_unrelated_sessions_whose_uuids_collide_are_no_copies(traps: Path) -> None:
    traces = list(ingest.read(traps))
    assert len(traces) == 4
    assert not any(step.copied for trace in traces for step in trace.steps)
