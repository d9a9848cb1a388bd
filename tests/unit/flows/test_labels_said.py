"""Labels that contradict each other are counted and named; numbers that mean nothing are refused."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seatrial.cli.app import run
from seatrial.errors import EvidenceError, UsageError
from seatrial.flows.label_import import take
from seatrial.flows.labels import read_told
from seatrial.report.text import around, width
from seatrial.scoring import fitting
from seatrial.signals import SignalSettings
from seatrial.signals.accuracy import LabelledTurn, evaluate, read_labels


def _lines(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_session_labels_that_contradict_each_other_are_counted(tmp_path: Path) -> None:
    rows = [{"session": s, "label": v} for s, v in (("a", 1), ("b", 0), ("a", 0), ("b", 0), ("c", 1))]
    found = read_told(_lines(tmp_path / "l.jsonl", *rows))
    assert found.table["label"].to_list() == [0.5, 0.0, 1.0]
    assert found.warnings == (
        "1 sessions have labels that contradict each other, such as a (1 and 0): their mean counts",
    )
    assert read_told(_lines(tmp_path / "m.jsonl", *rows[1:])).warnings == ()


def test_one_turn_with_other_labels_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [LabelledTurn(id="i", turn="fine", labels=labels) for labels in (("praise",), ("other",), ("praise",))]
    again, said = evaluate(rows).warnings
    assert again == "1 line says again what another line of the same id says: counted once"
    assert said.startswith("1 turn is labelled several times and not alike, such as 'i' (praise and other)")
    assert evaluate(rows[:1]).warnings == ()
    file = _lines(tmp_path / "t.jsonl", *({"turn": "fine", "labels": [x]} for x in ("praise", "other")))
    assert run(["signals", "evaluate", "--labels", str(file), "--json"]) == 0
    assert "'fine'" in json.loads(capsys.readouterr().out)["warnings"][0]


@pytest.mark.parametrize("value", [-0.1, 1.5, math.nan, math.inf])
def test_a_threshold_that_is_no_confidence_is_refused(value: float, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="threshold"):
        SignalSettings(threshold=value)
    with pytest.raises(UsageError, match="correction_threshold"):
        SignalSettings(correction_threshold=value)
    file = _lines(tmp_path / "t.jsonl", {"turn": "fine", "labels": ["praise"]})
    assert run(["signals", "evaluate", "--labels", str(file), f"--threshold={value}"]) == 2


@pytest.mark.parametrize("value", [math.inf, math.nan, 0.0])
def test_an_emphasis_that_is_no_weight_is_refused(value: float) -> None:
    with pytest.raises(UsageError, match="emphasis"):
        fitting.fit(
            np.ones((4, 5), dtype=np.float64), np.array([0.0, 1, 0, 1], dtype=np.float64), list("abcd"), emphasis=value
        )


def test_too_few_labels_ask_for_more_labels_and_not_for_another_fit() -> None:
    counts = np.random.default_rng(0).poisson(1.0, (40, 5)).astype(float)
    fitted = fitting.fit(counts, np.tile([0.0, 1.0], 20), [str(i) for i in range(40)], draws=20)
    with pytest.raises(EvidenceError) as caught:
        fitting.success(fitted, counts, [str(i) for i in range(40)])
    assert caught.value.hint == "label 60 more sessions, then fit"


@pytest.mark.parametrize("columns", [4, 9, 20, 31, 60])
def test_evidence_is_never_cut_and_no_visible_code_is_cut_in_two(columns: int) -> None:
    left, quote, right = "the words \u202e before " * 9, "no,\u202ethat is wrong", " and \u200bthe rest of it" * 9
    shown = around(left, quote, right, columns)
    assert "[no,<U+202E>that is wrong]" in shown
    assert "<" not in shown.replace("<U+202E>", "").replace("<U+200B>", "")
    assert "U+" not in shown.replace("<U+202E>", "").replace("<U+200B>", "")
    assert width(shown) <= max(columns, width("[no,<U+202E>that is wrong]") + 2)
    assert around("a ", "b", " c", 20) == "a [b] c"


def test_many_sources_are_not_all_shown(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    rows = ({"turn": "thanks", "labels": ["praise"], "source": f"source-{i}"} for i in range(30))
    assert run(["signals", "evaluate", "--labels", str(_lines(tmp_path / "t.jsonl", *rows))]) == 0
    shown = capsys.readouterr().out
    assert "the 12 with most labels of 30" in " ".join(shown.split())
    assert sum(f"source-{i} " in shown for i in range(30)) == 12


def test_what_is_said_twice_of_one_item_makes_no_second_case() -> None:
    once = [
        LabelledTurn(id=str(i), source=str(i % 3), turn=f"works now, thanks {i}", labels=("confirmation",))
        for i in range(12)
    ]
    assert evaluate([*once, *once]).kinds == evaluate(once).kinds
    unnamed = [LabelledTurn(turn="commit", labels=("accept_implicit",)) for _ in range(3)]
    assert evaluate(unnamed).kinds["accept_implicit"]["n_positive"] == 3


def test_other_stands_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = _lines(tmp_path / "t.jsonl", {"turn": "fine", "labels": ["other", "praise"]})
    assert run(["signals", "evaluate", "--labels", str(file)]) == 2
    assert "exclude each other" in capsys.readouterr().err


def test_a_mark_of_byte_order_is_no_part_of_a_label_file(tmp_path: Path) -> None:
    turns = _lines(tmp_path / "t.jsonl", {"turn": "fine", "labels": ["praise"]})
    sessions = _lines(tmp_path / "s.jsonl", {"session": "a", "label": 1})
    given = _lines(tmp_path / "g.jsonl", {"id": "i", "session": "a", "step": 1, "shown": "fine", "labels": ["praise"],
                                          "probability": 1.0})  # fmt: skip
    for file in (turns, sessions, given):
        file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert [t.turn for t in read_labels(turns)] == ["fine"]
    assert read_told(sessions).table.height == 1
    assert take(given, tmp_path / "out.jsonl", annotator="ana").imported == 1
