"""Do the detectors find what they claim to find? On real labelled turns, with floors under the measured values.

The turns are not in the repository. The lexicon was tuned on them, so these are floors of regression, not estimates
of accuracy elsewhere; the sources are kept apart because they differ so much.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.signals import Accuracy, evaluate

FLOORS = {"confirmation": 0.81, "praise": 0.88, "accept_implicit": 0.90, "correction": 0.71, "complaint": 0.80}


@pytest.fixture(scope="module")
def accuracy(data: Path) -> Accuracy:
    path = data / "labels" / "turns.jsonl"
    if not path.is_file():
        pytest.skip("no labelled turns at data/labels/turns.jsonl")
    return evaluate(path)


@pytest.mark.real
@pytest.mark.parametrize("kind", FLOORS)
def test_f1_stays_above_its_floor(accuracy: Accuracy, kind: str) -> None:
    assert accuracy.kinds[kind]["f1"].value >= FLOORS[kind]


@pytest.mark.real
def test_other_turns_rarely_raise_a_complaint_or_correction(accuracy: Accuracy) -> None:
    assert accuracy.false_alarm is not None
    assert accuracy.false_alarm.value <= 0.08


@pytest.mark.real
def test_no_source_of_size_falls_far_behind(accuracy: Accuracy) -> None:
    for source, kinds in accuracy.by_source.items():
        for kind, row in kinds.items():
            if row["n_positive"] >= 20 and kind != "accept_implicit":
                assert row["f1"].value >= 0.55, (source, kind)


@pytest.mark.real
def test_disputed_rows_change_little(data: Path, accuracy: Accuracy) -> None:
    path = data / "labels" / "turns.jsonl"
    both = evaluate(path, disputed=True)
    assert both.n_turns == accuracy.n_turns + accuracy.n_disputed
    for kind in FLOORS:
        assert abs(both.kinds[kind]["f1"].value - accuracy.kinds[kind]["f1"].value) < 0.05
