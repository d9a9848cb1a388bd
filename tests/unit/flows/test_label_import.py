"""An exported queue comes back as answers with their text; what is wrong is refused with file and line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from seatrial.cli.app import run
from seatrial.errors import InputError
from seatrial.flows import label
from seatrial.flows.label_import import take
from seatrial.records import Agent, Provenance, Step, Trace
from seatrial.signals.accuracy import read_labels
from seatrial.store import Store, frames, session_row, step_rows

QUEUED = {
    "id": "a1", "unit": "turn", "session": "s", "step": 2, "shown": "works, thanks", "before": "Done.",
    "uncertainty": 0.5, "probability": 0.25, "drawn": "random",
}  # fmt: skip


def _write(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def _store(path: Path) -> Store:
    store = Store.open(path, create=True)
    steps = (
        Step(index=0, event_class="human", text="fix the parser"),
        Step(index=1, event_class="agent", text="Done."),
        Step(index=2, event_class="human", text="works, thanks"),
        Step(index=3, event_class="agent", text="Glad to hear."),
    )
    trace = Trace(id="s", agent=Agent(name="h"), steps=steps,
                  provenance=Provenance(format="f", reader="f", reader_version="1"))  # fmt: skip
    store.commit(frames([session_row(trace, store.put(trace))], step_rows(trace)), replace_sessions=["s"])
    return store


def test_a_queue_line_with_labels_comes_back_with_its_text(tmp_path: Path) -> None:
    file = _write(tmp_path / "in.jsonl", {**QUEUED, "labels": ["confirmation", "praise"]})
    made = take(file, tmp_path / "out.jsonl", annotator="ana")
    assert (made.imported, made.held, made.unknown) == (1, 0, 0)
    (row,) = read_labels(tmp_path / "out.jsonl")
    assert (row.turn, row.before, row.source) == ("works, thanks", "Done.", "s")
    (answer,) = label.read_answers(tmp_path / "out.jsonl")
    assert (answer.annotator, answer.probability) == ("ana", 0.25)
    assert take(file, tmp_path / "out.jsonl", annotator="ana").held == 1


def test_text_that_the_line_lacks_comes_from_the_store_and_strange_items_are_counted(tmp_path: Path) -> None:
    store = _store(tmp_path / "st")
    (item,) = label.items([store.trace("s")], "turn")
    bare = {"id": item.id, "labels": ["praise"], "probability": 0.5}
    file = _write(tmp_path / "in.jsonl", bare, {**QUEUED, "id": "zz", "labels": ["other"]})
    made = take(file, tmp_path / "out.jsonl", annotator="ana", store=store)
    assert made.unknown == 1
    assert "1 of 2 answers" in made.warnings[0]
    assert "zz in line 2" in made.warnings[0]
    first, _ = label.read_answers(tmp_path / "out.jsonl")
    assert (first.turn, first.before, first.source, first.step) == ("works, thanks", "Done.", "s", 2)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"labels": ["prase"]}, "unknown labels 'prase'"),
        ({"labels": []}, "no label"),
        ({"labels": ["praise", "other"]}, "exclude each other"),
        ({"probability": 0}, "probability"),
        ({"probability": -1}, "probability"),
        ({"probability": 1.5}, "probability"),
        ({"probability": None}, "probability"),
        ({"shown": " "}, "no text"),
        ({"session": None}, "no session"),
        ({"unit": "output", "labels": ["pass", "fail"]}, "exclude each other"),
        ({"unit": "output", "labels": ["praise"]}, "unknown labels"),
        ({"unit": "output", "labels": ["pass"], "label": 0.0}, "contradicts"),
        ({"unit": "action", "labels": ["relevant", "extraneous"]}, "exclude each other"),
        ({"labels": ["complaint"]}, "ana gave item a1 other labels in line 1"),
        ({"labels": "praise"}, "not an answer"),
    ],
)
def test_a_bad_line_is_refused_with_its_place_and_nothing_is_kept(
    tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    good = {**QUEUED, "labels": ["praise"]}
    file = _write(tmp_path / "in.jsonl", good, {**good, **change})
    with pytest.raises(InputError, match=said) as caught:
        take(file, tmp_path / "out.jsonl", annotator="ana")
    assert (caught.value.file, caught.value.line) == (str(file), 2)
    assert not (tmp_path / "out.jsonl").exists()


def test_other_labels_than_those_held_are_refused(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    take(_write(tmp_path / "a.jsonl", {**QUEUED, "labels": ["praise"]}), out, annotator="ana")
    again = _write(tmp_path / "b.jsonl", {**QUEUED, "labels": ["complaint"]})
    with pytest.raises(InputError, match="other labels"):
        take(again, out, annotator="ana")
    assert take(again, out, annotator="ben").imported == 1


def test_an_empty_turn_is_never_scored(tmp_path: Path) -> None:
    file = _write(tmp_path / "l.jsonl", {"turn": "fine", "labels": ["praise"]}, {"turn": "", "labels": ["praise"]})
    with pytest.raises(InputError, match="empty") as caught:
        read_labels(file)
    assert caught.value.line == 2


def test_the_command_goes_from_export_to_evaluation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _store(tmp_path / "st")
    queue, out = tmp_path / "q.jsonl", tmp_path / "l.jsonl"
    at = ["--store", str(tmp_path / "st")]
    assert run(["label", "--n", "50", "--random-share", "1", "--export", str(queue), *at]) == 0
    rows = [json.loads(line) | {"labels": ["confirmation"]} for line in queue.read_text().splitlines()]
    capsys.readouterr()
    assert run(["label", "--import", str(_write(queue, *rows)), "--out", str(out), "--json", *at]) == 0
    assert json.loads(capsys.readouterr().out)["result"]["unknown"] == 0
    assert run(["signals", "evaluate", "--labels", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["result"]["kinds"]["confirmation"]["recall"]["value"] == 1.0


def test_agreement_with_a_file_that_is_not_there_is_bad_input(tmp_path: Path) -> None:
    there = tmp_path / "a.jsonl"
    take(_write(tmp_path / "q.jsonl", {**QUEUED, "labels": ["praise"]}), there, annotator="ana")
    for pair in ([there, tmp_path / "none"], [tmp_path / "none", there]):
        assert run(["label", "agreement", *map(str, pair)]) == 2
