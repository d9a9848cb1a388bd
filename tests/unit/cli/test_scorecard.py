"""`seatrial scorecard` and `seatrial verify AUDIT` at the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from seatrial.cli.app import run


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Two models, three tasks, four runs each."""
    rows = "".join(
        f"t{t},{n},{m},{int((t + n) % 3 > 0 or m == 'x')}\n" for m in "xy" for t in range(3) for n in range(4)
    )
    file = tmp_path / "results.csv"
    file.write_text("task,trial,model,passed\n" + rows, encoding="utf-8")
    return file


def test_json_has_the_contract(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["scorecard", str(table), "--model", "x", "--json"]) == 0
    envelope = json.loads(capsys.readouterr().out)
    assert envelope["command"] == "scorecard"
    result = envelope["result"]
    assert (result["k"], result["tasks"], result["counts"]) == (4, 3, {"passed": 12})
    assert result["dimensions"]["D1"]["estimate"]["value"] == 1.0
    assert result["dimensions"]["D4"] | {"estimate": None, "why": "no run failed"} == result["dimensions"]["D4"]


def test_side_by_side_fits_a_hundred_columns(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, text = tmp_path / "s.html", tmp_path / "s.md"
    profiles = tmp_path / "p.toml"
    profiles.write_text("[steady]\nD1 = 1\nD3 = 2\n", encoding="utf-8")
    command = ["scorecard", str(table), "--html", str(page), "--markdown", str(text), "--profile", str(profiles)]
    assert run(command) == 0
    shown = capsys.readouterr().out
    assert max(len(line) for line in shown.splitlines()) <= 100
    for words in ("Scorecards, side by side", "What separates them", "Deployment profiles", "can and cannot certify"):
        assert words in shown
    assert "<svg" in page.read_text(encoding="utf-8")
    assert "D3 reproducibility" in text.read_text(encoding="utf-8")


def test_a_plan_runs_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = tmp_path / "store"
    command = [
        "scorecard",
        "example:assistant",
        "--agent",
        "assistant-clean",
        "-k",
        "10",
        "--plan",
        "--store",
        str(store),
    ]
    assert run(command) == 0
    assert "14 tasks, 10 runs each" in capsys.readouterr().out
    assert run([*command, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["result"]["agents"][0]["attempts"] == 140
    assert not store.exists()


def test_made_here_kept_and_verified(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store, audits = tmp_path / "store", tmp_path / "audits"
    command = ["scorecard", "example:assistant", "--agent", "assistant-clean", "-k", "2", "--task", "assistant-day",
               "--only", "D1", "--only", "D7", "--store", str(store), "--audits", str(audits)]  # fmt: skip
    assert run(command) == 0
    captured = capsys.readouterr()
    assert "2 runs take about" in captured.err
    assert "assistant-clean: a point at the value" in captured.out
    assert run(["verify", str(audits)]) == 0
    assert "2 audit records: everything holds together" in capsys.readouterr().out
    file = sorted(audits.iterdir())[0]
    head = json.loads(file.read_text(encoding="utf-8"))["provenance_chain"]["head"]
    assert run(["verify", str(file), "--head", head, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["result"]["ok"] is True
    assert run(["verify", str(file), "--head", "0" * 64]) == 1
    assert "not the one that was kept" in capsys.readouterr().out.replace("\n", " ")
    file.write_text(file.read_text(encoding="utf-8").replace("assistant-day", "assistant-dat"), encoding="utf-8")
    assert run(["verify", str(file)]) == 1
    from seatrial.store import Store

    kept = Store.open(store).results("scorecard")
    assert len(kept) == 1


def test_wrong_use(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["scorecard", str(tmp_path / "nothing"), "--json"]) == 2
    assert json.loads(capsys.readouterr().err)["error"]["code"] == "bad_input"
    assert run(["scorecard", str(table), "example:assistant", "--agent", "x"]) == 2
    assert run(["verify", str(table)]) == 2
    assert run(["verify", str(tmp_path), "--json"]) == 3
    assert run(["verify", str(table), str(table), "--head", "x"]) == 2


def test_nothing_measured_exits_three(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "r.csv"
    file.write_text("task,trial,status,passed\na,0,error_infra,\nb,0,skipped,\n", encoding="utf-8")
    assert run(["scorecard", str(file)]) == 3
