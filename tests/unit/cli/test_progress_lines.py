"""Commands that a page starts say how far they are, on sessions that were looked through before too."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from seatrial.cli.app import run
from seatrial.records import Agent, Provenance, Step, Trace
from seatrial.store import Store, frames, session_row, step_rows

DAY = 86_400.0
START = 1_700_000_000.0


def trace(n: int) -> Trace:
    model, at = ("model-a", "model-b")[n % 2], START + n * DAY / 2
    said = "Perfect, thank you!" if n % 3 else "No, that is wrong."
    steps = (
        Step(index=0, event_class="human", text=f"Please write report {n}.", time=at),
        Step(index=1, event_class="agent", text="Done.", model=model, time=at + 5),
        Step(index=2, event_class="human", text=said, time=at + 9),
        Step(index=3, event_class="agent", text="Done.", model=model, time=at + 15),
    )
    about = Provenance(format="made", reader="made", reader_version="1")
    return Trace(id=f"session-{n:03d}", agent=Agent(name="a"), model=model, user=f"u{n}", provenance=about, steps=steps)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("progress") / "store"
    made = Store.open(path, create=True, durable=False)
    traces = [trace(n) for n in range(28)]
    rows = [session_row(t, made.put(t, durable=False)) for t in traces]
    made.commit(frames(rows, [r for t in traces for r in step_rows(t)]))
    assert run(["signals", "--store", str(path)]) == 0
    return path


@pytest.mark.parametrize(
    ("command", "stages"),
    [
        (["signals"], {"signals"}),
        (["rank", "--draws", "999", "--workers", "1"], {"signals", "rankings"}),
        (["drift", "--draws", "999"], {"signals", "comparisons"}),
        (["label", "--keep-queue", "--n", "5"], {"signals", "items"}),
    ],
    ids=["signals", "rank", "drift", "label"],
)
def test_every_stage_is_told_to_its_end(
    store: Path,
    command: list[str],
    stages: set[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("SEATRIAL_PROGRESS", "lines")
    run([*command, "--store", str(store), "--json"])
    out, err = capsys.readouterr()
    assert "result" in json.loads(out)
    steps = [json.loads(line) for line in err.splitlines() if line.startswith('{"done"')]
    assert {s["what"] for s in steps} == stages
    for what in stages:
        told = [(s["done"], s["total"]) for s in steps if s["what"] == what]
        assert told == sorted(told)
        assert told[-1][0] == told[-1][1] > 0, what
