"""The resume ledger survives being killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.engine.ledger import Ledger
from seatrial.errors import InputError, UsageError


def test_what_was_recorded_is_found_again(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l.jsonl") as ledger:
        ledger.record("a", {"score": 1})
        ledger.record("b\n", None)
        ledger.record("a", {"score": 2})
        assert "a" in ledger
    again = Ledger(tmp_path / "l.jsonl")
    assert list(again) == ["a", "b\n"]
    assert again.get("a") == {"score": 2}
    assert again.get("c", "no") == "no"
    assert len(again) == 2
    assert again.torn == 0
    again.close()


def test_every_cut_of_the_file_gives_the_records_before_it(tmp_path: Path) -> None:
    path = tmp_path / "l.jsonl"
    with Ledger(path) as ledger:
        for n in range(4):
            ledger.record(str(n), n)
    data = path.read_bytes()
    for cut in range(len(data) + 1):
        path.write_bytes(data[:cut])
        whole = data[:cut].count(b"\n")
        with Ledger(path) as ledger:
            assert list(ledger) == [str(n) for n in range(whole)]
            assert ledger.torn == cut - (data[:cut].rfind(b"\n") + 1)
            ledger.record("next")
        with Ledger(path) as ledger:
            assert list(ledger) == [*(str(n) for n in range(whole)), "next"]


def test_a_damaged_line_in_the_middle_is_named(tmp_path: Path) -> None:
    path = tmp_path / "l.jsonl"
    path.write_bytes(b'{"key":"a","value":1}\nnonsense\n{"key":"b","value":1}\n')
    with pytest.raises(InputError) as caught:
        Ledger(path)
    assert (caught.value.file, caught.value.line) == (str(path), 2)


def test_a_closed_ledger_takes_nothing(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "l.jsonl")
    ledger.close()
    with pytest.raises(UsageError):
        ledger.record("a")


def test_a_folder_is_not_a_ledger(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        Ledger(tmp_path)
