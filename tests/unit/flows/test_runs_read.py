"""Rows that a results table loses still count: as excluded attempts, or as evidence that is missing."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from seatrial.cli.app import run
from seatrial.errors import EvidenceError
from seatrial.flows.check import check
from seatrial.flows.runs_read import read_source

Row = tuple[object, ...]
COLUMNS = ("task", "trial", "passed", "status")


def rows(tasks: int = 30, runs: int = 6) -> list[Row]:
    return [(f"t{t:02d}", k, 1, "passed") for t in range(tasks) for k in range(runs)]


def table(path: Path, written: list[Row]) -> Path:
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows([COLUMNS, *written])
    return path


@pytest.mark.parametrize("bad", [(1, "failed"), ("no idea", "")])
def test_rows_that_cannot_be_used_count_as_excluded_attempts(tmp_path: Path, bad: tuple[object, str]) -> None:
    good = table(tmp_path / "a.csv", rows())
    kept = [r if int(str(r[1])) else (r[0], r[1], *bad) for r in rows()]
    comparison = check(good, table(tmp_path / "b.csv", kept)).comparison
    (metric,) = comparison.metrics
    assert metric.excluded == {"unscored": 30}
    assert comparison.verdict == "INCONCLUSIVE"
    assert metric.why == "it would pass, but not if its 30 excluded attempts had failed"


def test_a_repeated_attempt_that_says_otherwise_is_excluded_beside_the_first(tmp_path: Path) -> None:
    twice = table(tmp_path / "b.csv", [*rows(2), ("t00", 0, 0, "failed")])
    assert read_source(twice).run.metrics["passed"].tasks["t00"].excluded == {"unscored": 1}


@pytest.mark.parametrize("bad", [("", 9, 1, "passed"), ("t00", 9, 1, "passed", "one", "too", "many")])
def test_a_row_without_a_task_is_missing_evidence(tmp_path: Path, bad: Row) -> None:
    good = table(tmp_path / "a.csv", rows())
    checked = check(good, table(tmp_path / "b.csv", [*rows(), bad]))
    assert checked.exit_code == 3
    assert "1 rows that name no task cannot be used" in checked.comparison.missing_evidence[0]


def test_a_table_in_a_folder_that_loses_rows_is_missing_evidence(tmp_path: Path) -> None:
    good = table(tmp_path / "a.csv", rows())
    (tmp_path / "b").mkdir()
    table(tmp_path / "b" / "b.csv", [*rows(), ("t00", 9, 1, "failed")])
    assert check(good, tmp_path / "b").exit_code == 3


def test_a_table_whose_every_row_is_lost_says_why(tmp_path: Path) -> None:
    lost = table(tmp_path / "b.csv", [("t00", 0, "no idea", "")])
    with pytest.raises(EvidenceError, match="line 2: column passed"):
        read_source(lost)


@pytest.mark.parametrize("exists", [False, True])
def test_a_baseline_is_not_updated_from_a_table_that_lost_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], exists: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    base, good = tmp_path / "base.json", table(tmp_path / "good.csv", rows())
    bad = table(tmp_path / "bad.csv", [*rows(), ("t00", 9, 1, "failed")])
    update = ["gate", "--baseline", str(base), "--update-baseline", "--reason", "new", "--candidate"]
    if exists:
        assert run([*update, str(good)]) == 0
    before = base.read_bytes() if exists else None
    assert run([*update, str(bad)]) == 2
    assert "--accept-lost-rows" in capsys.readouterr().err
    assert (base.read_bytes() if base.exists() else None) == before
    assert run([*update, str(bad), "--accept-lost-rows"]) == 0
