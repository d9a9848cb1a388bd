"""`drift`, `watch`, `mark`, `baseline` and `sample` from the command line, on real sessions."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from seatrial.cli.app import run
from seatrial.store import Store

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def filled(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of real sessions."""
    path = tmp_path_factory.mktemp("watch") / "store"
    assert run(["ingest", str(data / "sessions" / "claude-code"), "--store", str(path), "--workers", "1"]) == 0
    return path


def test_a_week_is_compared_and_kept_for_the_web(filled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert run(["drift", "--store", str(filled), "--draws", "999", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)["result"]
    assert {c["measure"] for c in answer["changes"]} >= {"task mix", "route"}
    assert answer["before"]["n_sessions"] > 0
    assert [h.kind for h in Store.open(filled).results("drift")] == ["drift"]
    assert run(["drift", "--store", str(filled), "--draws", "999"]) == 0
    shown = capsys.readouterr().out
    assert "What changed" in shown
    assert max(map(len, shown.splitlines())) <= 100


def test_a_look_a_mark_and_a_baseline(filled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["mark", "prompt v12", "--at", "2026-02-16", "--store", str(filled)]) == 0
    assert run(["watch", "--store", str(filled), "--draws", "999"]) == 0
    assert "prompt v12" in capsys.readouterr().out
    out = tmp_path / "set.csv"
    window = ["--window", "2026-02-01..2026-02-15"]
    assert run(["baseline", "refresh", *window, "--n", "10", "--out", str(out), "--store", str(filled)]) == 0
    assert "The first baseline" in capsys.readouterr().out
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert len(rows) == 10
    assert all(0 < float(row["inclusion_probability"]) <= 1 for row in rows)
    assert run(["baseline", "list", "--store", str(filled)]) == 0
    assert "The first is in force" in capsys.readouterr().out


def test_an_evaluation_set_is_drawn(filled: Path, tmp_path: Path) -> None:
    out = tmp_path / "set.csv"
    assert run(["sample", "12", "--store", str(filled), "--out", str(out)]) == 0
    assert len(list(csv.DictReader(out.read_text().splitlines()))) == 12


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["drift", "--window", "soon"], "no range of dates"),
        (["drift", "--baseline", "2000-12-30..2001-01-01", "--window", "2001-01-01..2001-01-02"], "holds no session"),
        (["mark", " "], "needs a name"),
        (["mark", "x", "--at", "yesterday"], "no date"),
        (["sample", "3", "--by", "nothing"], "no column"),
    ],
)
def test_bad_input_says_what_to_do(
    filled: Path, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*arguments, "--store", str(filled)]) in (2, 3)
    assert said in capsys.readouterr().err
