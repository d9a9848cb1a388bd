"""Aider histories, built to the public specification."""

from __future__ import annotations

from pathlib import Path

from seatrial.ingest import read_file
from seatrial.ingest.catalogue import named
from seatrial.records import Trace

HISTORY = """
# aider chat started at 2026-10-09 10:00:00

> Aider v0.86.1\x20\x20
> Main model: gpt-x with diff edit format\x20\x20

#### add a health endpoint\x20\x20
#### and a test\x20\x20

Here it is:

```python
> not a line of the program's
#### not typed
```

#### Summary of changes
"""
REST = """> Tokens: 4.5k sent, 1.2k cache hit, 321 received. Cost: $0.02 message, $0.03 session.\x20\x20
> Applied edit to a.py\x20\x20

#### /run pytest\x20\x20

#### /ask why?\x20\x20

Because.

> ^C again to exit\x20\x20

# aider chat started at 2026-10-10 10:00:00

#### the last turn\x20\x20
"""


def load(tmp_path: Path, text: str) -> list[Trace]:
    path = tmp_path / ".aider.chat.history.md"
    path.write_text(text)
    reading = read_file(path)
    traces = list(reading)
    assert (reading.report.format, reading.report.kept_bytes) == ("aider", path.stat().st_size)
    return traces


def test_it_says_that_no_real_file_was_seen() -> None:
    assert not named("aider").verified


def test_chats_speakers_and_usage(tmp_path: Path) -> None:
    first, second = load(tmp_path, HISTORY.replace("#### Summary of changes\n", "") + REST)
    assert [(s.event_class, s.kind) for s in first.steps] == [
        ("harness", "tool_output"),
        ("human", None),
        ("agent", None),
        ("harness", "tool_output"),
        ("harness", "command"),
        ("human", None),
        ("agent", None),
        ("interrupted", "interrupted"),
    ]
    assert first.steps[1].text == "add a health endpoint\nand a test"
    assert "#### not typed" in first.steps[2].text
    assert "> not a line" in first.steps[2].text
    assert (first.steps[5].text, first.steps[5].extra) == ("why?", {"command": "/ask"})
    assert (first.agent.version, first.model) == ("0.86.1", "gpt-x")
    usage = first.totals.usage
    assert (usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.cost_usd) == (4500, 321, 1200, 0.02)
    assert [s.text for s in second.steps] == ["the last turn"]
    assert first.provenance.byte_end == second.provenance.byte_start


def test_a_fence_that_never_ends_loses_no_turn(tmp_path: Path) -> None:
    (trace,) = load(tmp_path, "# aider chat started at 2026-10-09 10:00:00\n\n#### a  \n\n```\nx\n\n#### b  \n")
    assert [s.text for s in trace.steps if s.event_class == "human"] == ["a", "b"]
