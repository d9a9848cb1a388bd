"""The trap kit: our readers pass all of it, the judge sees what is wrong, and strangers can be scored."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import msgspec
import pytest

from seatrial.cli.app import run
from seatrial.errors import UsageError
from seatrial.flows import readers
from seatrial.ingest import traps

SMALL = [trap for trap in traps.traps() if trap.generate is None]


@pytest.mark.parametrize("trap", traps.traps(), ids=lambda trap: f"{trap.format}/{trap.name}")
def test_our_readers_pass(trap: traps.Trap) -> None:
    (verdict,) = readers.score(format=trap.format, trap=trap.name)
    assert verdict.verdict == "passed", verdict.why


def test_the_issue_traps_are_there() -> None:
    names = {trap.name for trap in traps.traps(format="claude-code")}
    assert names >= {
        *("last-human-turn", "error-flag", "side-chain", "background-sub-agent", "compact-summary", "notification"),
        *("meta", "hook", "interrupt-and-correction", "torn-line", "line-separators", "streamed-message", "branch"),
        *("no-request-id", "same-uuid-twice", "user-rejection", "benign-exits", "reminder-prefix", "parent-links"),
        *("numbers-as-strings", "nulls", "million-lines"),
    }


@pytest.mark.parametrize("trap", SMALL, ids=lambda trap: f"{trap.format}/{trap.name}")
def test_every_file_is_small_and_listed(trap: traps.Trap) -> None:
    found = {str(p.relative_to(trap.folder)) for p in trap.folder.rglob("*") if p.is_file()} - {"answer.json"}
    assert found == set(trap.files)
    assert all((trap.folder / file).stat().st_size < 20_000 for file in found)
    assert len(trap.why) > 20


@pytest.mark.parametrize("trap", SMALL, ids=lambda trap: f"{trap.format}/{trap.name}")
def test_the_judge_fails_a_reader_that_shows_nothing_or_all_wrong(trap: traps.Trap, tmp_path: Path) -> None:
    assert traps.judge(trap, traps.Shown(turns=())).verdict != "passed"
    right = readers.show(traps.lay_out(trap, tmp_path))
    wrong = [spoilt(turn) for turn in right.turns]
    assert traps.judge(trap, traps.Shown(turns=tuple(wrong), reports=right.reports)).verdict == "failed"


def spoilt(turn: traps.ShownTurn) -> traps.ShownTurn:
    """The turn with people's words given to the harness, no outcome known, and tokens counted twice."""
    replace = msgspec.structs.replace
    return replace(
        turn,
        event="harness" if turn.event == "human" else turn.event,
        results=[replace(result, outcome="unknown", cause=None) for result in turn.results],
        usage=turn.usage and replace(turn.usage, input_tokens=(turn.usage.input_tokens or 0) * 2),
        text=f"{turn.text}!",
    )


@pytest.mark.parametrize("trap", SMALL, ids=lambda trap: f"{trap.format}/{trap.name}")
def test_what_is_shown_survives_its_format(trap: traps.Trap, tmp_path: Path) -> None:
    right = readers.show(traps.lay_out(trap, tmp_path))
    lines = [msgspec.json.encode(line) for line in (*right.turns, *right.reports)]
    assert traps.judge(trap, traps.parse(lines)) == traps.judge(trap, right)


def adapter(folder: Path, code: str) -> str:
    path = folder / "adapter.py"
    path.write_text(code)
    return f"{sys.executable} {path}"


NAIVE = """
import json, sys
for file in sys.argv[1:]:
    for line in open(file, newline="\\n"):
        record = json.loads(line)
        if record["type"] in ("user", "assistant"):
            event = "human" if record["type"] == "user" else "agent"
            content = record["message"]["content"]
            text = content if isinstance(content, str) else "".join(b.get("text", "") for b in content)
            print(json.dumps({"event": event, "text": text}))
"""


def test_a_naive_reader_is_scored(tmp_path: Path) -> None:
    verdicts = readers.score(adapter=adapter(tmp_path, NAIVE), format="claude-code", trap="last-human-turn")
    assert [(v.verdict, v.why) for v in verdicts] == [
        ("failed", 'human: expected ["Fix the test","perfect, thanks!"], found ["Fix the test","","perfect, thanks!"]')
    ]
    (verdict,) = readers.score(adapter=adapter(tmp_path, NAIVE), format="claude-code", trap="cached-input")
    assert verdict.verdict == "not stated"
    assert verdict.peak_mb is not None
    assert 1 < verdict.peak_mb < 1000


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("import sys; sys.exit('no such format')", "ended with status 1: no such format"),
        ("print('hello')", "line 1 of the adapter's output"),
        ('print(\'{"event": "robot"}\')', "line 1 of the adapter's output"),
        ("import time; time.sleep(60)", "did not end within 0.5 s"),
    ],
)
def test_an_adapter_that_breaks_has_failed(tmp_path: Path, code: str, why: str) -> None:
    (verdict,) = readers.score(
        adapter=adapter(tmp_path, code), format="claude-code", trap="last-human-turn",
        timeout=0.5 if "sleep" in code else 60.0,
    )  # fmt: skip
    assert verdict.verdict == "failed"
    assert why in verdict.why


def test_bad_requests_are_refused() -> None:
    for wrong in ({"trap": "nothing"}, {"format": "nothing"}, {"adapter": "./no/such/program"}, {"adapter": " "}):
        with pytest.raises(UsageError):
            readers.score(**wrong)  # type: ignore[arg-type]


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "readers", "--trap", "torn-line", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)["result"]
    assert result["counts"] == {"passed": 1, "failed": 0, "not stated": 0}
    assert result["traps"][0]["trap"] == "torn-line"
    naive = adapter(tmp_path, NAIVE)
    assert run(["doctor", "readers", "--trap", "meta", "--adapter", naive]) == 1
    assert "0 of 1 traps passed" in capsys.readouterr().out
    assert run(["doctor", "readers", "--list"]) == 0
    assert "reminder-prefix" in capsys.readouterr().out
    assert run(["doctor", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["result"]["readers"]


@pytest.mark.full
def test_the_kit_can_be_written_out(tmp_path: Path) -> None:
    assert run(["doctor", "readers", "--export", str(tmp_path)]) == 0
    for trap in traps.traps():
        place = tmp_path / trap.format / trap.name
        assert json.loads((place / "answer.json").read_text())["why"] == trap.why
        assert all((place / file).is_file() for file in trap.files)
