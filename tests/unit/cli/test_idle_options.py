"""Options of `seatrial scorecard` and `seatrial verify` that would do nothing are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.cli.app import run


@pytest.mark.parametrize(
    "idle",
    [
        ["--plan"],
        ["-k", "3"],
        ["--max-hours", "1"],
        ["--max-cost", "1"],
        ["--concurrency", "2"],
        ["--task", "a"],
        ["--suite", "example:assistant"],
    ],
)
def test_what_does_nothing_with_a_results_table_is_refused(
    idle: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "r.csv"
    file.write_text("task,trial,passed\na,0,1\nb,0,0\n", encoding="utf-8")
    assert run(["scorecard", str(file), "--only", "D1", "--json"]) == 0
    assert run(["scorecard", str(file), *idle]) == 2
    assert f"{idle[0]} would do nothing" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("idle", [["--model", "m"], ["--format", "results"], ["--suite", "example:assistant"]])
def test_what_does_nothing_where_an_agent_runs_is_refused(idle: list[str]) -> None:
    assert run(["scorecard", "example:assistant", "--agent", "assistant-clean", "--plan", *idle]) == 2


def test_a_suite_without_an_agent_says_what_to_add(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["scorecard", "example:ticketdesk"]) == 2
    assert "--agent SPEC" in " ".join(capsys.readouterr().err.split())


def test_a_head_goes_with_one_record_in_any_case_of_letters(tmp_path: Path) -> None:
    assert run(["verify", str(tmp_path), "--head", "ab"]) == 2
