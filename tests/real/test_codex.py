"""Codex rollouts: what comes out of the reader is what counting raw lines with plain JSON says."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from seatrial.ingest import Memory, read_file
from seatrial.records import FileReport, Trace

pytestmark = pytest.mark.real

CALLS = {"function_call", "custom_tool_call", "web_search_call", "tool_search_call", "local_shell_call"}
EXIT = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d+)", re.MULTILINE)


def files(data: Path) -> list[Path]:
    found = sorted((data / "sessions" / "codex").rglob("*.jsonl"))
    assert len(found) >= 10
    return found


def raw(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().split(b"\n") if line.strip()]


def load(path: Path) -> tuple[list[Trace], FileReport]:
    reading = read_file(path)
    return list(reading), reading.report


def code_of(output: Any) -> int | None:
    """Exit code in the header of an output, the part before its body."""
    found = EXIT.search(str(output).split("Output:\n", 1)[0])
    return int(found.group(1)) if found else None


def test_every_byte_is_kept(data: Path) -> None:
    for path in files(data):
        traces, report = load(path)
        assert (report.format, report.status, len(traces)) == ("codex", "kept", 1)
        assert (report.kept_bytes, report.skipped_bytes) == (path.stat().st_size, 0)
        assert sum(report.records.values()) == len(raw(path))


def test_human_turns_are_those_that_were_typed(data: Path) -> None:
    """The interface logs what was typed as events of their own: an independent list of the human turns."""
    for path in files(data):
        (trace,), _ = load(path)
        typed = [r["payload"]["message"] for r in raw(path) if r["payload"].get("type") == "user_message"]
        said = [step.text for step in trace.steps if step.event_class == "human"]
        assert [" ".join(text.split()) for text in said] == [" ".join(text.split()) for text in typed]
        aborted = sum(r["payload"].get("type") == "turn_aborted" for r in raw(path))
        assert sum(step.event_class == "interrupted" for step in trace.steps) == aborted


def test_calls_results_and_exit_codes(data: Path) -> None:
    for path in files(data):
        (trace,), _ = load(path)
        items = [r["payload"] for r in raw(path) if r["type"] == "response_item"]
        calls = [(p.get("name") or p["type"].removesuffix("_call")) for p in items if p["type"] in CALLS]
        assert [call.name for step in trace.steps for call in step.tool_calls] == calls
        results = [result for step in trace.steps for result in step.results]
        assert all(result.call_id is not None for result in results)
        outputs = {p["call_id"]: p.get("output") for p in items if p["type"].endswith("_output")}
        codes = {result.call_id: result.exit_code for result in results if result.call_id in outputs}
        assert codes == {call_id: code_of(output) for call_id, output in outputs.items()}
        failed = {result.call_id for result in results if result.outcome == "error"}
        refused = {c for c, output in outputs.items() if str(output).startswith("apply_patch verification failed")}
        ends = [r["payload"] for r in raw(path) if r["payload"].get("type") == "mcp_tool_call_end"]
        refused |= {e["call_id"] for e in ends if "Err" in e["result"] or e["result"]["Ok"].get("isError")}
        assert failed == {c for c, output in outputs.items() if code_of(output) not in (None, 0)} | refused
        stopped = {result.call_id for result in results if result.outcome == "interrupted"}
        assert stopped == {c for c, output in outputs.items() if str(output).startswith("aborted by user")}


def test_results_are_with_the_step_that_called(data: Path) -> None:
    for path in files(data):
        (trace,), _ = load(path)
        for step in trace.steps:
            assert {result.call_id for result in step.results} <= {call.id for call in step.tool_calls}


def test_tokens_add_up_to_the_last_running_total(data: Path) -> None:
    for path in files(data):
        (trace,), _ = load(path)
        counts = [r["payload"]["info"] for r in raw(path) if r["payload"].get("type") == "token_count"]
        last = counts[-1]["total_token_usage"]
        usage = trace.totals.usage
        assert (usage.input_tokens, usage.output_tokens) == (last["input_tokens"], last["output_tokens"])
        assert usage.cached_tokens == last["cached_input_tokens"]
        steps = [step.usage for step in trace.steps if step.usage is not None]
        assert sum(u.input_tokens or 0 for u in steps) == last["input_tokens"]
        assert sum(u.extra["reasoning_output_tokens"] for u in steps) == last["reasoning_output_tokens"]
        changes = sum(a != b for a, b in zip([None, *counts], counts, strict=False))
        assert len(steps) <= changes


def test_models_words_and_times(data: Path) -> None:
    for path in files(data):
        (trace,), _ = load(path)
        records = raw(path)
        named = {r["payload"]["model"] for r in records if r["type"] == "turn_context"}
        assert {step.model for step in trace.steps if step.event_class == "agent"} <= named
        items = [r["payload"] for r in records if r["type"] == "response_item"]
        said = [p["content"][0]["text"] for p in items if p["type"] == "message" and p["role"] == "assistant"]
        kept = "\n\n".join(step.text for step in trace.steps if step.event_class == "agent" and step.text)
        assert kept == "\n\n".join(said)
        times = [step.time for step in trace.steps]
        assert None not in times
        assert times == sorted(times, key=lambda t: t or 0)
        meta = records[0]["payload"]
        assert (trace.id, trace.agent.version) == (meta["id"], meta["cli_version"])


def test_a_fork_of_a_real_session_counts_the_parents_turns_once(data: Path, tmp_path: Path) -> None:
    """A fork as Codex writes it: own header, the parent's records stamped anew, then its own turns."""
    parent = files(data)[3]
    records = raw(parent)
    stamp = "2026-12-01T00:00:00.000Z"
    own = {"id": "01b0d000-0000-7000-8000-000000000001", "forked_from_id": records[0]["payload"]["id"]}
    header = {"timestamp": stamp, "type": "session_meta", "payload": records[0]["payload"] | own}
    turn = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "and now?"}]}
    answer = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]}
    total = [r["payload"]["info"]["total_token_usage"] for r in records if r["payload"].get("type") == "token_count"]
    more = {name: count + 10 for name, count in total[-1].items()}
    count = {"type": "token_count", "info": {"total_token_usage": more, "last_token_usage": more}}
    new = [
        {"timestamp": stamp, "type": "response_item", "payload": turn},
        {"timestamp": stamp, "type": "response_item", "payload": answer},
        {"timestamp": stamp, "type": "event_msg", "payload": count},
    ]
    fork = tmp_path / "rollout-fork.jsonl"
    lines = [header, *(r | {"timestamp": stamp} for r in records), *new]
    fork.write_text("\n".join(json.dumps(line) for line in lines))
    seen = Memory()
    (first,) = read_file(parent, seen=seen)
    (second,) = read_file(fork, seen=seen)
    assert second.continues == first.id
    copied = Counter(step.event_class for step in second.steps if step.copied)
    assert copied == Counter(step.event_class for step in first.steps)
    assert [step.text for step in second.steps if not step.copied] == ["and now?", "done"]
    assert second.totals.usage.input_tokens == 10
    (alone,) = read_file(fork)
    assert alone.totals.usage.input_tokens is not None
