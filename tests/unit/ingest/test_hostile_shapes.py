"""Nesting that is meant to stall, and byte order marks that are meant well: each met once for every format."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from seatrial import ingest

BOM = b"\xef\xbb\xbf"
DEEP = {
    "objects": b'{"a":' * 60_000 + b"1" + b"}" * 60_000,
    "arrays": b"[" * 150_000 + b"]" * 150_000,
    "messages": b'{"messages":[' * 20_000 + b"1" + b"]}" * 20_000,
    "not closed": b'{"version":1,"eval":{"a":' + b'[{"b":' * 30_000,
}


@pytest.mark.parametrize("suffix", [".json", ".jsonl"])
@pytest.mark.parametrize("shape", DEEP)
def test_a_deeply_nested_file_is_refused_at_once(tmp_path: Path, shape: str, suffix: str) -> None:
    path = tmp_path / f"deep{suffix}"
    path.write_bytes(DEEP[shape])
    begun = time.process_time()
    reading = ingest.read_file(path)
    assert list(reading) == []
    assert time.process_time() - begun < 3
    assert "nested too deeply" in (reading.report.why or "")


def claude(text: str, number: int) -> bytes:
    line = {
        "sessionId": "s1", "isSidechain": False, "cwd": "/x", "version": "2.0.0", "type": "user", "uuid": f"u{number}",
        "parentUuid": None, "timestamp": f"2026-01-01T10:00:0{number}.000Z",
        "message": {"role": "user", "content": text},
    }  # fmt: skip
    return json.dumps(line).encode() + b"\n"


@pytest.mark.parametrize("at", [0, 1, 2])
def test_only_the_deep_line_of_a_log_is_lost(tmp_path: Path, at: int) -> None:
    path = tmp_path / "log.jsonl"
    lines = [claude("one", 1), claude("two", 2)]
    lines.insert(at, b'{"type":"user","parentUuid":' + b'{"a":' * 50_000 + b"\n")
    path.write_bytes(b"".join(lines))
    begun = time.process_time()
    reading = ingest.read_file(path, format="claude-code" if at == 0 else None)
    (trace,) = reading
    assert time.process_time() - begun < 3
    assert [s.text for s in trace.steps] == ["one", "two"]
    (lost,) = [s for s in reading.report.skipped if not s.noted]
    assert lost.line == at + 1
    assert "nested too deeply" in lost.why


DOCUMENTS = {
    "claude.jsonl": claude("one", 1) + claude("two", 2),
    "atif.json": json.dumps(
        {
            "schema_version": "ATIF-v1.4",
            "session_id": "s",
            "agent": {"name": "a", "version": "1"},
            "steps": [{"step_id": 1, "source": "user", "message": "hello"}],
        }
    ).encode(),
    "chat.jsonl": b'{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"yes"}]}\n' * 2,
    "chat.json": b'[{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"yes"}]}]',
    "results.csv": b"task,trial,passed\nt1,1,true\nt2,1,false\n",
    "results.jsonl": b'{"task":"t1","trial":1,"passed":true}\n{"task":"t2","trial":1,"passed":false}\n',
    "results.json": b'[{"task":"t1","trial":1,"passed":true},{"task":"t2","trial":1,"passed":false}]',
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_byte_order_mark_changes_nothing(tmp_path: Path, name: str) -> None:
    read = []
    for mark in (b"", BOM):
        path = tmp_path / name
        path.write_bytes(mark + DOCUMENTS[name])
        reading = ingest.read_file(path)
        read.append([(t.id.split("~")[0], [s.text for s in t.steps], t.task.id, t.outcome) for t in reading])
        report = reading.report
        assert (report.status, [s.why for s in report.skipped if not s.noted]) == ("kept", [])
        assert report.kept_bytes == path.stat().st_size
    assert read[0]
    assert [r[1:] for r in read[0]] == [r[1:] for r in read[1]]


@pytest.mark.real
@pytest.mark.parametrize(
    "pattern",
    [
        "inspect/log_formats.json",
        "atif/**/*.json",
        "otel/jaeger*/*.json",
        "otel/langfuse*/*.json",
        "native-examples/*.json",
    ],
)
def test_a_byte_order_mark_before_real_exports(data: Path, tmp_path: Path, pattern: str) -> None:
    for source in sorted(p for p in data.glob(pattern) if p.stat().st_size < 500_000)[:3]:
        plain = ingest.read_file(source)
        wanted = [len(t.steps) for t in plain]
        path = tmp_path / source.name
        path.write_bytes(BOM + source.read_bytes())
        marked = ingest.read_file(path)
        assert [len(t.steps) for t in marked] == wanted, source
        assert marked.format == plain.format
