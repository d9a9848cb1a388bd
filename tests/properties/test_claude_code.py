"""Whatever happens to a session file, the reader neither breaks nor loses count of a byte."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seatrial import ingest
from seatrial.canon import canonical
from seatrial.ingest.claude_code.speech import said
from seatrial.records import FileReport, Trace

ODD: tuple[Any, ...] = (None, True, 0, -1, 1e300, "12", "", [], [None], {}, {"type": 1}, [[["x"]]], "\u2028", 2**70)


def _session() -> list[dict[str, Any]]:
    """A session with a bit of everything."""
    n = 0

    def record(type: str, **fields: Any) -> dict[str, Any]:
        nonlocal n
        n += 1
        when = f"2026-01-01T00:00:{n:02}.000Z"
        return {"parentUuid": f"u{n - 1}", "sessionId": "s", "type": type, "uuid": f"u{n}", "timestamp": when, **fields}

    def agent(id: str, *blocks: dict[str, Any], **fields: Any) -> dict[str, Any]:
        usage = {"input_tokens": 3, "cache_read_input_tokens": 10, "output_tokens": 4}
        message = {"role": "assistant", "id": id, "model": "model-a", "content": list(blocks), "usage": usage}
        return record("assistant", message=message, **fields)

    def user(content: Any, **fields: Any) -> dict[str, Any]:
        return record("user", message={"role": "user", "content": content}, **fields)

    call = {"type": "tool_use", "id": "t1", "name": "Task", "input": {"prompt": "p", "n": [1, {"a": None}]}}
    answer = [{"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "ok"}]}]
    refusal = "The user doesn't want to proceed with this tool use. the user said:\nnot that"
    return [
        {"type": "summary", "summary": "About", "leafUuid": "x"},
        user("<system-reminder>r</system-reminder>\nFix “it” é\u2028"),
        agent("m1", {"type": "thinking", "thinking": "hm"}),
        agent("m1", {"type": "text", "text": "Look"}, call),
        user("p", isSidechain=True, parentUuid=None),
        record(
            "progress",
            data={"type": "agent_progress", "agentId": "a1", "message": user("p")},
            parentToolUseID="t1",
        ),
        user(answer, toolUseResult={"agentId": "a1", "interrupted": False, "stderr": "w"}),
        record("queue-operation", operation="enqueue", content="hurry"),
        user([{"type": "tool_result", "tool_use_id": "t9", "content": refusal, "is_error": True}]),
        user([{"type": "text", "text": "[Request interrupted by user]"}, {"type": "image", "source": {}}]),
        agent("m2", {"type": "text", "text": "API Error"}, isApiErrorMessage=True),
        record("system", subtype="stop_hook_summary", content="hook", hookErrors=["e"]),
        record("attachment", attachment={"type": "queued_command", "prompt": "hurry"}),
        user("no, wrong", isCompactSummary=True),
        {"type": "file-history-snapshot", "messageId": "m", "snapshot": {}},
        record("novel", anything=[1]),
    ]


LINES = [json.dumps(r, ensure_ascii=False).encode() + b"\n" for r in _session()]


def _read(folder: Path, data: bytes) -> tuple[list[Trace], FileReport]:
    path = folder / "s.jsonl"
    path.write_bytes(data)
    reading = ingest.read_file(path, format="claude-code")
    traces = list(reading)
    return traces, reading.report


def _sound(traces: list[Trace], report: FileReport, data: bytes) -> None:
    assert report.kept_bytes + report.skipped_bytes == report.n_bytes == len(data)
    assert sum(skip.bytes for skip in report.skipped) == report.skipped_bytes
    assert not any("broke" in skip.why or "did not account" in skip.why for skip in report.skipped)
    assert len({trace.id for trace in traces}) == len(traces)
    for trace in traces:
        assert [step.index for step in trace.steps] == list(range(len(trace.steps)))
        canonical(trace)


@st.composite
def _paths(draw: st.DrawFn) -> tuple[int, list[Any], Any]:
    """A record, a way into it, and an odd value to put there."""
    at = draw(st.integers(0, len(LINES) - 1))
    value, way = _session()[at], []
    while isinstance(value, (dict, list)) and value and (not way or draw(st.booleans())):
        key = draw(st.sampled_from(sorted(value) if isinstance(value, dict) else list(range(len(value)))))
        way.append(key)
        value = value[key]
    return at, way, draw(st.sampled_from(ODD))


common = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@common
@given(mutations=st.lists(_paths(), min_size=1, max_size=4))
def test_values_of_any_type_anywhere(tmp_path: Path, mutations: list[tuple[int, list[Any], Any]]) -> None:
    records: list[Any] = _session()
    for at, way, odd in mutations:
        place = records[at]
        try:
            for key in way[:-1]:
                place = place[key]
            place[way[-1]] = odd
        except (KeyError, IndexError, TypeError):
            continue  # an earlier mutation removed the way
    data = b"".join(json.dumps(r).encode() + b"\n" for r in records)
    traces, report = _read(tmp_path, data)
    _sound(traces, report, data)
    assert report.skipped_bytes == 0


@common
@given(
    order=st.lists(st.integers(0, len(LINES) - 1), max_size=30),
    cut=st.integers(0, 400),
    glue=st.sets(st.integers(0, 29)),
)
def test_lines_repeated_reordered_glued_and_cut(tmp_path: Path, order: list[int], cut: int, glue: set[int]) -> None:
    data = b"".join(LINES[k].rstrip(b"\n") if i in glue else LINES[k] for i, k in enumerate(order))
    data = data[: max(len(data) - cut, 0)]
    traces, report = _read(tmp_path, data)
    _sound(traces, report, data)
    cut_line = data[data.rfind(b"\n") + 1 :]
    assert report.skipped_bytes <= len(cut_line)


@common
@given(
    damage=st.lists(st.tuples(st.integers(0, 10**6), st.binary(min_size=0, max_size=6)), min_size=1, max_size=8),
)
def test_bytes_overwritten_anywhere(tmp_path: Path, damage: list[tuple[int, bytes]]) -> None:
    data = bytearray(b"".join(LINES))
    for at, garbage in damage:
        at %= len(data)
        data[at : at + len(garbage)] = garbage
    traces, report = _read(tmp_path, bytes(data))
    _sound(traces, report, bytes(data))
    lost = {skip.line for skip in report.skipped if not skip.noted}
    assert len(lost) <= sum(len(garbage) + 1 for _, garbage in damage)


@common
@given(data=st.binary(max_size=400))
def test_any_bytes_at_all(tmp_path: Path, data: bytes) -> None:
    traces, report = _read(tmp_path, data)
    _sound(traces, report, data)


@given(words=st.text(max_size=60), before=st.booleans(), after=st.booleans())
def test_a_humans_words_survive_reminders_around_them(words: str, before: bool, after: bool) -> None:
    reminder = "<system-reminder>no, that is wrong</system-reminder>"
    typed = "do: " + words.strip() + "."
    (got,) = said((reminder if before else "") + typed + (reminder if after else ""))
    assert (got.event_class, got.text) == ("human", typed)


@pytest.mark.real
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(draw=st.data())
def test_real_sessions_damaged(tmp_path: Path, data: Path, draw: st.DataObject) -> None:
    files = sorted((data / "sessions" / "claude-code").rglob("*.jsonl"))
    if not files:
        pytest.skip("real Claude Code sessions not found")
    whole = draw.draw(st.sampled_from(files)).read_bytes()
    start = draw.draw(st.integers(0, max(len(whole) - 1, 0)))
    piece = bytearray(whole[start : start + 60_000])
    for at in draw.draw(st.lists(st.integers(0, max(len(piece) - 1, 0)), max_size=20)):
        piece[at] = draw.draw(st.sampled_from(b'\n"{}[],:0x\\\x00\xff'))
    traces, report = _read(tmp_path, bytes(piece))
    _sound(traces, report, bytes(piece))
