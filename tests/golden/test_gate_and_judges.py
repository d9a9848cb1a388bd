"""Worked numbers of the spending function (Lan-DeMets, O'Brien-Fleming) as published, and of the judge's thresholds."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from seatrial.gate.spending import boundaries, repeated_p, spent
from seatrial.grading.ratings import Ratings
from seatrial.grading.validate import validate


def test_obrien_fleming_boundaries_of_five_equal_looks() -> None:
    """Two-sided 5%, Lan-DeMets spending of O'Brien-Fleming type: as tabulated by the common software for sequential
    designs (4.877, 3.357, 2.680, 2.290, 2.031)."""
    found = boundaries([0.2, 0.4, 0.6, 0.8, 1.0], 0.025)
    assert found == pytest.approx([4.877, 3.357, 2.680, 2.290, 2.031], abs=6e-4)


def test_all_alpha_is_spent_at_the_end_and_one_look_is_a_plain_test() -> None:
    assert spent(1.0, 0.05) == pytest.approx(0.05)
    assert boundaries([1.0], 0.05) == pytest.approx([1.6449], abs=1e-4)
    assert repeated_p([1.6449], [1.0]) == pytest.approx(0.05, abs=2e-4)


def test_looks_cross_with_probability_alpha() -> None:
    fractions = [0.3, 0.55, 1.0]
    bound = np.array(boundaries(fractions, 0.05))
    rng = np.random.default_rng(1)
    steps = np.sqrt(np.diff([0.0, *fractions]))
    z = np.cumsum(rng.standard_normal((400_000, 3)) * steps, axis=1) / np.sqrt(fractions)
    assert (z >= bound).any(axis=1).mean() == pytest.approx(0.05, abs=0.0015)


@pytest.mark.parametrize(
    ("agreements", "status"), [(93, "usable"), (92, "usable"), (91, "provisional"), (84, "refused")]
)
def test_at_100_items_usable_takes_92_agreements(agreements: int, status: str) -> None:
    truth = ["pass" if i % 2 else "fail" for i in range(100)]
    other = {"pass": "fail", "fail": "pass"}
    judge = [t if i < agreements else other[t] for i, t in enumerate(truth)]
    made = _ratings({"human_1": truth, "human_2": truth}, judge)
    assert validate(made, draws=1999).status == status


def test_vectors_of_kappa(golden: Path) -> None:
    for case in json.loads((golden / "agreement.json").read_text())["kappa"]:
        (a, b), (c, d) = case["table"]
        truth = ["pass"] * (a + b) + ["fail"] * (c + d)
        judge = ["pass"] * a + ["fail"] * b + ["pass"] * c + ["fail"] * d
        standing = validate(_ratings({"human_1": truth}, judge))
        assert standing.agreement is not None
        assert standing.kappa is not None
        assert standing.agreement.value == pytest.approx(case["agreement"])
        assert standing.kappa.value == pytest.approx(case["kappa"], abs=1e-8)
        assert (standing.kappa.low, standing.kappa.high) == pytest.approx(case["ci95"], abs=0.02)
        assert standing.sensitivity is not None
        assert standing.sensitivity.value == pytest.approx(a / (a + b))
        assert standing.status in ("refused", "provisional")


def test_one_class_only_is_refused_and_says_so(golden: Path) -> None:
    assert json.loads((golden / "agreement.json").read_text())["constant_raters"]["kappa"] is None
    standing = validate(_ratings({"human_1": ["pass"] * 100}, ["pass"] * 100))
    assert standing.kappa is not None
    assert standing.kappa.value is None
    assert standing.status == "refused"
    assert "one class" in standing.why


def test_humans_who_disagree_are_told_to_fix_the_rubric() -> None:
    rng = np.random.default_rng(3)
    humans = {f"human_{i}": rng.choice(["pass", "fail"], 100).tolist() for i in (1, 2)}
    standing = validate(_ratings(humans, humans["human_1"]), draws=1999)
    assert standing.status == "fix the rubric"
    assert standing.human_kappa is not None
    assert standing.human_kappa.value is not None
    assert standing.human_kappa.value < 0.6


def _ratings(humans: dict[str, list[str]], judge: list[str]) -> Ratings:
    n = len(judge)
    return Ratings(
        criterion="c", items=tuple(map(str, range(n))), tasks=(None,) * n,
        humans={name: tuple(v) for name, v in humans.items()}, judge=tuple(judge), judge_swapped=None, length=None,
        agent=None, binary=True, mapped={},
    )  # fmt: skip
