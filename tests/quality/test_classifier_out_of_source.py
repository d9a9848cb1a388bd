"""Rules and classifier on turns of sources that no fit has seen: what to expect elsewhere, as far as one can know.

The phrases of the lexicon were chosen with sight of the same sources, so this is still kinder than the world.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import numpy as np
import pytest

from seatrial.signals import accuracy, classifier, language, lexicon, training

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
    book = lexicon.builtin()
    prior = training.hand(book, json.loads((ROOT / "scripts" / "hand_points.json").read_text()))
    data = training.rows(turns, book)
    own = tomllib.loads((ROOT / "scripts" / "authored_turns.toml").read_text("utf-8"))
    _, both = training.out_of_source(data, training.rows(training.authored(own), book), prior)
    sure = np.array([not t.disputed for t in turns])
    other = np.array([t.labels == ("other",) for t in turns])
    _, best = training.shifts(both, data, sure, other)
    for kind, f1 in zip(training.KINDS, best, strict=True):
        assert f1 >= FLOORS[kind], kind
