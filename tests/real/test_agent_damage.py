"""Real logs of agents, damaged: nothing breaks, every byte is accounted for, undamaged lines are not lost."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from seatrial.ingest import read_file

pytestmark = pytest.mark.real

FILES = {
    "codex": "sessions/codex/agentv/5fae9d3e1e70.jsonl",
    "copilot-cli": "sessions/copilot-cli/agentv/c845637e1350.jsonl",
    "gemini-cli": "native-examples/gemini-cli-trajectory.json",
    "openhands": "native-examples/openhands_trajectory.json",
    "swe-agent": "swe/swe-agent/3b2496_humanevalfix-python-0.traj",
    "mini-swe-agent": "swe/mini-swe-agent/local.traj.json",
}


def damaged(data: bytes, rng: random.Random) -> bytes:
    """One of: cut short, a piece doubled, two pieces swapped, bytes overwritten, a piece taken out."""
    a, b, c = sorted(rng.randrange(len(data) + 1) for _ in range(3))
    kind = rng.randrange(5)
    if kind == 0:
        return data[:b]
    if kind == 1:
        return data[:b] + data[a:b] + data[b:]
    if kind == 2:
        return data[:a] + data[b:c] + data[a:b] + data[c:]
    if kind == 3:
        noise = rng.randbytes(min(8, c - a))
        return data[:a] + noise + data[a + len(noise) :]
    return data[:a] + data[b:]


@pytest.mark.parametrize("name", FILES)
def test_damaged_files(data: Path, tmp_path: Path, name: str) -> None:
    source = data / FILES[name]
    whole = source.read_bytes()
    rng = random.Random(7)
    path = tmp_path / source.name
    for _ in range(25):
        path.write_bytes(damaged(whole, rng))
        reading = read_file(path, format=name)
        for trace in reading:
            assert [step.index for step in trace.steps] == list(range(len(trace.steps)))
        assert reading.report.n_bytes == path.stat().st_size
        assert not any(" broke: " in skip.why for skip in reading.report.skipped)


@pytest.mark.parametrize("name", ["codex", "copilot-cli"])
def test_one_bad_line_loses_one_line(data: Path, tmp_path: Path, name: str) -> None:
    source = data / FILES[name]
    lines = source.read_bytes().splitlines(keepends=True)
    path = tmp_path / source.name
    (before,) = read_file(source)
    rng = random.Random(11)
    for at in rng.sample(range(1, len(lines)), 10):
        path.write_bytes(b"".join([*lines[:at], lines[at][: len(lines[at]) // 2] + b"\n", *lines[at + 1 :]]))
        reading = read_file(path)
        (after,) = reading
        (skip,) = [skip for skip in reading.report.skipped if not skip.noted]
        assert skip.line == at + 1
        assert reading.report.kept_bytes == path.stat().st_size - skip.bytes
        assert abs(len(after.steps) - len(before.steps)) <= 2
