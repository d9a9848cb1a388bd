"""Worked kappas, corrected rates, and Krippendorff's own example."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seatrial.stats import cohen_kappa, krippendorff_alpha, raw_agreement, rogan_gladen

VECTORS: dict[str, Any] = json.loads((Path(__file__).parent / "agreement.json").read_text())


@pytest.mark.parametrize("case", VECTORS["kappa"], ids=str)
def test_kappa(case: dict[str, Any]) -> None:
    kappa, agreement = cohen_kappa(case["table"], draws=50_000), raw_agreement(case["table"])
    assert kappa.value == pytest.approx(case["kappa"], abs=5e-9)
    # The published limits are themselves a bootstrap; 0.006 is its Monte Carlo and grid error.
    assert [kappa.low, kappa.high] == pytest.approx(case["ci95"], abs=6e-3)
    assert agreement is not None
    assert agreement.value == pytest.approx(case["agreement"], abs=1e-12)


def test_constant_raters_have_no_kappa() -> None:
    kappa = cohen_kappa(VECTORS["constant_raters"]["table"])
    assert (kappa.value, kappa.low, kappa.high) == (None, None, None)
    assert kappa.why == "one class only: kappa is undefined"


def test_rogan_gladen() -> None:
    case = VECTORS["rogan_gladen"]
    smoothed = rogan_gladen(case["p"], case["specificity"], case["sensitivity"], 1000, 200, 200)
    delta = rogan_gladen(case["p"], case["specificity"], case["sensitivity"], 1000, 200, 200, interval="delta")
    assert smoothed is not None
    assert delta is not None
    assert smoothed.value == delta.value == pytest.approx(case["expect"], abs=5e-9)
    assert [smoothed.low, smoothed.high] == pytest.approx(case["ci_with_n_1000_m_200_200"], abs=6e-5)
    assert [delta.low, delta.high] == pytest.approx([0.0643, 0.2690], abs=6e-5)


def test_krippendorffs_example() -> None:
    """Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability", example C: four observers, twelve units."""
    gap = np.nan
    ratings = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, gap, gap, gap],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, gap, 3],
        [gap, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, gap],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, gap],
    ]
    nominal, interval = krippendorff_alpha(ratings), krippendorff_alpha(ratings, "interval")
    assert nominal.value == pytest.approx(0.743, abs=6e-4)
    assert interval.value == pytest.approx(0.849, abs=6e-4)
    assert nominal.n == 11
