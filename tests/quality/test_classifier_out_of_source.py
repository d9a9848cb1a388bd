"""Rules and classifier on turns of sources that no fit has seen: what to expect elsewhere, as far as one can know.

The phrases of the lexicon were chosen with sight of the same sources, so this is still kinder than the world.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from seatrial.errors import EvidenceError
from seatrial.signals import accuracy, classifier, language, lexicon, measured, training

ROOT = Path(__file__).parents[2]
FLOORS = {"confirmation": 0.81, "accept_implicit": 0.92, "praise": 0.89, "complaint": 0.80, "correction": 0.67}


@pytest.fixture(scope="module")
def turns(data: Path) -> list[accuracy.LabelledTurn]:
    path = data / "labels" / "turns.jsonl"
    if not path.is_file():
        pytest.skip("no labelled turns at data/labels/turns.jsonl")
    return [turn for turn in accuracy.read_labels(path) if not turn.harness]


@pytest.mark.real
def test_training_sees_what_the_package_computes(turns: list[accuracy.LabelledTurn]) -> None:
    """The shipped points and weights, through the training features, give the detectors' own log-odds."""
    book = lexicon.builtin()
    sample = turns[:40]
    data = training.rows(sample, book)
    heard = [language.Heard(t.turn, t.before, t.interrupted) for t in sample]
    readings = language.read_many(heard)
    shipped = training.hand(book, {"bias": book.bias, "cue": {}, "context": {}})  # type: ignore[dict-item]
    rules = training.rule_scores(data, shipped)
    for i, reading in enumerate(readings):
        for kind, total in language.score(reading).items():
            if kind in training.KINDS:
                j = training.KINDS.index(kind)
                assert total == pytest.approx(rules[i, j] + reading.learned.get(kind, 0.0), abs=1e-9)


def test_the_shipped_classifier_is_small_and_belongs_to_this_lexicon() -> None:
    file = ROOT / "src" / "seatrial" / "signals" / "classifier.npz"
    assert file.stat().st_size < 500_000
    assert set(classifier.model().kinds) == set(training.SHARES)
    assert np.isfinite(classifier.model().weights).all()


@pytest.mark.full
@pytest.mark.real
def test_f1_with_sources_left_out_stays_above_its_floor(turns: list[accuracy.LabelledTurn]) -> None:
    """And it is what the package says of itself (`scripts/measure`)."""
    found = accuracy.evaluate(turns, judge=training.left_out(turns))
    for kind, floor in FLOORS.items():
        for name in ("precision", "recall", "f1"):
            ours, told = found.kinds[kind][name], getattr(measured.shipped()[kind], name)
            assert told is not None
            assert ours.value == pytest.approx(told.value, abs=0.01), (kind, name)
        assert found.kinds[kind]["f1"].value >= floor, kind
    assert found.false_alarm is not None
    assert found.false_alarm.value <= 0.08


def test_sources_must_be_told_apart_to_be_left_out() -> None:
    few = [accuracy.LabelledTurn(turn=f"no, {i} is wrong", labels=("correction",)) for i in range(40)]
    with pytest.raises(EvidenceError, match="one source"):
        training.left_out(few)


def test_a_threshold_is_found_where_no_turn_is_labelled_other() -> None:
    score, truth = np.array([-1.0, 0.0, 2.0]), np.array([0.0, 0.0, 1.0])
    at, f1 = training.cut(score, truth, np.zeros(3, bool))
    assert 0.0 < at <= 2.0
    assert f1 == 1.0


def test_every_source_that_is_left_out_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    few = [
        accuracy.LabelledTurn(turn=f"no, {i} is wrong", labels=("correction",), source=s)
        for s in "ab"
        for i in range(30)
    ]
    _, prior = training.start()
    monkeypatch.setattr(training, "start", lambda: (None, prior))
    monkeypatch.setattr(training, "fit_both", lambda data, extra, prior: (prior, None))
    monkeypatch.setattr(training, "combined", lambda data, points, model: training.rule_scores(data, points))
    told = list[tuple[int, int | None]]()
    training.left_out(few, lambda done, total, what: told.append((done, total)))
    assert told == [(0, 2), (1, 2), (2, 2)]


@pytest.mark.real
def test_turns_that_the_detectors_learned_from_are_told(turns: list[accuracy.LabelledTurn]) -> None:
    (said,) = accuracy.evaluate(turns[:60]).warnings
    assert "were used to fit" in said
    others = [accuracy.LabelledTurn(turn="please have another look at the third one", labels=("other",))]
    assert accuracy.evaluate(others).warnings == ()
