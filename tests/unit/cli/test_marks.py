"""Deploy marks from the command line: put on record, listed, taken back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from seatrial.cli.app import run
from seatrial.flows import watch as flow
from seatrial.store import Store


@pytest.fixture
def place(tmp_path: Path) -> str:
    Store.open(tmp_path / "store", create=True)
    return str(tmp_path / "store")


def listed(place: str, capsys: pytest.CaptureFixture[str]) -> list[tuple[str, float]]:
    capsys.readouterr()
    assert run(["mark", "--list", "--json", "--store", place]) == 0
    return [(m["text"], m["time"]) for m in json.loads(capsys.readouterr().out)["result"]]


def test_marks_are_listed_and_taken_back(place: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert listed(place, capsys) == []
    for at in ("2026-01-02", "2026-01-01T08:30:20"):
        assert run(["mark", "prompt  v12", "--at", at, "--store", place]) == 0
    assert run(["mark", "other", "--at", "2026-01-03", "--store", place]) == 0
    assert [text for text, _ in listed(place, capsys)] == ["prompt v12", "prompt v12", "other"]
    assert run(["mark", "--list", "--store", place]) == 0
    assert "2026-01-01 08:30  prompt v12" in capsys.readouterr().out
    assert run(["mark", "--remove", "prompt v12", "--store", place]) == 2
    assert "2026-01-01T08:30:20" in capsys.readouterr().err
    assert run(["mark", "--remove", "prompt v12", "--at", "2026-01-01T08:30", "--store", place]) == 0
    assert [text for text, _ in listed(place, capsys)] == ["prompt v12", "other"]
    assert run(["mark", "--remove", "prompt v12", "--store", place]) == 0
    assert run(["mark", "--remove", "prompt v12", "--store", place]) == 2
    assert "there is no mark" in capsys.readouterr().err
    assert [text for text, _ in listed(place, capsys)] == ["other"]


def test_marks_of_one_minute_are_told_apart_by_the_times_that_the_refusal_names(
    place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for at in (1767312000.1234567, 1767312000.7654321):  # as a clock gives them, finer than they are printed
        flow.mark(Store.open(place), "x", at)
    assert run(["mark", "--remove", "x", "--store", place]) == 2
    second = capsys.readouterr().err.split(", ")[1].split()[0]
    assert run(["mark", "--remove", "x", "--at", second, "--store", place]) == 0
    assert listed(place, capsys) == [("x", 1767312000.1234567)]


@pytest.mark.parametrize("wrong", [[], ["x", "--list"], ["x", "--remove", "y"], ["--list", "--at", "2026-01-01"]])
def test_one_thing_at_a_time(wrong: list[str], place: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["mark", *wrong, "--store", place]) == 2
    assert "name what was deployed" in capsys.readouterr().err
