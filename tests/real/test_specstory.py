"""SpecStory histories: turns counted against the raw files, and nothing of a tool in a person's mouth."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from seatrial.ingest import Memory, read_file
from seatrial.records import Trace

pytestmark = pytest.mark.real

_USER = re.compile(r"(?m)^_\*\*User.*\*\*_$")


def histories(data: Path) -> list[Path]:
    found = sorted((data / "sessions" / "specstory").rglob("*.md"))
    assert len(found) == 57
    return found


def load(path: Path) -> list[Trace]:
    reading = read_file(path)
    traces = list(reading)
    assert reading.report.format == "specstory"
    assert reading.report.kept_bytes == path.stat().st_size
    return traces


def test_every_human_turn_is_found_once(data: Path) -> None:
    total = 0
    for path in histories(data):
        (trace,) = load(path)
        turns = [step for step in trace.steps if step.event_class == "human"]
        assert len(turns) == len(_USER.findall(path.read_bytes().decode()))
        total += len(turns)
    assert total == 636


def test_human_text_is_the_text_between_two_turns(data: Path) -> None:
    for path in histories(data):
        pieces = re.split(r"(?m)^_\*\*(User|Assistant)[^\n]*\*\*_$", path.read_bytes().decode())
        raw = [
            re.sub(r"\n---\s*\Z", "", f"{text.rstrip()}\n").strip()
            for role, text in zip(pieces[1::2], pieces[2::2], strict=True)
            if role == "User"
        ]
        (trace,) = load(path)
        assert [s.text for s in trace.steps if s.event_class == "human"] == ["" if t == "---" else t for t in raw]


def test_tools_named_in_the_file_are_calls(data: Path) -> None:
    for path in histories(data):
        named = Counter(re.findall(r"(?m)^Tool use: \*\*([^*\n]+)\*\*", path.read_bytes().decode()))
        (trace,) = load(path)
        calls = Counter(call.name for step in trace.steps for call in step.tool_calls)
        assert not named - calls


def test_no_tool_block_is_left_in_what_the_agent_said(data: Path) -> None:
    said = [s.text for path in histories(data) for t in load(path) for s in t.steps if s.event_class == "agent"]
    left = [text for text in said if re.search(r"(?m)^(Tool use: \*\*|<tool-use|<think>|<details>)", text)]
    assert len(said) > 3000
    assert len(left) <= 1


def test_commands_have_their_output(data: Path) -> None:
    path = data / "sessions" / "specstory" / "chef-chopsky" / "8d6b02be73cd.md"
    (trace,) = load(path)
    step = next(s for s in trace.steps if any("/health" in str(c.arguments.get("command")) for c in s.tool_calls))
    (result,) = step.results
    assert result.text.startswith('{"status":"ok"')
    assert result.outcome == "unknown"
    assert trace.agent.name == "cursor"
    assert trace.id == "e8804c56-70be-431f-8dd8-ad2b3e757a5b"


def test_an_unnamed_model_is_no_model(data: Path) -> None:
    assert {t.model for path in histories(data) for t in load(path)} == {None}


def test_a_session_saved_twice_is_counted_once(data: Path) -> None:
    seen = Memory()
    traces = [t for path in histories(data) for t in read_file(path, seen=seen)]
    assert len({t.id for t in traces}) == len(traces) == 57
    by_session: dict[str, list[str]] = {}
    for trace in traces:
        for step in trace.steps:
            if step.event_class == "human" and not step.copied:
                by_session.setdefault(trace.id.partition("~")[0], []).append(step.text)
    assert sum(map(len, by_session.values())) < 636
