"""The first screen shows real output."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def excerpts() -> list[str]:
    return re.findall(r"^```text\n(.*?)^```$", (ROOT / "README.md").read_text(), re.M | re.S)


def test_the_first_screen_shows_numbers() -> None:
    (excerpt,) = excerpts()
    assert "harbor-large" in excerpt
    assert re.search(r"[+-]\d+\.\d \[[+-]\d+\.\d, [+-]\d+\.\d\]", excerpt)


@pytest.mark.full
def test_the_first_screen_is_what_the_demo_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Runs the demo with its default seed; refresh the README when detectors or estimators change."""
    from seatrial.cli.app import run

    assert run(["demo", "--out", str(tmp_path / "demo")]) == 0
    printed = capsys.readouterr().out
    (excerpt,) = excerpts()
    for part in re.split(r"\n\.\.\.\n", excerpt.strip("\n")):
        assert part.strip("\n") in printed
