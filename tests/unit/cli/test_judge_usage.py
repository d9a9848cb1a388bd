"""Judges: mistakes of usage are told alone and first; what cannot gate is never said to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from seatrial.cli.app import run
from seatrial.flows.judge import Work, plan
from seatrial.flows.judge import run as judge_work
from seatrial.grading.judge_cache import Cache
from seatrial.records import Attempt
from seatrial.records.judge import Criterion, JudgeSpec, Reply

CRITERIA = "[[criteria]]\nid = 'c'\nstatement = 'It refunds.'\n"
HEAD = "name = 'j'\nmodel = 'm'\n"


def labels(path: Path, criterion: str | None = None) -> str:
    rows = ["item,task,judge,human_1,human_2" + (",criterion" if criterion else "")]
    for n in range(120):
        word = "pass" if n % 2 else "fail"
        rows.append(f"i{n},t{n},{word},{word},{word}" + (f",{criterion}" if criterion else ""))
    path.write_text("\n".join(rows) + "\n")
    return str(path)


@pytest.mark.parametrize(("head", "criterion", "usable"), [
    ("", None, True), ("", "c", True), ("", "other", False), ("kind = 'pairwise'\n", None, False),
    ("kind = 'pairwise'\n", "c", False),
])  # fmt: skip
def test_a_judge_may_gate_by_its_own_criteria_alone(
    head: str, criterion: str | None, usable: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "j.toml").write_text(HEAD + head + CRITERIA)
    file, stamp = labels(tmp_path / "l.csv", criterion), tmp_path / "s.json"
    status = run(["judge", "validate", file, "--judge", str(tmp_path / "j.toml"), "--stamp", str(stamp)])
    assert status == (0 if usable else 3)
    assert ("may gate" in capsys.readouterr().out) == usable
    assert ("usable" in json.loads(stamp.read_text())["criteria"].values()) == usable


@pytest.mark.parametrize("options", [
    ["--task", "nope"], ["--item", "nope"], ["--judge-column", "human_1"], ["--human", "judge"],
    ["--judge-column", "nope"], ["--human", "nope"],
])  # fmt: skip
def test_columns_that_are_not_there_or_stand_for_two_are_refused(
    options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["judge", "validate", labels(tmp_path / "l.csv"), *options, "--json"]) == 2
    told = capsys.readouterr()
    assert options[1] in json.loads(told.err)["error"]["message"]
    assert told.out == ""


def test_the_plan_counts_as_cached_what_the_run_does_not_ask(tmp_path: Path) -> None:
    spec = JudgeSpec(name="j", model="m", criteria=(Criterion(id="c", statement="It refunds."),), max_characters=50)
    attempts = tuple(Attempt(task=f"t{n}", trial=0, status="passed") for n in range(4))
    work = Work(attempts, ("same", "same", "other", "x" * 99), (None,) * 4)
    cache = Cache(tmp_path)
    before = plan(spec, work, cache)
    made = judge_work(spec, work, lambda messages: Reply(text="{}", usage=None), cache=cache)
    assert before.outputs - before.cached == made.asked
    assert plan(spec, work, cache).cached == 4
