"""`seatrial signals --explain` says how much was found, also where it is nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from seatrial.cli.app import run


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ([("assistant", "hello"), ("assistant", "done")], "No signal was detected"),
        (
            [("user", "fix it"), ("assistant", "Done."), ("user", "no, that is wrong"), ("assistant", "Sorry.")],
            "1 signal detected, 1 counts",
        ),
    ],
)
def test_what_was_found_is_counted(
    said: list[tuple[str, str]], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chat = {"model": "toy-1", "messages": [{"role": role, "content": text} for role, text in said]}
    file = tmp_path / "chat.jsonl"
    file.write_text(json.dumps(chat) + "\n", "utf-8")
    assert run(["signals", "--file", str(file)]) == 0
    assert told in capsys.readouterr().out
